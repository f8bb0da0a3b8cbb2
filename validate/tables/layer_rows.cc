// Readers of tables of the operators of real layers: of serving (Vidur) and of training
// (estimate-train-time). Both were measured in continuous use, at sustained clocks.
// kernel_formats.cc lists the readers.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "validate/tables/kernel_rows.h"

namespace foreshard::accuracy {
namespace {

// (model, tensor parallel, operator) -> column n_or_hidden: of a product, its output width.
using Widths = std::map<std::tuple<std::string, std::string, std::string>, std::int64_t>;

Widths widths_of(const CsvTable& table, std::string_view name) {
  Widths widths;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    if (const auto width = cells.integer("n_or_hidden"))
      widths.emplace(std::tuple(cells.text("model"), cells.text("tp"), cells.text("op")), *width);
  }
  return widths;
}

std::optional<std::int64_t> width_of(const Widths& widths, const Cells& cells,
                                     const std::string& op) {
  const auto found = widths.find({cells.text("model"), cells.text("tp"), op});
  return found == widths.end() ? std::nullopt : std::optional(found->second);
}

// The kernel of an operator that is not a product; nothing if it is unknown. For such operators,
// the column n_or_hidden has the model's hidden size.
std::optional<Pass> serving_pass(const std::string& op, std::int64_t hidden, Cells& cells,
                                 const Widths& widths) {
  const bool plain = cells.text("model").find("phi-2") != std::string::npos;  // no gate, LayerNorm
  if (op == "input_layernorm" || op == "post_attention_layernorm")
    return Pass{.kind = plain ? PassKind::kLayerNormForward : PassKind::kRmsNormForward,
                .columns = hidden};
  if (op == "add") return Pass{.kind = PassKind::kResidualAdd, .columns = hidden};
  if (op == "emb") return Pass{.kind = PassKind::kEmbeddingForward, .columns = hidden};
  if (op == "mlp_act") {
    const auto up = width_of(widths, cells, "mlp_up_proj");
    if (!up) return std::nullopt;
    return plain ? Pass{.kind = PassKind::kGeluForward, .columns = *up}
                 : Pass{.kind = PassKind::kSwigluForward, .columns = *up / 2};
  }
  if (op == "attn_rope") {
    // Queries, keys and values leave the projection; keys and values are equally wide.
    const auto all = width_of(widths, cells, "attn_pre_proj");
    const auto ranks = cells.integer("tp");
    if (!all || !ranks) return std::nullopt;
    return Pass{.kind = PassKind::kRopeForward, .columns = (*all + hidden / *ranks) / 2};
  }
  return std::nullopt;
}

// The column `params` of a row: "mp=1;b=2;l=1024;dim=5632". A missing or bad number is a fault of
// the row.
class Shape {
 public:
  explicit Shape(Cells& cells) : cells_(&cells), text_(cells.text("params")) {}

  std::int64_t operator()(std::string_view key) const {
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = std::min(text_.find(';', at), text_.size());
      const std::string_view part = text_.substr(at, end - at);
      at = end + 1;
      if (!part.starts_with(key) || part.size() <= key.size() || part[key.size()] != '=') continue;
      std::int64_t value = 0;
      const std::string_view number = part.substr(key.size() + 1);
      const auto [stop, status] =
          std::from_chars(number.data(), number.data() + number.size(), value);
      if (status == std::errc() && stop == number.data() + number.size() && value > 0) return value;
    }
    cells_->fault(fmt::format("column 'params' has no whole number '{}' above 0", key));
    return 1;
  }
  std::int64_t tokens() const { return (*this)("b") * (*this)("l"); }
  /// One tensor-parallel rank's part of `of`.
  std::int64_t part(std::int64_t of) const { return std::max<std::int64_t>(1, of / (*this)("mp")); }

 private:
  Cells* cells_;
  std::string_view text_;
};

// GPT-NeoX's 50,257 padded to a multiple of 128; rows do not state it.
constexpr std::int64_t kVocabulary = 50304;

// An operator of the training table, and the kernels that it runs in each direction.
struct TrainingOperator {
  std::string_view op;
  std::string_view forward_name = {}, backward_name = {};
  std::vector<Kernel> (*forward)(const Shape&) = nullptr;
  std::vector<Kernel> (*backward)(const Shape&) = nullptr;
  std::string_view obstacle = {};           ///< Obstacle of both directions.
  std::string_view backward_obstacle = {};  ///< Obstacle of the backward pass alone.
  std::string_view assumed = {}, backward_assumed = {};
};

using Kernels = std::vector<Kernel>;

template <auto WidthOf>
Kernels linear(const Shape& s) {
  const auto [out, in] = WidthOf(s);
  return {Gemm{.m = s.tokens(), .n = out, .k = in, .dtype = DType::kFp16}};
}
template <auto WidthOf>
Kernels linear_backward(const Shape& s) {
  const auto both = backward_of(std::get<Gemm>(linear<WidthOf>(s).front()));
  return {both.begin(), both.end()};
}

using Widths2 = std::pair<std::int64_t, std::int64_t>;  // out, in
Widths2 qkv(const Shape& s) {
  return {s.part(3 * s("dim")), s("dim")};
}
Widths2 projection(const Shape& s) {
  return {s("dim"), s.part(s("dim"))};
}
Widths2 up(const Shape& s) {
  return {s.part(4 * s("dim")), s("dim")};
}
Widths2 down(const Shape& s) {
  return {s("dim"), s.part(4 * s("dim"))};
}
Widths2 logits(const Shape& s) {
  return {s.part(kVocabulary), s("dim")};
}

Gemm scores(const Shape& s) {
  return {.batch = s("b") * s.part(s("h")),
          .m = s("l"),
          .n = s("l"),
          .k = s("dim") / s("h"),
          .dtype = DType::kFp16};
}
Gemm context(const Shape& s) {
  Gemm gemm = scores(s);
  std::swap(gemm.n, gemm.k);
  return gemm;
}
template <auto GemmOf>
Kernels batched(const Shape& s) {
  return {GemmOf(s)};
}
template <auto GemmOf>
Kernels batched_backward(const Shape& s) {
  const auto both = backward_of(GemmOf(s));
  return {both.begin(), both.end()};
}

template <PassKind kind>
Kernels over_hidden(const Shape& s) {
  return {Pass{.kind = kind, .rows = s.tokens(), .columns = s("dim"), .dtype = DType::kFp16}};
}
// The embedding's backward pass: the gradient of the whole table is zeroed, then added to.
Kernels gradient_of_table(const Shape& s) {
  Kernels kernels = over_hidden<PassKind::kEmbeddingBackward>(s);
  kernels.insert(
      kernels.begin(),
      Pass{.kind = PassKind::kZero, .rows = s.part(kVocabulary) * s("dim"), .dtype = DType::kFp16});
  return kernels;
}
template <PassKind kind>
Kernels over_wide(const Shape& s) {
  return {Pass{
      .kind = kind, .rows = s.tokens(), .columns = s.part(4 * s("dim")), .dtype = DType::kFp16}};
}
Kernels over_scores(PassKind kind, const Shape& s) {
  return {Pass{.kind = kind,
               .rows = s("b") * s.part(s("h")) * s("l"),
               .columns = s("l"),
               .dtype = DType::kFp16}};
}
template <Direction direction>
Kernels softmax(const Shape& s) {
  return over_scores(softmax_alone(direction, s("l")), s);
}
template <PassKind kind>
Kernels masked_softmax(const Shape& s) {
  return over_scores(kind, s);
}
// FlashAttention-2 without a mask: Kernel_sampling/target_functions.py calls
// flash_attn_func(Q, K, V).
template <Direction direction>
Kernels fused(const Shape& s) {
  const std::int64_t heads = s.part(s("h"));
  return {Attention{.batch = s("b"),
                    .query_heads = heads,
                    .kv_heads = heads,
                    .query_length = s("l"),
                    .key_length = s("l"),
                    .head_dim = std::max<std::int64_t>(1, s("dim") / s("h")),
                    .causal = false,
                    .direction = direction,
                    .dtype = DType::kFp16,
                    .implementation = AttentionImplementation::kFlash2}};
}

constexpr std::string_view kChain = "a chain of element-wise operators, not one kernel";
constexpr std::string_view kWholeStep = "a whole optimizer step of its framework, not one kernel";

const std::vector<TrainingOperator>& training_operators() {
  using enum PassKind;
  static const std::vector<TrainingOperator> operators{
      {"linear1", "gemm", "gemm_bwd", linear<qkv>, linear_backward<qkv>},
      {"linear2", "gemm", "gemm_bwd", linear<projection>, linear_backward<projection>},
      {"linear3", "gemm", "gemm_bwd", linear<up>, linear_backward<up>},
      {"linear4", "gemm", "gemm_bwd", linear<down>, linear_backward<down>},
      {.op = "linear_final",
       .forward_name = "gemm",
       .backward_name = "gemm_bwd",
       .forward = linear<logits>,
       .backward = linear_backward<logits>,
       .assumed = "vocabulary",
       .backward_assumed = "vocabulary"},
      {"baddbmm", "batched_gemm", "batched_gemm_bwd", batched<scores>, batched_backward<scores>},
      {"bmm", "batched_gemm", "batched_gemm_bwd", batched<context>, batched_backward<context>},
      {.op = "flash_atten",
       .forward_name = "attention_fwd",
       .backward_name = "attention_bwd",
       .forward = fused<Direction::kForward>,
       .backward = fused<Direction::kBackward>},
      {"softmax", "softmax_fwd", "softmax_bwd", softmax<Direction::kForward>,
       softmax<Direction::kBackward>},
      {"ScaledUpperTriangMaskedSoftmax", "softmax_fwd", "softmax_bwd",
       masked_softmax<kSoftmaxForward>, masked_softmax<kSoftmaxBackward>},
      {"gelu", "gelu_fwd", "gelu_bwd", over_wide<kGeluForward>, over_wide<kGeluBackward>},
      {"layernorm", "layer_norm_fwd", "layer_norm_bwd", over_hidden<kLayerNormForward>,
       over_hidden<kLayerNormBackward>},
      {.op = "embedding",
       .forward_name = "embedding_fwd",
       .backward_name = "embedding_bwd",
       .forward = over_hidden<kEmbeddingForward>,
       .backward = gradient_of_table,
       .backward_assumed = "vocabulary"},
      {.op = "res_add",
       .forward_name = "residual_add",
       .backward_name = "residual_add_bwd",
       .forward = over_hidden<kResidualAdd>,
       .backward = over_hidden<kResidualAdd>,
       .backward_obstacle = "the backward pass of an addition moves nothing"},
      {.op = "RMSlayernorm",
       .forward_name = "rms_norm_fwd",
       .backward_name = "rms_norm_bwd",
       .obstacle = kChain},
      {.op = "RoPE", .forward_name = "rope_fwd", .backward_name = "rope_bwd", .obstacle = kChain},
      {.op = "parallel_cross_entropy_128",
       .forward_name = "cross_entropy_fwd",
       .backward_name = "cross_entropy_bwd",
       .obstacle = kChain},
      {.op = "fillmask",
       .forward_name = "masked_fill",
       .backward_name = "masked_fill_bwd",
       .obstacle = "filling masked scores is no kernel of its own here: the softmax does it"},
      {.op = "optimizer", .forward_name = "optimizer", .obstacle = kWholeStep},
      {.op = "firstStage_optimizer", .forward_name = "optimizer", .obstacle = kWholeStep},
      {.op = "middleStage_optimizer", .forward_name = "optimizer", .obstacle = kWholeStep},
      {.op = "lastStage_optimizer", .forward_name = "optimizer", .obstacle = kWholeStep},
  };
  return operators;
}

// Whether the row has the same time, within 1 %, for the forward and the backward pass. The two
// passes move different numbers of bytes and do not take the same time, so it is unknown which of
// them was measured.
bool is_one_time(Cells& cells) {
  constexpr double kSame = 0.01;
  const auto forward = cells.number("fwd_us"), backward = cells.number("bwd_us");
  return forward && backward && std::abs(*backward / *forward - 1) < kSame;
}

// Whether the table's own notes call the backward time doubtful: on GH200, all but the times of
// products that are not batched.
bool doubtful(const std::string& gpu, std::string_view operation) {
  return gpu.starts_with("GH200") && operation != "gemm_bwd";
}

}  // namespace

std::vector<KernelRow> serving_layer_rows(const CsvTable& table, std::string_view name) {
  const Widths widths = widths_of(table, name);
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    const std::string& op = cells.text("op");
    KernelRow row = kernel_row(cells, op);
    row.duty = Duty::kSustained;
    row.measured = cells.required("time_us") * 1_us;
    const std::int64_t tokens = cells.required_integer("tokens_m");
    const std::int64_t width = cells.required_integer("n_or_hidden");
    if (const auto depth = cells.integer("k")) {
      row.operation = "gemm";
      row.kernels = {Gemm{.m = tokens, .n = width, .k = *depth}};
    } else if (auto pass = serving_pass(op, width, cells, widths)) {
      row.operation = traffic_of(pass->kind).name;
      pass->rows = tokens;
      row.kernels = {*pass};
    } else {
      row.obstacle = fmt::format("operation '{}' is not known", op);
    }
    add(rows, std::move(row), cells);
  }
  return rows;
}

std::vector<KernelRow> training_layer_rows(const CsvTable& table, std::string_view name) {
  const auto& operators = training_operators();
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    for (const bool forward : {true, false}) {
      Cells cells(table, line, name);
      const auto known = std::ranges::find(operators, cells.text("op"), &TrainingOperator::op);
      const auto* column = forward ? "fwd_us" : "bwd_us";
      // An optimizer step has a forward time only.
      if (!forward && cells.text(column).empty()) continue;
      KernelRow row = kernel_row(cells, cells.text("op"), forward ? "fwd" : "bwd");
      row.duty = Duty::kSustained;
      row.measured = cells.required(column) * 1_us;
      if (known == operators.end()) {
        row.obstacle = fmt::format("operation '{}' is not known", cells.text("op"));
      } else {
        row.operation = forward ? known->forward_name : known->backward_name;
        row.obstacle = known->obstacle;
        if (row.obstacle.empty() && !forward) row.obstacle = known->backward_obstacle;
        // The gradients of a mean over millions of elements underflow to zero in fp16. Products of
        // zeros draw little power and run at full clocks.
        row.draws_little = row.operation == "gemm_bwd";
        if (row.draws_little) row.duty = Duty::kBurst;
        if (row.obstacle.empty() && !forward && doubtful(row.gpu, row.operation))
          row.obstacle = "the source's backward times of this device are doubtful";
        if (row.obstacle.empty())
          row.kernels = (forward ? known->forward : known->backward)(Shape(cells));
        const bool is_pass =
            !row.kernels.empty() && std::holds_alternative<Pass>(row.kernels.back());
        if (is_pass && known->backward_obstacle.empty() && is_one_time(cells))
          row.obstacle = "the source has one time for both directions";
        const std::string_view assumed = forward ? known->assumed : known->backward_assumed;
        if (!assumed.empty()) row.assumed.emplace_back(assumed);
      }
      add(rows, std::move(row), cells);
    }
  }
  return rows;
}

}  // namespace foreshard::accuracy
