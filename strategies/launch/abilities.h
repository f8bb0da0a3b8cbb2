/// \file
/// Which strategies a framework can run, as far as its own options and files can express them
/// (export_launch). By default a search offers only these, and says why it leaves others out.
///
/// One table says what each family of frameworks cannot do (abilities.cc). Frameworks in no family,
/// such as `generic` and frameworks that export_launch has no format for, count as able to run
/// everything.
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

/// Something in a strategy that its framework cannot run.
struct Inability {
  std::string_view key;  ///< Key of the strategy.
  std::string_view why;
};
/// The first inability; nothing where the framework can run all of the strategy. A search calls it
/// for every strategy that it lists, so it only compares numbers, and reads and writes no text.
///
/// Not looked at: precision, optimizer, quantization and what else a search takes from its study.
std::optional<Inability> inability_in(const Strategy& strategy, const Model& model);

/// Whether the ranks are ordered as by default (tensor, data, pipeline). Axes with a single rank
/// are ignored.
bool has_usual_order(const Strategy& strategy);

/// Whether the framework can run this recomputation, by parts or of whole layers. `some_layers`: it
/// is limited to the first layers of a stage; else it applies to all layers.
bool can_recompute(const Framework& framework, const Recomputation& how, bool some_layers);

/// The sets of parts that the framework can name for selective recomputation, each sorted; nothing
/// where it can name any.
std::optional<std::vector<std::vector<Part>>> recompute_sets(const Framework& framework);

}  // namespace foreshard::launch
