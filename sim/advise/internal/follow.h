/// \file
/// What follows from a change of a strategy: settings that must change with it, the settings of
/// `--set` between two strategies, and the change in words.
#pragma once

#include <string>
#include <vector>

#include "base/yaml/loader.h"

#include "sim/advise/internal/ideas.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::advise {

/// Changes what cannot stay with the new sizes: sequence parallelism follows the tensor ranks;
/// stages, their schedule, their layers and the recomputed layers of each follow the pipeline;
/// shards follow the replicas; the micro-batch becomes the largest one, not above the study's, over
/// which the batch divides.
/// \param from  the study's strategy.
void follow(Strategy& strategy, const Strategy& from, const Start& start);

/// The settings that turn `from` into `to`.
/// \param all  all keys that a search may change too, because the study leaves some of them open.
std::vector<yaml::Override> settings_between(const Strategy& from, const Strategy& to, bool all);

/// "tensor parallel: 4 instead of 8, data parallel: 4 instead of 2".
std::string words_between(const Strategy& from, const Strategy& to);

}  // namespace foreshard::advise
