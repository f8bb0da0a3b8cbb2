#include "base/net/server.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/net/faults.h"

namespace foreshard::net {
namespace {

// The interval, in milliseconds, at which the loop looks at the time; the shorter one where
// somebody waits.
constexpr int kInterval = 200;
constexpr int kShortInterval = 5;
// Connections that are accepted, and blocks that are read from a rank, before others have their
// turn.
constexpr int kMostAtOnce = 64;
constexpr std::size_t kBlock = 1 << 16;

// A rank may need several connections: as many as the system allows.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const Options& options,
                                              std::unique_ptr<Service> service) {
  allow_many_files();
  auto server = std::unique_ptr<Server>(new Server(options, std::move(service)));
  FORESHARD_ASSIGN(server->listening_, listen_on(options.address, options.port));
  if (options.publish) FORESHARD_TRY(options.publish(server->port()));
  server->stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!server->stop_.valid())
    return io(std::string("cannot make an eventfd: ") + std::strerror(errno));
  try {
    server->thread_ = std::thread([own = server.get()] { own->run(); });
  } catch (const std::system_error& fault) {
    return io("cannot start the thread that listens to other ranks: " + fault.code().message());
  }
  return server;
}

Server::~Server() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  while (::write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

void Server::send(Peer peer, const Message& message) {
  const auto found = connections_.find(peer);
  if (found != connections_.end() && !found->second.closed) found->second.out += encode(message);
}

void Server::close(Peer peer) {
  const auto found = connections_.find(peer);
  if (found != connections_.end()) found->second.leaving = true;
}

void Server::run() {
  std::optional<Clock::time_point> late, end;
  for (;;) {
    if (stopping_ && !late) late = after(options_.farewell);
    if (late && !end && (service_->all_came() || Clock::now() >= *late))
      end = after(options_.grace);
    if (end && (count(true) == 0 || Clock::now() >= *end)) break;
    try {
      turn();
    } catch (const std::bad_alloc&) {  // What all peers had is freed; they are lost.
      for (auto& [peer, connection] : connections_) lose(peer, connection);
    }
    std::erase_if(connections_, [](const auto& entry) { return entry.second.closed; });
  }
  service_->end();
  connections_.clear();
}

std::int64_t Server::count(bool admitted) const {
  return std::ranges::count_if(connections_, [&](const auto& entry) {
    return entry.second.admitted == admitted && !entry.second.closed;
  });
}

void Server::turn() {
  const bool soon = service_->glance(*this);
  for (auto& [peer, connection] : connections_) write(peer, connection);
  std::vector<pollfd> events{{listening_.socket.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  const bool full = Clock::now() < accept_again_;
  if (full) events[0].fd = -1;
  if (stopping_) events[1].fd = -1;
  for (const auto& [peer, connection] : connections_)
    events.push_back({connection.socket.get(),
                      static_cast<short>(POLLIN | (connection.out.empty() ? 0 : POLLOUT)), 0});
  const int interval = soon || full || stopping_ ? kShortInterval : kInterval;
  if (::poll(events.data(), events.size(), interval) < 0) return;
  if (events[1].revents != 0) stopping_ = true;
  auto event = events.begin() + 2;
  for (auto& [peer, connection] : connections_) {
    if ((event->revents & (POLLIN | POLLHUP | POLLERR)) != 0) read(peer, connection);
    ++event;
  }
  // Messages that were read may have produced answers for any connection.
  for (auto& [peer, connection] : connections_) {
    write(peer, connection);
    if (!connection.admitted && Clock::now() - connection.since > kPatience) drop(connection);
  }
  if (events[0].revents != 0) accept();
}

// Makes place for a connection. \return whether there is one.
bool Server::drop_a_stranger() {
  for (auto& [peer, connection] : connections_) {  // In the order in which they came.
    if (connection.admitted || connection.closed) continue;
    if (Clock::now() - connection.since < kHurriedPatience) return false;
    drop(connection);
    return true;
  }
  return false;
}

void Server::accept() {
  for (int i = 0; i < kMostAtOnce; ++i) {
    if (count(false) >= kMostStrangers && !drop_a_stranger()) return wait_to_accept();
    Descriptor socket(
        ::accept4(listening_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      const bool lacks = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (lacks && !drop_a_stranger()) wait_to_accept();
      return;
    }
    const auto entry =
        connections_
            .emplace(next_++, Connection{.socket = std::move(socket), .since = Clock::now()})
            .first;
    // A hello is there already, if its sender had to wait.
    read(entry->first, entry->second);
    write(entry->first, entry->second);
  }
}

void Server::wait_to_accept() {
  accept_again_ = Clock::now() + std::chrono::milliseconds(kShortInterval);
}

void Server::read(Peer peer, Connection& connection) {
  char block[kBlock];
  for (int i = 0; i < (connection.admitted ? kMostAtOnce : 1) && !connection.closed; ++i) {
    const std::size_t most = connection.admitted ? kBlock : kSizeBytes + kLargestHello;
    const ssize_t n = ::recv(connection.socket.get(), block, most, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) return lose(peer, connection);
    if (connection.leaving) continue;  // The rest is ignored.
    connection.in.append(block, static_cast<std::size_t>(n));
    understand(peer, connection);
  }
}

void Server::understand(Peer peer, Connection& connection) {
  std::size_t begin = 0;
  while (!connection.closed && !connection.leaving) {
    const auto rest = std::string_view(connection.in).substr(begin);
    if (rest.size() < kSizeBytes) break;
    const std::size_t size = size_in(rest);
    if (size > (connection.admitted ? options_.largest : kLargestHello))
      return lose(peer, connection);
    if (rest.size() - kSizeBytes < size) break;
    auto message = decode(rest.substr(kSizeBytes, size));
    begin += kSizeBytes + size;
    const bool valid =
        message && (connection.admitted ? service_->obey(*this, peer, *std::move(message))
                                        : admit(peer, connection, *message));
    if (!valid) return lose(peer, connection);
  }
  connection.in.erase(0, begin);
}

bool Server::admit(Peer peer, Connection& connection, const Message& hello) {
  const auto welcome = service_->admit(peer, hello);
  connection.admitted = welcome.has_value();
  if (connection.admitted) notice_dead_peers(connection.socket.get());
  connection.leaving = !connection.admitted;
  connection.out += encode(welcome ? *welcome : Message{"refused", welcome.error().message});
  return true;
}

void Server::write(Peer peer, Connection& connection) {
  while (!connection.closed && !connection.out.empty()) {
    const ssize_t n = ::send(connection.socket.get(), connection.out.data() + connection.sent,
                             connection.out.size() - connection.sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n < 0) return lose(peer, connection);
    connection.sent += static_cast<std::size_t>(n);
    if (connection.sent < connection.out.size()) continue;
    connection.out = {};
    connection.sent = 0;
  }
  if (connection.leaving) drop(connection);
}

// Handles a connection that broke or carried an invalid message.
void Server::lose(Peer peer, Connection& connection) {
  if (connection.closed) return;
  drop(connection);
  if (connection.admitted && !connection.leaving) service_->lost(*this, peer);
}

void Server::drop(Connection& connection) {
  connection.closed = true;
  connection.socket.close();
  connection.in = {};
  connection.out = {};
}

}  // namespace foreshard::net
