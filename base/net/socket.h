/// \file
/// TCP sockets: to listen, to connect, to move bytes. Errors are values with the system's message.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/units.h"

namespace foreshard::net {

using foreshard::Descriptor;
using Clock = std::chrono::steady_clock;
/// The instant at which `patience`, from now on, is over.
Clock::time_point after(Seconds patience);

struct Listening {
  Descriptor socket{};
  std::uint16_t port = 0;
};
/// Whether `address` names this host literally: "localhost" or a loopback number (127.x, ::1).
/// Other names do not, whatever this host resolves them to: Debian's /etc/hosts lets a host resolve
/// its own name to 127.0.1.1 (Debian Reference, section 5.1.1), and other hosts resolve it
/// otherwise.
bool is_local(const std::string& address);

/// Listens on `port` (0: any that is free): on the loopback interface only if `address` is_local,
/// else on all interfaces. Does not block.
/// \param chooses  what chooses the port, for the message that it is in use.
/// \return kIo.
Result<Listening> listen_on(const std::string& address, std::uint16_t port,
                            std::string_view chooses = "MASTER_PORT");

/// Connects, trying again until `connect_timeout` is over. Dead peers are noticed (keep-alive).
/// \return kIo with the last reason.
Result<Descriptor> connect_to(const std::string& address, std::uint16_t port,
                              Seconds connect_timeout);

/// Turns on keep-alive for an accepted connection, as connect_to does.
void notice_dead_peers(int socket);

/// Waits until the peer has sent something.
/// \return false where it is gone, or `patience` is over.
bool has_sent(int socket, Seconds patience);
/// \return false where the peer is gone. Never raises SIGPIPE.
bool send_all(int socket, std::string_view bytes);
/// Exactly `size` bytes appended to `bytes`; false where the peer is gone.
bool receive_all(int socket, std::size_t size, std::string& bytes);

}  // namespace foreshard::net
