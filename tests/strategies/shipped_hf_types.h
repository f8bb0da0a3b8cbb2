/// \file
/// config.json files read by the model types of the shipped catalogue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/yaml/loader.h"

#include "strategies/graph/hf_config.h"

namespace foreshard {

inline Result<HfModel> read_shipped(std::string_view text, std::string name,
                                    std::optional<std::int64_t> sequence, bool extend = false) {
  yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
  return read_hf_config(text, std::move(name), sequence, extend, loader);
}

}  // namespace foreshard
