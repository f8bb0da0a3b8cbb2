/// \file
/// Tables of single kernels. A format says which columns of a table hold the shapes of kernels and
/// their measured times, and which rows cannot be predicted. Formats are data
/// (configs/tables/kernels/*.yaml), so that a table with other columns needs a file and no code.
/// kernels.cc predicts the rows; evidence/accuracy.cc finds a table's format.
///
/// A formula is text over whole numbers: + * /, max, min, parentheses, and names of columns. A
/// cell must hold a number above 0, unless "or" follows its name: `kv_heads or q_heads`.
///
/// A condition maps columns to texts: "x": the cell contains x; "=x": it is x; "!x", "!=x": not so.
/// A list of texts holds if all that begin with "!" do, and one of the others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/units.h"
#include "base/yaml/loader.h"

#include "sim/compute/operator_time.h"
#include "strategies/program/ir/kernel.h"

namespace foreshard::accuracy {

/// Thread blocks of a kernel whose blocks are so short that each one mostly waits for memory.
struct Blocks {
  std::int64_t count = 0;
  std::int64_t threads = 0;  ///< Threads per block.
};

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

using Conditions = std::map<std::string, yaml::Words>;

/// A kernel that rows measure.
struct MeasuredKernel {
  std::string kernel;  ///< "gemm", "attention_fwd", "softmax_alone_fwd" or the name of a pass.
  Conditions where;    ///< Rows that run it; empty: all.
  /// Member of Gemm, Attention or Pass -> formula. `length` is both lengths of Attention, `heads`
  /// its query_heads; `threads` is the size of each of `rows` short blocks (Blocks). A size that is
  /// left out is 1; kv_heads are then as many as heads, value_dim and window 0.
  std::map<std::string, std::string> sizes;
  Conditions accumulate;      ///< Rows whose product adds to its result; empty: none.
  bool apart = false;         ///< Gemm::apart.
  bool causal = true;         ///< Attention::causal.
  std::string causal_column;  ///< Column whose text begins with "0" if there is no causal mask.
  std::string
      implementation;  ///< Name of the attention's kernel; empty: as the format's words say.
  std::string dtype;   ///< Name of a data type; empty: the row's.
};
const yaml::Table<MeasuredKernel>& yaml_table(const MeasuredKernel*);

/// What some rows of a table measure.
struct MeasuredOperator {
  Conditions where;
  std::string name;  ///< KernelRow::operation of the forward pass; empty: its last kernel's name.
  std::vector<MeasuredKernel> kernels;
  std::vector<MeasuredKernel> backward;  ///< Empty: the backward passes of `kernels`.
  double counts = 1;                     ///< FLOPs that a rate counts, as a multiple of flops_of().
  bool zero_gradients = false;  ///< The backward pass multiplies zeros, which draws little power.
  std::optional<double> pass_share;  ///< KernelRow::pass_share.
};
const yaml::Table<MeasuredOperator>& yaml_table(const MeasuredOperator*);

/// A time in each line of a table.
struct MeasuredTime {
  std::string column;
  Seconds unit = 1_us;
  std::string part;       ///< Added to the row's id; "bwd": the backward pass took this time.
  bool optional = false;  ///< An empty cell gives no row.
};
const yaml::Table<MeasuredTime>& yaml_table(const MeasuredTime*);

/// Rows that cannot be predicted.
struct SkippedRows {
  Conditions where;
  std::vector<std::string> equal;  ///< Two columns whose numbers differ by less than 1 %.
  std::string reason;              ///< "{column}" stands for the text of a cell.
};
const yaml::Table<SkippedRows>& yaml_table(const SkippedRows*);

/// A number in another row of the table, the first that fits.
struct OtherRow {
  std::string column;
  Conditions where;
  std::vector<std::string> same;  ///< Columns with equal cells in both rows.
};
const yaml::Table<OtherRow>& yaml_table(const OtherRow*);

/// A file of configs/tables/kernels.
struct KernelFormat {
  std::string name;
  std::vector<std::string> columns;  ///< Columns that every table of this format has.
  /// Column with pairs ("b=1, m=64", "b=1;m=64", "window 128"), which conditions and formulas read
  /// like columns.
  std::string pairs;
  std::vector<MeasuredTime> times;  ///< Each gives a row of every line; empty: one row by `rate`.
  std::string rate;                 ///< Column in TFLOP/s, for rows without a time.
  std::string dtype;                ///< Name of the data type; empty: the column `dtype` or bf16.
  bool sustained = false;           ///< Measured in continuous use, at sustained clocks.
  std::string unknown;              ///< Reason of rows that no operator fits, with "{column}".
  std::vector<MeasuredOperator> operators;      ///< The first one that fits a row counts.
  std::vector<SkippedRows> skip;                ///< The first one that fits a row counts.
  std::map<std::string, std::string> values;    ///< name -> formula
  std::map<std::string, std::int64_t> assumed;  ///< name -> number that rows do not state
  std::map<std::string, OtherRow> others;       ///< name -> number in another row
  std::string implementation;                   ///< Column with the attention's implementation.
  std::map<std::string, std::string> implementations;  ///< part of its text -> attention's kernel
};
/// Catalogue folder: tables/kernels.
const yaml::Table<KernelFormat>& yaml_table(const KernelFormat*);

/// All formats of the catalogue, in the order in which they are tried: a format that needs more
/// columns comes before one that needs fewer; equals are sorted by file name.
Result<std::vector<KernelFormat>> read_kernel_formats(yaml::Loader& loader);

/// Whether the table has all of these columns.
bool has_columns(const CsvTable& table, const std::vector<std::string>& columns);

/// Reads a table. A line may give several rows (forward and backward). A row that cannot be
/// predicted, because the format says so or a cell is bad, is kept and says why in `obstacle`.
std::vector<KernelRow> kernel_rows(const KernelFormat& format, const CsvTable& table,
                                   std::string_view name);

}  // namespace foreshard::accuracy
