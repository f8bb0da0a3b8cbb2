/// \file
/// Collectives on a Wire, driven by the rank itself: each is a small state machine that never
/// blocks, so that one thread can advance several between its kernels.
///
/// **Ring.** all_reduce, all_gather, reduce_scatter and broadcast run on the ring of the group's
/// members in ascending order, each rank sending to the next:
///
///     reduce_scatter   n-1 steps; step t: send segment i-t-1, receive i-t-2 and add the own one
///     all_gather       n-1 steps; step t: send segment i-t, receive i-t-1
///     all_reduce       the one after the other
///     broadcast        a chain from the root on
///
/// n = members, i = this member, segments count modulo n. Segments are cut into chunks of at most
/// kChunk bytes; kLanes chunks go through all steps, then the next kLanes, so that time is
/// proportional to bytes and partial sums pass through a few chunks of scratch that stay in the
/// core's cache. Of this scratch there are 2 kLanes chunks: a rank can receive step t+1 while what
/// it forwards of step t is not yet taken, without which all could wait for each other.
/// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
/// workstations", JPDC 69(2), 2009.
///
/// **Why not MPI's own collectives.** Measured on 2 processes of one host (Open MPI 4.1.4, fp32,
/// pinned cores): MPI_Iallreduce takes 242 us for 1 MiB, 6.4 ms for 16 MiB, 37 ms for 64 MiB
/// (4.3 to 1.8 GB/s), MPI_Ireduce_scatter_block of 16 MiB longer than MPI_Iallreduce (8.8 ms):
/// the algorithm changes with size and nothing says which. Ours are one algorithm at all sizes: an
/// all-reduce takes 0.23, 3.7 and 15 ms for these (4.5 GB/s), repeats within 5 %.
///
/// **Messages.** send, receive, exchange and all_to_all are single messages (cut at 1 GiB), so
/// that where MPI may copy from the peer's memory the receiver needs no help of a sender that
/// computes.
///
/// Adding is done in the dtype: fp32 and integers as they are (integers wrap around), bf16, fp16
/// and fp8 converted to fp32, added, and rounded at every step of the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/program.h"
#include "validate/replay/host/wire.h"
#include "validate/replay/plan.h"

namespace foreshard::replay::host {

/// Bytes of a ring's message, at most.
inline constexpr std::size_t kChunk = std::size_t{256} << 10;
/// Chunks of a segment that go through a ring's steps together.
inline constexpr std::size_t kLanes = 2;

enum class Progress : std::uint8_t {
  kStalled,  ///< Nothing happened since the last look.
  kMoved,
  kDone,
};

class Collective {
 public:
  virtual ~Collective() = default;
  /// \return kIo where the wire fails.
  virtual Result<Progress> advance() = 0;
};

/// One communication, seen from one member.
struct CollectiveSpec {
  program::CollectiveKind kind = program::CollectiveKind::kAllReduce;
  DType dtype = DType::kFp32;
  std::int64_t channel = 0;  ///< The communicator's number.
  std::vector<std::int32_t> members{};
  std::int32_t me = 0;              ///< Place among them; likewise the next two.
  std::int32_t peer = 0;            ///< Of a transfer.
  std::int32_t root = 0;            ///< Of a broadcast.
  std::vector<Message> messages{};  ///< Of a group call.
};

/// Starts it. Buffers hold whole elements of the dtype, as many as Elements (plan.h) says. In
/// place, all in `receive`: all_reduce, broadcast, and all_gather with the own data in segment
/// `me`; `send` is not looked at. Buffers and `stage` must outlive the collective.
/// \param stage  scratch of stage_bytes(spec).
std::unique_ptr<Collective> start_collective(const CollectiveSpec& spec, Wire& wire,
                                             std::span<const std::byte> send,
                                             std::span<std::byte> receive,
                                             std::span<std::byte> stage);

std::size_t stage_bytes(const CollectiveSpec& spec);

/// sum[i] = a[i] + b[i], in the dtype. Sizes in bytes are equal; `sum` may be `a` or `b`.
void add(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
         std::span<std::byte> sum);

}  // namespace foreshard::replay::host
