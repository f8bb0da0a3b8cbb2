#include "sim/sweep/team.h"

#include <charconv>
#include <cstddef>
#include <string>
#include <utility>

#include "sim/sweep/grid.h"

namespace foreshard::sweep {
namespace {

using team::receive;
using team::send;
using team::Words;

Result<bool> do_point(const Setup& setup, int socket, const Words& order) {
  std::int64_t index = 0;
  const std::string& number = order.back();
  const auto end = number.data() + number.size();
  const bool sound = order.size() == 2 && order.front() == "point" &&
                     std::from_chars(number.data(), end, index).ptr == end && index >= 0 &&
                     index < size_of(names_of(setup.sweep.sweep));
  if (!sound) return false;
  FORESHARD_ASSIGN(const Point point, load_point(setup, index));
  if (!send(socket, {"key", point.key})) return false;
  const auto wanted = receive(socket);
  if (!wanted) return false;
  if (*wanted == Words{"known"}) return true;
  FORESHARD_ASSIGN(const Outcome outcome, outcome_at(setup, index, point));
  return send(socket, {"outcome", text_of(outcome)});
}

}  // namespace

Result<team::Job> job_of(const Setup& setup) {
  FORESHARD_ASSIGN(std::string work, common_work(setup));
  return team::Job{
      .work = std::move(work), .subject = "sweep", .remains = "what it had done is kept"};
}

Status help(const Setup& setup, const Team& team, std::int64_t threads) {
  FORESHARD_ASSIGN(const team::Job job, job_of(setup));
  return team::help(team, job, threads, [&](int socket, const Words& order, std::size_t) {
    return do_point(setup, socket, order);
  });
}

}  // namespace foreshard::sweep
