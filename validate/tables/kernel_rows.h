/// \file
/// Tables of single kernels, one reader for each way in which sources write them: rows in, kernels
/// and their measured times out. What a row cannot express becomes its obstacle, never silence.
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

/// Blocks of threads of a kernel whose blocks are so short that each mostly waits for memory.
struct Blocks {
  std::int64_t count = 0;
  std::int64_t threads = 0;  ///< Of each.
};
/// How long they wait: a multiprocessor holds 2,048 threads, and takes a block for each that ends.
Seconds latency_of(const Blocks& blocks, const DeviceType& device);

struct KernelRow {
  std::string id{}, source{}, gpu{};
  std::string operation{};  ///< "gemm", "attention_bwd", a pass's name: what summaries group by.
  std::vector<Kernel> kernels{};  ///< Run one after the other.
  Blocks blocks{};                ///< Of one of the kernels: their latency comes on top.
  /// Share of the memory bandwidth that the passes among them reach, where they are known to be
  /// other kernels than those that training frameworks launch.
  std::optional<double> pass_share{};
  Duty duty = Duty::kBurst;
  bool draws_little = false;  ///< At full clocks, however long it lasts.
  Seconds measured{};
  std::vector<std::string> assumed{};  ///< What the row does not state.
  std::string obstacle{};              ///< Why it cannot be predicted; then nothing else matters.
};

/// One way to write a table of kernels.
struct KernelFormat {
  std::string_view name;
  std::vector<std::string_view> columns;  ///< By which a header is known.
  /// A row of a table may give several measurements (forward and backward).
  std::vector<KernelRow> (*rows)(const CsvTable& table, std::string_view name);
};
/// In the order in which they are tried: a format with more columns before one that needs fewer.
const std::vector<KernelFormat>& kernel_formats();

/// \return whether the table has all of them.
bool has_columns(const CsvTable& table, std::span<const std::string_view> columns);

// For readers of formats.

/// Id, source and device of a line, in the columns that most formats have; `part` ("fwd") is added
/// to the id where a line gives several rows.
KernelRow kernel_row(const Cells& cells, std::string_view operation, std::string_view part = {});
/// Column `dtype`; bf16 where the table has none. An unknown one is the row's obstacle.
DType dtype_of(const Cells& cells, KernelRow& row);
/// Adds the row, with a fault of its cells as its obstacle.
void add(std::vector<KernelRow>& rows, KernelRow row, const Cells& cells);
/// Two products, of the gradients of both operands of `forward`.
std::array<Kernel, 2> backward_of(const Gemm& forward);

std::vector<KernelRow> attention_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> attention_chart_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> attention_rate_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> serving_layer_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> training_layer_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> efficiency_rows(const CsvTable& table, std::string_view name);
std::vector<KernelRow> expert_rows(const CsvTable& table, std::string_view name);

}  // namespace foreshard::accuracy
