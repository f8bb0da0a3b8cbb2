/// \file
/// Which strategies a framework can run, as far as its own options and files can express them
/// (export_launch). By default a search offers only these, and says why it leaves others out.
///
/// One table says what each family of frameworks cannot do (abilities.cc). Frameworks in no family,
/// such as `generic` and frameworks that export_launch has no format for, count as able to run
/// everything.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/graph/model.h"
#include "strategies/graph/part.h"
#include "strategies/parallelism/framework.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::launch {

/// The format that `export --as` writes for a framework: "megatron". Empty: none is known.
std::string_view format_of(const Framework& framework);

/// Something in a strategy that its framework cannot run.
struct Limitation {
  std::string_view key;  ///< Key of the strategy.
  std::string_view why;
};
/// The first limitation; nothing where the framework can run all of the strategy. A search calls it
/// for every strategy that it lists, so it only compares numbers, and reads and writes no text.
///
/// Not looked at: precision, optimizer, quantization and what else a search takes from its study.
std::optional<Limitation> limitation_in(const Strategy& strategy, const Model& model);

/// Whether the ranks are ordered as by default (tensor, data, pipeline). Axes with a single rank
/// are ignored.
bool has_usual_order(const Strategy& strategy);

/// Whether the framework can run this recomputation, by parts or of whole layers. `some_layers`: it
/// is limited to the first layers of a stage; else it applies to all layers.
bool can_recompute(const Framework& framework, const Recomputation& how, bool some_layers);

/// The sets of parts that the framework can name for selective recomputation, each sorted; nothing
/// where it can name any.
std::optional<std::vector<std::vector<LayerPart>>> recompute_sets(const Framework& framework);

/// Communication that a framework can carry out beside computation.
enum class Overlap : std::uint8_t {
  kGradients,   ///< Gradients are reduced over data-parallel ranks beside the backward pass.
  kParameters,  ///< The gather of updated parameters (ZeRO 1), beside the next forward pass.
};
/// Whether the framework is known to have an option that switches this overlap.
bool can_overlap(const Framework& framework, Overlap what);

/// All limitations, in the order in which they are looked for; empty where the framework can run
/// all of the strategy.
std::vector<Limitation> limitations_in(const Strategy& strategy, const Model& model);

/// Megatron's names for the modules of selective recomputation, as parts of our layers.
/// Source: NVIDIA/Megatron-LM 002526d81, megatron/core/transformer/transformer_config.py
/// (recompute_modules). Not modelled: mla_up_proj, a part of the products that read latents.
struct RecomputeModule {
  std::string_view name;
  std::vector<LayerPart> parts;
};
std::span<const RecomputeModule> recompute_modules();

/// The parts of all the modules, sorted; nothing if one of the names is not known.
std::optional<std::vector<LayerPart>> parts_of_modules(std::span<const std::string> names);

/// The fewest modules that have these parts and no others; nothing if there are none.
std::optional<std::vector<std::string>> modules_of_parts(std::span<const LayerPart> parts);

}  // namespace foreshard::launch
