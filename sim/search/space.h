/// \file
/// Which strategies a search looks at: every way to split the devices into tensor, context, data
/// and pipeline ranks (R3.1) and the experts among them, which of these lie next to each other,
/// with micro-batches, interleaving, recomputation and ZeRO stages. Where stages are cut is decided
/// in cuts.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/record/forward.h"
#include "base/result.h"
#include "base/yaml/table.h"

#include "strategies/launch/abilities.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard {

/// The knobs of a strategy by their keys in its file: all that a search may change, so that `--set`
/// of each turns the study's strategy into this one. Keys of offloading are there only where it
/// offloads.
const record::Record<Strategy>& record_of(const Strategy*);

}  // namespace foreshard

namespace foreshard::search {

/// The level that leaves nothing out.
inline constexpr std::int64_t kEverything = 3;

/// Which values are tried. An empty list means all that `level` allows.
struct SearchSpace {
  /// How much is tried, the optimisation level; each level has all of those below. 0:
  /// micro-batches that are powers of two up to 4, equal stages of one piece each, some
  /// recomputation, ZeRO 1 or 3. 1: also chunks up to 4 and unequal stages. 2: powers of two up to
  /// 16, all that can be recomputed (family.h), all stages of ZeRO, pipelines inside nodes. 3:
  /// every divisor up to 64, every order of ranks, sequence parallelism off too.
  std::int64_t level = 2;
  std::vector<std::int64_t> tensor_parallel = {};
  std::vector<std::int64_t> pipeline_parallel = {};
  /// Empty: for each choice of the other sizes, as many replicas as fit on the devices, and as many
  /// as fit on each of the smaller numbers of devices that `enumerate` is given.
  std::vector<std::int64_t> data_parallel = {};
  /// Empty: 1, and the powers of two that divide the sequence and leave each rank at least
  /// `kTokensOfRank` tokens.
  std::vector<std::int64_t> context_parallel = {};
  std::vector<std::int64_t> expert_parallel = {};  ///< Ignored unless layers have experts.
  /// Ignored without experts; 0: tensor_parallel.
  std::vector<std::int64_t> expert_tensor_parallel = {};
  std::vector<std::int64_t> micro_batch = {};
  std::vector<std::int64_t> virtual_stages = {};
  std::vector<std::int64_t> zero_stage = {};
  std::vector<Recompute> recompute = {};
  std::optional<bool> sequence_parallel = {};  ///< Ignored where tensor_parallel is 1.
  /// Numbers of sets of ZeRO shards. Empty: the number of `base`; where it is 1, from level 2 on,
  /// ZeRO 3 is also tried with one set per node.
  std::vector<std::int64_t> shard_replicas = {};
  /// Empty: 1f1b, and interleaved where there are several chunks.
  std::vector<std::string> schedule = {};
  std::vector<TokenDispatcher> token_dispatcher = {};  ///< Empty: the dispatcher of `base`.
  /// Ignored unless the schedule pairs passes and ranks share experts. Empty: false, and also true
  /// where `base` overlaps them.
  std::optional<bool> overlap_experts = {};
  /// Whether stages may have unequal numbers of layers, and data-parallel ranks unequal shares.
  bool uneven = true;
  bool unequal_shares = true;  ///< Whether `uneven` allows unequal shares of the batch.
  /// Layers of each piece of the pipeline; empty: an even split, and the cuts that cuts.h finds.
  std::vector<std::int64_t> layers_per_stage = {};
  /// Orders of the mesh axes, each with the axis whose ranks are nearest to each other first.
  std::vector<std::vector<std::string>> rank_order = {};
  /// Whether strategies that do not fit are also tried with optimizer states, parameters and
  /// activations offloaded to the hosts (offload.h), whose memory is not checked. Empty: only where
  /// nothing fits without. Where `base` offloads, every strategy offloads what `base` does, and no
  /// more.
  std::optional<bool> offload = {};
  /// Whether strategies are tried that the framework has no options for
  /// (strategies/launch/abilities.h). Values that the space names are tried in any case.
  bool any_framework = false;
  bool idle = true;  ///< Whether devices may be left over where the sizes do not divide.
};
const yaml::Table<SearchSpace>& yaml_table(const SearchSpace*);

/// A size of a strategy: its short word ("tp"), its key, the space's list of values for it, and the
/// strategy's member that holds it.
struct SpaceSize {
  std::string_view word;
  std::string_view key;
  std::vector<std::int64_t> SearchSpace::*values;
  std::int64_t Strategy::*value;
};
std::span<const SpaceSize> sizes_of_space();

/// Restricts a space to the value that a strategy has under one of its keys.
/// \return kInvalidInput for a key that a search decides but a space cannot name, or whose values
///     the space names already. A key that a search leaves alone changes nothing.
Status keep_value(SearchSpace& space, const Strategy& strategy, std::string_view key);

/// The legal range of the values in a list of sizes.
struct SizeLimits {
  std::int64_t least = 1;
  std::int64_t most = std::int64_t{1} << 20;
};
SizeLimits limits_of(std::vector<std::int64_t> SearchSpace::*list);

/// The fewest tokens of a sequence that a context-parallel rank has by default. Shorter parts are
/// not tried: their attention is a small part of a layer, and tensor parallelism splits the rest as
/// well.
inline constexpr std::int64_t kTokensOfRank = 8192;

struct Enumeration {
  std::vector<Strategy> candidates;  ///< Ordered by their knobs: deterministic.
  std::int64_t considered = 0;       ///< Combinations, the misfits included.
  /// Combinations that this model, schedule or number of devices does not allow, by the key at
  /// fault.
  std::map<std::string, std::int64_t> misfits;
  std::int64_t most_devices = 0;  ///< The most devices that a candidate uses.
  bool is_whole = true;           ///< The enumeration was not stopped before its end.
};

/// All strategies of `space` for `model` on `devices`. Global batch, precision, framework, the
/// exchange of keys among context-parallel ranks and the capacity of experts come from `base`; its
/// parallel sizes are ignored.
///
/// Tensor x pipeline ranks that do not divide the devices are tried where they suit the model.
/// Where the batch does not divide over all replicas that there is room for, two numbers of
/// replicas are tried: the largest over which the batch divides; and all that there is room for,
/// with shares of the batch that differ by one micro-batch (even_shares, shares.h), if the largest
/// share is then smaller. Devices that are left over stay idle.
///
/// `fewer`: smaller numbers of devices that are filled as well, where `space` names no replicas and
/// devices may be left over: with slow links or devices, a part of a cluster can be faster than all
/// of it. Empty: there is one node, and only the rank order of `base` is tried unless `space` names
/// others.
///
/// Rank orders that differ only in axes of one rank are tried once. Where the layers do not divide
/// evenly into the stages, the first stages have one more.
///
/// ZeRO 2 and 3 are tried only without a pipeline: frameworks do not offer them with one
/// (DeepSpeed: runtime/pipe/engine.py asserts ZeRO stage < 2). Where `space` names them, such
/// combinations are misfits of `zero_stage`. Not tried: other numbers of replicas.
/// \param stop  called now and then; true ends the enumeration before all strategies are found.
Enumeration enumerate(const SearchSpace& space, const Strategy& base, const Model& model,
                      std::int64_t devices, std::span<const std::int64_t> fewer = {},
                      const std::function<bool()>& stop = {});

/// The key of misfits under which strategies are counted that the framework cannot run.
inline constexpr std::string_view kFrameworkMisfit = "framework";
/// The first thing about the strategy that its framework cannot run and that the space does not ask
/// for in any case; nothing where there is none.
std::optional<launch::Limitation> limitation_in(const Strategy& strategy, const Model& model,
                                                const SearchSpace& space);

/// Whether stages may have unequal numbers of layers.
inline bool is_uneven(const SearchSpace& space) {
  return space.uneven && space.level > 0 && space.layers_per_stage.empty();
}

/// The knobs of a strategy, as its record writes them.
nlohmann::ordered_json knobs_of(const Strategy& strategy);

/// The text of describe() (strategies/parallelism/strategy.h), and the knobs that it leaves out
/// though a search varies them: "tensor 8, ..., layers 5 5 6 3, ranks by tensor, pipeline, data".
std::string in_words(const Strategy& strategy);

/// What is wrong with combinations that are counted under that key (Enumeration::misfits), in
/// words.
std::string_view misfit_text(std::string_view key);

}  // namespace foreshard::search
