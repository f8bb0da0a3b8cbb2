// Recursive doubling (all-gather), recursive halving (reduce-scatter), and both in a row
// (all-reduce), of B bytes among p >= 2 members (collective.cc answers for one), in ceil(log2 p)
// rounds each.
//
//     all-gather      time = ceil(log2 p) latency + (p-1)/p B / bandwidth
//     reduce-scatter  the same
//     all-reduce      twice that
//     volume          (p-1)/p B per member and pass: the least that is possible
//
// The distance between partners grows with the bytes that they exchange: half of them go to the
// farthest member, so the locality of rings is lost. Where p is no power of two, the rounds are
// Bruck's.
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
// MPICH", IJHPCA 19(1), 2005, sections 4.1, 4.4; Rabenseifner, "Optimization of collective
// reduction operations", ICCS 2004. NCCL does not have them.
#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rounds.h"

namespace foreshard::comm {
namespace {

internal::Rounds doubling_gather(const Participants& group) {
  return internal::near_first_all_gather(static_cast<std::int32_t>(group.devices.size()));
}
internal::Rounds reduce(const Participants& group) {
  return internal::joined(internal::reversed(doubling_gather(group)), doubling_gather(group));
}

}  // namespace

Result<Pattern> recursive_doubling_all_gather(const Participants& group) {
  return internal::pattern_of(group, doubling_gather(group));
}
Result<StepwiseCollective> recursive_doubling_all_gather_steps(const Participants& group) {
  return internal::steps_of("recursive_doubling", group, doubling_gather(group));
}
Result<Pattern> recursive_halving_reduce_scatter(const Participants& group) {
  return internal::pattern_of(group, internal::reversed(doubling_gather(group)));
}
Result<StepwiseCollective> recursive_halving_reduce_scatter_steps(const Participants& group) {
  return internal::steps_of("recursive_halving", group, internal::reversed(doubling_gather(group)));
}
Result<Pattern> halving_doubling_all_reduce(const Participants& group) {
  return internal::pattern_of(group, reduce(group));
}
Result<StepwiseCollective> halving_doubling_all_reduce_steps(const Participants& group) {
  return internal::steps_of("halving_doubling", group, reduce(group));
}

}  // namespace foreshard::comm
