/// \file
/// NCCL between threads of one process, on host memory: what communicators and verification do with
/// it is tested where there is no GPU. An operation is carried out when all members have issued it,
/// and its callers wait for that.
#pragma once

#include <optional>
#include <set>

namespace foreshard::replay::gpu {

struct FakeNccl {
  bool absent = false;
  /// Add 1 to the first element that the next reduction delivers.
  bool wrong = false;
  /// Only the first operation of a communicator waits for the other members, as NCCL's that makes
  /// connections does; if they stay away for long, it fails. Later ones deliver nothing.
  bool waits_once = false;
};
FakeNccl& fake_nccl();

/// Of the rank that is the calling thread: the kernels that it had launched before its first
/// operation since this was emptied. It has come to `comm_init` with those of `at_init`.
struct FakeRank {
  std::optional<std::set<const void*>> at_init{};
  std::optional<std::set<const void*>> at_first_operation{};
};
FakeRank& fake_rank();

}  // namespace foreshard::replay::gpu
