/// \file
/// Maps a row of measured training steps to the cluster, model and strategy that it describes. One
/// mapping serves all rows. A setting that the row does not state gets its framework's default, or
/// is left open if there is none; either way it is listed as assumed. training.cc makes a study of
/// the result.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "evidence/row_format.h"

#include "sim/study/open_settings.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_for.h"

namespace foreshard::accuracy {

/// The parts of a row's study.
struct Setting {
  ClusterRequest cluster;
  Model model;
  std::string catalogue_model;       ///< Catalogue entry that `model` is based on; empty: none.
  Strategy strategy;                 ///< The strategy; open settings are 1 or kNone.
  std::vector<std::string> assumed;  ///< Names of the settings that the row does not state, sorted.
  /// Settings that the row does not state and its framework has no default for (open_settings.h).
  std::vector<study::OpenSetting> open;
};

/// The setting of a row.
/// \return kUnsupported, with a reason, if the row has features that foreshard does not model, such
///     as altered transformer blocks, or if sizes are missing or contradict each other.
Result<Setting> setting_of(const TrainingRow& row, const RowFormat& format, yaml::Loader& loader);

}  // namespace foreshard::accuracy
