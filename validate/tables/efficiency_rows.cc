// Reader of SimuMax's tables of efficiencies (shares of the device's peak). The column `key`
// describes a shape:
//
//     matmul        b=1, m=7168, k=4096, n=18432, layout=NT, accumulate=True, out_dtype=bf16
//     group_matmul  ng=32, M=1024, N=7168, K=2048, dtype=bf16, stage=fwd, accumulate=False,
//                   main_grad_dtype=fp32
//     sdp_fwd       batch=1, seq_len=4096, head_num=32, kv_head_num=8, qk_head_dim=128,
//                   v_head_dim=128
//
// A rate counts 2 m n k FLOPs for a product. For attention it counts all scores, although the
// kernel is causal and computes half of them. kernel_formats.cc lists the reader.
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "validate/tables/kernel_rows.h"

namespace foreshard::accuracy {
namespace {

// The column `key` of a row, as pairs "name=value".
class Key {
 public:
  explicit Key(Cells& cells) : cells_(&cells), text_(cells.text("key")) {}

  bool empty() const { return text_ == "default"; }
  std::string_view word(std::string_view name) const {
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = std::min(text_.find(", ", at), text_.size());
      const std::string_view part = text_.substr(at, end - at);
      at = end + 2;
      if (part.starts_with(name) && part.size() > name.size() && part[name.size()] == '=')
        return part.substr(name.size() + 1);
    }
    return {};
  }
  std::int64_t number(std::string_view name) const {
    const std::string_view text = word(name);
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status == std::errc() && end == text.data() + text.size() && value > 0) return value;
    cells_->fault(fmt::format("column 'key' has no whole number '{}' above 0", name));
    return 1;
  }

 private:
  Cells* cells_;
  std::string_view text_;
};

void set_gemm(KernelRow& row, const Key& key) {
  row.operation = "gemm";
  row.kernels = {Gemm{.batch = key.number("b"),
                      .m = key.number("m"),
                      .n = key.number("n"),
                      .k = key.number("k"),
                      .accumulate = key.word("accumulate") == "True"}};
}

// A grouped product, as Transformer Engine's GroupedLinear runs it. The row states the shape of the
// forward product for all stages.
void set_grouped(KernelRow& row, const Key& key) {
  row.operation = "grouped_gemm";
  Gemm gemm{
      .batch = key.number("ng"),
      .m = key.number("M"),
      .n = key.number("N"),
      .k = key.number("K"),
      .accumulate = key.word("accumulate") == "True" && key.word("main_grad_dtype") == "fp32"};
  if (key.word("stage") == "bwd_grad_act") std::swap(gemm.n, gemm.k);
  if (key.word("stage") == "bwd_grad_w")
    gemm = {
        .batch = gemm.batch, .m = gemm.n, .n = gemm.k, .k = gemm.m, .accumulate = gemm.accumulate};
  gemm.apart = true;
  row.kernels = {gemm};
}

void set_attention(KernelRow& row, const Key& key, Direction direction) {
  row.operation = direction == Direction::kForward ? "attention_fwd" : "attention_bwd";
  const std::int64_t length = key.number("seq_len");
  row.kernels = {Attention{.batch = key.number("batch"),
                           .query_heads = key.number("head_num"),
                           .kv_heads = key.number("kv_head_num"),
                           .query_length = length,
                           .key_length = length,
                           .head_dim = key.number("qk_head_dim"),
                           .value_dim = key.number("v_head_dim"),
                           .causal = true,
                           .direction = direction}};
}

}  // namespace

std::vector<KernelRow> efficiency_rows(const CsvTable& table, std::string_view name) {
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    const std::string& op = cells.text("op");
    const Key key(cells);
    KernelRow row = kernel_row(cells, op);
    row.duty = Duty::kSustained;
    double counted = 1;  // FLOPs that the rate counts, as a multiple of flops_of()
    if (key.empty()) {
      row.obstacle = "the row states no shape";
    } else if (op == "matmul") {
      set_gemm(row, key);
    } else if (op == "group_matmul") {
      set_grouped(row, key);
    } else if (op == "sdp_fwd" || op == "sdp_bwd") {
      counted = 2;
      set_attention(row, key, op == "sdp_fwd" ? Direction::kForward : Direction::kBackward);
    } else {
      row.obstacle = fmt::format("operation '{}' is not modelled", op);
    }
    if (row.obstacle.empty()) {
      const double tflops = cells.required("tflops");
      if (tflops > 0) row.measured = counted * flops_of(row.kernels.front()) / (tflops * 1_TFLOP_s);
    }
    add(rows, std::move(row), cells);
  }
  return rows;
}

}  // namespace foreshard::accuracy
