/// \file
/// Every group of ranks that communicates in a Program, found once.
///
/// An *endpoint* is a communication as a task names it (its group, kind, transfers, roots,
/// routing); seen from a rank it stands for one *communicator*: a set of ranks, or a sender and a
/// receiver.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"

#include "strategies/comm/collective.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard::sim {

/// Where a rank runs.
inline DeviceId device_of(const program::Program& program, std::int32_t rank) {
  return DeviceId{program.device_of_rank.empty()
                      ? rank
                      : program.device_of_rank[static_cast<std::size_t>(rank)]};
}

struct Communicator {
  program::CollectiveKind kind = program::CollectiveKind::kAllReduce;  ///< kSend for transfers.
  std::vector<std::int32_t> ranks;        ///< Ascending; of a transfer: sender, receiver.
  std::int32_t pattern = 0;               ///< Communicators of one group and kind have one pattern.
  std::int32_t root = 0;                  ///< Of a broadcast: index into `ranks`.
  std::vector<comm::Transfer> transfers;  ///< Of an exchange: members are indices into `ranks`.
  std::optional<program::TokenRouting> routing{};  ///< Of a token_exchange.
};

struct Communicators {
  static constexpr std::int32_t kNone = -1;

  std::vector<Communicator> all;
  /// Per endpoint, per rank: index into `all`, or kNone.
  std::vector<std::vector<std::int32_t>> of_rank;
  /// Per block, per task: its endpoint; kNone if it is not a communication.
  std::vector<std::vector<std::int32_t>> endpoint_of_task;
  /// Per rank, the communicators it is a member of.
  std::vector<std::vector<std::int32_t>> memberships;
};

/// \pre the Program is verified. Cost: O(ranks x endpoints + members of communicators).
Communicators communicators_of(const program::Program& program);

}  // namespace foreshard::sim
