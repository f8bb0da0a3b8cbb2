// Readers of tables of fused attention: of times, of rates read off charts, and of rates of several
// implementations. kernel_formats.cc lists them.
#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

#include "base/text.h"

#include "validate/tables/kernel_rows.h"

namespace foreshard::accuracy {
namespace {

// The passes that a row measures, by the text in its cell.
struct Directions {
  std::string_view text;
  std::string_view operation;
  bool forward, backward;
};
constexpr std::array kDirections{
    Directions{"fwd+bwd", "attention_fwd+bwd", true, true},
    Directions{"fwd", "attention_fwd", true, false},
    Directions{"bwd", "attention_bwd", false, true},
};

const Directions* directions_of(std::string_view text) {
  const auto* const found = std::ranges::find(kDirections, text, &Directions::text);
  return found == kDirections.end() ? nullptr : found;
}

// Sets the row's operation, and one attention kernel per direction.
void set_kernels(KernelRow& row, Attention attention, const Directions& directions) {
  row.operation = directions.operation;
  for (const auto& [wanted, direction] : {std::pair(directions.forward, Direction::kForward),
                                          std::pair(directions.backward, Direction::kBackward)}) {
    if (!wanted) continue;
    attention.direction = direction;
    row.kernels.emplace_back(attention);
  }
}

// The measured time of a row that states a rate: sources count the same FLOPs as flops_of().
Seconds time_at(const KernelRow& row, double tflops) {
  Flops flops;
  for (const Kernel& kernel : row.kernels) flops += flops_of(kernel);
  return tflops > 0 ? flops / (tflops * 1_TFLOP_s) : Seconds();
}

// Adds the copy that vLLM makes of keys and values into its cache, from which its attention reads
// them. The copy has one block per token, with one thread per element of the token's keys but at
// most 512.
// Source: vllm-project/vllm, csrc/cache_kernels.cu (reshape_and_cache_flash).
void add_cache(KernelRow& row, std::string_view kernel) {
  if (!kernel.starts_with("vllm")) return;
  const auto attention = std::get<Attention>(row.kernels.front());
  const std::int64_t tokens = attention.batch * attention.key_length;
  row.kernels.emplace_back(
      Pass{.kind = PassKind::kTranspose,
           .rows = tokens,
           .columns = attention.kv_heads * (attention.head_dim + attention.value_width()),
           .dtype = attention.dtype});
  constexpr std::int64_t kMostThreads = 512;
  row.blocks = {.count = tokens,
                .threads = std::min(attention.kv_heads * attention.head_dim, kMostThreads)};
}

// Whether attention is not one kernel but a product, a softmax over all scores, and another
// product.
bool unfused(std::string_view implementation) {
  return contains(implementation, "unfused") || implementation == "pyt_math";
}

// Names of implementations in tables. The first line whose words occur in a cell counts; if none
// does, the implementation is the device's usual kernel.
struct Named {
  std::string_view words;
  AttentionImplementation implementation;
};
constexpr std::array kImplementations{
    Named{"Triton FlashAttention (v1", AttentionImplementation::kTritonFlash1},
    Named{"FlashAttention-2", AttentionImplementation::kFlash2},
    Named{"flash-attn 2", AttentionImplementation::kFlash2},
    Named{"flash_attention", AttentionImplementation::kFlash2},
    Named{"FlashAttention-3", AttentionImplementation::kFlash3},
    Named{"cudnn", AttentionImplementation::kCudnn},
    Named{"cuDNN", AttentionImplementation::kCudnn},
};
AttentionImplementation implementation_of(std::string_view text) {
  for (const Named& line : kImplementations)
    if (contains(text, line.words)) return line.implementation;
  return AttentionImplementation::kFused;
}

// A remark that makes a row useless for scoring.
struct Remark {
  std::string_view words;  ///< Part of the column `note`.
  std::string_view obstacle;
};
constexpr std::array kRemarks{
    Remark{"beside DeepEP", "measured beside other kernels"},
    Remark{"locked", "measured at locked clocks"},
};

// Why the row's attention cannot be predicted; "" if it can.
std::string obstacle_of(const Cells& cells, std::string_view implementation, bool backward) {
  const std::string& note = cells.text("note");
  for (const Remark& remark : kRemarks)
    if (contains(note, remark.words)) return std::string(remark.obstacle);
  if (backward && contains(note, "deterministic"))
    return "the deterministic backward pass of attention is not modelled";
  if (unfused(implementation)) return "attention that is not fused is several kernels";
  if (contains(cells.text("dtype"), "fp8") || contains(implementation, "fp8"))
    return "attention in 8 bits is not modelled";
  return "";
}

// The sliding window in a note such as "cudnn 91901 window 1024"; 0 if it names none.
std::int64_t window_of(const Cells& cells) {
  constexpr std::string_view kWord = "window ";
  const std::string_view note = cells.text("note");
  const std::size_t at = note.find(kWord);
  std::int64_t window = 0;
  if (at != std::string_view::npos)
    std::from_chars(note.data() + at + kWord.size(), note.data() + note.size(), window);
  return window;
}

}  // namespace

Seconds latency_of(const Blocks& blocks, const DeviceType& device) {
  // Fitted to aiconfigurator's rows of vLLM's attention that differ only in heads of keys and
  // values: 1.5 us on B200, 2.1 us on H100, 3 us on A100. Not modelled: differences between
  // devices.
  constexpr Seconds kLatency = 2_us;
  constexpr double kResident = 2048;
  const double threads = static_cast<double>(blocks.count) * static_cast<double>(blocks.threads);
  return threads / (kResident * static_cast<double>(*device.multiprocessors)) * kLatency;
}

std::vector<KernelRow> attention_rows(const CsvTable& table, std::string_view name) {
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    KernelRow row = kernel_row(cells, "");
    row.measured = cells.required("time_us") * 1_us;
    const std::int64_t length = cells.required_integer("seqlen");
    const std::int64_t heads = cells.required_integer("q_heads");
    set_kernels(row,
                {.batch = cells.required_integer("batch"),
                 .query_heads = heads,
                 .kv_heads = cells.integer("kv_heads").value_or(heads),
                 .query_length = length,
                 .key_length = length,
                 .head_dim = cells.required_integer("head_dim"),
                 .causal = cells.text("causal") != "0",
                 .dtype = dtype_of(cells, row)},
                *directions_of("fwd"));
    add_cache(row, cells.text("kernel_source"));
    add(rows, std::move(row), cells);
  }
  return rows;
}

std::vector<KernelRow> attention_chart_rows(const CsvTable& table, std::string_view name) {
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    KernelRow row = kernel_row(cells, "attention");
    const Directions* directions = directions_of(cells.text("pass"));
    if (directions == nullptr) {
      row.obstacle = fmt::format("pass '{}' is not known", cells.text("pass"));
    } else {
      row.obstacle =
          unfused(cells.text("impl")) ? "attention that is not fused is several kernels" : "";
      const std::string& causal = cells.text("causal");
      if (causal != "0" && causal != "1") row.assumed.emplace_back("causal");
      const std::int64_t length = cells.required_integer("seqlen");
      const std::int64_t heads = cells.required_integer("heads");
      set_kernels(row,
                  {.batch = cells.required_integer("batch"),
                   .query_heads = heads,
                   .kv_heads = heads,
                   .query_length = length,
                   .key_length = length,
                   .head_dim = cells.required_integer("head_dim"),
                   .causal = !causal.starts_with('0'),
                   .dtype = DType::kFp16,
                   .implementation = implementation_of(cells.text("impl"))},
                  *directions);
      row.measured = time_at(row, cells.required("tflops"));
    }
    add(rows, std::move(row), cells);
  }
  return rows;
}

std::vector<KernelRow> attention_rate_rows(const CsvTable& table, std::string_view name) {
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    KernelRow row = kernel_row(cells, "attention");
    const Directions* directions = directions_of(cells.text("direction"));
    if (directions == nullptr) {
      row.obstacle = fmt::format("direction '{}' is not known", cells.text("direction"));
    } else {
      row.obstacle = obstacle_of(cells, cells.text("implementation"), directions->backward);
      if (cells.text("causal").empty()) row.assumed.emplace_back("causal");
      const std::int64_t length = cells.required_integer("seq");
      const std::int64_t heads = cells.required_integer("q_heads");
      Attention attention{.batch = cells.required_integer("batch"),
                          .query_heads = heads,
                          .kv_heads = cells.integer("kv_heads").value_or(heads),
                          .query_length = length,
                          .key_length = length,
                          .head_dim = cells.required_integer("head_dim_qk"),
                          .value_dim = cells.integer("head_dim_v").value_or(0),
                          .causal = cells.text("causal") != "0",
                          .window = window_of(cells),
                          .implementation = implementation_of(cells.text("implementation"))};
      if (row.obstacle.empty()) attention.dtype = dtype_of(cells, row);
      set_kernels(row, attention, *directions);
      row.measured = cells.text("time_ms").empty() ? time_at(row, cells.required("tflops"))
                                                   : cells.required("time_ms") * 1_ms;
    }
    add(rows, std::move(row), cells);
  }
  return rows;
}

}  // namespace foreshard::accuracy
