// Rule 2 of match.h: kernels and tasks of the same kinds and phase are aligned in order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "strategies/program/ir/program.h"
#include "validate/profile/internal/step_match.h"
#include "validate/profile/kineto.h"
#include "validate/profile/match.h"

namespace foreshard::profile::internal {
namespace {

// The properties of a task that a kernel's name and phase can tell. Phase 3: the task has none.
struct Node {
  int phase = 3;
  std::string kind;
  DType dtype = DType::kBf16;  // products only
  bool accumulate = false;     // products only
  bool batched = false;        // products only
  auto operator<=>(const Node&) const = default;
};

int number_of(const MaybePhase& phase) {
  return phase ? static_cast<int>(*phase) : 3;
}

std::string kind_of(const program::Task& task) {
  if (const auto* what = std::get_if<program::Communication>(&task.body))
    return std::string(program::name_of(what->kind));
  const auto& kernel = std::get<Kernel>(task.body);
  if (std::holds_alternative<Gemm>(kernel)) return "gemm";
  if (const auto* attention = std::get_if<Attention>(&kernel))
    return attention->direction == Direction::kForward ? "attention_fwd" : "attention_bwd";
  return std::string(traffic_of(std::get<Pass>(kernel).kind).name);
}

Node node_of(const program::Task& task, const MaybePhase& phase) {
  Node node{.phase = number_of(phase), .kind = kind_of(task)};
  if (const auto* kernel = std::get_if<Kernel>(&task.body))
    if (const auto* gemm = std::get_if<Gemm>(kernel)) {
      node.dtype = gemm->dtype;
      node.accumulate = gemm->accumulate;
      node.batched = gemm->batch > 1;
    }
  return node;
}

bool is_product(const KernelName& line) {
  return std::ranges::find(line.kinds, "gemm") != line.kinds.end();
}

bool allows(const KernelName& line, const Node& node) {
  if (std::ranges::find(line.kinds, node.kind) == line.kinds.end()) return false;
  if (node.kind != "gemm") return true;
  return (!line.dtype || find_dtype(*line.dtype) == node.dtype) &&
         (!line.accumulate || *line.accumulate == node.accumulate) &&
         (!line.batched || *line.batched == node.batched);
}

// The most kernels that may run a task. A memory-bound task may be several unfused kernels, a
// batched product one launch per product, and an optimizer's pass over all tensors one launch per
// 320 blocks of 65,536 elements.
// Source: pytorch/pytorch, aten/src/ATen/native/cuda/MultiTensorApply.cuh (kChunkSize,
// depth_to_max_blocks).
std::int64_t most_kernels(const program::Task& task) {
  constexpr std::int64_t kPartsOfPass = 8;
  constexpr std::int64_t kMostProducts = 64;
  constexpr std::int64_t kElementsOfLaunch = 320 * 65'536LL;
  const auto* kernel = std::get_if<Kernel>(&task.body);
  if (kernel == nullptr) return 1;
  if (const auto* gemm = std::get_if<Gemm>(kernel)) return std::min(gemm->batch, kMostProducts);
  const auto* pass = std::get_if<Pass>(kernel);
  if (pass == nullptr) return 1;
  return kPartsOfPass + (task.optimizer ? pass->rows * pass->columns / kElementsOfLaunch : 0);
}

// A kernel together with the kernels that prepare or finish it (KernelName::part).
struct Unit {
  std::vector<std::size_t> kernels;
  Seconds time;
};

class Ordered {
 public:
  explicit Ordered(StepMatch& step) : step_(step) {
    for (const std::size_t task : step.tasks)
      tasks_of_[node_of(*step.match.tasks[task].task, step.phase_of_task[task])].push_back(task);
    for (const auto& entry : tasks_of_) nodes_.push_back(&entry.first);
    set_.resize(nodes_.size());
    std::iota(set_.begin(), set_.end(), 0);
  }

  void run() {
    std::vector<std::pair<std::size_t, std::size_t>> member;  // kernel, a node of its set
    std::map<std::tuple<const KernelName*, int>, std::vector<std::size_t>> known;
    for (const std::size_t kernel : step_.kernels) {
      const KernelName* line = step_.match.line_of[kernel];
      if (line == nullptr || !step_.free(kernel)) continue;
      const int phase = number_of(step_.phase_of[kernel]);
      const auto [found, added] = known.try_emplace({line, phase});
      if (added) found->second = nodes_for(*line, phase);
      if (found->second.empty()) continue;
      for (const std::size_t node : found->second) join(found->second.front(), node);
      // A product whose shape is known was not matched by shape: no task has that shape.
      if (!line->part && is_product(*line) &&
          product_shape(step_.trace, step_.trace.kernels[kernel]))
        continue;
      member.emplace_back(kernel, found->second.front());
    }
    std::map<std::size_t, std::vector<std::size_t>> kernels_of;  // set -> kernels
    for (const auto& [kernel, node] : member) kernels_of[root(node)].push_back(kernel);
    for (const auto& [set, kernels] : kernels_of) align_set(set, kernels);
  }

 private:
  // Nodes that the entry allows, of the same phase or without a phase. All that it allows if there
  // are none of those, or if `phase` is unknown.
  std::vector<std::size_t> nodes_for(const KernelName& line, int phase) const {
    std::vector<std::size_t> own;
    std::vector<std::size_t> any;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (!allows(line, *nodes_[n])) continue;
      any.push_back(n);
      if (nodes_[n]->phase == phase || nodes_[n]->phase == 3) own.push_back(n);
    }
    return phase == 3 || own.empty() ? any : own;
  }

  std::size_t root(std::size_t node) {
    while (set_[node] != node) node = set_[node] = set_[set_[node]];
    return node;
  }
  void join(std::size_t a, std::size_t b) { set_[root(b)] = root(a); }

  std::vector<Unit> units_of(const std::vector<std::size_t>& kernels) const {
    std::vector<Unit> units;
    Unit ahead;
    for (const std::size_t kernel : kernels) {
      const auto part = step_.match.line_of[kernel]->part;
      const Seconds time = step_.trace.kernels[kernel].lasted;
      if (part == Part::kBefore) {
        ahead.kernels.push_back(kernel);
        ahead.time += time;
      } else if (part == Part::kAfter && !units.empty()) {
        units.back().kernels.push_back(kernel);
        units.back().time += time;
      } else if (!part) {
        ahead.kernels.push_back(kernel);
        ahead.time += time;
        units.push_back(std::exchange(ahead, {}));
      }
    }
    return units;
  }

  void align_set(std::size_t set, const std::vector<std::size_t>& kernels) {
    std::vector<std::size_t> tasks;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (root(n) != set) continue;
      for (const std::size_t task : tasks_of_.at(*nodes_[n]))
        if (step_.bare(task)) tasks.push_back(task);
    }
    std::ranges::sort(tasks);
    const std::vector<Unit> units = units_of(kernels);
    std::vector<Seconds> times;
    times.reserve(units.size());
    for (const Unit& unit : units) times.push_back(unit.time);
    const auto order = own_order(std::move(tasks), times);
    const auto found = aligned(expected(order), times);
    for (std::size_t u = 0; u < units.size(); ++u)
      if (found.task_of[u] >= 0)
        for (const std::size_t kernel : units[u].kernels)
          step_.give(kernel, order[static_cast<std::size_t>(found.task_of[u])], MatchedBy::kOrder);
  }

  std::vector<Expected> expected(const std::vector<std::size_t>& tasks) const {
    std::vector<Expected> result;
    result.reserve(tasks.size());
    for (const std::size_t task : tasks)
      result.push_back({.time = step_.match.tasks[task].expected,
                        .most = most_kernels(*step_.match.tasks[task].task)});
    return result;
  }

  // The tasks in the order in which the framework ran them. Within a block, that order may differ
  // from the Program's, but it is the same in every call: a task moves if all calls together then
  // align better. The order is learnt from the first calls; blocks with many such tasks keep
  // theirs.
  std::vector<std::size_t> own_order(std::vector<std::size_t> tasks,
                                     const std::vector<Seconds>& times) const {
    constexpr std::size_t kMostTasks = 16;
    constexpr std::size_t kEnough = 256;
    constexpr double kLeastGain = 0.5;
    struct Call {
      std::size_t begin;
      std::size_t end;
      std::int32_t block;
    };
    std::vector<Call> calls;
    std::map<std::int32_t, std::size_t> length;  // block -> tasks per call; 0: calls differ
    for (std::size_t begin = 0; begin < tasks.size();) {
      const ProfiledTask& first = step_.match.tasks[tasks[begin]];
      std::size_t end = begin;
      while (end < tasks.size() && step_.match.tasks[tasks[end]].call == first.call &&
             step_.match.tasks[tasks[end]].layer == first.layer)
        ++end;
      calls.push_back({begin, end, first.block});
      const auto [found, added] = length.try_emplace(first.block, end - begin);
      if (!added && found->second != end - begin)
        found->second = 0;  // some tasks were matched by shape
      begin = end;
    }
    std::size_t taken = 0;  // leading tasks to learn from, in whole calls
    for (const Call& call : calls)
      if (taken < kEnough) taken = call.end;
    const std::vector<Seconds> head(
        times.begin(),
        times.begin() + static_cast<std::ptrdiff_t>(times.size() * taken /
                                                    std::max<std::size_t>(tasks.size(), 1)));
    const auto moved = [&](std::int32_t block, std::size_t from, std::size_t to) {
      std::vector<std::size_t> result = tasks;
      for (const Call& call : calls) {
        if (call.block != block) continue;
        const auto at = [&](std::size_t i) {
          return result.begin() + static_cast<std::ptrdiff_t>(call.begin + i);
        };
        if (from < to) {
          std::rotate(at(from), at(from + 1), at(to + 1));
        } else {
          std::rotate(at(to), at(from), at(from + 1));
        }
      }
      return result;
    };
    const auto cost = [&](const std::vector<std::size_t>& order) {
      return aligned(expected({order.begin(), order.begin() + static_cast<std::ptrdiff_t>(taken)}),
                     head)
          .cost;
    };
    double best = cost(tasks);
    for (const auto& [block, count] : length) {
      if (count < 2 || count > kMostTasks) continue;
      bool better = true;
      while (better) {
        better = false;
        std::vector<std::size_t> least;
        for (std::size_t from = 0; from < count; ++from) {
          for (std::size_t to = 0; to < count; ++to) {
            if (from == to) continue;
            auto order = moved(block, from, to);
            const double now = cost(order);
            if (now + kLeastGain > best) continue;
            best = now;
            least = std::move(order);
            better = true;
          }
        }
        if (better) tasks = std::move(least);
      }
    }
    return tasks;
  }

  StepMatch& step_;
  std::map<Node, std::vector<std::size_t>> tasks_of_;
  std::vector<const Node*> nodes_;  // the keys of tasks_of_
  std::vector<std::size_t> set_;    // union-find over nodes_
};

}  // namespace

void match_by_order(StepMatch& step) {
  Ordered(step).run();
}

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

const Kernel* kernel_in(const ProfiledTask& task) {
  return std::get_if<Kernel>(&task.task->body);
}
bool is_pass(const ProfiledTask& task) {
  const Kernel* kernel = kernel_in(task);
  return kernel != nullptr && std::holds_alternative<Pass>(*kernel);
}

// Whether the kernel is unmatched and may be a pass.
bool is_open(const StepMatch& step, std::size_t kernel) {
  const KernelName* line = step.match.line_of[kernel];
  return step.free(kernel) && line != nullptr &&
         std::ranges::any_of(line->kinds, [](const std::string& kind) {
           return kind == kAnyPass || find_pass(kind) != nullptr;
         });
}

}  // namespace

void match_by_place(StepMatch& step) {
  // Some schedules run phases concurrently, so the order is looked at within each phase.
  std::map<MaybePhase, std::vector<std::size_t>> by_phase;
  for (const std::size_t kernel : step.kernels) by_phase[step.phase_of[kernel]].push_back(kernel);
  for (const auto& [phase, kernels] : by_phase) {
    std::vector<std::size_t> passes;
    for (const std::size_t task : step.tasks)
      if (is_pass(step.match.tasks[task]) && (!phase || step.phase_of_task[task] == phase))
        passes.push_back(task);
    if (passes.empty()) continue;
    // For each kernel, the task of the next kernel that is matched to a computing task.
    std::vector<std::size_t> behind(kernels.size(), kNone);
    const auto task_of = [&](std::size_t kernel) {
      if (step.free(kernel)) return kNone;
      const auto task = static_cast<std::size_t>(step.match.task_of[kernel]);
      return kernel_in(step.match.tasks[task]) == nullptr ? kNone : task;
    };
    std::size_t next = kNone;
    for (std::size_t i = kernels.size(); i-- > 0;) {
      behind[i] = next;
      if (const std::size_t task = task_of(kernels[i]); task != kNone) next = task;
    }
    struct Gift {
      std::size_t kernel;
      std::vector<std::size_t> tasks;
    };
    std::vector<Gift> gifts;
    std::size_t last = kNone;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (const std::size_t task = task_of(kernels[i]); task != kNone) last = task;
      if (!is_open(step, kernels[i])) continue;
      // Without neighbours and without a phase it has no place.
      if (!phase && last == kNone && behind[i] == kNone) continue;
      std::size_t low = last == kNone ? step.tasks.front() : last;
      std::size_t high = behind[i] == kNone ? step.tasks.back() : behind[i];
      if (low > high) std::swap(low, high);
      const auto begin = std::ranges::lower_bound(passes, low);
      const auto end = std::ranges::upper_bound(passes, high);
      Gift gift{.kernel = kernels[i], .tasks = {}};
      std::copy_if(begin, end, std::back_inserter(gift.tasks),
                   [&](std::size_t task) { return step.bare(task); });
      if (gift.tasks.empty()) gift.tasks.assign(begin, end);
      // It is inside a task that several kernels run: take the next pass of the same call.
      if (gift.tasks.empty() && end != passes.end() &&
          step.match.tasks[*end].call == step.match.tasks[high].call)
        gift.tasks.push_back(*end);
      if (!gift.tasks.empty()) gifts.push_back(std::move(gift));
    }
    for (const Gift& gift : gifts) {
      Seconds all{};
      for (const std::size_t task : gift.tasks) all += step.match.tasks[task].expected;
      const Seconds time = step.trace.kernels[gift.kernel].lasted;
      for (const std::size_t task : gift.tasks) {
        ProfiledTask& one = step.match.tasks[task];
        one.measured +=
            all > 0_s ? (one.expected / all) * time : time / static_cast<double>(gift.tasks.size());
        one.kernels += 1;
        if (one.by == MatchedBy::kNothing) one.by = MatchedBy::kPlace;
      }
      step.match.kernels[gift.kernel] = MatchedBy::kPlace;
      step.match.task_of[gift.kernel] = static_cast<std::int32_t>(gift.tasks.front());
    }
  }
}

}  // namespace foreshard::profile::internal

namespace foreshard::profile {
namespace {

constexpr double kMostMisfit = 2;
constexpr double kJoining = 0.3;
constexpr double kLeftOut = 2.5;
constexpr std::int64_t kHalfBand = 512;

constexpr double kNever = std::numeric_limits<double>::infinity();
// How a state was reached: the number of units that the task took, or kUnitLeftOut.
constexpr std::int16_t kUnitLeftOut = -1;

// |ln(measured / expected)|, capped below the cost of leaving both out.
double misfit(Seconds measured, Seconds expected) {
  if (!(measured > 0_s) || !(expected > 0_s)) return kMostMisfit;
  return std::min(std::abs(std::log(measured / expected)), kMostMisfit);
}

}  // namespace

// Dynamic programming: state (i, j) is that the first i tasks and j units are dealt with.
Alignment aligned(const std::vector<Expected>& tasks, const std::vector<Seconds>& units) {
  const auto m = std::ssize(tasks);
  const auto n = std::ssize(units);
  Alignment result{.task_of = std::vector<std::int32_t>(units.size(), -1),
                   .cost = kLeftOut * static_cast<double>(m + n)};
  if (m == 0 || n == 0) return result;
  std::vector<Seconds> sums(units.size() + 1);
  for (std::size_t j = 0; j < units.size(); ++j) sums[j + 1] = sums[j] + units[j];
  const std::int64_t half = kHalfBand + n / m;
  const auto lowest = [&](std::int64_t i) {
    return std::max<std::int64_t>(0, i == 0 ? 0 : i * n / m - half);
  };
  const auto highest = [&](std::int64_t i) { return std::min(n, i * n / m + half); };
  std::vector<std::vector<std::int16_t>> how(static_cast<std::size_t>(m) + 1);
  std::vector<double> before;
  for (std::int64_t i = 0; i <= m; ++i) {
    const std::int64_t low = lowest(i);
    const std::int64_t high = highest(i);
    std::vector<double> now(static_cast<std::size_t>(high - low) + 1, kNever);
    auto& row = how[static_cast<std::size_t>(i)];
    row.assign(now.size(), kUnitLeftOut);
    for (std::int64_t j = low; j <= high; ++j) {
      double best = i == 0 && j == 0 ? 0 : kNever;
      std::int16_t by = kUnitLeftOut;
      if (i > 0) {
        const Expected& task = tasks[static_cast<std::size_t>(i - 1)];
        for (std::int64_t taken = 0; taken <= std::min(task.most, j); ++taken) {
          const std::int64_t from = j - taken;
          if (from < lowest(i - 1) || from > highest(i - 1)) continue;
          const Seconds time =
              sums[static_cast<std::size_t>(j)] - sums[static_cast<std::size_t>(from)];
          const double cost =
              before[static_cast<std::size_t>(from - lowest(i - 1))] +
              (taken == 0 ? kLeftOut
                          : misfit(time, task.time) + kJoining * static_cast<double>(taken - 1));
          if (cost < best) {
            best = cost;
            by = static_cast<std::int16_t>(taken);
          }
        }
      }
      if (j > low) {
        const double cost = now[static_cast<std::size_t>(j - 1 - low)] + kLeftOut;
        if (cost < best) {
          best = cost;
          by = kUnitLeftOut;
        }
      }
      now[static_cast<std::size_t>(j - low)] = best;
      row[static_cast<std::size_t>(j - low)] = by;
    }
    before = std::move(now);
  }
  result.cost = before.back();
  std::int64_t j = n;
  for (std::int64_t i = m; i > 0 || j > 0;) {
    const std::int16_t by =
        how[static_cast<std::size_t>(i)][static_cast<std::size_t>(j - lowest(i))];
    if (by == kUnitLeftOut) {
      --j;
      continue;
    }
    for (std::int64_t u = j - by; u < j; ++u)
      result.task_of[static_cast<std::size_t>(u)] = static_cast<std::int32_t>(i - 1);
    j -= by;
    --i;
  }
  return result;
}

}  // namespace foreshard::profile
