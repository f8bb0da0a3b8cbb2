// Reader of tables of the experts of one device, in the forward pass of serving: tokens are
// gathered, go through two products with an activation between them, and the results are added up
// per token. kernel_formats.cc lists the reader.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/text.h"

#include "validate/tables/kernel_rows.h"

namespace foreshard::accuracy {
namespace {

struct Experts {
  std::int64_t local = 1;   ///< Experts on the device.
  std::int64_t tokens = 1;  ///< Tokens per expert.
  std::int64_t hidden = 1;
  std::int64_t width = 1;  ///< Feed-forward width of an expert.
  bool gated = true;
};

void set_kernels(KernelRow& row, const Experts& e, DType dtype, Scales scales) {
  const std::int64_t rows = e.local * e.tokens;
  const auto pass = [&](PassKind kind, std::int64_t columns) {
    row.kernels.emplace_back(Pass{.kind = kind, .rows = rows, .columns = columns});
  };
  const auto product = [&](std::int64_t n, std::int64_t k) {
    if (dtype == DType::kFp8) pass(PassKind::kQuantize, k);
    row.kernels.emplace_back(
        Gemm{.batch = e.local, .m = e.tokens, .n = n, .k = k, .dtype = dtype, .scales = scales});
  };
  pass(PassKind::kTokenPermute, e.hidden);
  product(e.gated ? 2 * e.width : e.width, e.hidden);
  pass(e.gated ? PassKind::kSwigluForward : PassKind::kUnary, e.width);
  product(e.hidden, e.width);
  pass(PassKind::kTokenPermute, e.hidden);
}

}  // namespace

std::vector<KernelRow> expert_rows(const CsvTable& table, std::string_view name) {
  std::vector<KernelRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    KernelRow row = kernel_row(cells, "experts_fwd");
    row.measured = cells.required("time_us") * 1_us;
    if (cells.text("distribution") != "balanced")
      row.obstacle = fmt::format("tokens spread as '{}' over experts", cells.text("distribution"));
    const std::int64_t tokens = cells.required_integer("tokens") * cells.required_integer("topk");
    const std::int64_t experts = cells.required_integer("experts");
    const Experts shape{
        .local = std::max<std::int64_t>(1, experts / cells.required_integer("ep")),
        .tokens = std::max<std::int64_t>(
            1, std::llround(static_cast<double>(tokens) / static_cast<double>(experts))),
        .hidden = cells.required_integer("hidden"),
        .width = cells.required_integer("expert_ffn"),
        .gated = !contains(cells.text("kernel"), "nongated")};
    const DType dtype = dtype_of(cells, row);
    set_kernels(row, shape, dtype,
                contains(cells.text("dtype"), "block") ? Scales::kBlocks : Scales::kTensor);
    add(rows, std::move(row), cells);
  }
  return rows;
}

}  // namespace foreshard::accuracy
