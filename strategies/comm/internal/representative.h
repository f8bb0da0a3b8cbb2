/// \file
/// The pattern of a large group from a few of its members, for ranking.
#pragma once

#include "base/result.h"

#include "strategies/comm/algorithms.h"

namespace foreshard::comm::internal {

/// As algorithm.pattern(group), in time that hardly grows with the group, but its loads are those
/// of a part of the links only: enough for the form's latency and idle rate.
///  - Rings, chains and trees: of the first nodes, with hops and volumes scaled to all of them.
///  - All-to-all: what the first member sends and the last receives; of messages between nodes one
///    stands for several.
/// Groups of up to 64 members (all-to-alls of up to 16), exchanges, and groups whose nodes have
/// unequal numbers of members are not simplified (but for their all-to-alls).
/// Not modelled: fabric links that many nodes share, where they are slower than the nodes' own.
/// \pre nodes with equal numbers of members are alike.
Result<Pattern> representative_pattern(const Algorithm& algorithm, const Participants& group);

}  // namespace foreshard::comm::internal
