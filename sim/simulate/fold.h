/// \file
/// Folding: which ranks, communicators and links behave alike, so that one of each can stand for
/// all.
///
/// **What is refined.** Colours on ranks, communicators and links, refined until they are stable:
///  - a rank starts with its role, its device's type and speed and its host's launch time, and is
///    refined by the colours of its communicators, endpoint by endpoint;
///  - a communicator starts with its pattern, its latencies and rate caps, and is refined by the
///    colours of its members and by (load, colour) of the links it uses;
///  - a link starts with bandwidth, and is refined by (load, colour) of the communicators on it;
///    links that can never hold anybody up (covered.h) are left out: nothing depends on them.
///
/// **Why it is exact.** The stable partition is equitable: members of a class see the same number
/// of each class in the same places. Suppose that up to some instant members of a class have
/// progressed alike. Then every communicator of a class has all its members ready at the same
/// time, and max-min rates, which are unique, are alike within classes (permuting equal ones gives
/// a solution again); so the next event of a class happens to all its members at once. By
/// induction over events the whole step is alike within classes, and one representative with the
/// multiplicities of its class on each link gives everybody's times.
///
/// Signatures are 64-bit hashes; two different ones that collide would be taken for equal (chance
/// about n^2 / 2^64 for n objects).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/simulate/communicators.h"
#include "sim/simulate/forms.h"

namespace foreshard::sim {

/// What tells ranks and links apart that the fold cannot see by itself: slow phases, failures,
/// profiles over time, traffic of others. Members of a class have equal colours. 0 is the colour of
/// the undisturbed.
struct InitialColours {
  std::vector<std::uint64_t> of_rank;  ///< Per rank; empty: all alike.
  /// Per link of the cluster; empty: all alike. Of a link whose colour is not 0 no argument from
  /// its bandwidth or its traffic holds: it is neither left out nor a reason to leave others out.
  std::vector<std::uint64_t> of_link;
  bool ways_may_change = false;  ///< Flows may be sent another way: every link stays.
};

struct FoldLimits {
  /// Per communicator, whether it has all links for itself whenever it runs (meetings.h): what it
  /// puts on which of them then tells nobody apart. Empty: none does.
  std::vector<bool> meets_alone;
  /// With more classes of ranks than this, the partition is not wanted: it is not refined further.
  std::size_t most_classes = std::numeric_limits<std::size_t>::max();
};

enum class FoldMethod : std::uint8_t {
  kNone,        ///< Every rank for itself.
  kStructural,  ///< Communicators built alike were routed once; colours are refined.
  kRefined,     ///< Every communicator was routed; colours are refined.
};

struct Folding {
  FoldMethod method = FoldMethod::kNone;
  std::string reason;  ///< Why not kStructural. Empty if it is.
  std::vector<std::int32_t> class_of_rank;
  std::vector<std::int32_t> class_of_communicator;
  std::vector<std::int32_t> class_of_link;        ///< -1: unused, or covered by others.
  std::vector<std::int32_t> rank_representative;  ///< Per class, its lowest rank.
  std::vector<std::int32_t> communicator_representative;
  std::vector<LinkId> link_representative;
  std::vector<std::int64_t> rank_count;  ///< Per class.
  std::int64_t covered_links = 0;
  std::vector<bool> meets_alone;  ///< As in FoldLimits.
  bool stable = true;             ///< False, and the rest of no use, above `most_classes`.
};

/// The coarsest stable partition, or (if `fold` is false) everything for itself.
Folding fold(const ClusterView& cluster, const program::Program& program,
             const Communicators& communicators, const CommunicatorForms& forms, bool fold,
             const InitialColours& colours = {}, const FoldLimits& limits = {});

}  // namespace foreshard::sim
