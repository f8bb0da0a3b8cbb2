/// \file
/// What a row of measured training steps describes: cluster, model and strategy, and the study that
/// they are. One mapping for all rows; what the row does not state is taken as its framework would
/// by default and told.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "evidence/row_format.h"
#include "evidence/training_row.h"

#include "sim/study/open_settings.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_for.h"

namespace foreshard::accuracy {

struct Setting {
  ClusterRequest cluster;
  Model model;
  std::string catalogue_model;       ///< The entry that the model changes; empty: written anew.
  Strategy strategy;                 ///< With values of 1 and kNone for what is open.
  std::vector<std::string> assumed;  ///< What the row does not state, ascending.
  /// What the row leaves open and its framework has no default for (open_settings.h).
  std::vector<study::OpenSetting> open;
};

/// \return kUnsupported with a reason for what foreshard does not model: altered blocks;
///     or where sizes are missing or contradict each other.
Result<Setting> setting_of(const TrainingRow& row, const RowFormat& format, yaml::Loader& loader);

}  // namespace foreshard::accuracy
