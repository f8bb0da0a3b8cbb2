/// \file
/// Megatron's names for the modules of selective recomputation, as parts of our layers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/graph/part.h"

namespace foreshard::launch {

/// Source: NVIDIA/Megatron-LM 002526d81, megatron/core/transformer/transformer_config.py
/// (recompute_modules). Not modelled: mla_up_proj, a part of the products that read latents.
struct RecomputeModule {
  std::string_view name;
  std::vector<Part> parts;
};
std::span<const RecomputeModule> recompute_modules();

/// The parts of all the modules, sorted; nothing if one of the names is not known.
std::optional<std::vector<Part>> parts_of_modules(std::span<const std::string> names);

/// The fewest modules that have these parts and no others; nothing if there are none.
std::optional<std::vector<std::string>> modules_of_parts(std::span<const Part> parts);

}  // namespace foreshard::launch
