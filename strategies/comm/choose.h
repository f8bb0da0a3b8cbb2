/// \file
/// Selects the form (algorithm and protocol) that a group uses for an operation of each size: the
/// one that `choices` prescribe (R4.8), else the tuner's. A measured time, where there is one,
/// replaces the form's own. The simulator, the search and the accuracy tables all choose forms
/// here.
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

/// Whether a transport plugin of some member replaces NCCL's tuner between nodes.
bool has_plugin_tuner(const Participants& group);

class AlgorithmSelector {
 public:
  /// Chooses among the forms of flat_forms. The cluster and `parameters` must outlive it.
  /// \return As flat_forms.
  static Result<AlgorithmSelector> of(CollectiveKind kind, const Participants& group,
                                      const Parameters& parameters);
  /// Chooses among the forms of representative_forms; otherwise as `of`.
  static Result<AlgorithmSelector> representative(CollectiveKind kind, const Participants& group,
                                                  const Parameters& parameters);

  const std::vector<FlatCollective>& forms() const { return forms_; }
  /// Whether the fastest form is always the one taken: no choice, measurement or tuner interferes.
  bool takes_fastest() const;

  /// Index into forms() of the form that an operation of this size uses.
  /// \return kInvalidInput if a choice names an algorithm or protocol that these devices cannot
  ///     run.
  Result<std::size_t> index_for(Bytes bytes) const;
  /// The form at index_for(bytes), with the channels that a choice gives it and scaled to the
  /// measured time, if there is one.
  Result<FlatCollective> choose(Bytes bytes) const;
  /// Time of the chosen form on idle links.
  Result<Seconds> time(Bytes bytes) const;
  /// The chosen form's time while bytes flow (idle_time without delay), and the fraction of the SMs
  /// that it holds meanwhile.
  struct Flow {
    Seconds time;
    double sm_share = 0;
  };
  Result<Flow> flow(Bytes bytes) const;
  /// Frees what only choose() needs: afterwards, only times may be asked for.
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

/// The form with `channels` channels instead of its own. Each keeps its own rate (where it has
/// none: its share of the rate that the form reaches on idle links).
FlatCollective with_channels(FlatCollective form, std::int64_t channels,
                             const ClusterView& cluster);

/// The form scaled in every part of its time so that `bytes` take `time` on idle links. A form that
/// costs nothing is returned unchanged.
FlatCollective lasting(FlatCollective form, Bytes bytes, Seconds time, const ClusterView& cluster);

}  // namespace foreshard::comm
