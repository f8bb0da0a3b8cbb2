#include "validate/replay/tcp_store.h"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/net/faults.h"
#include "base/net/identity.h"
#include "base/net/socket.h"
#include "base/quantity.h"

#include "validate/replay/internal/tcp_server.h"

namespace foreshard::replay {
namespace {

using net::io;

using internal::Frame;
using internal::FrameKind;

std::optional<Frame> receive(int socket, std::size_t largest) {
  std::string head;
  if (!net::receive_all(socket, internal::kFrameHead, head)) return std::nullopt;
  const std::size_t size = internal::size_after_head(head);
  if (size > largest) return std::nullopt;
  std::string rest;
  if (!net::receive_all(socket, size, rest)) return std::nullopt;
  return internal::decode(rest);
}

class TcpStore : public Store {
 public:
  TcpStore(std::unique_ptr<internal::TcpServer> server, net::Descriptor socket,
           std::string server_rank)
      : server_(std::move(server)),
        socket_(std::move(socket)),
        server_rank_(std::move(server_rank)),
        reader_([this] { read(); }) {}

  ~TcpStore() override {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    send({FrameKind::kLeave, 0, {}});
    // The server closes the connection when it has read the farewell; the reader then ends.
    ::shutdown(socket_.get(), SHUT_WR);
    reader_.join();
  }

  Status set(std::string_view key, std::string_view value) override {
    if (static_cast<double>(value.size()) > kLargestValue / 1_B)
      return io("the value of '" + std::string(key) + "' is larger than " + format(kLargestValue));
    FORESHARD_ASSIGN(const auto reply,
                     ask(FrameKind::kSet, {std::string(key), std::string(value)}, kForever, key));
    if (reply.kind == FrameKind::kRefused) return io("the store refuses: " + reply.fields.at(0));
    return {};
  }

  Result<std::string> get(std::string_view key, Seconds patience) override {
    FORESHARD_ASSIGN(auto reply, ask(FrameKind::kGet, {std::string(key)}, patience, key));
    return std::move((std::move(reply)).fields.at(0));
  }

  Result<std::optional<std::string>> look(std::string_view key) override {
    FORESHARD_ASSIGN(auto reply, ask(FrameKind::kLook, {std::string(key)}, kForever, key));
    if (reply.kind == FrameKind::kDone) return std::optional<std::string>();
    return std::optional<std::string>(std::move((std::move(reply)).fields.at(0)));
  }

  void give_up(std::string_view why) override { send({FrameKind::kGiveUp, 0, {std::string(why)}}); }

  std::optional<std::string> ended() override {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

 private:
  static constexpr Seconds kForever = Seconds::from_base(-1);

  // Asks the server and waits for the reply. A kGet fails when a rank has ended early, because its
  // key may never be set.
  Result<Frame> ask(FrameKind kind, std::vector<std::string> fields, Seconds patience,
                    std::string_view key) {
    std::unique_lock lock(mutex_);
    const std::uint64_t number = ++last_number_;
    replies_.emplace(number, std::nullopt);
    lock.unlock();
    send({kind, number, std::move(fields)});
    lock.lock();
    const auto done = [&] {
      return replies_.at(number) || gone_ || (kind == FrameKind::kGet && ended_);
    };
    bool in_time = true;
    if (patience < Seconds())
      changed_.wait(lock, done);
    else
      in_time = changed_.wait_for(lock, std::chrono::duration<double>(patience / 1_s), done);
    auto reply = std::move(replies_.at(number));
    replies_.erase(number);
    if (reply) return *std::move(reply);
    if (!in_time) return io("nobody set '" + std::string(key) + "' within " + format(patience));
    return io(ended_ ? *ended_ : "the store is gone");
  }

  void send(const Frame& frame) {
    const std::lock_guard lock(sending_);
    // If it fails, the reader notices the end of the connection.
    static_cast<void>(net::send_all(socket_.get(), internal::encode(frame)));
  }

  void read() {
    const auto largest = static_cast<std::size_t>(kLargestValue / 1_B) + 4096;
    for (;;) {
      auto frame = receive(socket_.get(), largest);
      const std::lock_guard lock(mutex_);
      if (!frame) {
        gone_ = true;
        if (!ended_ && !leaving_) ended_ = "rank 0 (" + server_rank_ + ") ended without a word";
        changed_.notify_all();
        return;
      }
      if (frame->kind == FrameKind::kEnded && frame->fields.size() == 1) {
        if (!ended_) ended_ = frame->fields[0];
      } else if (const auto asked = replies_.find(frame->number); asked != replies_.end()) {
        asked->second = *std::move(frame);
      }
      changed_.notify_all();
    }
  }

  // Destroyed last, because it also waits for this rank's farewell.
  std::unique_ptr<internal::TcpServer> server_;
  net::Descriptor socket_;
  std::string server_rank_;

  std::mutex sending_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::optional<Frame>> replies_;  // request -> reply; empty: not there yet
  std::optional<std::string> ended_;
  bool gone_ = false;
  bool leaving_ = false;

  std::thread reader_;  // Begins when all other members are initialised.
};

Result<std::unique_ptr<Store>> join(const TcpOptions& options,
                                    std::unique_ptr<internal::TcpServer> server) {
  auto socket = net::connect_to(options.address, options.port, options.patience);
  if (!socket) {
    const std::string hint =
        options.rank == 0 ? ""
                          : "; rank 0 must run there, and MASTER_ADDR and MASTER_PORT must name it";
    return io("rank " + std::to_string(options.rank) + " " + socket.error().message + hint);
  }
  net::Descriptor connection = *std::move(socket);
  const Frame hello{
      FrameKind::kHello,
      0,
      {std::string(internal::kMagic), std::to_string(options.rank), std::to_string(options.ranks),
       options.job.options, options.job.token, this_process()}};
  std::optional<Frame> reply;
  if (net::send_all(connection.get(), internal::encode(hello)))
    reply = receive(connection.get(), 1 << 16);
  if (!reply || reply->fields.size() != 1 ||
      (reply->kind != FrameKind::kWelcome && reply->kind != FrameKind::kRefused))
    return io("what answers at " + options.address + ":" + std::to_string(options.port) +
              " is not foreshard-replay; choose another MASTER_PORT");
  if (reply->kind == FrameKind::kRefused)
    return Error{Error::Code::kInvalidInput, reply->fields[0]};
  return std::unique_ptr<Store>(
      std::make_unique<TcpStore>(std::move(server), std::move(connection), reply->fields[0]));
}

}  // namespace

Result<std::unique_ptr<Store>> open_tcp_store(const TcpOptions& options) {
  if (options.rank != 0) return join(options, nullptr);
  return serve_tcp_store(options, [](std::uint16_t) { return Status(); });
}

Result<std::unique_ptr<Store>> serve_tcp_store(
    TcpOptions options, const std::function<Status(std::uint16_t port)>& publish) {
  FORESHARD_CHECK(options.rank == 0);
  FORESHARD_ASSIGN(auto server, internal::TcpServer::start({.address = options.address,
                                                            .port = options.port,
                                                            .ranks = options.ranks,
                                                            .job = options.job}));
  options.port = server->port();
  // Rank 0 may not know its host under the name that other ranks use, but it reaches itself under
  // any name.
  if (!net::is_local(options.address)) options.address = "localhost";
  FORESHARD_TRY(publish(options.port));
  return join(options, std::move(server));
}

namespace {

using Clock = std::chrono::steady_clock;

// Rank 0 takes a free port and writes it into `file`, with its host unless `options.address` is the
// loopback. The file may be left from an earlier job of the same name, so a rank that finds nobody
// there looks again.
Result<std::unique_ptr<Store>> open_by_file(const std::string& file, TcpOptions options) {
  if (options.rank == 0) {
    ::unlink(file.c_str());
    const std::string host = options.address == net::kLoopback ? "" : options.address;
    FORESHARD_ASSIGN(auto store, serve_tcp_store(options, [&](std::uint16_t port) {
                       return net::write_rank_zero(file, {.host = host, .port = port});
                     }));
    // Once all ranks have found the store, nobody needs the file.
    Status met = barrier(*store, "found", 0, options.ranks, options.patience);
    ::unlink(file.c_str());
    FORESHARD_TRY(met);
    return store;
  }
  const Seconds patience = options.patience;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(patience / 1_s));
  options.patience = 200_ms;
  Status last;
  for (;;) {
    if (const auto found = net::rank_zero_in(file)) {
      options.address = found->address();
      options.port = found->port;
      auto store = open_tcp_store(options);
      if (store) {
        FORESHARD_TRY(barrier(**store, "found", options.rank, options.ranks, patience));
        return store;
      }
      if (store.error().code != Error::Code::kIo) return store.error();
      last = store.error();
    }
    if (Clock::now() >= end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return Error{Error::Code::kIo,
               "rank " + std::to_string(options.rank) + " did not find rank 0 within " +
                   format(patience) +
                   (last.ok() ? ": there is no " + file : ": " + last.error().message)};
}

// Meets in a folder that all ranks see; rank 0 creates it if necessary.
Result<std::unique_ptr<Store>> open_in_folder(const std::filesystem::path& folder,
                                              TcpOptions options) {
  if (options.rank == 0) {
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    if (code)
      return Error{Error::Code::kIo, folder.string() + ": cannot make it: " + code.message()};
  }
  options.address = net::own_name();
  return open_by_file((folder / "rank-0.foreshard").string(), std::move(options));
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(const Environment& environment, const Identity& identity,
                                          const RendezvousOptions& options) {
  if (identity.ranks == 1) return lone_store();
  TcpOptions tcp{.rank = identity.rank,
                 .ranks = identity.ranks,
                 .job = options.job,
                 .patience = options.patience};
  if (!options.folder.empty()) return open_in_folder(options.folder, std::move(tcp));
  FORESHARD_ASSIGN(const auto meeting, rendezvous_from(environment, identity));
  const bool here = meeting.kind == Rendezvous::Kind::kOneHost;
  tcp.address = here ? net::kLoopback : meeting.address;
  tcp.port = meeting.port;
  if (here) return open_by_file(meeting.file, std::move(tcp));
  return open_tcp_store(tcp);
}

}  // namespace foreshard::replay
