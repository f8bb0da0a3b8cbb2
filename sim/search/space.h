/// \file
/// Which strategies a search looks at: every way to split the devices into tensor, context, data
/// and pipeline ranks (R3.1) and the experts among them, which of these lie next to each other,
/// with micro-batches, interleaving, recomputation and ZeRO stages. Where stages are cut is for
/// cuts.h.
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

#include "base/result.h"
#include "base/yaml/table.h"

#include "strategies/launch/abilities.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// The level that leaves nothing out.
inline constexpr std::int64_t kEverything = 3;

/// Which values are tried. An empty list means all that `level` allows.
struct SearchSpace {
  /// How much is tried (R3.7, optimisation level); each level has all of those below. 0:
  /// micro-batches that are powers of two up to 4, equal stages of one piece each, some
  /// recomputation, ZeRO 1 or 3. 1: also chunks up to 4 and unequal stages. 2: powers of two up to
  /// 16, all that can be recomputed (family.h), all stages of ZeRO, pipelines inside nodes. 3:
  /// every divisor up to 64, every order of ranks, sequence parallelism off too.
  std::int64_t level = 2;
  std::vector<std::int64_t> tensor_parallel = {};
  std::vector<std::int64_t> pipeline_parallel = {};
  /// Empty: as many replicas as the devices allow, for each choice of the others, and as many as
  /// the smaller numbers of devices that `enumerate` is given allow.
  std::vector<std::int64_t> data_parallel = {};
  /// Empty: also ranks that share a sequence, where each keeps at least `kTokensOfRank` tokens.
  std::vector<std::int64_t> context_parallel = {};
  std::vector<std::int64_t> expert_parallel = {};         ///< Where layers have experts.
  std::vector<std::int64_t> expert_tensor_parallel = {};  ///< Likewise; 0: as tensor_parallel.
  std::vector<std::int64_t> micro_batch = {};
  std::vector<std::int64_t> virtual_stages = {};
  std::vector<std::int64_t> zero_stage = {};
  std::vector<Recompute> recompute = {};
  std::optional<bool> sequence_parallel = {};  ///< Where tensor_parallel > 1.
  /// Sets of ZeRO shards. Empty: that of `base`; where that is 1, from level 2 on, also one set for
  /// each node with ZeRO 3.
  std::vector<std::int64_t> shard_replicas = {};
  /// Empty: 1f1b, and interleaved where there are several chunks.
  std::vector<std::string> schedule = {};
  std::vector<TokenDispatcher> token_dispatcher = {};  ///< Empty: that of `base`.
  /// Where the schedule pairs passes and ranks share experts; empty: never, and, where `base` does
  /// it, always too.
  std::optional<bool> overlap_experts = {};
  /// Whether stages may have unequal numbers of layers, and data-parallel ranks unequal shares.
  bool uneven = true;
  /// Of each piece; empty: as they divide, and as cuts.h finds.
  std::vector<std::int64_t> layers_per_stage = {};
  /// Mesh axes, the one whose ranks are nearest to each other first.
  std::vector<std::vector<std::string>> rank_order = {};
  /// Whether what does not fit is tried with optimizer states, parameters and activations on the
  /// hosts (offload.h), whose memory is not counted. Empty: where nothing fits without. Where
  /// `base` offloads, all that is tried does so too, and nothing more is.
  std::optional<bool> offload = {};
  /// Whether also what the framework cannot be told is tried (strategies/launch/abilities.h).
  /// Values that the space names are tried in any case.
  bool any_framework = false;
  bool idle = true;  ///< Whether devices may be left over where the sizes do not divide.
};
const yaml::Table<SearchSpace>& yaml_table(const SearchSpace*);

/// A size of a strategy: its short word ("tp"), its key, the values of it that a space names, and
/// where a strategy has it.
struct SpaceSize {
  std::string_view word;
  std::string_view key;
  std::vector<std::int64_t> SearchSpace::*values;
  std::int64_t Strategy::*value;
};
std::span<const SpaceSize> sizes_of_space();

/// Restricts a space to what a strategy has of one of its keys.
/// \return kInvalidInput for a key that a search decides and a space does not name, or whose values
///     the space names already; nothing changes for a key that a search leaves as it is.
Status keep_value(SearchSpace& space, const Strategy& strategy, std::string_view key);

/// Between which numbers the values of a list of sizes lie.
struct SizeLimits {
  std::int64_t least = 1;
  std::int64_t most = std::int64_t{1} << 20;
};
SizeLimits limits_of(std::vector<std::int64_t> SearchSpace::*list);

/// Sequences whose parts would be shorter are not split by default: their attention is a small part
/// of a layer, and tensor parallelism splits the rest as well.
inline constexpr std::int64_t kTokensOfRank = 8192;

struct Enumeration {
  std::vector<Strategy> candidates;  ///< In the order of their knobs: deterministic.
  std::int64_t considered = 0;       ///< Combinations, the misfits included.
  /// Combinations that this model, schedule or number of devices does not allow, by the key at
  /// fault.
  std::map<std::string, std::int64_t> misfits;
  std::int64_t most_devices = 0;  ///< That any candidate uses.
  bool is_whole = true;           ///< Not stopped before its end.
};

/// All strategies of `space` for `model` on `devices`. Global batch, precision, framework, the
/// exchange of keys among context-parallel ranks and the capacity of experts are those
/// of `base`; its parallel sizes do not matter.
///
/// Tensor x pipeline ranks that do not divide the devices are tried where the model suits them, and
/// so are those whose replicas the batch does not divide over: with as many replicas as there is
/// room for and the batch divides over, and with all that there is room for and shares of the batch
/// that differ by one micro-batch (even_shares, shares.h), where the largest is then smaller. What
/// is left over is idle.
///
/// `fewer`: smaller numbers of devices, each of which is filled as well where `space` names no
/// replicas and devices may be left over: beside slow links or devices, a part of a cluster can be
/// faster than all of it. None: there is one node, and one order of ranks (that of `base`) is
/// tried unless `space` names others.
///
/// Orders that differ in axes of one rank alone are one. Where layers do not divide into the
/// stages, the first ones have one more.
///
/// ZeRO 2 and 3 are tried without pipeline only: with it, frameworks do not offer them (DeepSpeed:
/// runtime/pipe/engine.py asserts ZeRO stage < 2). Where `space` names them, such combinations are
/// misfits of `zero_stage`. Not tried: other numbers of replicas.
/// \param stop  asked now and then: whether to end before all strategies are found.
Enumeration enumerate(const SearchSpace& space, const Strategy& base, const Model& model,
                      std::int64_t devices, std::span<const std::int64_t> fewer = {},
                      const std::function<bool()>& stop = {});

/// As a key of misfits: what the framework cannot run.
inline constexpr std::string_view kFrameworkMisfit = "framework";
/// What the strategy's framework cannot run, unless the space has it tried all the same.
std::optional<launch::Inability> inability_in(const Strategy& strategy, const Model& model,
                                              const SearchSpace& space);

/// Whether stages may have unequal numbers of layers.
inline bool is_uneven(const SearchSpace& space) {
  return space.uneven && space.level > 0 && space.layers_per_stage.empty();
}

/// The knobs of a strategy by their keys in its file: all that a search may make otherwise than the
/// study has them, so that `--set` of each makes the study's strategy this one. What it has on the
/// hosts, if it has.
nlohmann::ordered_json knobs_of(const Strategy& strategy);

/// As describe() (strategies/parallelism/strategy.h), with what that leaves out and a search
/// varies: "tensor 8, ..., layers 5 5 6 3, ranks by tensor, pipeline, data".
std::string in_words(const Strategy& strategy);

/// What a misfit of that knob (Candidates::misfits) is, in words.
std::string_view misfit_text(std::string_view key);

}  // namespace foreshard::search
