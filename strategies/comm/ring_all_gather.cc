// Ring all-gather to B bytes on each of p >= 2 members: every member passes on what it received
// last.
//
//     time   = (p-1) latency + (p-1)/p B / bandwidth
//     volume = (p-1)/p B per member, (p-1) B in total
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 19(1), 2005, section 4.1.
#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {

Result<Pattern> ring_all_gather(const Participants& group) {
  return internal::ring_pattern(group, 1);
}

Result<StepwiseCollective> ring_all_gather_steps(const Participants& group) {
  return internal::ring_steps(group, 0, 1);
}

}  // namespace foreshard::comm
