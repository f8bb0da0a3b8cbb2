/// \file
/// Which form of an operation a group takes, size by size: what `choices` prescribe (R4.8), else
/// what the tuner decides; and what it then takes, if that was measured. The simulator, the search
/// and the accuracy tables all choose forms here.
///
///     const auto repertoire = Repertoire::of(CollectiveKind::kAllReduce, group, parameters);
///     const auto form = repertoire->choose(64_MiB);
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

/// Whether between nodes of `group` a plugin of the transport decides in the place of NCCL's tuner.
bool has_plugin_tuner(const Participants& group);

class Repertoire {
 public:
  /// The forms of flat_forms. The cluster and `parameters` must outlive it.
  /// \return As flat_forms.
  static Result<Repertoire> of(CollectiveKind kind, const Participants& group,
                               const Parameters& parameters);
  /// The forms of representative_forms, likewise.
  static Result<Repertoire> representative(CollectiveKind kind, const Participants& group,
                                           const Parameters& parameters);

  const std::vector<FlatCollective>& forms() const { return forms_; }
  /// Whether the form of least time is always the one taken.
  bool takes_fastest() const;

  /// The place in forms() of the form that an operation of this size takes.
  /// \return kInvalidInput if a choice names an algorithm that these devices cannot do.
  Result<std::size_t> index_for(Bytes bytes) const;
  /// That form, with the channels that a choice gives it.
  Result<FlatCollective> choose(Bytes bytes) const;
  /// Its time on idle links.
  Result<Seconds> time(Bytes bytes) const;
  /// Of that form, the time in which the bytes flow (idle_time without delay), and the part of SMs
  /// that it holds meanwhile.
  struct Flow {
    Seconds time;
    double sm_share = 0;
  };
  Result<Flow> flow(Bytes bytes) const;
  /// Frees what only choose() needs: from now on, ask for times alone.
  void forget_loads();

 private:
  Repertoire(CollectiveKind kind, const Participants& group, const Parameters& parameters,
             std::vector<FlatCollective> forms);
  static Result<Repertoire> made(CollectiveKind kind, const Participants& group,
                                 const Parameters& parameters,
                                 Result<std::vector<FlatCollective>> forms);
  TimeCurve curve_for(std::size_t index, const Choice* choice) const;
  const Choice* choice_for(Bytes bytes) const;
  const MeasuredCollective* measured_for(Bytes bytes) const;
  std::size_t tuned(Bytes bytes, std::vector<std::size_t> candidates) const;

  CollectiveKind kind_;
  const ClusterView* cluster_;
  const Parameters* parameters_;
  std::vector<FlatCollective> forms_;
  std::vector<TimeCurve> curves_;  ///< Of forms_.
  std::int64_t ranks_;
  std::int64_t nodes_;
  std::vector<const Choice*> choices_;               ///< Those that hold for some size.
  std::vector<const MeasuredCollective*> measured_;  ///< Likewise.
  std::optional<nccl::Communicator> communicator_;   ///< Where NCCL's tuner has a say.
};

/// With so many channels instead of its own: each has the rate that it had, at most its own (or its
/// part of what the form reaches on idle links).
FlatCollective with_channels(FlatCollective form, std::int64_t channels,
                             const ClusterView& cluster);

/// The form made slower or faster, each part of its time alike, so that `bytes` take `time` on idle
/// links. One that costs nothing stays.
FlatCollective lasting(FlatCollective form, Bytes bytes, Seconds time, const ClusterView& cluster);

}  // namespace foreshard::comm
