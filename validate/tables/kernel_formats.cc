// The list of all formats of tables of kernels, and the readers of single products, of single
// passes and of tables without kernels (data sheets, simulator parameters). evidence/accuracy.cc
// tries the formats on each table.
#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "base/text.h"

#include "validate/tables/kernel_rows.h"

namespace foreshard::accuracy {
namespace {

std::optional<DType> dtype_named(std::string_view name) {
  if (name == "bfloat16") return DType::kBf16;
  if (name == "float16" || name == "half") return DType::kFp16;
  if (name == "float32") return DType::kFp32;
  // One scale for each block of 128 x 128 weights, and one for each 128 elements of an activation,
  // as in DeepGEMM.
  if (name == "fp8_block" || name == "fp8 block-scaled") return DType::kFp8;
  return find_dtype(name);
}

// The kernels that cast the input of an fp8 linear layer of TensorRT-LLM from 16 bits. With one
// scale for the whole tensor, the layer clears the scale, finds the largest element, computes the
// scale and casts; with scales for blocks, it casts in one kernel.
// Source: NVIDIA/TensorRT-LLM, cpp/tensorrt_llm/common/cudaFp8Utils.cu.
std::vector<Kernel> casts_of(const Cells& cells, const Gemm& gemm) {
  if (gemm.dtype != DType::kFp8 || !contains(cells.text("source"), "/trtllm/")) return {};
  const auto over = [](PassKind kind, std::int64_t rows, std::int64_t columns) {
    return Pass{.kind = kind, .rows = rows, .columns = columns};
  };
  const Pass cast = over(PassKind::kQuantize, gemm.m, gemm.k);
  if (gemm.scales == Scales::kBlocks) return {cast};
  return {over(PassKind::kZero, 1, 1), over(PassKind::kReduce, gemm.m, gemm.k),
          over(PassKind::kUnary, 1, 1), cast};
}

// The share of the memory bandwidth that TensorRT-LLM's own casts reach: they load one element of 2
// bytes at a time. Fitted to rows with n of 32 and 64, whose products take next to no time: 0.60 on
// H100 and 0.54 on B200 with one scale, 0.54 on H100 with scales for blocks. Nothing: the casts
// reach the usual share.
std::optional<double> share_of_casts(const Cells& cells) {
  constexpr double kOneByOne = 0.56;
  if (cells.text("kernel_source") != "torch_flow") return std::nullopt;
  return kOneByOne;
}

std::vector<KernelRow> gemm_rows(const CsvTable& table, std::string_view name) {
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    KernelRow row = kernel_row(cells, "gemm");
    row.measured = cells.required("time_us") * 1_us;
    const Gemm gemm{
        .m = cells.required_integer("m"),
        .n = cells.required_integer("n"),
        .k = cells.required_integer("k"),
        .dtype = dtype_of(cells, row),
        .scales = contains(cells.text("dtype"), "block") ? Scales::kBlocks : Scales::kTensor};
    row.kernels = casts_of(cells, gemm);
    row.pass_share = share_of_casts(cells);
    row.kernels.emplace_back(gemm);
    add(rows, std::move(row), cells);
  }
  return rows;
}

// The pass that a source calls `name`; nothing if the name is unknown.
std::optional<PassKind> pass_named(std::string_view name, bool forward, std::int64_t columns) {
  if (name == "layer_norm" || name == "layernorm")
    return forward ? PassKind::kLayerNormForward : PassKind::kLayerNormBackward;
  if (name == "rms_norm") return forward ? PassKind::kRmsNormForward : PassKind::kRmsNormBackward;
  if (name == "softmax")
    return softmax_alone(forward ? Direction::kForward : Direction::kBackward, columns);
  if (name == "gelu") return forward ? PassKind::kGeluForward : PassKind::kGeluBackward;
  return std::nullopt;
}

struct Extents {
  std::int64_t rows, columns;
};
KernelRow pass_row(Cells& cells, std::string_view name, bool forward, Extents of,
                   std::string_view part) {
  const auto kind = pass_named(name, forward, of.columns);
  KernelRow row = kernel_row(cells, kind ? traffic_of(*kind).name : name, part);
  if (!kind) {
    row.obstacle = fmt::format("operation '{}' is not known", name);
    return row;
  }
  row.kernels = {
      Pass{.kind = *kind, .rows = of.rows, .columns = of.columns, .dtype = dtype_of(cells, row)}};
  return row;
}

// Normalisations: each line has the times of a forward and of a backward pass.
std::vector<KernelRow> norm_rows(const CsvTable& table, std::string_view name) {
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    for (const bool forward : {true, false}) {
      Cells cells(table, line, name);
      KernelRow row = pass_row(cells, cells.text("norm"), forward,
                               {cells.required_integer("rows"), cells.required_integer("columns")},
                               forward ? "fwd" : "bwd");
      row.measured = cells.required(forward ? "fwd_ms" : "bwd_ms") * 1_ms;
      add(rows, std::move(row), cells);
    }
  }
  return rows;
}

// Forward passes over m x n elements of 16 bits.
std::vector<KernelRow> elementwise_rows(const CsvTable& table, std::string_view name) {
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    KernelRow row = pass_row(cells, cells.text("op"), true,
                             {cells.required_integer("m"), cells.required_integer("n")}, {});
    row.measured = cells.required("time_us") * 1_us;
    add(rows, std::move(row), cells);
  }
  return rows;
}

// Rows of a table that measures no kernels; each has `obstacle` as its obstacle.
std::vector<KernelRow> without_kernels(const CsvTable& table, std::string_view name,
                                       std::string_view obstacle) {
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    const Cells cells(table, line, name);
    KernelRow row = kernel_row(cells, "");
    row.obstacle = obstacle;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<KernelRow> sheet_rows(const CsvTable& table, std::string_view name) {
  return without_kernels(table, name, "a value of a data sheet, no measured kernel");
}

std::vector<KernelRow> simulator_rows(const CsvTable& table, std::string_view name) {
  return without_kernels(table, name,
                         "a parameter of another simulator, no time of a kernel of known shape");
}

}  // namespace

bool has_columns(const CsvTable& table, std::span<const std::string_view> columns) {
  return std::ranges::all_of(
      columns, [&](std::string_view column) { return table.column(column).has_value(); });
}

KernelRow kernel_row(const Cells& cells, std::string_view operation, std::string_view part) {
  const std::string& gpu = cells.text("gpu");
  return {.id = part.empty() ? cells.id() : fmt::format("{}:{}", cells.id(), part),
          .source = cells.text("source"),
          .gpu = gpu.empty() ? cells.text("device") : gpu,
          .operation = std::string(operation)};
}

DType dtype_of(const Cells& cells, KernelRow& row) {
  const std::string& text = cells.text("dtype");
  if (text.empty()) return DType::kBf16;
  if (const auto dtype = dtype_named(text)) return *dtype;
  row.obstacle = fmt::format("dtype '{}' is not modelled", text);
  return DType::kBf16;
}

void add(std::vector<KernelRow>& rows, KernelRow row, const Cells& cells) {
  if (row.obstacle.empty()) row.obstacle = cells.fault_text();
  rows.push_back(std::move(row));
}

std::array<Kernel, 2> backward_of(const Gemm& forward) {
  Gemm of_a = forward;  // gradient of D times B^T
  std::swap(of_a.n, of_a.k);
  Gemm of_b = forward;  // A^T times gradient of D
  of_b.m = forward.k;
  of_b.k = forward.m;
  return {of_a, of_b};
}

const std::vector<KernelFormat>& kernel_formats() {
  static const std::vector<KernelFormat> formats{
      {"layers of serving", {"op", "tokens_m", "n_or_hidden", "k", "time_us"}, serving_layer_rows},
      {"layers of training", {"op", "params", "fwd_us", "bwd_us"}, training_layer_rows},
      {"experts", {"tokens", "hidden", "expert_ffn", "topk", "experts", "time_us"}, expert_rows},
      {"efficiencies", {"op", "key", "efficiency", "tflops"}, efficiency_rows},
      {"norms", {"norm", "rows", "columns", "fwd_ms", "bwd_ms"}, norm_rows},
      {"elementwise", {"op", "m", "n", "time_us"}, elementwise_rows},
      {"attention rates",
       {"implementation", "direction", "seq", "q_heads", "head_dim_qk", "tflops"},
       attention_rate_rows},
      {"attention charts",
       {"impl", "pass", "causal", "seqlen", "heads", "tflops"},
       attention_chart_rows},
      {"attention", {"seqlen", "q_heads", "head_dim", "time_us"}, attention_rows},
      {"gemm", {"m", "n", "k", "time_us"}, gemm_rows},
      {"data sheets", {"device", "what", "value"}, sheet_rows},
      {"simulator parameters", {"gpu", "kind", "name", "json"}, simulator_rows},
  };
  return formats;
}

}  // namespace foreshard::accuracy
