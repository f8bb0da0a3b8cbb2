// PAT (parallel aggregated trees): all-gather and reduce-scatter of B bytes among p >= 2 members,
// each on a node of its own (else not supported), in ceil(log2 p) rounds, the farthest partners
// first.
//
//     time   = ceil(log2 p) latency + (p-1)/p B / bandwidth
//     volume = (p-1)/p B per member
//
// A member handles each of the p chunks separately: the path counts the chunks as hops inside the
// node.
// Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
// 2025, arXiv:2506.20252; NVIDIA/nccl v2.28.9, src/graph/tuning.cc (one member per node only). Not
// modelled: buffers that hold fewer chunks than a round sends; it then takes more rounds.
#include "strategies/comm/algorithms.h"
#include "strategies/comm/internal/rings.h"
#include "strategies/comm/internal/rounds.h"

namespace foreshard::comm {
namespace {

Status fault_in_nodes(const Participants& group) {
  const auto nodes = internal::members_by_node(group);
  if (nodes.size() == group.devices.size()) return {};
  return Error{Error::Code::kUnsupported, "pat: several members share a node"};
}

Result<Pattern> with_copies(const Participants& group, const internal::Rounds& rounds) {
  FORESHARD_TRY(fault_in_nodes(group));
  FORESHARD_ASSIGN(Pattern pattern, internal::pattern_of(group, rounds));
  pattern.path.nvlink += static_cast<double>(group.devices.size());
  return pattern;
}

internal::Rounds pat_gather(const Participants& group) {
  return internal::far_first_all_gather(static_cast<std::int32_t>(group.devices.size()));
}

}  // namespace

Result<Pattern> pat_all_gather(const Participants& group) {
  return with_copies(group, pat_gather(group));
}
Result<StepwiseCollective> pat_all_gather_steps(const Participants& group) {
  return internal::steps_of("pat", group, pat_gather(group));
}
Result<Pattern> pat_reduce_scatter(const Participants& group) {
  return with_copies(group, internal::reversed(pat_gather(group)));
}
Result<StepwiseCollective> pat_reduce_scatter_steps(const Participants& group) {
  return internal::steps_of("pat", group, internal::reversed(pat_gather(group)));
}

}  // namespace foreshard::comm
