/// \file
/// Loads a model and a strategy that fit together, without a cluster.
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
/// \param at  the path under which overrides address the model.
Result<Model> load_model(const std::string& name, yaml::Loader& loader, std::string_view at);

/// \return kInvalidInput with all faults of the strategy for `model`. It is assumed that there are
///     as many devices as the strategy needs.
Result<Strategy> load_strategy(const std::string& name, const Model& model,
                               const Environment& environment);

}  // namespace foreshard::cli
