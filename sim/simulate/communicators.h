/// \file
/// All groups of ranks that communicate in a Program, each listed once.
///
/// An *endpoint* is a communication in the terms of a task (its group, kind, transfers, roots,
/// routing). For each rank it stands for one *communicator*: a set of ranks, or a sender and a
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

/// The device on which a rank runs.
inline DeviceId device_of(const program::Program& program, std::int32_t rank) {
  return DeviceId{program.device_of_rank.empty()
                      ? rank
                      : program.device_of_rank[static_cast<std::size_t>(rank)]};
}

struct Communicator {
  program::CollectiveKind kind = program::CollectiveKind::kAllReduce;  ///< kSend for transfers.
  std::vector<std::int32_t> ranks;  ///< Ascending; for a transfer: sender, receiver.
  std::int32_t pattern = 0;  ///< Communicators with the same group and kind have the same pattern.
  std::int32_t root = 0;     ///< Root of a broadcast, as an index into `ranks`.
  /// Transfers of an exchange; members are indices into `ranks`.
  std::vector<comm::Transfer> transfers;
  std::optional<program::TokenRouting> routing{};  ///< Routing of a token_exchange.
};

struct Communicators {
  static constexpr std::int32_t kNone = -1;

  std::vector<Communicator> all;
  /// endpoint -> rank -> index into `all`, or kNone.
  std::vector<std::vector<std::int32_t>> of_rank;
  /// block -> task -> its endpoint; kNone if the task is not a communication.
  std::vector<std::vector<std::int32_t>> endpoint_of_task;
  /// rank -> the communicators of which it is a member.
  std::vector<std::vector<std::int32_t>> memberships;
};

/// \pre The Program is verified. Cost: O(ranks x endpoints + members of communicators).
Communicators communicators_of(const program::Program& program);

}  // namespace foreshard::sim
