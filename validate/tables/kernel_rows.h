/// \file
/// Tables of single kernels: readers turn the rows of a table into kernels and their measured
/// times, one reader for each format in which sources write them. A row that cannot be predicted is
/// kept and says why in `obstacle`. kernels.cc predicts the rows; evidence/accuracy.cc recognises
/// tables by kernel_formats().
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"

#include "sim/compute/operator_time.h"
#include "strategies/program/ir/kernel.h"
#include "validate/tables/cells.h"

namespace foreshard::accuracy {

/// Thread blocks of a kernel whose blocks are so short that each one mostly waits for memory.
struct Blocks {
  std::int64_t count = 0;
  std::int64_t threads = 0;  ///< Threads per block.
};
/// The time that the blocks wait for memory. A multiprocessor holds 2,048 threads and starts a new
/// block whenever one ends.
Seconds latency_of(const Blocks& blocks, const DeviceType& device);

/// One measured time, and the kernels that took it.
struct KernelRow {
  std::string id{}, source{}, gpu{};
  /// The operation by which summaries group rows: "gemm", "attention_bwd" or the name of a pass.
  std::string operation{};
  std::vector<Kernel> kernels{};  ///< Kernels that ran one after the other.
  Blocks blocks{};                ///< Short blocks of one kernel, whose latency is added.
  /// Share of the memory bandwidth that the passes in `kernels` reach, if they are known to be
  /// other kernels than the ones that training frameworks launch.
  std::optional<double> pass_share{};
  Duty duty = Duty::kBurst;
  bool draws_little = false;  ///< Draws so little power that it always runs at full clocks.
  Seconds measured{};
  std::vector<std::string> assumed{};  ///< Names of settings that the row does not state.
  /// Why the row cannot be predicted; the other members then do not matter. Empty: it can.
  std::string obstacle{};
};

/// A format in which sources write tables of kernels.
struct KernelFormat {
  std::string_view name;
  std::vector<std::string_view> columns;  ///< Columns that every table of this format has.
  /// Reads a table. A line may give several rows (forward and backward).
  std::vector<KernelRow> (*rows)(const CsvTable& table, std::string_view name);
};
/// All formats, in the order in which they are tried: a format that needs more columns comes before
/// one that needs fewer of the same.
const std::vector<KernelFormat>& kernel_formats();

/// Whether the table has all of these columns.
bool has_columns(const CsvTable& table, std::span<const std::string_view> columns);

// Used by the readers of formats.

/// A row with the id, source and device of a line, from the columns that most formats have. `part`
/// (such as "fwd") is added to the id if a line gives several rows.
KernelRow kernel_row(const Cells& cells, std::string_view operation, std::string_view part = {});
/// The data type in column `dtype`; bf16 if it is empty. An unknown type becomes the row's
/// obstacle.
DType dtype_of(const Cells& cells, KernelRow& row);
/// Adds the row. A fault of its cells becomes its obstacle, unless it has one.
void add(std::vector<KernelRow>& rows, KernelRow row, const Cells& cells);
/// The two products that compute the gradients of both operands of `forward`.
std::array<Kernel, 2> backward_of(const Gemm& forward);

// The readers outside kernel_formats.cc: see attention_rows.cc, layer_rows.cc, efficiency_rows.cc
// and expert_rows.cc.

std::vector<KernelRow> attention_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> attention_chart_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> attention_rate_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> serving_layer_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> training_layer_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> efficiency_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> expert_rows(const CsvTable& table, std::string_view name);

}  // namespace foreshard::accuracy
