/// \file
/// Rows of tables of measured training steps, as they are written. An empty cell is what the source
/// does not state.
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

/// Integers and numbers are empty where the source is silent. Cells that sources fill with words
/// ("1 within groups of 8") stay text.
struct TrainingRow {
  std::size_t line = 0;
  std::string id;
  std::string source;
  std::string framework;
  std::string gpu;
  std::string model_name;
  std::optional<double> gpu_mem_gb, internode_gbps_per_gpu;
  std::optional<double> parameters;  ///< Billions.
  std::optional<std::int64_t> num_gpus, gpus_per_node;
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, ffn, vocab, seq;
  std::optional<std::int64_t> experts, topk;
  std::optional<std::int64_t> tp, pp, vpp, dp, ep, mbs, gbs;
  std::string cp, zero_stage, recompute, seq_parallel, precision;
  std::string metric, unit, notes;
  double value = 0;
  std::string fault{};  ///< The first bad cell, with its line and column; else empty.
};

/// A cell that is not a number where one is required, a number that is not positive, and an empty
/// cell without which the row cannot be scored (id, metric, value) are faults of their rows.
/// \return kInvalidInput with "name:1:" for a missing column.
Result<std::vector<TrainingRow>> read_training(const CsvTable& table, const RowFormat& format,
                                               std::string_view name);

}  // namespace foreshard::accuracy
