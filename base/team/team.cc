#include "base/team/team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <list>
#include <mutex>
#include <optional>
#include <poll.h>
#include <set>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/net/identity.h"
#include "base/net/socket.h"
#include "base/quantity.h"

namespace foreshard::team {
namespace {

constexpr std::size_t kSize = 4;  // Bytes of a size.

void put(std::string& out, std::size_t size) {
  for (std::size_t i = 0; i < kSize; ++i) out += static_cast<char>((size >> (8 * i)) & 0xff);
}

std::size_t size_in(std::string_view bytes) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < kSize; ++i)
    size |= std::size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return size;
}

// The text that rank 0 leaves at the meeting place when the team is done. Empty where the job has
// no token: the text could not be told from an earlier job's.
std::string over_text(const Team& team) {
  return team.identity.token.empty() ? "" : "over " + team.identity.token + "\n";
}

}  // namespace

std::string encode(const Message& words) {
  std::string body;
  for (const std::string& word : words) {
    put(body, word.size());
    body += word;
  }
  std::string out;
  put(out, body.size());
  return out + body;
}

std::optional<Message> decode(std::string_view bytes) {
  Message words;
  while (!bytes.empty()) {
    if (bytes.size() < kSize) return std::nullopt;
    const std::size_t size = size_in(bytes);
    bytes.remove_prefix(kSize);
    if (bytes.size() < size) return std::nullopt;
    words.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return words;
}

bool send(int socket, const Message& words) {
  return net::send_all(socket, encode(words));
}

std::optional<Message> receive(int socket, std::size_t largest) {
  std::string head;
  if (!net::receive_all(socket, kSize, head)) return std::nullopt;
  const std::size_t size = size_in(head);
  std::string body;
  if (size > largest || !net::receive_all(socket, size, body)) return std::nullopt;
  return decode(body);
}

namespace {

using Clock = std::chrono::steady_clock;

// Whether rank 0 of this job has come to its end.
bool is_over(const Team& team) {
  const std::string over = over_text(team);
  const auto left = read_file(team.place, 512_B);
  return !over.empty() && left && *left == over;
}

Error lost(const Team& team, const Job& job) {
  return {Error::Code::kIo,
          fmt::format("rank {}: rank 0 is lost; {}", team.identity.rank, job.remains)};
}

// A connection to rank 0 that has said hello. Nothing where nobody of this team answers there.
Result<std::optional<net::Descriptor>> greeted(const Team& team, const net::RankZero& place,
                                               const Job& job) {
  auto socket = net::connect_to(place.address(), place.port, 200_ms);
  if (!socket) return std::optional<net::Descriptor>();
  net::Descriptor connection = *std::move(socket);
  const bool said = send(connection.get(), {"hello", std::to_string(team.identity.rank), job.work,
                                            team.identity.token});
  const auto answer = said ? receive(connection.get(), kLargestHello) : std::nullopt;
  if (answer && answer->size() == 2 && answer->front() == "refused")
    return Error{Error::Code::kInvalidInput,
                 fmt::format("rank 0 refuses rank {}: {}", team.identity.rank, answer->back())};
  if (!answer || *answer != Message{"welcome"}) return std::optional<net::Descriptor>();
  return std::optional(std::move(connection));
}

// A connection to rank 0; nothing where all is over. The file may be left from an earlier run, so a
// rank that finds nobody there looks again.
Result<std::optional<net::Descriptor>> connected(const Team& team, const Job& job) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(team.connect_timeout / 1_s));
  do {
    if (const auto place = net::rank_zero_in(team.place)) {
      FORESHARD_ASSIGN(auto connection, greeted(team, *place, job));
      if (connection) return connection;
    }
    if (is_over(team)) return std::optional<net::Descriptor>();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (Clock::now() < end);
  return Error{Error::Code::kIo,
               fmt::format("rank {} did not find rank 0 within {}: nobody of its job is where {} "
                           "says",
                           team.identity.rank, format(team.connect_timeout), team.place.string())};
}

// Does one task, or none if all are done. \return whether there may be more.
Result<bool> do_next(const Team& team, const Job& job, int socket, std::size_t thread,
                     const Worker& worker) {
  if (!send(socket, {"next"})) return lost(team, job);
  const auto task = receive(socket);
  if (!task || task->empty()) return lost(team, job);
  if (*task == Message{"over"}) return false;
  FORESHARD_ASSIGN(const bool answered, worker(socket, *task, thread));
  return answered ? Result<bool>(true) : lost(team, job);
}

Status work(const Team& team, const Job& job, std::size_t thread, const Worker& worker) {
  FORESHARD_ASSIGN(const auto connection, connected(team, job));
  while (connection) {
    const Result<bool> more = do_next(team, job, connection->get(), thread, worker);
    // If rank 0 has ended, the task of this late rank is left out.
    if (!more) return is_over(team) ? Status() : Status(more.error());
    if (!*more) break;
  }
  return {};
}

}  // namespace

Result<Team> team_of(const net::Environment& environment, const std::filesystem::path& results) {
  FORESHARD_ASSIGN(auto identity, net::identity_from(environment));
  Team team{.identity = std::move(identity), .one_host = false, .place = results};
  team.place += ".rank-0";
  const auto meeting = net::rendezvous_from(environment, team.identity);
  team.one_host = meeting && meeting->kind == net::Rendezvous::Kind::kOneHost;
  return team;
}

void remove_rendezvous(const Team& team) {
  std::error_code ignored;
  std::filesystem::remove(team.place, ignored);
}

Status help(const Team& team, const Job& job, std::int64_t threads, const Worker& worker) {
  std::mutex mutex;
  Status first;
  {
    std::vector<std::jthread> workers;
    for (std::int64_t i = 0; i < threads; ++i)
      workers.emplace_back([&, i] {
        Status status = work(team, job, static_cast<std::size_t>(i), worker);
        const std::lock_guard lock(mutex);
        if (first.ok()) first = std::move(status);
      });
  }
  return first;
}

class TaskServer::Service {
 public:
  Service(const Team& team, Job job, TaskQueue& queue, Delegate delegate, net::Descriptor listening)
      : team_(team),
        job_(std::move(job)),
        queue_(queue),
        delegate_(std::move(delegate)),
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
    if (over.empty() || !write_file(team_.place, over).ok()) remove_rendezvous(team_);
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
    const Message& words = *hello;
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
    if (!asked || *asked != Message{"next"}) return false;
    const auto task = queue_.wait();
    if (!task) {
      send(socket, {"over"});
      return false;
    }
    const bool done = delegate_(socket, *task);
    if (done)
      queue_.done();
    else
      queue_.give_back(*task);
    return done;
  }

  const Team team_;
  const Job job_;
  TaskQueue& queue_;
  const Delegate delegate_;
  net::Descriptor listening_;
  std::mutex mutex_;
  std::list<Connection> connections_;
  std::set<std::string> came_;
  std::atomic<bool> closing_{false};
  std::thread welcoming_;  // Last: it uses all others.
};

TaskServer::TaskServer(std::unique_ptr<Service> service) : service_(std::move(service)) {}
TaskServer::~TaskServer() = default;

Result<std::unique_ptr<TaskServer>> TaskServer::open(const Team& team, Job job, TaskQueue& queue,
                                                     Delegate delegate) {
  const std::string host = team.one_host ? "" : net::own_name();
  FORESHARD_ASSIGN(auto listening, net::listen_on(team.one_host ? net::kLoopback : host, 0));
  FORESHARD_TRY(net::write_rank_zero(team.place, {.host = host, .port = listening.port}));
  return std::unique_ptr<TaskServer>(new TaskServer(std::make_unique<Service>(
      team, std::move(job), queue, std::move(delegate), std::move(listening.socket))));
}

}  // namespace foreshard::team
