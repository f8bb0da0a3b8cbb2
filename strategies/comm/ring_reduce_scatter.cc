// Ring reduce-scatter of B bytes among p >= 2 members: the all-gather backwards, summing on the
// way.
//
//     time   = (p-1) latency + (p-1)/p B / bandwidth
//     volume = (p-1)/p B per member, (p-1) B in total
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 69(2), 2009.
// Not modelled: the arithmetic of the reduction, which keeps up with the links.
#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {

Result<Pattern> ring_reduce_scatter(const Participants& group) {
  return internal::ring_pattern(group, 1);
}

Result<StepwiseCollective> ring_reduce_scatter_steps(const Participants& group) {
  return internal::ring_steps(group, 1, 0);
}

}  // namespace foreshard::comm
