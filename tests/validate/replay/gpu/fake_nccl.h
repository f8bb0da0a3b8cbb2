/// \file
/// NCCL between threads of one process, on host memory: what communicators and verification do with
/// it is tested where there is no GPU. An operation is carried out when all members have issued it,
/// and its callers wait for that.
#pragma once

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

}  // namespace foreshard::replay::gpu
