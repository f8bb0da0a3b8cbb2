/// \file
/// Reads the rows of a table of measured training steps, without interpreting them. An empty cell
/// means that the source does not state the value. training.cc reads a table with read_training();
/// setting.cc interprets the rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "evidence/row_format.h"

namespace foreshard::accuracy {

/// The cells of one row. Integers and numbers are empty if the source does not state them. Cells
/// that sources fill with words ("1 within groups of 8") stay text.
struct TrainingRow {
  std::size_t line = 0;
  std::string id;
  std::string source;
  std::string framework;
  std::string gpu;
  std::string model_name;
  std::optional<double> gpu_mem_gb, internode_gbps_per_gpu;
  std::optional<double> parameters;  ///< Billions of parameters.
  std::optional<std::int64_t> num_gpus, gpus_per_node;
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, ffn, vocab, seq;
  std::optional<std::int64_t> experts, topk;
  std::optional<std::int64_t> tp, pp, vpp, dp, ep, mbs, gbs;
  std::string cp, zero_stage, recompute, seq_parallel, precision;
  std::string metric, unit, notes;
  double value = 0;
  std::string fault{};  ///< The first bad cell, with its line and column; else empty.
};

/// The rows of a table. A row has a fault if a cell with a number has other text, a number is not
/// positive, or a cell without which the row cannot be scored (id, metric, value) is empty.
/// \param name  the table's name in messages.
/// \return kInvalidInput with "name:1:" for a missing column.
Result<std::vector<TrainingRow>> read_training(const CsvTable& table, const RowFormat& format,
                                               std::string_view name);

}  // namespace foreshard::accuracy
