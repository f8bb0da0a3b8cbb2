#include "base/net/socket.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/net/faults.h"
#include "base/quantity.h"

namespace foreshard::net {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

std::string place(const std::string& address, std::uint16_t port) {
  return address + ":" + std::to_string(port);
}

Result<Addresses> resolve(const std::string& address, std::uint16_t port, int flags = 0) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const std::string service = std::to_string(port);
  int code = ::getaddrinfo(address.c_str(), service.c_str(), &hints, &list);
  // "localhost" is always this host (RFC 6761, section 6.3), but containers may lack /etc/hosts.
  if (code != 0 && address == "localhost")
    code = ::getaddrinfo("127.0.0.1", service.c_str(), &hints, &list);
  if (code != 0) return io("cannot resolve host '" + address + "': " + ::gai_strerror(code));
  return Addresses(list);
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
  }
  sockaddr_in6 in{};
  std::memcpy(&in, address, sizeof in);
  return IN6_IS_ADDR_LOOPBACK(&in.sin6_addr);
}

std::uint16_t port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  if (bound.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &bound, sizeof in);
    return ntohs(in.sin_port);
  }
  sockaddr_in6 in{};
  std::memcpy(&in, &bound, sizeof in);
  return ntohs(in.sin6_port);
}

bool is_own_peer(int socket) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
         own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0;
}

// One try, at most `connect_timeout` long. \return an errno, or 0.
int try_connecting(const addrinfo& to, Descriptor& out, int patience_ms) {
  Descriptor socket(
      ::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, to.ai_protocol));
  if (!socket.valid()) return errno;
  if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    pollfd wait{socket.get(), POLLOUT, 0};
    const int ready = ::poll(&wait, 1, patience_ms);
    if (ready == 0) return ETIMEDOUT;
    if (ready < 0) return errno;
    int code = 0;
    socklen_t size = sizeof code;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size) != 0) return errno;
    if (code != 0) return code;
  }
  // If nobody listens on a port that the system may hand out, the socket can connect to itself (RFC
  // 9293, section 3.5: simultaneous open).
  if (is_own_peer(socket.get())) return ECONNREFUSED;
  out = std::move(socket);
  return 0;
}

// \param patience_ms  -1: without end.
bool wait_for(int socket, short event, int patience_ms = -1) {
  pollfd wait{socket, event, 0};
  for (;;) {
    const int ready = ::poll(&wait, 1, patience_ms);
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) return false;
  }
}

}  // namespace

Clock::time_point after(Seconds patience) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience / 1_s));
}

void notice_dead_peers(int socket) {
  const int on = 1, idle_s = 10, between_s = 5, tries = 3;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool is_local(const std::string& address) {
  if (address == "localhost") return true;
  const auto number = resolve(address, 0, AI_NUMERICHOST);
  return number && is_loopback((*number)->ai_addr);
}

Result<Listening> listen_on(const std::string& address, std::uint16_t port,
                            std::string_view chooses) {
  const bool loopback = is_local(address);
  Addresses local;
  if (loopback) {
    FORESHARD_ASSIGN(local, resolve(address, port));
  }
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(port);
  any6.sin6_addr = in6addr_any;
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = htons(port);
  any4.sin_addr.s_addr = htonl(INADDR_ANY);
  struct Candidate {
    const sockaddr* address;
    socklen_t size;
  };
  // All interfaces: by IPv6, which takes IPv4 too, or by IPv4 where there is no IPv6.
  const std::vector<Candidate> candidates =
      loopback ? std::vector<Candidate>{{local->ai_addr, local->ai_addrlen}}
               : std::vector<Candidate>{{reinterpret_cast<const sockaddr*>(&any6), sizeof any6},
                                        {reinterpret_cast<const sockaddr*>(&any4), sizeof any4}};
  int reason = 0;
  for (const Candidate& candidate : candidates) {
    Descriptor socket(::socket(candidate.address->sa_family,
                               SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
    if (!socket.valid()) {
      reason = errno;
      continue;
    }
    const int on = 1, off = 0;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (candidate.address->sa_family == AF_INET6 && !loopback)
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(socket.get(), candidate.address, candidate.size) != 0 ||
        ::listen(socket.get(), SOMAXCONN) != 0) {
      reason = errno;
      if (reason == EADDRINUSE) break;
      continue;
    }
    const std::uint16_t bound = port_of(socket.get());
    return Listening{std::move(socket), bound};
  }
  if (reason == EADDRINUSE)
    return io("port " + std::to_string(port) + " of this host is in use; choose another by " +
              std::string(chooses));
  return io("cannot listen on " + place(address, port) + ": " + std::strerror(reason));
}

Result<Descriptor> connect_to(const std::string& address, std::uint16_t port,
                              Seconds connect_timeout) {
  const auto end = after(connect_timeout);
  std::string reason;
  // The first tries are short: a host whose queue is full drops them without a word, and the system
  // would try again after a second only.
  for (auto pause = std::chrono::milliseconds(5);;
       pause = std::min(pause * 2, std::chrono::milliseconds(200))) {
    const auto found = resolve(address, port);
    if (!found) {
      reason = found.error().message;
    } else {
      for (const addrinfo* to = found->get(); to != nullptr; to = to->ai_next) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
        Descriptor socket;
        const int code =
            try_connecting(*to, socket,
                           static_cast<int>(std::clamp<std::int64_t>(
                               left.count(), 1, std::min<std::int64_t>(60 * pause.count(), 5000))));
        if (code == 0) {
          notice_dead_peers(socket.get());
          return socket;
        }
        reason = std::strerror(code);
      }
    }
    if (Clock::now() + pause >= end)
      return io("cannot reach " + place(address, port) + " within " + format(connect_timeout) +
                ": " + reason);
    std::this_thread::sleep_for(pause);
  }
}

bool has_sent(int socket, Seconds patience) {
  char byte = 0;
  return wait_for(socket, POLLIN, static_cast<int>(patience / 1_ms)) &&
         ::recv(socket, &byte, 1, MSG_PEEK) > 0;
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(socket, POLLOUT)) return false;
      continue;
    }
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool receive_all(int socket, std::size_t size, std::string& bytes) {
  const std::size_t begin = bytes.size();
  bytes.resize(begin + size);
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::recv(socket, bytes.data() + begin + done, size - done, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(socket, POLLIN)) return false;
      continue;
    }
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace foreshard::net
