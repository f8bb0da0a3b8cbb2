/// \file
/// Selects the form (algorithm and protocol) that a group uses for an operation of each size. A
/// choice of the user (Parameters::choices, requirement R4.8) comes first; then what NCCL's tuner
/// prefers, where it is asked; then the fastest form. Where the operation has been measured
/// (Parameters::measured), the measured time replaces the form's own; it does not affect which form
/// is selected. The simulator, the search and the accuracy tables all choose forms here.
///
///     const auto selector = AlgorithmSelector::of(kind, group, parameters);
///     const auto form = selector->choose(64_MiB);
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/comm/collective.h"
#include "strategies/comm/nccl/search.h"
#include "strategies/comm/parameters.h"

namespace foreshard::comm {

/// Whether some member's network transport plugin brings a tuner of its own, which replaces NCCL's
/// for groups on several nodes.
bool has_plugin_tuner(const Participants& group);

/// The selection for one operation on one group. "Choice" means a choice of the user.
class AlgorithmSelector {
 public:
  /// Selects among flat_forms (collective.h), which have all loads on links. `parameters` and the
  /// cluster of `group` must outlive the selector.
  /// \return the errors of flat_forms.
  static Result<AlgorithmSelector> of(CollectiveKind kind, const Participants& group,
                                      const Parameters& parameters);
  /// Selects among representative_forms, which have only some of the loads and serve to rank;
  /// otherwise as `of`.
  static Result<AlgorithmSelector> representative(CollectiveKind kind, const Participants& group,
                                                  const Parameters& parameters);

  const std::vector<FlatCollective>& forms() const { return forms_; }
  /// Whether it always takes the fastest form with its own time: no choice, measurement or tuner
  /// applies to the group.
  bool takes_fastest() const;

  /// Index into forms() of the form that an operation of this size uses.
  /// \return kInvalidInput if a choice names an algorithm or protocol that these devices cannot
  ///     run.
  Result<std::size_t> index_for(Bytes bytes) const;
  /// The form at index_for(bytes), with the number of channels that a choice gives, if it gives
  /// one, and scaled to the measured time, if the operation has one.
  Result<FlatCollective> choose(Bytes bytes) const;
  /// Time of the chosen form on idle links.
  Result<Seconds> time(Bytes bytes) const;
  /// The time in which the chosen form's bytes flow on idle links (its idle_time less its delay),
  /// and the fraction of the SMs that it occupies.
  struct Flow {
    Seconds time;
    double sm_share = 0;
  };
  Result<Flow> flow(Bytes bytes) const;
  /// Frees the loads on links of all forms, which only choose() needs. Do not call choose()
  /// afterwards; index_for, time and flow still work.
  void forget_loads();

 private:
  AlgorithmSelector(CollectiveKind kind, const Participants& group, const Parameters& parameters,
                    std::vector<FlatCollective> forms);
  static Result<AlgorithmSelector> made(CollectiveKind kind, const Participants& group,
                                        const Parameters& parameters,
                                        Result<std::vector<FlatCollective>> forms);
  TimeCurve curve_for(std::size_t index, const AlgorithmOverride* choice) const;
  const AlgorithmOverride* choice_for(Bytes bytes) const;
  const MeasuredCollective* measured_for(Bytes bytes) const;
  std::size_t tuned(Bytes bytes, std::vector<std::size_t> candidates) const;

  CollectiveKind kind_;
  const ClusterView* cluster_;
  const Parameters* parameters_;
  std::vector<FlatCollective> forms_;
  std::vector<TimeCurve> curves_;  ///< One per form of forms_.
  std::int64_t ranks_;
  std::int64_t nodes_;
  std::vector<const AlgorithmOverride*>
      choices_;  ///< Choices that apply to this group for some size.
  /// Measurements of this operation on this group.
  std::vector<const MeasuredCollective*> measured_;
  std::optional<nccl::Communicator> communicator_;  ///< Empty where NCCL's tuner is not asked.
};

/// The form with `channels` channels instead of its own number. Where channels have a rate of their
/// own (FlatCollective::rate_cap), each keeps it; else fewer channels reach a proportional part of
/// the form's rate on idle links.
FlatCollective with_channels(FlatCollective form, std::int64_t channels,
                             const ClusterView& cluster);

/// The form with every part of its time (latency, delay and bytes) scaled by one factor, so that
/// `bytes` take `time` on idle links. A form whose time is 0 is returned unchanged.
FlatCollective lasting(FlatCollective form, Bytes bytes, Seconds time, const ClusterView& cluster);

}  // namespace foreshard::comm
