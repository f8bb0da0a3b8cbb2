#include "validate/replay/internal/tcp_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/check.h"

namespace foreshard::replay::internal {
namespace {

using Clock = std::chrono::steady_clock;

// Limits for connections that have not yet identified themselves: bytes sent, time, number.
constexpr std::size_t kLargestHello = 4096;
constexpr auto kPatienceWithStrangers = std::chrono::seconds(10);
constexpr std::size_t kMostStrangers = 256;
constexpr auto kFarewell = std::chrono::seconds(10);

std::size_t largest_frame() {
  return static_cast<std::size_t>(kLargestValue / 1_B) + kLargestHello;
}

struct Connection {
  net::Descriptor socket{};
  Clock::time_point since{};
  std::int32_t rank = -1;  // -1: not identified yet.
  std::string who{};
  std::string in{};
  std::string out{};
  std::size_t sent = 0;  // Bytes of `out` that were sent.
  bool leaving = false;  // It said farewell or was refused: close once `out` is sent.
  bool closed = false;

  bool is_rank() const { return rank >= 0; }
};

struct Waiting {
  Connection* connection;
  std::uint64_t number;
};

class Service {
 public:
  Service(ServerOptions options, net::Descriptor listening, int stop)
      : options_(std::move(options)), listening_(std::move(listening)), stop_(stop) {}

  void run() {
    std::optional<Clock::time_point> end;
    for (;;) {
      if (end && (present() == 0 || Clock::now() >= *end)) return;
      wait();
      if (!end && stop_requested_) end = Clock::now() + kFarewell;
      std::erase_if(connections_, [](const Connection& c) { return c.closed; });
    }
  }

 private:
  std::size_t present() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        connections_, [](const Connection& c) { return c.is_rank() && !c.closed; }));
  }
  std::size_t strangers() const { return connections_.size() - present(); }

  void wait() {
    std::vector<pollfd> events{{listening_.get(), POLLIN, 0}, {stop_, POLLIN, 0}};
    if (strangers() >= kMostStrangers) events[0].events = 0;
    if (stop_requested_) events[1].fd = -1;
    for (const Connection& connection : connections_)
      events.push_back({connection.socket.get(),
                        static_cast<short>(POLLIN | (connection.out.empty() ? 0 : POLLOUT)), 0});
    if (::poll(events.data(), events.size(), 200) < 0) return;
    if (events[1].revents != 0) stop_requested_ = true;
    auto event = events.begin() + 2;
    for (Connection& connection : connections_) {
      if ((event->revents & (POLLIN | POLLHUP | POLLERR)) != 0) read(connection);
      ++event;
    }
    // Messages that were read may have produced answers for any connection.
    for (Connection& connection : connections_) {
      write(connection);
      if (!connection.is_rank() && Clock::now() - connection.since > kPatienceWithStrangers)
        close(connection);
    }
    if (events[0].revents != 0) accept();
  }

  void accept() {
    net::Descriptor socket(
        ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    net::notice_dead_peers(socket.get());
    connections_.push_back({.socket = std::move(socket), .since = Clock::now()});
  }

  void read(Connection& connection) {
    char block[1 << 16];
    // A limited number of blocks at a time, so that one busy rank does not starve the others.
    for (int i = 0; i < 64 && !connection.closed; ++i) {
      const ssize_t n = ::recv(connection.socket.get(), block, sizeof block, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (n <= 0) return lose(connection);
      if (connection.leaving) continue;  // It was refused: the rest is ignored.
      connection.in.append(block, static_cast<std::size_t>(n));
      understand(connection);
    }
  }

  void understand(Connection& connection) {
    std::size_t begin = 0;
    while (!connection.closed && !connection.leaving &&
           connection.in.size() >= begin + kFrameHead) {
      const std::size_t size = size_after_head(std::string_view(connection.in).substr(begin));
      if (size > (connection.is_rank() ? largest_frame() : kLargestHello)) return lose(connection);
      if (connection.in.size() < begin + kFrameHead + size) break;
      auto frame = decode(std::string_view(connection.in).substr(begin + kFrameHead, size));
      begin += kFrameHead + size;
      if (!frame) return lose(connection);
      obey(connection, *std::move(frame));
    }
    connection.in.erase(0, begin);
  }

  void obey(Connection& connection, Frame frame) {
    const auto& fields = frame.fields;
    const auto has = [&](FrameKind kind, std::size_t count) {
      return frame.kind == kind && fields.size() == count;
    };
    if (!connection.is_rank()) {
      if (has(FrameKind::kHello, 6)) return greet(connection, frame);
    } else if (has(FrameKind::kSet, 2)) {
      return set(connection, frame);
    } else if (has(FrameKind::kGet, 1) || has(FrameKind::kLook, 1)) {
      const auto found = values_.find(fields[0]);
      if (found != values_.end())
        return answer(connection, {FrameKind::kValue, frame.number, {found->second}});
      if (frame.kind == FrameKind::kLook)
        return answer(connection, {FrameKind::kDone, frame.number, {}});
      waiting_[fields[0]].push_back({&connection, frame.number});
      return;
    } else if (has(FrameKind::kGiveUp, 1)) {
      return announce("rank " + std::to_string(connection.rank) + " (" + connection.who +
                      ") gave up: " + fields[0]);
    } else if (has(FrameKind::kLeave, 0)) {
      connection.leaving = true;
      return;
    }
    lose(connection);
  }

  void greet(Connection& connection, const Frame& hello) {
    const auto refuse = [&](const std::string& why) {
      connection.leaving = true;
      answer(connection, {FrameKind::kRefused, hello.number, {why}});
    };
    const auto& fields = hello.fields;
    if (fields[0] != kMagic) return refuse("it speaks another version of the protocol");
    if (const std::string why =
            why_stranger(fields[1], {.options = fields[3], .token = fields[4]}, options_.job);
        !why.empty())
      return refuse(why);
    if (fields[2] != std::to_string(options_.ranks))
      return refuse("rank " + fields[1] + " is one of " + fields[2] + ", but rank 0 is one of " +
                    std::to_string(options_.ranks));
    for (std::int32_t rank = 0; rank < options_.ranks; ++rank) {
      if (fields[1] != std::to_string(rank)) continue;
      if (const auto other = came_.find(rank); other != came_.end())
        return refuse("rank " + fields[1] + " is there already (" + other->second + ")");
      came_.emplace(rank, fields[5]);
      connection.rank = rank;
      connection.who = fields[5];
      answer(connection, {FrameKind::kWelcome, hello.number, {this_process()}});
      if (ended_) answer(connection, {FrameKind::kEnded, 0, {*ended_}});
      return;
    }
    refuse("there is no rank '" + fields[1] + "' of " + std::to_string(options_.ranks));
  }

  void set(Connection& connection, Frame& frame) {
    const auto [entry, is_new] =
        values_.emplace(std::move(frame.fields[0]), std::move(frame.fields[1]));
    if (!is_new)
      return answer(connection,
                    {FrameKind::kRefused, frame.number, {"'" + entry->first + "' is set twice"}});
    answer(connection, {FrameKind::kDone, frame.number, {}});
    const auto waiting = waiting_.find(entry->first);
    if (waiting == waiting_.end()) return;
    for (const Waiting& who : waiting->second)
      answer(*who.connection, {FrameKind::kValue, who.number, {entry->second}});
    waiting_.erase(waiting);
  }

  void announce(const std::string& message) {
    if (ended_) return;
    ended_ = message;
    for (Connection& connection : connections_)
      if (connection.is_rank() && !connection.closed)
        answer(connection, {FrameKind::kEnded, 0, {message}});
  }

  static void answer(Connection& connection, const Frame& frame) {
    if (!connection.closed) connection.out += encode(frame);
  }

  void write(Connection& connection) {
    while (!connection.closed && !connection.out.empty()) {
      const ssize_t n = ::send(connection.socket.get(), connection.out.data() + connection.sent,
                               connection.out.size() - connection.sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (n < 0) return lose(connection);
      connection.sent += static_cast<std::size_t>(n);
      if (connection.sent < connection.out.size()) continue;
      connection.out.clear();
      connection.sent = 0;
    }
    if (connection.leaving) close(connection);
  }

  // Handles a connection that broke or carried an invalid message.
  void lose(Connection& connection) {
    if (connection.closed) return;
    const bool farewell = connection.leaving;
    close(connection);
    if (connection.is_rank() && !farewell)
      announce("rank " + std::to_string(connection.rank) + " (" + connection.who +
               ") ended without a word");
  }

  void close(Connection& connection) {
    connection.closed = true;
    connection.socket.close();
    for (auto& [key, all] : waiting_)
      std::erase_if(all, [&](const Waiting& who) { return who.connection == &connection; });
  }

  ServerOptions options_;
  net::Descriptor listening_;
  int stop_;
  bool stop_requested_ = false;
  std::list<Connection> connections_;
  std::map<std::int32_t, std::string> came_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Waiting>> waiting_;
  std::optional<std::string> ended_;
};

}  // namespace

Result<std::unique_ptr<TcpServer>> TcpServer::start(const ServerOptions& options) {
  FORESHARD_ASSIGN(auto listening, net::listen_on(options.address, options.port));
  auto server = std::unique_ptr<TcpServer>(new TcpServer());
  server->port_ = listening.port;
  server->stop_ = net::Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!server->stop_.valid())
    return Error{Error::Code::kIo, std::string("cannot make an eventfd: ") + std::strerror(errno)};
  net::Listening own = std::move(listening);
  server->thread_ =
      std::thread([service = std::make_unique<Service>(options, std::move(own.socket),
                                                       server->stop_.get())] { service->run(); });
  return server;
}

TcpServer::~TcpServer() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  FORESHARD_CHECK(written == sizeof one);
  thread_.join();
}

namespace {

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t take(std::string_view bytes, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)])}
             << (8 * i);
  return value;
}

}  // namespace

std::string encode(const Frame& frame) {
  std::size_t size = kFrameFixed;
  for (const std::string& field : frame.fields) size += 4 + field.size();
  FORESHARD_CHECK(size <= 0xffffffff);
  std::string out;
  out.reserve(kFrameHead + size);
  put(out, size, 4);
  put(out, static_cast<std::uint64_t>(frame.kind), 1);
  put(out, frame.number, 8);
  for (const std::string& field : frame.fields) {
    put(out, field.size(), 4);
    out += field;
  }
  return out;
}

std::size_t size_after_head(std::string_view head) {
  FORESHARD_CHECK(head.size() >= kFrameHead);
  return static_cast<std::size_t>(take(head, 4));
}

std::optional<Frame> decode(std::string_view rest) {
  if (rest.size() < kFrameFixed) return std::nullopt;
  const std::uint64_t kind = take(rest, 1);
  if (kind < static_cast<std::uint64_t>(FrameKind::kHello) ||
      kind > static_cast<std::uint64_t>(FrameKind::kEnded))
    return std::nullopt;
  Frame frame{.kind = static_cast<FrameKind>(kind), .number = take(rest.substr(1), 8)};
  rest.remove_prefix(kFrameFixed);
  while (!rest.empty()) {
    if (rest.size() < 4) return std::nullopt;
    const auto size = static_cast<std::size_t>(take(rest, 4));
    rest.remove_prefix(4);
    if (rest.size() < size) return std::nullopt;
    frame.fields.emplace_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return frame;
}

}  // namespace foreshard::replay::internal
