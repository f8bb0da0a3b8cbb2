// Finds where pipeline stages end (cuts.h), for internal/ranking.cc. Counts are layers of each
// piece.
#include "sim/search/cuts.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"

#include "strategies/parallelism/layers.h"
#include "strategies/parallelism/pipeline.h"

namespace foreshard::search {
namespace {

// A cut is worth trying if its longest stage is shorter by this part.
constexpr double kWorthwhile = 1e-3;
constexpr int kBisections = 60;  // a double has no more digits
constexpr int kRepairs = 4;      // attempts to make a cut fit in memory

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

std::int64_t layers_of(const CutProblem& problem) {
  return std::ssize(problem.kind_of_layer);
}

std::vector<Seconds> times_of_stages(const CutProblem& problem, const Cut& cut) {
  std::vector<Seconds> times;
  for (const CutProblem::Stage& stage : problem.stages) times.push_back(stage.ends);
  std::size_t layer = 0;
  for (std::size_t piece = 0; piece < cut.size(); ++piece) {
    const auto stage = index(schedule::stage_of(problem.placement, std::ssize(problem.stages),
                                                static_cast<std::int64_t>(piece)));
    for (std::int64_t i = 0; i < cut[piece]; ++i, ++layer)
      times[stage] += problem.stages[stage].layer[index(problem.kind_of_layer[layer])];
  }
  return times;
}

double sum_of_squares(const std::vector<Seconds>& times) {
  double sum = 0;
  for (const Seconds time : times) sum += time.in_base() * time.in_base();
  return sum;
}

// Cuts with one piece for each stage.
class Cuts {
 public:
  explicit Cuts(const CutProblem& problem)
      : stages_(problem.stages), layers_(layers_of(problem)), count_(std::ssize(stages_)) {
    for (const CutProblem::Stage& stage : stages_) {
      std::vector<Seconds>& sums = sums_.emplace_back(1);
      for (const std::int32_t kind : problem.kind_of_layer)
        sums.push_back(sums.back() + stage.layer[index(kind)]);
    }
  }

  std::vector<Cut> near_best() {
    Seconds most;
    for (std::int64_t s = 0; s < count_; ++s) most += time(s, 0, layers_);
    auto ends = last_ends(most);
    if (!ends) return {};
    Seconds least;
    for (int i = 0; i < kBisections && least < most; ++i) {
      const Seconds middle = 0.5 * (least + most);
      if (auto found = last_ends(middle)) {
        most = longest(*found);
        ends = std::move(found);
      } else {
        least = middle;
      }
    }
    const std::vector<std::int64_t> first = first_ends(most);
    std::vector<Cut> cuts{cut_of(most_even(first, *ends, most))};
    if (Cut front = cut_of(first); front != cuts.front()) cuts.push_back(std::move(front));
    return cuts;
  }

 private:
  using Ends = std::vector<std::int64_t>;  // stage -> the layer after its last one
  struct Way {
    double squares = 0;      // sum over the stages that follow
    std::int64_t next = -1;  // the end of the next stage; -1: no cut
  };

  Seconds time(std::int64_t stage, std::int64_t begin, std::int64_t end) const {
    return stages_[index(stage)].ends + sums_[index(stage)][index(end)] -
           sums_[index(stage)][index(begin)];
  }
  bool may(std::int64_t stage, std::int64_t begin, std::int64_t end, Seconds bound) const {
    return end - begin <= stages_[index(stage)].most && time(stage, begin, end) <= bound;
  }
  Seconds longest(const Ends& ends) const {
    Seconds most;
    for (std::int64_t s = 0; s < count_; ++s)
      most = std::max(most, time(s, s == 0 ? 0 : ends[index(s - 1)], ends[index(s)]));
    return most;
  }

  // [stage][layer]: whether the stage can begin at that layer.
  using Meetings = std::vector<std::vector<bool>>;
  Meetings nowhere() const {
    return Meetings(index(count_ + 1), std::vector<bool>(index(layers_ + 1)));
  }

  // Whether the stages before [stage] can hold the layers before [layer]. A stage has at least one
  // layer; where a layer is too slow on it, it may have to end early so that the next stage takes
  // that layer.
  // Cost: O(stages x layers), because a stage that begins later reaches at least as far.
  Meetings from_front(Seconds bound) const {
    Meetings meetings = nowhere();
    meetings[0][0] = true;
    for (std::int64_t s = 0; s < count_; ++s) {
      std::int64_t furthest = 0;
      for (std::int64_t begin = s; begin < layers_; ++begin) {
        if (!meetings[index(s)][index(begin)]) continue;
        std::int64_t end = std::max(begin, furthest) + 1;
        while (end <= layers_ && may(s, begin, end, bound))
          meetings[index(s + 1)][index(end++)] = true;
        furthest = std::max(furthest, end - 1);
      }
    }
    return meetings;
  }
  // Whether [stage] and the stages after it can hold [layer] and the layers after it.
  Meetings from_back(Seconds bound) const {
    Meetings meetings = nowhere();
    meetings[index(count_)][index(layers_)] = true;
    for (std::int64_t s = count_ - 1; s >= 0; --s) {
      std::int64_t nearest = layers_;
      for (std::int64_t end = layers_; end > 0; --end) {
        if (!meetings[index(s + 1)][index(end)]) continue;
        std::int64_t begin = std::min(end, nearest) - 1;
        while (begin >= 0 && may(s, begin, end, bound)) meetings[index(s)][index(begin--)] = true;
        nearest = std::min(nearest, begin + 1);
      }
    }
    return meetings;
  }

  // The last layer at which each stage can end; nothing where no cut is within the bound.
  std::optional<Ends> last_ends(Seconds bound) const {
    const Meetings meetings = from_front(bound);
    if (!meetings[index(count_)][index(layers_)]) return std::nullopt;
    Ends ends(index(count_));
    std::int64_t end = layers_;
    for (std::int64_t s = count_ - 1; s >= 0; --s) {
      ends[index(s)] = end--;
      while (!meetings[index(s)][index(end)]) --end;
    }
    return ends;
  }
  // The first layer at which each stage can end. \pre last_ends(bound) has a value
  Ends first_ends(Seconds bound) const {
    const Meetings meetings = from_back(bound);
    Ends ends(index(count_));
    std::int64_t end = 0;
    for (std::int64_t s = 0; s < count_; ++s) {
      ++end;
      while (!meetings[index(s + 1)][index(end)]) ++end;
      ends[index(s)] = end;
    }
    return ends;
  }

  // The cut within the intervals that has the least sum of squares, by dynamic programming from the
  // back.
  Ends most_even(const Ends& first, const Ends& last, Seconds bound) const {
    std::vector<std::vector<Way>> ways(index(count_));  // [stage][its end - first]
    for (std::int64_t s = count_ - 1; s >= 0; --s) {
      auto& own = ways[index(s)];
      for (std::int64_t end = first[index(s)]; end <= last[index(s)]; ++end)
        own.push_back(s == count_ - 1 ? Way{0, layers_} : behind(s + 1, end, first, ways, bound));
    }
    Ends ends{behind(0, 0, first, ways, bound).next};
    for (std::int64_t s = 0; s + 1 < count_; ++s)
      ends.push_back(ways[index(s)][index(ends.back() - first[index(s)])].next);
    return ends;
  }
  Way behind(std::int64_t stage, std::int64_t begin, const Ends& first,
             const std::vector<std::vector<Way>>& ways, Seconds bound) const {
    Way best;
    const auto& ends = ways[index(stage)];
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::int64_t end = first[index(stage)] + static_cast<std::int64_t>(i);
      if (ends[i].next < 0 || end <= begin || !may(stage, begin, end, bound)) continue;
      const double own = time(stage, begin, end).in_base();
      const double squares = own * own + ends[i].squares;
      if (best.next < 0 || squares < best.squares * (1 - 1e-12)) best = {squares, end};
    }
    return best;
  }

  Cut cut_of(const Ends& ends) const {
    Cut cut;
    for (std::size_t s = 0; s < ends.size(); ++s)
      cut.push_back(ends[s] - (s == 0 ? 0 : ends[s - 1]));
    return cut;
  }

  const std::vector<CutProblem::Stage>& stages_;
  std::int64_t layers_;
  std::int64_t count_;
  std::vector<std::vector<Seconds>> sums_;  // [stage][layer]: time of the layers before it
};

// Cuts with several pieces per stage: starts from equal pieces and moves layers one by one.
class LayerMover {
 public:
  explicit LayerMover(const CutProblem& problem)
      : problem_(problem),
        stages_(std::ssize(problem.stages)),
        cut_(even_split(layers_of(problem), stages_ * problem.chunks)) {}

  std::vector<Cut> near_best() {
    if (cut_.back() == 0) return {};  // more pieces than layers
    while (move()) {
    }
    for (std::int64_t s = 0; s < stages_; ++s)
      if (held(s) > problem_.stages[index(s)].most) return {};
    return {cut_};
  }

 private:
  std::int64_t piece(std::int64_t stage, std::int64_t chunk) const {
    return schedule::piece_of(problem_.placement, stages_, stage, chunk);
  }
  std::int64_t held(std::int64_t stage) const {
    std::int64_t sum = 0;
    for (std::int64_t c = 0; c < problem_.chunks; ++c) sum += cut_[index(piece(stage, c))];
    return sum;
  }
  std::int64_t excess(const Cut& cut) const {
    std::int64_t sum = 0;
    for (std::int64_t s = 0; s < stages_; ++s) {
      std::int64_t own = -problem_.stages[index(s)].most;
      for (std::int64_t c = 0; c < problem_.chunks; ++c) own += cut[index(piece(s, c))];
      sum += std::max<std::int64_t>(own, 0);
    }
    return sum;
  }
  // How good a cut is, the less the better: layers beyond the memory, the longest stage,
  // unevenness.
  std::tuple<std::int64_t, double, double> rank(const Cut& cut) const {
    const auto times = times_of_stages(problem_, cut);
    return {excess(cut), std::ranges::max(times).in_base(), sum_of_squares(times)};
  }

  // Moves a layer from the longest piece of a stage that is too full or the slowest to the shortest
  // piece of another stage, where that helps most; false: no move helps.
  bool move() {
    const auto times = times_of_stages(problem_, cut_);
    const auto now = rank(cut_);
    std::optional<Cut> best;
    auto least = now;
    for (std::int64_t from = 0; from < stages_; ++from) {
      const bool must = held(from) > problem_.stages[index(from)].most;
      const bool is_longest = times[index(from)] == std::ranges::max(times);
      if (!must && !(is_longest && std::get<0>(now) == 0)) continue;
      const std::int64_t giver = extreme(from, true);
      if (cut_[index(giver)] == 1) continue;
      for (std::int64_t to = 0; to < stages_; ++to) {
        if (to == from || held(to) >= problem_.stages[index(to)].most) continue;
        Cut moved = cut_;
        --moved[index(giver)];
        ++moved[index(extreme(to, false))];
        if (const auto value = rank(moved); value < least) {
          least = value;
          best = std::move(moved);
        }
      }
    }
    if (!best) return false;
    cut_ = *std::move(best);
    return true;
  }
  std::int64_t extreme(std::int64_t stage, bool longest) const {
    std::int64_t found = piece(stage, 0);
    for (std::int64_t c = 1; c < problem_.chunks; ++c) {
      const std::int64_t other = piece(stage, c);
      if (longest ? cut_[index(other)] > cut_[index(found)]
                  : cut_[index(other)] < cut_[index(found)])
        found = other;
    }
    return found;
  }

  const CutProblem& problem_;
  std::int64_t stages_;
  Cut cut_;
};

// Limits the layers of stages that do not fit, as if all their memory were proportional to their
// layers. Stages that fit keep their limit.
void limit(CutProblem& problem, const Strategy& strategy, const Cut& cut,
           const std::vector<StageMemory>& memory) {
  for (std::size_t s = 0; s < problem.stages.size(); ++s) {
    if (memory[s].peak <= memory[s].memory) continue;
    std::int64_t held = 0;
    for_each_piece(strategy, static_cast<std::int64_t>(s),
                   [&](std::int64_t, std::int64_t piece) { held += cut[index(piece)]; });
    const auto most =
        static_cast<std::int64_t>(static_cast<double>(held) * (memory[s].memory / memory[s].peak));
    problem.stages[s].most = std::min(problem.stages[s].most, std::min(most, held - 1));
  }
}

bool fits(const std::vector<StageMemory>& memory) {
  return std::ranges::all_of(memory, [](const StageMemory& one) { return one.peak <= one.memory; });
}
// Whether all stages together have less memory than they need, so that no cut helps.
bool is_hopeless(const std::vector<StageMemory>& memory) {
  Bytes room;
  for (const StageMemory& one : memory) room += one.memory - one.peak;
  return room < Bytes{};
}

}  // namespace

Seconds longest_stage(const CutProblem& problem, const Cut& cut) {
  return std::ranges::max(times_of_stages(problem, cut));
}

std::vector<Cut> near_best_cuts(const CutProblem& problem) {
  if (layers_of(problem) < std::ssize(problem.stages) * problem.chunks) return {};
  return problem.chunks == 1 ? Cuts(problem).near_best() : LayerMover(problem).near_best();
}

const std::vector<Cut>& Cutter::cuts_of(CutProblem problem) {
  const auto it = known_.find(problem);
  if (it != known_.end()) return it->second;
  std::vector<Cut> cuts = near_best_cuts(problem);
  return known_.emplace(std::move(problem), std::move(cuts)).first->second;
}

std::vector<Strategy> Cutter::with_cuts(const Strategy& strategy, std::int64_t devices) {
  std::vector<Strategy> result{strategy};
  if (strategy.stages() == 1) return result;
  const auto times = estimator_.unit_times(strategy);
  const auto memory = estimator_.memory_of_stages(strategy);
  if (!times || !memory) return result;  // the estimate says why
  CutProblem problem{.kind_of_layer = foreshard::layers_of(model_, strategy).of_layer,
                     .stages = {},
                     .chunks = strategy.virtual_stages,
                     .placement = placement_of(strategy)};
  for (std::size_t s = 0; s < times->size(); ++s) {
    const std::vector<Seconds>& of = (*times)[s];
    const std::size_t kinds =
        of.size() - 2 - static_cast<std::size_t>(model_.multi_token_prediction);
    CutProblem::Stage& stage = problem.stages.emplace_back();
    stage.layer.assign(of.begin() + 1, of.begin() + 1 + static_cast<std::ptrdiff_t>(kinds));
    stage.most = model_.layers;
    if (s == 0) stage.ends += of.front();
    if (static_cast<std::int64_t>(s) == last_stage(strategy))
      for (std::size_t unit = kinds + 1; unit < of.size(); ++unit) stage.ends += of[unit];
  }
  const Cut own = layers_of_stages(strategy, model_.layers);
  const bool fits_now = fits(*memory);
  const auto add = [&](const Cut& cut) -> const Strategy* {
    Strategy other = strategy;
    other.layers_per_stage = cut;
    const bool known = cut == own || std::ranges::any_of(result, [&](const Strategy& one) {
                         return one.layers_per_stage == cut;
                       });
    if (known || !faults_in(other, model_, devices).empty()) return nullptr;
    result.push_back(std::move(other));
    return &result.back();
  };
  const Seconds longest = longest_stage(problem, own);
  for (const Cut& cut : cuts_of(problem))
    if (longest_stage(problem, cut) < longest * (1 - kWorthwhile)) add(cut);
  if (fits_now || is_hopeless(*memory)) return result;
  // Some stage is too full while others have room.
  limit(problem, strategy, own, *memory);
  for (int i = 0; i < kRepairs; ++i) {
    const std::vector<Cut> cuts = cuts_of(problem);
    if (cuts.empty()) break;
    const Strategy* added = add(cuts.front());
    if (added == nullptr) break;
    const auto needs = estimator_.memory_of_stages(*added);
    if (!needs || fits(*needs) || is_hopeless(*needs)) break;
    limit(problem, strategy, cuts.front(), *needs);
  }
  return result;
}

}  // namespace foreshard::search
