/// \file
/// From the names in tables of measurements to those of the catalogue: one table line for each
/// kind of thing, the same for every source.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/graph/model.h"

namespace foreshard::accuracy {

struct NamedDevice {
  std::string name;      ///< As in configs/devices/.
  bool guessed_memory;   ///< The table does not say which capacity it has.
  bool another_variant;  ///< The catalogue has no device of this capacity; the nearest one.
};
/// The device called `gpu` ("A100", "A100-SXM4-80GB", "H100-SXM5-80GB"), with `memory_gb` if known.
std::optional<NamedDevice> device_named(std::string_view gpu, std::optional<double> memory_gb);

struct NamedFramework {
  std::string_view entry;           ///< As in configs/frameworks/.
  std::int64_t default_zero_stage;  ///< Where the table is silent.
  bool assumed;                     ///< The catalogue does not have it; what most do.
  /// Of the tokenizer in its scripts, where the table is silent; nothing: the model family's.
  std::optional<std::int64_t> vocabulary{};
  /// Layers of each pipeline stage; nothing: as many on each.
  std::vector<std::int64_t> (*layers_of_stages)(const Model& model, std::int64_t stages) = nullptr;
};
/// The framework that a row's columns `framework`, `source` and `notes` speak of.
NamedFramework framework_named(std::string_view framework, std::string_view source,
                               std::string_view notes = "");

/// The architecture that the name of a model implies, without its sizes.
struct Family {
  std::string_view word;  ///< In lower case, somewhere in the name.
  Norm norm;
  Activation activation;
  Positions positions;
  bool bias, qkv_bias, tied_embeddings, dropout;
  std::int64_t vocabulary;  ///< Where the table is silent.
  std::string_view source;
  void (*more)(Model&) = nullptr;  ///< What few families have.
};
const Family& family_named(std::string_view model_name);

/// The entry of configs/models/ whose layers a row's columns cannot describe: those of a pattern.
/// \param model_name  "Nemotron V3 Nano 30B", "nemotronh_56b".
std::optional<std::string_view> hybrid_named(std::string_view model_name);

/// Reads every device, framework and model named here, so that a fault of the catalogue ends a run
/// and is not told as one of each row.
/// \return the first fault.
Status fault_of_catalogue(yaml::Loader& loader);

}  // namespace foreshard::accuracy
