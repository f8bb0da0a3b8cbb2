/// \file
/// Non-blocking messages between ranks, on which collectives are built (collective.h). A replay
/// uses MPI (mpi_wire.h), tests use memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace foreshard::replay::host {

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

}  // namespace foreshard::replay::host
