#include "base/team/team.h"

#include <chrono>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/net/rank_zero.h"
#include "base/net/socket.h"
#include "base/quantity.h"
#include "base/team/desk.h"

namespace foreshard::team {
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
  if (!answer || *answer != Words{"welcome"}) return std::optional<net::Descriptor>();
  return std::optional(std::move(connection));
}

// A connection to rank 0; nothing where all is over. The file may be left from an earlier run, so a
// rank that finds nobody there looks again.
Result<std::optional<net::Descriptor>> connected(const Team& team, const Job& job) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(team.patience / 1_s));
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
                           team.identity.rank, format(team.patience), team.place.string())};
}

// Does one task, or none if all are done. \return whether there may be more.
Result<bool> do_next(const Team& team, const Job& job, int socket, std::size_t thread,
                     const Worker& worker) {
  if (!send(socket, {"next"})) return lost(team, job);
  const auto task = receive(socket);
  if (!task || task->empty()) return lost(team, job);
  if (*task == Words{"over"}) return false;
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
  const auto meeting = net::meeting_from(environment, team.identity);
  team.one_host = meeting && meeting->kind == net::Meeting::Kind::kOneHost;
  return team;
}

void forget_ranks(const Team& team) {
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

}  // namespace foreshard::team
