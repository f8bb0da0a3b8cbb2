/// \file
/// A model and a strategy that fit each other, without a cluster.
#pragma once

#include <string>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "cli/command.h"

#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::cli {

/// \param name  a catalogue name, a file ending in .yaml, or a config.json of Hugging Face.
Result<Model> load_model(const std::string& name, yaml::Loader& loader);

/// \return kInvalidInput with all faults of the strategy for `model`, its own number of devices
///     taken for granted.
Result<Strategy> load_strategy(const std::string& name, const Model& model,
                               const Environment& environment);

/// The object in the file or catalogue entry `name`.
template <class T>
Result<T> load(const std::string& name, yaml::Loader& loader) {
  const bool file = name.ends_with(".yaml") || name.ends_with(".yml");
  return file ? loader.read_file<T>(name) : loader.read_ref<T>(name);
}

}  // namespace foreshard::cli
