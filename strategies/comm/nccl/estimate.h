/// \file
/// NCCL's own estimate of a collective: the time that its tuner expects for each algorithm and
/// protocol, on the channels that its graph search found (search.h). It reproduces NCCL's decision;
/// the operation's actual time is predicted elsewhere (collective.h).
///
///     time = latency(algorithm, protocol) + bytes / bandwidth(algorithm, protocol)
///
///     const auto communicator = nccl::communicator_of(group, tables);
///     const auto estimates = nccl::estimates(CollectiveKind::kAllReduce, 64_MiB, *communicator);
///     estimates.front();  // what NCCL takes
///
/// Source: NVIDIA/nccl v2.28.9-1: src/graph/tuning.cc (times), src/enqueue.cc (channels that an
/// operation uses). Reimplemented, not copied.
/// Not modelled: tuner plugins (which overwrite the table: aws-ofi-nccl on EFA), NCCL_* variables,
/// user-registered and symmetric buffers, hosts of several processor vendors, paths over another
/// GPU's NVLinks (where NCCL runs LL128 with the latencies of PCIe).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/comm/nccl/search.h"
#include "strategies/comm/nccl/tables.h"
#include "strategies/comm/parameters.h"
#include "strategies/program/ir/program.h"

namespace foreshard::comm::nccl {

/// One line of NCCL's cost table.
struct Estimate {
  std::string_view algorithm;  ///< A name in comm::algorithms(). Static storage.
  Protocol protocol = Protocol::kSimple;
  std::int64_t channels = 1;  ///< Channels that an operation of this size would use.
  Seconds time;
};

/// All enabled (algorithm, protocol) pairs for one operation, least time first; empty where NCCL
/// has no model of its own (all-to-all, send and receive), or if `communicator` has one member.
/// `bytes` is the size as nccl-tests define it: the larger of the send and the receive buffer.
/// \pre bytes >= 0
std::vector<Estimate> estimates(program::CollectiveKind kind, Bytes bytes,
                                const Communicator& communicator, const Tables& tables);

}  // namespace foreshard::comm::nccl
