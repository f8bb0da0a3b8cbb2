/// \file
/// Families of strategies: a family's members differ only in what their backward passes recompute
/// and in how many layers of each stage do so. Most of a step's time is the same for a whole
/// family, so that each further member is estimated in about a microsecond (Estimator::family).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/search/estimate.h"
#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// The choices of recomputation that layers of a model have.
struct RecomputeChoices {
  std::vector<Recomputation> all{};
  /// Whether also only some layers of each stage may recompute. False where a plan would then have
  /// too many kinds of layers.
  bool of_some_layers = false;
  /// One per entry of `all`: whether only some layers may recompute that way. Empty: true for all.
  std::vector<bool> counts{};

  bool counts_layers(std::size_t choice) const {
    return of_some_layers && (counts.empty() || counts[choice]);
  }
};
/// The choices of recomputation worth trying: selective, with every set of parts none of which can
/// be left out without more being kept; and full. Only the usual parts and full where gathers or
/// other operators depend on what is recomputed.
/// \param base  its framework, precision, quantization and recompute_parts matter.
/// \param any_framework  whether to include choices that the framework has no option for
///     (strategies/launch/abilities.h).
RecomputeChoices recompute_choices(const Model& model, const Strategy& base,
                                   bool any_framework = true);

/// The strategy on one device, in micro-batches of one sequence, without recomputation.
Strategy on_one_device(Strategy strategy);

/// What distinguishes a member of a family from its base.
struct FamilyMember {
  std::int32_t choice = -1;  ///< Index into RecomputeChoices::all; -1: no recomputation.
  std::int64_t layers = 0;   ///< Same meaning as Strategy::recompute_layers.
  bool operator==(const FamilyMember&) const = default;
};

struct Family {
  Strategy base;  ///< The member without recomputation.
  const RecomputeChoices* choices = nullptr;
  /// Layers of the longest stage (in an interleaved pipeline: of the longest chunk). 1: all layers
  /// recompute, or none.
  std::int64_t layers = 1;

  /// \pre strategy.recompute is none, and faults_in(strategy, model, ...) is empty.
  Family(Strategy strategy, const Model& model, const RecomputeChoices& recomputed);

  std::int64_t size() const {
    std::int64_t members = 1;
    for (std::size_t choice = 0; choice < choices->all.size(); ++choice)
      members += layers == 1 || choices->counts_layers(choice) ? layers : 1;
    return members;
  }
  Strategy strategy_of(const FamilyMember& member) const;
};

/// Receives the members of a family from Estimator::family.
class FamilyVisitor {
 public:
  virtual ~FamilyVisitor() = default;
  /// Whether a strategy whose step is at least `bound` need be estimated. If not, count_slower() is
  /// told of the members instead.
  virtual bool is_of_interest(Seconds bound) const = 0;
  virtual void count_slower(std::int64_t members, Seconds bound) = 0;
  /// Whether the member fits. `estimate` has only the memory yet; step and bound follow if the
  /// answer is true.
  virtual bool fits(const FamilyMember& member, const Estimate& estimate) const = 0;
  virtual void add_large(const FamilyMember& member, const Estimate& estimate) = 0;
  /// Whether members that need at least the memory `least` are only counted (count_large()),
  /// without add_large().
  virtual bool is_large(const Estimate& least) const = 0;
  virtual void count_large(std::int64_t members) = 0;
  virtual void add(const FamilyMember& member, const Estimate& estimate) = 0;
};

}  // namespace foreshard::search
