/// \file
/// The pattern of a large group, derived from a few of its members, for ranking.
#pragma once

#include "base/result.h"

#include "strategies/comm/algorithms.h"

namespace foreshard::comm::internal {

/// As algorithm.pattern(group), in time that hardly grows with the group. It has the loads of some
/// links only: enough for the form's latency and idle rate.
///  - Rings, chains and trees: the pattern of the first nodes, with hops and volumes scaled to all
///    nodes.
///  - All-to-all: the messages that the first member sends and the last receives; between nodes,
///    one message stands for several.
/// Groups of up to 64 members (all-to-alls of up to 16), exchanges, and groups whose nodes have
/// unequal numbers of members (except for all-to-alls) are not simplified.
/// Not modelled: fabric links that many nodes share, where they are slower than the nodes' own.
/// \pre nodes with equal numbers of members are identical
Result<Pattern> representative_pattern(const Algorithm& algorithm, const Participants& group);

}  // namespace foreshard::comm::internal
