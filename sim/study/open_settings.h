/// \file
/// Settings that a study leaves open because nobody says them: the row of a table of measurements,
/// the launch file of another framework. One rule settles them, whoever asks:
///
/// 1. What the framework takes by default where that is known; such a setting is not open.
/// 2. Else every choice below is tried, and the fastest one that fits in memory is taken; where
///    none fits, the one that exceeds the memory least.
/// 3. The interval of the step reaches to the slowest choice that fits.
///
///     open: [micro_batch, virtual_stages, recompute]
///
/// Choices: micro-batches of 1, 2, 4, 8 and 16; no interleaving, or chunks of one or two layers;
/// recomputation none, selective (of models with experts: of their branch, as Megatron-LM's
/// --moe-layer-recompute), full. Cost: one simulation for each combination that fits, at most 45.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/names.h"

#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::study {

struct LoadedStudy;

enum class OpenSetting : std::uint8_t { kMicroBatch, kVirtualStages, kRecompute };
const yaml::Names<OpenSetting>& yaml_names(const OpenSetting*);

/// The strategies to try, grouped by micro-batch and virtual stages; within a group those with the
/// least recomputation come first. One group of one strategy if nothing is open.
std::vector<std::vector<Strategy>> choices_of(const Strategy& strategy, const Model& model,
                                              const std::vector<OpenSetting>& open);

/// What was taken for the open settings of a study.
struct Settled {
  std::string message;    ///< One sentence for people.
  double slowest = 1;     ///< Step of the slowest choice that fits, as a multiple of the fastest.
  std::int64_t fits = 0;  ///< Choices that fit in memory.
};

/// Puts the choice into the study's strategy and sets `settled`; nothing where nothing is open.
/// \return the first fault of a choice where none of them can be run.
Status settle(LoadedStudy& study);

}  // namespace foreshard::study
