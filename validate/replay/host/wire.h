/// \file
/// Messages between ranks, without blocking: what collectives.h stands on. MPI in a replay
/// (mpi_wire.h), memory in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace foreshard::replay::host {

class Wire {
 public:
  /// A message under way; void once `done` returned true.
  using Ticket = std::int32_t;
  /// Longest message.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;

  virtual ~Wire() = default;

  /// Between two ranks, messages of one `channel` arrive in the order in which they were sent. The
  /// memory must stay until the message is done.
  /// \return kIo.
  virtual Result<Ticket> send(std::int32_t to, std::int64_t channel,
                              std::span<const std::byte> data) = 0;
  virtual Result<Ticket> receive(std::int32_t from, std::int64_t channel,
                                 std::span<std::byte> data) = 0;
  virtual Result<bool> done(Ticket ticket) = 0;
};

}  // namespace foreshard::replay::host
