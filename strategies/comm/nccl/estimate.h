/// \file
/// NCCL's own opinion of a collective: the channels that its graph search finds on a cluster, and
/// the time that its tuner expects of each algorithm and protocol. It decides as NCCL decides; how
/// long the operation really takes is another model's business (collective.h).
///
///     time = latency(algorithm, protocol) + bytes / bandwidth(algorithm, protocol)
///
/// Source: NVIDIA/nccl v2.28.9-1: src/graph/search.cc (channels), src/graph/tuning.cc (times),
/// src/enqueue.cc (channels that an operation uses). Written anew from what these say.
/// Not modelled: tuner plugins (which overwrite the table: aws-ofi-nccl on EFA), NCCL_* variables
/// other than those that TunerOptions names, user-registered and symmetric buffers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/comm/collective.h"
#include "strategies/comm/parameters.h"

namespace foreshard::comm::nccl {

/// What one search of the local topology found, for one pattern.
struct SearchGraph {
  std::int32_t channels = 0;                ///< 0: the hardware cannot do it.
  BytesPerSecond intra_rate;                ///< Of one channel inside a node.
  BytesPerSecond inter_rate;                ///< Of one channel between nodes.
  LinkKind intra_kind = LinkKind::kNvLink;  ///< The widest that it crosses inside a node.
};

/// The graphs of one group, before NCCL doubles the channels.
struct Graphs {
  SearchGraph ring;
  SearchGraph tree;
  SearchGraph nvls;
  SearchGraph collnet;
};

/// One line of NCCL's cost table.
struct Estimate {
  std::string_view algorithm;  ///< As in comm::algorithms(). Static storage.
  Protocol protocol = Protocol::kSimple;
  std::int32_t channels = 1;  ///< That an operation of this size would use.
  Seconds time;
};

/// \return kInvalidInput for an impossible group.
Result<Graphs> search(const Participants& group);

/// All enabled (algorithm, protocol) pairs for one operation, least time first; empty where NCCL
/// has no model of its own (all-to-all, send and receive).
/// `bytes` is what nccl-tests call the size: the larger of the send and the receive buffer.
Result<std::vector<Estimate>> estimates(CollectiveKind kind, Bytes bytes, const Participants& group,
                                        const Graphs& graphs);

}  // namespace foreshard::comm::nccl
