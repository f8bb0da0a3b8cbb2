/// \file
/// A model and a strategy that match, without a cluster.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "cli/command.h"

#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::cli {

/// \param name  a catalogue name, a file, or a config.json of Hugging Face.
/// \param at  where overrides see it.
Result<Model> load_model(const std::string& name, yaml::Loader& loader, std::string_view at);

/// \return kInvalidInput with all faults of the strategy for `model`, its own number of devices
///     taken for granted.
Result<Strategy> load_strategy(const std::string& name, const Model& model,
                               const Environment& environment);

}  // namespace foreshard::cli
