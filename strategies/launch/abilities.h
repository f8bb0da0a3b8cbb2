/// \file
/// What of a strategy a framework can run, as its own options and files can say it
/// (export_launch): what a search offers by default, and why others are left out.
///
/// One table has, of each family of frameworks, what it cannot do (abilities.cc). Of frameworks
/// that are in no family, such as `generic` and those that export_launch has no format for, nothing
/// is known: they can run everything.
#pragma once

#include <optional>
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

/// The first thing that the strategy's framework cannot run: the key of the strategy and why.
/// Nothing where it can run all. A search asks it of every strategy that it lists: it compares
/// numbers, and reads and writes no text.
///
/// Not looked at: precision, optimizer, quantization and what else a search takes from its study.
struct Inability {
  std::string_view key;
  std::string_view why;
};
std::optional<Inability> inability_in(const Strategy& strategy, const Model& model);

/// Whether the ranks lie as they do by default: tensor, data, pipeline, as far as these are
/// several.
bool has_usual_order(const Strategy& strategy);

/// Whether recomputation by these parts, or of whole layers, is among what the framework can run:
/// of all layers, or of the first so many.
bool can_recompute(const Framework& framework, const Recomputation& how, bool some_layers);

/// The sets of parts that the framework can name for selective recomputation, each sorted; nothing
/// where it can name any.
std::optional<std::vector<std::vector<Part>>> recompute_sets(const Framework& framework);

}  // namespace foreshard::launch
