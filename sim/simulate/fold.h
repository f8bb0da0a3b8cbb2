/// \file
/// Folding: finds ranks, communicators and links that behave alike, so that one of each can stand
/// for all.
///
/// **Refinement.** Colours on ranks, communicators and links are refined until they are stable:
///  - a rank starts with its role, its device's type and speed and its host's launch time, and is
///    refined by the colours of its communicators, endpoint by endpoint;
///  - a communicator starts with its pattern, its latencies and rate caps, and is refined by the
///    colours of its members and by (load, colour) of the links it uses;
///  - a link starts with its bandwidth, and is refined by (load, colour) of the communicators that
///    use it; links that can never limit a flow (covered.h) are left out: nothing depends on them.
///
/// **Why it is exact.** The stable partition is equitable: all members of a class see the same
/// number of members of each class in the same places. Suppose that up to some instant the members
/// of each class have made equal progress. Then all communicators of a class have all their members
/// ready at the same time. Max-min rates are unique, so they are equal within classes (permuting
/// equal members gives a solution again). So the next event of a class happens to all its members
/// at once. By induction over events, the whole step is the same within classes: one
/// representative, with the multiplicities of its class on each link, gives the times of all
/// members.
///
/// Signatures are 64-bit hashes; two different ones that collide would be taken for equal
/// (probability about n^2 / 2^64 for n objects).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/simulate/communicators.h"
#include "sim/simulate/forms.h"

namespace foreshard::sim {

/// Differences between ranks and between links that the fold cannot see by itself: slow phases,
/// failures, profiles over time, background traffic. Members of a class have equal colours. 0 is
/// the colour of undisturbed ranks and links.
struct InitialColours {
  std::vector<std::uint64_t> of_rank;  ///< Colour per rank; empty: all equal.
  /// Colour per link of the cluster; empty: all equal. If a link's colour is not 0, neither its
  /// bandwidth nor its traffic is certain: the link is not left out, and it covers no other links.
  std::vector<std::uint64_t> of_link;
  bool ways_may_change = false;  ///< Whether flows may be rerouted: then every link stays.
};

struct FoldLimits {
  /// communicator -> whether it has all its links to itself whenever it runs (a meeting,
  /// simulate.cc): its loads on links then separate no classes. Empty: none.
  std::vector<bool> meets_alone;
  /// With more rank classes than this, the partition is not wanted, and refinement stops.
  std::size_t most_classes = std::numeric_limits<std::size_t>::max();
};

enum class FoldMethod : std::uint8_t {
  kNone,        ///< Every rank is a class of its own.
  kStructural,  ///< Communicators with the same structure were routed once; colours are refined.
  kRefined,     ///< Every communicator was routed; colours are refined.
};

struct Folding {
  FoldMethod method = FoldMethod::kNone;
  std::string reason;  ///< Reason why the method is not kStructural; empty if it is.
  std::vector<std::int32_t> class_of_rank;
  std::vector<std::int32_t> class_of_communicator;
  std::vector<std::int32_t> class_of_link;        ///< -1: unused, or covered by others.
  std::vector<std::int32_t> rank_representative;  ///< class -> its lowest rank.
  std::vector<std::int32_t> communicator_representative;
  std::vector<LinkId> link_representative;
  std::vector<std::int64_t> rank_count;  ///< class -> number of its ranks.
  std::int64_t covered_links = 0;
  std::vector<bool> meets_alone;  ///< See FoldLimits.
  /// Whether the partition is stable. False if it has more than `most_classes` classes: then the
  /// rest is meaningless.
  bool stable = true;
};

/// The coarsest stable partition, or (if `fold` is false) each rank, communicator and link for
/// itself.
Folding fold(const ClusterView& cluster, const program::Program& program,
             const Communicators& communicators, const CommunicatorForms& forms, bool fold,
             const InitialColours& colours = {}, const FoldLimits& limits = {});

}  // namespace foreshard::sim
