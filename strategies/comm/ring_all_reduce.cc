// Ring all-reduce of B bytes among p >= 2 members: reduce-scatter round the ring, then all-gather.
//
//     time   = 2 (p-1) latency + 2 (p-1)/p B / bandwidth
//     volume = 2 (p-1)/p B per member, 2 (p-1) B in total
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 69(2), 2009.
// Not modelled: the arithmetic of the reduction, which keeps up with the links.
#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {

Result<Pattern> ring_all_reduce(const Participants& group) {
  return internal::ring_pattern(group, 2);
}

Result<StepwiseCollective> ring_all_reduce_steps(const Participants& group) {
  return internal::ring_steps(group, 1, 1);
}

}  // namespace foreshard::comm
