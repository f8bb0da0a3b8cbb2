#include "base/team/desk.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <poll.h>
#include <set>
#include <sys/socket.h>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/net/rank_zero.h"
#include "base/net/socket.h"

namespace foreshard::team {

std::string over_text(const Team& team) {
  return team.identity.token.empty() ? "" : "over " + team.identity.token + "\n";
}

class Desk::Service {
 public:
  Service(const Team& team, Job job, Queue& queue, SeeDone see_done, net::Descriptor listening)
      : team_(team),
        job_(std::move(job)),
        queue_(queue),
        see_done_(std::move(see_done)),
        listening_(std::move(listening)),
        welcoming_([this] { welcome(); }) {}

  ~Service() {
    wait(team_.farewell, [this] { return all_came(); });
    closing_ = true;
    welcoming_.join();
    // Peers that never say hello would keep their threads.
    close([](const Connection& connection) { return !connection.known; });
    wait(team_.grace, [this] { return all_left(); });
    const std::string over = over_text(team_);
    // Written before connections are closed: a rank whose connection is closed reads it.
    if (over.empty() || !write_file(team_.place, over).ok()) forget_ranks(team_);
    close([](const Connection&) { return true; });
    for (Connection& connection : connections_) connection.thread.join();
  }

 private:
  struct Connection {
    net::Descriptor socket;
    std::atomic<bool> known{false};
    std::thread thread{};
  };
  static constexpr auto kGlance = std::chrono::milliseconds(20);
  static constexpr std::size_t kMostConnections = 4096;

  template <class Done>
  static void wait(Seconds longest, const Done& done) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(longest / 1_s));
    while (Clock::now() < end && !done()) std::this_thread::sleep_for(kGlance);
  }

  template <class Which>
  void close(const Which& which) {
    const std::lock_guard lock(mutex_);
    for (Connection& connection : connections_)
      if (which(connection) && connection.socket.valid())
        ::shutdown(connection.socket.get(), SHUT_RDWR);
  }

  bool all_left() {
    const std::lock_guard lock(mutex_);
    return std::ranges::none_of(
        connections_, [](const Connection& connection) { return connection.socket.valid(); });
  }

  bool all_came() {
    const std::lock_guard lock(mutex_);
    return std::ssize(came_) >= team_.identity.ranks - 1;
  }

  void welcome() {
    while (!closing_) {
      pollfd event{listening_.get(), POLLIN, 0};
      if (::poll(&event, 1, static_cast<int>(kGlance.count())) <= 0) continue;
      net::Descriptor socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const std::lock_guard lock(mutex_);
      if (!socket.valid() || connections_.size() >= kMostConnections) continue;
      net::notice_dead_peers(socket.get());
      Connection& connection = connections_.emplace_back();
      connection.socket = std::move(socket);
      connection.thread = std::thread([this, &connection] {
        attend(connection);
        const std::lock_guard closing(mutex_);
        connection.socket.close();
      });
    }
  }

  void attend(Connection& connection) {
    const int socket = connection.socket.get();
    const auto hello = receive(socket, kLargestHello);
    if (!hello || hello->size() != 4 || hello->front() != "hello") return;
    const Words& words = *hello;
    if (words[3] != team_.identity.token || words[2] != job_.work) {
      send(socket, {"refused", words[3] != team_.identity.token
                                   ? "it belongs to another job"
                                   : "its " + job_.subject + ", its files or its version differ"});
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      came_.insert(words[1]);
    }
    connection.known = true;
    if (!send(socket, {"welcome"})) return;
    while (serve(socket)) {
    }
  }

  // \return whether the peer may ask for another.
  bool serve(int socket) {
    const auto asked = receive(socket);
    if (!asked || *asked != Words{"next"}) return false;
    const auto task = queue_.wait();
    if (!task) {
      send(socket, {"over"});
      return false;
    }
    const bool done = see_done_(socket, *task);
    if (done)
      queue_.done();
    else
      queue_.give_back(*task);
    return done;
  }

  const Team team_;
  const Job job_;
  Queue& queue_;
  const SeeDone see_done_;
  net::Descriptor listening_;
  std::mutex mutex_;
  std::list<Connection> connections_;
  std::set<std::string> came_;
  std::atomic<bool> closing_{false};
  std::thread welcoming_;  // Last: it uses all others.
};

Desk::Desk(std::unique_ptr<Service> service) : service_(std::move(service)) {}
Desk::~Desk() = default;

Result<std::unique_ptr<Desk>> Desk::open(const Team& team, Job job, Queue& queue,
                                         SeeDone see_done) {
  const std::string host = team.one_host ? "" : net::own_name();
  FORESHARD_ASSIGN(auto listening, net::listen_on(team.one_host ? net::kLoopback : host, 0));
  FORESHARD_TRY(net::write_rank_zero(team.place, {.host = host, .port = listening.port}));
  return std::unique_ptr<Desk>(new Desk(std::make_unique<Service>(
      team, std::move(job), queue, std::move(see_done), std::move(listening.socket))));
}

}  // namespace foreshard::team
