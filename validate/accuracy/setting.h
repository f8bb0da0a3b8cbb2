/// \file
/// What a row of measured training steps describes: cluster, model and strategy. One mapping for
/// all rows; what the row does not state is taken as its framework would by default and told.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_for.h"
#include "validate/accuracy/training_row.h"

namespace foreshard::accuracy {

struct Setting {
  ClusterRequest cluster;
  Model model;
  Strategy strategy;                 ///< With values of 1 and kNone where a knob is open.
  std::vector<std::string> assumed;  ///< What the row does not state, ascending.
  /// Knobs that the row leaves open and that a default does not settle: the fastest choice that
  /// fits in memory is taken (`choices_of`).
  bool open_micro_batch = false;
  bool open_virtual_stages = false;
  bool open_recompute = false;
};

/// \return kUnsupported with a reason for what foreshard does not model: altered blocks;
///     or where sizes are missing or contradict each other.
Result<Setting> setting_of(const TrainingRow& row, yaml::Loader& loader);

/// The strategies to try for the open knobs, those with the least recomputation first within each
/// (micro-batch, virtual stages): micro-batches 1, 2, 4, 8, 16; stages of one or two layers or not
/// interleaved; recompute none, selective (the core of attention; of models with experts the branch
/// of experts, Megatron-LM's --moe-layer-recompute), full. One strategy if nothing is open.
std::vector<std::vector<Strategy>> choices_of(const Setting& setting);

}  // namespace foreshard::accuracy
