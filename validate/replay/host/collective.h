/// \file
/// Collectives on a Wire, driven by the rank itself. Each collective is a small state machine that
/// never blocks, so that one thread can advance several of them between its kernels.
///
/// **Ring.** all_reduce, all_gather, reduce_scatter and broadcast run on the ring of the group's
/// members in ascending order, where each rank sends to the next:
///
///     reduce_scatter   n-1 steps; step t: send segment i-t-1, receive i-t-2 and add the own one
///     all_gather       n-1 steps; step t: send segment i-t, receive i-t-1
///     all_reduce       reduce_scatter, then all_gather
///     broadcast        a chain that begins at the root
///
/// n = members, i = this member; segment numbers are modulo n. Segments are cut into chunks of at
/// most kChunk bytes. kLanes chunks go through all steps, then the next kLanes, so that time is
/// proportional to bytes and partial sums pass through a few chunks of scratch memory that stay in
/// the core's cache. The scratch has 2 kLanes chunks, so that a rank can receive step t+1 before
/// the next rank has taken what it forwards of step t; otherwise all ranks could wait for each
/// other.
/// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
/// workstations", JPDC 69(2), 2009.
///
/// **Why not MPI's own collectives.** Measured on 2 processes of one host (Open MPI 4.1.4, fp32,
/// pinned cores), MPI_Iallreduce takes 242 us for 1 MiB, 6.4 ms for 16 MiB and 37 ms for 64 MiB
/// (4.3 to 1.8 GB/s), and MPI_Ireduce_scatter_block of 16 MiB takes longer (8.8 ms) than
/// MPI_Iallreduce: the algorithm changes with the size, and nothing says which one runs. Here one
/// algorithm serves all sizes: an all-reduce of these sizes takes 0.23, 3.7 and 15 ms (4.5 GB/s)
/// and repeats within 5 %.
///
/// **Messages.** send, receive, exchange and all_to_all are single messages (cut at 1 GiB). Where
/// MPI may copy from the peer's memory, the receiver then needs no help from a sender that
/// computes.
///
/// Additions are done in the dtype: fp32 and integers directly (integers wrap around); bf16, fp16
/// and fp8 are converted to fp32, added, and rounded at every step of the ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/program.h"
#include "validate/replay/executor.h"
#include "validate/replay/plan.h"

namespace foreshard::replay::host {

/// Non-blocking messages between ranks, on which collectives are built (collective.h). A replay
/// uses MPI (mpi_wire.h), tests use memory.
class Wire {
 public:
  /// Identifies a message under way; invalid once `done` returned true.
  using Ticket = std::int32_t;
  /// Size of the longest message.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  virtual ~Wire() = default;

  /// Between two ranks, messages of one `channel` arrive in the order in which they were sent. The
  /// memory must stay valid until the message is done.
  /// \return kIo if the message cannot be sent or received.
  virtual Result<Ticket> send(std::int32_t to, std::int64_t channel,
                              std::span<const std::byte> data) = 0;
  virtual Result<Ticket> receive(std::int32_t from, std::int64_t channel,
                                 std::span<std::byte> data) = 0;
  virtual Result<bool> done(Ticket ticket) = 0;
};

/// Most bytes of a ring's message.
inline constexpr std::size_t kChunk = std::size_t{256} << 10;
/// Number of chunks of a segment that go through a ring's steps together.
inline constexpr std::size_t kLanes = 2;

enum class Progress : std::uint8_t {
  kStalled,  ///< Nothing happened since the last call.
  kMoved,
  kDone,
};

class Collective {
 public:
  virtual ~Collective() = default;
  /// \return kIo if the wire fails.
  virtual Result<Progress> advance() = 0;
};

/// One communication, seen from one member.
struct CollectiveSpec {
  program::CollectiveKind kind = program::CollectiveKind::kAllReduce;
  DType dtype = DType::kFp32;
  std::int64_t channel = 0;  ///< The communicator's number.
  std::vector<std::int32_t> members{};
  std::int32_t me = 0;              ///< This member's index in `members`.
  std::int32_t peer = 0;            ///< Index of a transfer's peer in `members`.
  std::int32_t root = 0;            ///< Index of a broadcast's root in `members`.
  std::vector<Message> messages{};  ///< Messages of a group call.
};

/// Starts a collective. Buffers hold as many elements of the dtype as Elements (plan.h) says.
/// all_reduce, broadcast and all_gather (with the own data in segment `me`) work in place in
/// `receive` and ignore `send`. Buffers and `stage` must outlive the collective.
/// \param stage  scratch memory of stage_bytes(spec).
std::unique_ptr<Collective> start_collective(const CollectiveSpec& spec, Wire& wire,
                                             std::span<const std::byte> send,
                                             std::span<std::byte> receive,
                                             std::span<std::byte> stage);

std::size_t stage_bytes(const CollectiveSpec& spec);

/// sum[i] = a[i] + b[i], in the dtype. Sizes in bytes are equal; `sum` may be `a` or `b`.
void add(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
         std::span<std::byte> sum);

/// Most faults that a rank names.
inline constexpr std::size_t kMostFaults = 20;

/// For --verify: writes the numbers that this rank sends (pattern.h). Buffers are as in
/// start_collective (collective.h).
void write_given(const RankPlan& plan, std::size_t instance, std::span<std::byte> send,
                 std::span<std::byte> receive);

/// Checks the received numbers and counts them in `verification`. Sums must be exact in fp32 and in
/// integers (modulo their width), and exact within one rounding per addition in other dtypes; fp8
/// sums are limited to 448.
void check_expected(const RankPlan& plan, std::size_t instance, std::span<const std::byte> receive,
                    Verification& verification);

}  // namespace foreshard::replay::host
