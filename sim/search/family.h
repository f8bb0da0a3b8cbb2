/// \file
/// Families of strategies: those that are alike but for what their backward passes compute again,
/// of the layers of each stage, and of how many of these. Most of what a step takes is the same for
/// a whole family, so that one more of them is estimated in a microsecond (Estimator::family).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/search/estimate.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// The ways in which layers of a model can be computed again.
struct Ways {
  std::vector<Recomputation> all{};
  /// Whether also some layers of each stage alone: else a plan would have too many kinds of layers.
  bool of_some_layers = false;
  /// Of each way, whether some layers alone can be computed again; empty: in all ways.
  std::vector<bool> counts{};

  bool counts_layers(std::size_t way) const {
    return of_some_layers && (counts.empty() || counts[way]);
  }
};
/// Those of which each keeps less than any that it contains: selective, of all such sets of parts,
/// and full. Where what is gathered or run besides depends on them, the usual parts and full.
/// \param base  its framework, precision and quantization count.
/// \param any_framework  else only what its framework can be told (strategies/launch/abilities.h).
Ways ways_to_recompute(const Model& model, const Strategy& base, bool any_framework = true);

/// The strategy on one device, in micro-batches of one sequence, with nothing computed again.
Strategy on_one_device(Strategy strategy);

/// What a member of a family has of its own.
struct Member {
  std::int32_t way = -1;    ///< Index into Ways::all; -1: nothing is computed again.
  std::int64_t layers = 0;  ///< As Strategy::recompute_layers.
  bool operator==(const Member&) const = default;
};

struct Family {
  Strategy base;  ///< With nothing computed again.
  const Ways* ways = nullptr;
  /// Layers of the longest stage (of an interleaved pipeline: chunk); 1: all layers or none are
  /// computed again.
  std::int64_t layers = 1;

  /// \pre strategy.recompute is none, and faults_in(strategy, model, ...) is empty.
  Family(Strategy strategy, const Model& model, const Ways& recomputed);

  std::int64_t size() const {
    std::int64_t members = 1;
    for (std::size_t way = 0; way < ways->all.size(); ++way)
      members += layers == 1 || ways->counts_layers(way) ? layers : 1;
    return members;
  }
  Strategy strategy_of(const Member& member) const;
};

/// What is done with the members of a family.
class FamilyVisitor {
 public:
  virtual ~FamilyVisitor() = default;
  /// Whether a strategy that takes no less than `bound` need be estimated; if not, so many are
  /// counted that take no less.
  virtual bool is_of_interest(Seconds bound) const = 0;
  virtual void count_slower(std::int64_t members, Seconds bound) = 0;
  /// `estimate` has the memory; step and bound follow if it is said to fit.
  virtual bool fits(const Member& member, const Estimate& estimate) const = 0;
  virtual void add_large(const Member& member, const Estimate& estimate) = 0;
  /// Whether members that need no less memory than `least` are counted and not added.
  virtual bool is_large(const Estimate& least) const = 0;
  virtual void count_large(std::int64_t members) = 0;
  virtual void add(const Member& member, const Estimate& estimate) = 0;
};

}  // namespace foreshard::search
