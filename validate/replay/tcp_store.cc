#include "validate/replay/tcp_store.h"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/net/faults.h"
#include "base/net/identity.h"
#include "base/net/message.h"
#include "base/net/server.h"
#include "base/net/socket.h"
#include "base/quantity.h"

namespace foreshard::replay {
namespace {

using net::io;
using net::Message;

// Messages of the store, after the hello (protocol, rank, ranks, options, token, process) and its
// welcome (rank 0's process). NUMBER is that of the request.
//
//     rank -> server   set NUMBER key value      answered by done or refused
//                      get NUMBER key            value, once it is set
//                      look NUMBER key           value, or done where it is not set
//                      give-up why               nothing
//                      leave                     nothing: the rank is through
//     server -> rank   done NUMBER
//                      refused NUMBER why
//                      value NUMBER value
//                      ended message             a rank ended early
constexpr const char* kProtocol = "foreshard-replay/3";

// Bytes of the largest message: a value, its key and the rest.
std::size_t largest_message() {
  return static_cast<std::size_t>(kLargestValue / 1_B) + net::kLargestHello;
}

class Service : public net::Server::Service {
  using Peer = net::Server::Peer;
  using Server = net::Server;

 public:
  explicit Service(const TcpOptions& options) : options_(options) {}

  Result<Message> admit(Peer peer, const Message& hello) override {
    if (hello.size() != 6 || hello[0] != kProtocol)
      return net::bad("it speaks another version of the protocol");
    const std::string& number = hello[1];
    const std::string ranks = std::to_string(options_.ranks);
    if (const std::string why =
            why_stranger(number, {.options = hello[3], .token = hello[4]}, options_.job);
        !why.empty())
      return net::bad(why);
    if (hello[2] != ranks)
      return net::bad("rank " + number + " is one of " + hello[2] + ", but rank 0 is one of " +
                      ranks);
    const auto rank = net::whole_number_in(number);
    if (!rank || *rank < 0 || *rank >= options_.ranks)
      return net::bad("there is no rank '" + number + "' of " + ranks);
    const auto [other, is_new] = came_.emplace(*rank, hello[5]);
    if (!is_new) return net::bad("rank " + number + " is there already (" + other->second + ")");
    ranks_[peer] = "rank " + number + " (" + hello[5] + ")";
    return Message{"welcome", this_process()};
  }

  bool obey(Server& server, Peer peer, Message message) override {
    const auto is = [&](const char* kind, std::size_t words) {
      return message.size() == words && message[0] == kind;
    };
    if (is("set", 4)) {
      set(server, peer, message);
    } else if (is("get", 3) || is("look", 3)) {
      const auto found = values_.find(message[2]);
      if (found != values_.end())
        server.send(peer, {"value", message[1], found->second});
      else if (message[0] == "look")
        server.send(peer, {"done", message[1]});
      else
        waiting_[message[2]].emplace_back(peer, message[1]);
    } else if (is("give-up", 2)) {
      announce(server, ranks_[peer] + " gave up: " + message[1]);
    } else if (is("leave", 1)) {
      server.close(peer);
      ranks_.erase(peer);
    } else {
      return false;
    }
    return true;
  }

  void lost(Server& server, Peer peer) override {
    const std::string who = ranks_[peer];
    ranks_.erase(peer);
    announce(server, who + " ended without a word");
  }

  // A rank that comes when another has ended is told so.
  bool glance(Server& server) override {
    for (const auto& [peer, who] : ranks_)
      if (ended_ && told_.insert(peer).second) server.send(peer, {"ended", *ended_});
    return false;
  }

 private:
  void set(Server& server, Peer peer, Message& message) {
    const std::string number = message[1];
    const auto [entry, is_new] = values_.emplace(std::move(message[2]), std::move(message[3]));
    if (!is_new)
      return server.send(peer, {"refused", number, "'" + entry->first + "' is set twice"});
    server.send(peer, {"done", number});
    for (const auto& [who, request] : waiting_[entry->first])
      server.send(who, {"value", request, entry->second});
    waiting_.erase(entry->first);
  }

  void announce(Server& server, const std::string& message) {
    if (!ended_) ended_ = message;
    glance(server);
  }

  const TcpOptions options_;
  std::map<std::int64_t, std::string> came_;  // The process of each rank.
  std::map<Peer, std::string> ranks_;         // Those that are here, for messages.
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<std::pair<Peer, std::string>>> waiting_;  // key -> requests
  std::optional<std::string> ended_;
  std::set<Peer> told_;  // Peers that know `ended_`.
};

class TcpStore : public Store {
 public:
  TcpStore(std::unique_ptr<net::Server> server, net::Greeted greeted)
      : server_(std::move(server)),
        socket_(std::move(greeted.socket)),
        server_rank_(greeted.welcome.empty() ? "?" : greeted.welcome[0]),
        reader_([this] { read(); }) {}

  ~TcpStore() override {
    {
      const std::lock_guard lock(mutex_);
      leaving_ = true;
    }
    send({"leave"});
    // The server closes the connection when it has read the farewell; the reader then ends.
    ::shutdown(socket_.get(), SHUT_WR);
    reader_.join();
  }

  Status set(std::string_view key, std::string_view value) override {
    if (static_cast<double>(value.size()) > kLargestValue / 1_B)
      return io("the value of '" + std::string(key) + "' is larger than " + format(kLargestValue));
    FORESHARD_ASSIGN(const auto reply,
                     ask("set", {std::string(key), std::string(value)}, kForever, key));
    if (reply[0] == "refused") return io("the store refuses: " + reply.back());
    return {};
  }

  Result<std::string> get(std::string_view key, Seconds patience) override {
    FORESHARD_ASSIGN(auto reply, ask("get", {std::string(key)}, patience, key));
    return std::move(reply).back();
  }

  Result<std::optional<std::string>> look(std::string_view key) override {
    FORESHARD_ASSIGN(auto reply, ask("look", {std::string(key)}, kForever, key));
    if (reply[0] == "done") return std::optional<std::string>();
    return std::optional<std::string>(std::move(reply).back());
  }

  void give_up(std::string_view why) override { send({"give-up", std::string(why)}); }

  std::optional<std::string> ended() override {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

 private:
  static constexpr Seconds kForever = Seconds::from_base(-1);

  // Asks the server and waits for the reply. A "get" fails when a rank has ended early, because its
  // key may never be set.
  Result<Message> ask(const std::string& kind, Message words, Seconds patience,
                      std::string_view key) {
    std::unique_lock lock(mutex_);
    const std::string number = std::to_string(++last_number_);
    replies_.emplace(number, std::nullopt);
    lock.unlock();
    words.insert(words.begin(), {kind, number});
    send(words);
    lock.lock();
    const auto done = [&] { return replies_.at(number) || gone_ || (kind == "get" && ended_); };
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

  void send(const Message& message) {
    const std::lock_guard lock(sending_);
    // If it fails, the reader notices the end of the connection.
    static_cast<void>(net::send(socket_.get(), message));
  }

  void read() {
    for (;;) {
      auto message = net::receive(socket_.get(), largest_message());
      const std::lock_guard lock(mutex_);
      if (!message || message->size() < 2) {
        gone_ = true;
        if (!ended_ && !leaving_) ended_ = "rank 0 (" + server_rank_ + ") ended without a word";
        changed_.notify_all();
        return;
      }
      if (message->front() == "ended") {
        if (!ended_) ended_ = message->back();
      } else if (const auto asked = replies_.find((*message)[1]); asked != replies_.end()) {
        asked->second = *std::move(message);
      }
      changed_.notify_all();
    }
  }

  // Destroyed last, because it also waits for this rank's farewell.
  std::unique_ptr<net::Server> server_;
  net::Descriptor socket_;
  std::string server_rank_;

  std::mutex sending_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t last_number_ = 0;
  std::map<std::string, std::optional<Message>> replies_;  // request -> reply; empty: not there yet
  std::optional<std::string> ended_;
  bool gone_ = false;
  bool leaving_ = false;

  std::thread reader_;  // Begins when all other members are initialised.
};

Message hello_of(const TcpOptions& options) {
  return {kProtocol,
          std::to_string(options.rank),
          std::to_string(options.ranks),
          options.job.options,
          options.job.token,
          this_process()};
}

// \param server  nothing but on rank 0.
Result<std::unique_ptr<Store>> store_of(net::Greeted greeted, std::unique_ptr<net::Server> server) {
  try {
    return std::unique_ptr<Store>(
        std::make_unique<TcpStore>(std::move(server), std::move(greeted)));
  } catch (const std::system_error& fault) {
    return io(std::string("cannot start a thread: ") + fault.what());
  }
}

Result<std::unique_ptr<Store>> join(const TcpOptions& options,
                                    std::unique_ptr<net::Server> server) {
  auto found = net::greet(options.address, options.port, hello_of(options), options.patience);
  if (!found && found.error().code == Error::Code::kIo) {
    const std::string hint =
        options.rank == 0 ? ""
                          : "; rank 0 must run there, and MASTER_ADDR and MASTER_PORT must name it";
    return io("rank " + std::to_string(options.rank) + " " + found.error().message + hint);
  }
  FORESHARD_ASSIGN(auto greeted, std::move(found));
  if (!greeted)
    return io("what answers at " + options.address + ":" + std::to_string(options.port) +
              " is not foreshard-replay; choose another MASTER_PORT");
  return store_of(*std::move(greeted), std::move(server));
}

// Rank 0's store. \param publish  told the port before anything is served.
Result<std::unique_ptr<Store>> serve(TcpOptions options,
                                     std::function<Status(std::uint16_t port)> publish) {
  FORESHARD_ASSIGN(auto server, net::Server::start({.address = options.address,
                                                    .port = options.port,
                                                    .publish = std::move(publish),
                                                    .largest = largest_message()},
                                                   std::make_unique<Service>(options)));
  options.port = server->port();
  // Rank 0 may not know its host under the name that other ranks use, but it reaches itself under
  // any name.
  if (!net::is_local(options.address)) options.address = "localhost";
  return join(options, std::move(server));
}

// Rank 0 takes a free port and writes it into `file`, with its host unless `options.address` is the
// loopback.
Result<std::unique_ptr<Store>> open_by_file(const std::string& file, const TcpOptions& options) {
  if (options.rank == 0) {
    ::unlink(file.c_str());
    const std::string host = options.address == net::kLoopback ? "" : options.address;
    FORESHARD_ASSIGN(auto store, serve(options, [&](std::uint16_t port) {
                       return net::write_rank_zero(file, {.host = host, .port = port});
                     }));
    // Once all ranks have found the store, nobody needs the file.
    Status met = barrier(*store, "found", 0, options.ranks, options.patience);
    ::unlink(file.c_str());
    FORESHARD_TRY(met);
    return store;
  }
  FORESHARD_ASSIGN(auto found,
                   net::greet_by_file(file, options.rank, hello_of(options), options.patience, {}));
  FORESHARD_CHECK(found.has_value());  // Nothing is over.
  FORESHARD_ASSIGN(auto store, store_of(*std::move(found), nullptr));
  FORESHARD_TRY(barrier(*store, "found", options.rank, options.ranks, options.patience));
  return store;
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

Result<std::unique_ptr<Store>> open_tcp_store(const TcpOptions& options) {
  return options.rank == 0 ? serve(options, {}) : join(options, nullptr);
}

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
