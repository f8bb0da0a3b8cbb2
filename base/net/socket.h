/// \file
/// TCP sockets: to listen, to connect, to move bytes. Errors are values that say what the system
/// said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::net {

/// Owns a descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

struct Listening {
  Descriptor socket{};
  std::uint16_t port = 0;
};
/// Whether `address` is this host in so many words: "localhost" or a number of the loopback (127.x,
/// ::1). A name is not, whatever this host takes it for: Debian's /etc/hosts lets a host resolve
/// its own name to 127.0.1.1 (Debian Reference, section 5.1.1), and others resolve it otherwise.
bool is_local(const std::string& address);

/// Listens on `port` (0: any that is free): of the loopback only if `address` is_local, else of all
/// interfaces. Does not block.
/// \return kIo; "in use" names the remedy.
Result<Listening> listen_on(const std::string& address, std::uint16_t port);

/// Connects, trying again until `patience` is over. Dead peers are noticed (keep-alive).
/// \return kIo with the last reason.
Result<Descriptor> connect_to(const std::string& address, std::uint16_t port, Seconds patience);

/// Of an accepted connection, as connect_to does.
void notice_dead_peers(int socket);

/// \return false where the peer is gone. Never raises SIGPIPE.
bool send_all(int socket, std::string_view bytes);
/// Exactly `size` bytes appended to `bytes`; false where the peer is gone.
bool receive_all(int socket, std::size_t size, std::string& bytes);

}  // namespace foreshard::net
