#include "base/team/team.h"

#include <deque>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/net/faults.h"
#include "base/net/socket.h"

namespace foreshard::team {
namespace {

// The text that rank 0 leaves at the meeting place when the team is done. Empty where the job has
// no token: the text could not be told from an earlier job's.
std::string over_text(const Team& team) {
  return team.identity.token.empty() ? "" : "over " + team.identity.token + "\n";
}

// Whether rank 0 of this job has come to its end.
bool is_over(const Team& team) {
  const std::string over = over_text(team);
  const auto left = read_file(team.place, 512_B);
  return !over.empty() && left && *left == over;
}

Error lost(const Team& team, const Job& job) {
  return net::io(fmt::format("rank {}: rank 0 is lost; {}", team.identity.rank, job.remains));
}

// A connection to rank 0; nothing where all is over.
Result<std::optional<net::Greeted>> connected(const Team& team, const Job& job) {
  const std::int32_t rank = team.identity.rank;
  const Message hello{"hello", std::to_string(rank), job.work, team.identity.token};
  auto found = net::greet_by_file(team.place, rank, hello, team.connect_timeout,
                                  [&] { return is_over(team); });
  if (!found && found.error().code == Error::Code::kInvalidInput)
    return net::bad(fmt::format("rank 0 refuses rank {}: {}", rank, found.error().message));
  return found;
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
    const Result<bool> more = do_next(team, job, connection->socket.get(), thread, worker);
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
  team.one_host = net::on_one_host(environment, team.identity);
  return team;
}

void remove_rendezvous(const Team& team) {
  std::error_code ignored;
  std::filesystem::remove(team.place, ignored);
}

Status help(const Team& team, const Job& job, std::int64_t threads, const Worker& worker) {
  std::mutex mutex;
  Status first;
  const auto run = [&](std::int64_t i) {
    Status status = work(team, job, static_cast<std::size_t>(i), worker);
    const std::lock_guard lock(mutex);
    if (first.ok()) first = std::move(status);
  };
  std::vector<std::jthread> workers;
  try {
    for (std::int64_t i = 1; i < threads; ++i) workers.emplace_back([&run, i] { run(i); });
  } catch (const std::system_error&) {  // The system has no more threads: those that run do all.
  }
  run(0);
  workers.clear();
  return first;
}

namespace {

class Service : public net::Server::Service {
  using Peer = net::Server::Peer;

 public:
  Service(Team team, Job job, TaskQueue& queue, Tasks tasks)
      : team_(std::move(team)), job_(std::move(job)), queue_(queue), tasks_(std::move(tasks)) {}

  Result<Message> admit(Peer, const Message& hello) override {
    if (hello.size() != 4 || hello[0] != "hello") return net::bad("it speaks another protocol");
    if (hello[3] != team_.identity.token) return net::bad("it belongs to another job");
    if (hello[2] != job_.work)
      return net::bad("its " + job_.subject + ", its files or its version differ");
    came_.insert(hello[1]);
    return Message{"welcome"};
  }

  bool obey(net::Server& server, Peer peer, Message message) override {
    const auto held = held_.find(peer);
    if (held == held_.end()) {
      if (message != Message{"next"}) return false;
      waiting_.push_back(peer);
      glance(server);
      return true;
    }
    const Answer answer = tasks_.answer(held->second, message);
    if (answer.state == Answer::State::kInvalid) return false;
    if (!answer.reply.empty()) server.send(peer, answer.reply);
    if (answer.state == Answer::State::kDone) {
      held_.erase(held);
      queue_.done();
    }
    return true;
  }

  void lost(net::Server&, Peer peer) override {
    std::erase(waiting_, peer);
    const auto held = held_.find(peer);
    if (held == held_.end()) return;
    queue_.give_back(held->second);
    held_.erase(held);
  }

  // Hands tasks out. \return whether peers are left that wait for one.
  bool glance(net::Server& server) override {
    while (!waiting_.empty()) {
      const Peer peer = waiting_.front();
      if (const auto task = queue_.take_now()) {
        held_[peer] = *task;
        server.send(peer, tasks_.order(*task));
      } else if (queue_.is_over()) {
        server.send(peer, {"over"});
        server.close(peer);
      } else {
        return true;
      }
      waiting_.pop_front();
    }
    return false;
  }

  bool all_came() const override { return std::ssize(came_) >= team_.identity.ranks - 1; }

  // Before connections are closed: a rank whose connection is closed reads the file.
  void end() override {
    const std::string over = over_text(team_);
    if (over.empty() || !write_file(team_.place, over).ok()) remove_rendezvous(team_);
  }

 private:
  const Team team_;
  const Job job_;
  TaskQueue& queue_;
  const Tasks tasks_;
  std::deque<Peer> waiting_;             // Peers that have asked for a task.
  std::map<Peer, std::int64_t> held_{};  // The task that a peer has.
  std::set<std::string> came_;
};

}  // namespace

Result<std::unique_ptr<net::Server>> serve(const Team& team, Job job, TaskQueue& queue,
                                           Tasks tasks) {
  const std::string host = team.one_host ? "" : net::own_name();
  const auto publish = [&](std::uint16_t port) {
    return net::write_rank_zero(team.place, {.host = host, .port = port});
  };
  return net::Server::start(
      {.address = team.one_host ? net::kLoopback : host,
       .publish = publish,
       .farewell = team.farewell,
       .grace = team.grace},
      std::make_unique<Service>(team, std::move(job), queue, std::move(tasks)));
}

}  // namespace foreshard::team
