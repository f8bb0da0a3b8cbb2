// Solves the problem of choices for a pipeline, where the slowest stage counts (pipeline.h), for
// search.cc of this folder. Times are seconds, memory is bytes on one device.
#include "sim/search/graph/pipeline.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "strategies/parallelism/pipeline.h"

namespace foreshard::search {
namespace {

constexpr int kMoves = 8;  // the most iterations that move the weights

double load_of(const Tables& tables, std::size_t stage, const std::vector<std::size_t>& choice) {
  double sum = 0;
  for (std::size_t v = 0; v < choice.size(); ++v) {
    const std::vector<double>& load = tables.problem.variables[v].load;
    if (tables.stage_of[v] == stage && !load.empty()) sum += load[choice[v]];
  }
  return sum;
}

// stage -> the step if that stage sets the pace.
std::vector<double> paces_of(const Tables& tables, const std::vector<std::size_t>& choice) {
  const std::vector<StageCosts> costs = costs_of(tables, choice);
  double through = 0;  // time of one round through all stages
  for (std::size_t s = 0; s < costs.size(); ++s) through += tables.passes[s] * costs[s].pass;
  std::vector<double> paces;
  for (std::size_t s = 0; s < costs.size(); ++s)
    paces.push_back(through + (tables.rounds - 1) * tables.passes[s] * costs[s].pass +
                    costs[s].once);
  return paces;
}

// The least cost of `problem` with no stage too full. The bound is the bound of the first solution,
// or of the second where it is higher.
std::optional<Answer> solve_within(Problem problem, const Tables& tables,
                                   const std::vector<double>& rooms, double most,
                                   const SolveOptions& options) {
  for (Variable& variable : problem.variables) variable.load.clear();
  auto answer = solve(problem, options);
  double bound = answer ? answer->bound : 0;
  for (std::size_t round = 0; answer && round < rooms.size(); ++round) {
    std::size_t fullest = 0;
    double fill = 0;
    for (std::size_t s = 0; s < rooms.size(); ++s)
      if (const double own = load_of(tables, s, answer->choice) / rooms[s]; own > fill)
        std::tie(fullest, fill) = std::pair(s, own);
    if (fill <= most) break;
    for (std::size_t v = 0; v < problem.variables.size(); ++v)
      if (tables.stage_of[v] == fullest)
        problem.variables[v].load = tables.problem.variables[v].load;
    problem.limit = most * rooms[fullest];
    answer = solve(problem, options);
    if (!answer) break;
    bound = std::max(bound, round == 0 ? answer->bound : 0.0);
    problem.limit = kForbidden;
    for (std::size_t v = 0; v < problem.variables.size(); ++v) {
      Variable& variable = problem.variables[v];
      variable.load.clear();
      if (tables.stage_of[v] != fullest || v >= tables.splits.size()) continue;
      for (std::size_t n = 0; n < variable.cost.size(); ++n)
        if (n != answer->choice[v]) variable.cost[n] = kForbidden;
    }
  }
  if (!answer || fill_of(tables, rooms, answer->choice) > most) return std::nullopt;
  answer->bound = std::min(bound, answer->cost);
  return answer;
}

}  // namespace

std::vector<StageCosts> costs_of(const Tables& tables, const std::vector<std::size_t>& choice) {
  std::vector<StageCosts> costs(tables.stages());
  for (std::size_t v = 0; v < choice.size(); ++v) {
    StageCosts& own = costs[tables.stage_of[v]];
    const double cost = tables.pass.variables[v].cost[choice[v]];
    own.pass += cost;
    own.forward += tables.forward[v][choice[v]];
    own.once += tables.once[v][choice[v]];
    if (v >= tables.splits.size()) own.messages += cost;  // activations cost their transfers alone
  }
  for (const Pair& pair : tables.pass.pairs) {
    const std::size_t columns = tables.pass.variables[pair.b].cost.size();
    const double cost = pair.cost[choice[pair.a] * columns + choice[pair.b]];
    StageCosts& own = costs[tables.stage_of[pair.a]];
    own.pass += cost;
    own.forward += cost / 2;
  }
  return costs;
}

double step_of(const Tables& tables, const std::vector<std::size_t>& choice) {
  if (tables.stages() == 1) return tables.problem.cost_of(choice);
  const auto paces = paces_of(tables, choice);
  return *std::ranges::max_element(paces);
}

double fill_of(const Tables& tables, const std::vector<double>& rooms,
               const std::vector<std::size_t>& choice) {
  double most = 0;
  for (std::size_t s = 0; s < rooms.size(); ++s)
    most = std::max(most, load_of(tables, s, choice) / rooms[s]);
  return most;
}

std::optional<Answer> solve(const Tables& tables, const std::vector<double>& rooms, double most,
                            const SolveOptions& options) {
  if (tables.stages() == 1) {
    Problem problem = tables.problem;
    problem.limit = most * rooms.front();
    return solve(problem, options);
  }
  const auto stages = static_cast<double>(tables.stages());
  std::vector<double> seen(tables.stages());  // how often each stage set the pace
  std::vector<double> parts(tables.stages(), 1 / stages);
  std::optional<Answer> best;
  double least = kForbidden;
  double bound = 0;
  for (int move = 0; move < kMoves; ++move) {
    auto answer = solve_within(tables.weighted(parts), tables, rooms, most, options);
    if (!answer) break;
    bound = std::max(bound, answer->bound);
    const auto paces = paces_of(tables, answer->choice);
    const auto slowest = std::ranges::max_element(paces) - paces.begin();
    answer->cost = paces[static_cast<std::size_t>(slowest)];
    if (answer->cost < least) {
      least = answer->cost;
      best = std::move(answer);
    }
    constexpr double kExact = 1e-9;
    if (bound >= least * (1 - kExact)) break;
    seen[static_cast<std::size_t>(slowest)] += 1;
    for (std::size_t s = 0; s < parts.size(); ++s) parts[s] = seen[s] / (move + 1);
  }
  if (best) best->bound = std::min(bound, least);
  return best;
}

namespace {

using schedule::Slot;

// Time of a stage's pass, or of a crossing's message, in each direction.
struct Durations {
  double forward = 0;
  double backward = 0;
  double of(Direction direction) const {
    return direction == Direction::kForward ? forward : backward;
  }
};

class StagesWalk {
 public:
  StagesWalk(const Strategy& strategy, std::vector<Durations> passes,
             std::vector<Durations> messages, bool blocking)
      : strategy_(strategy),
        passes_(std::move(passes)),
        messages_(std::move(messages)),
        blocking_(blocking) {
    const auto count = static_cast<std::size_t>(strategy.micro_batches());
    for (auto& times : come_)
      times.assign(passes_.size(), std::vector<std::optional<double>>(count));
    // The first stage's forward inputs are there; the last stage's backward inputs come from
    // itself.
    come_[0].front().assign(count, 0);
    for (auto& link : link_free_) link.assign(messages_.size(), 0);
    free_.assign(passes_.size(), 0);
  }

  // The end of the last pass.
  double run(const schedule::Table& table) {
    std::vector<std::size_t> next(table.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < table.size(); ++stage)
        while (next[stage] < table[stage].size() && take(stage, table[stage][next[stage]])) {
          ++next[stage];
          moved = true;
        }
    }
    return *std::ranges::max_element(free_);
  }

 private:
  static std::size_t index(Direction direction) { return direction == Direction::kForward ? 0 : 1; }

  // Runs a slot if its inputs have arrived; false: they have not.
  bool take(std::size_t stage, const Slot& slot) {
    const bool is_forward = slot.direction == Direction::kForward;
    if (!is_forward && strategy_.mode == Mode::kForward) return true;
    const auto first = static_cast<std::size_t>(slot.micro_batch);
    const auto count = static_cast<std::size_t>(strategy_.granularity_of(stage));
    double start = free_[stage];
    for (std::size_t m = first; m < first + count; ++m) {
      const auto& come = come_[index(slot.direction)][stage][m];
      if (!come) return false;
      start = std::max(start, *come);
    }
    const double end = start + passes_[stage].of(slot.direction);
    free_[stage] = end;
    const bool is_last = stage + 1 == passes_.size();
    if (is_forward && is_last) come(Direction::kBackward, stage, first, count, end);
    if (is_forward && !is_last) send(stage, stage + 1, stage, slot, count, end);
    if (!is_forward && stage > 0) send(stage, stage - 1, stage - 1, slot, count, end);
    return true;
  }

  void come(Direction direction, std::size_t stage, std::size_t first, std::size_t count,
            double at) {
    for (std::size_t m = first; m < first + count; ++m) come_[index(direction)][stage][m] = at;
  }

  void send(std::size_t from, std::size_t to, std::size_t crossing, const Slot& slot,
            std::size_t count, double at) {
    const auto message = static_cast<std::size_t>(
        std::min(strategy_.granularity_of(from), strategy_.granularity_of(to)));
    double& link = link_free_[index(slot.direction)][crossing];
    const auto first = static_cast<std::size_t>(slot.micro_batch);
    for (std::size_t m = first; m < first + count; m += message) {
      link = std::max(link, at) + messages_[crossing].of(slot.direction);
      come(slot.direction, to, m, message, link);
    }
    if (blocking_) free_[from] = link;
  }

  const Strategy& strategy_;
  std::vector<Durations> passes_;    // stage -> times of a pass
  std::vector<Durations> messages_;  // crossing -> times of a message
  bool blocking_;
  // [direction][stage][micro-batch]: when its input arrives; nothing: not known yet.
  std::array<std::vector<std::vector<std::optional<double>>>, 2> come_;
  std::array<std::vector<double>, 2> link_free_;  // [direction][crossing]: when it is free
  std::vector<double> free_;                      // stage -> when it is free
};

}  // namespace

double walked_step(const Tables& tables, const Strategy& strategy,
                   const std::vector<std::size_t>& choice) {
  const auto stages = static_cast<std::size_t>(strategy.pipeline_parallel);
  if (tables.stages() == 1 || strategy.virtual_stages > 1 || splits_backward(strategy))
    return step_of(tables, choice);
  const auto table = table_of(strategy);
  if (!table) return step_of(tables, choice);
  const std::vector<StageCosts> costs = costs_of(tables, choice);
  const bool blocking = transfers_block(strategy);
  const bool trains = strategy.mode == Mode::kTrain;
  std::vector<Durations> passes(stages);
  std::vector<Durations> messages(stages - 1);
  double once = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const StageCosts& own = costs[s];
    passes[s] = {own.forward, own.pass - own.messages - own.forward};
    once = std::max(once, own.once);
    if (s + 1 == stages) continue;
    const double both = blocking ? costs[s + 1].messages : costs[stages + s].pass;
    messages[s] = {trains ? both / 2 : both, trains ? both / 2 : 0};
  }
  return StagesWalk(strategy, std::move(passes), std::move(messages), blocking).run(*table) + once;
}

}  // namespace foreshard::search
