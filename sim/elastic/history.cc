// Plays one history of a run (history.h). run.cc calls history_of many times, each with a seed of
// its own. Times are seconds since the run began.
#include "sim/elastic/history.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace foreshard::elastic {

Failures::Failures(const std::vector<Hazard>& hazards, std::int64_t nodes, std::uint64_t seed)
    : hazards_(hazards), nodes_(nodes), seed_(mixed(seed)) {
  for (const Hazard& hazard : hazards_) rate_ += 1_s / hazard.between;
}

double Failures::draw() {
  constexpr int kKept = 53;  // bits of a double
  const std::uint64_t bits = mixed(seed_ ^ mixed(++drawn_)) >> (64 - kKept);
  return (static_cast<double>(bits) + 1) * 0x1p-53;
}

std::optional<Failure> Failures::next() {
  if (hazards_.empty()) return std::nullopt;
  now_ += -std::log(draw()) / rate_ * 1_s;
  double left = draw() * rate_;
  std::size_t cause = 0;
  while (cause + 1 < hazards_.size() && left > 1_s / hazards_[cause].between)
    left -= 1_s / hazards_[cause++].between;
  const Hazard& hazard = hazards_[cause];
  const std::int64_t groups = (nodes_ + hazard.group - 1) / hazard.group;
  const auto unit =
      std::min(static_cast<std::int64_t>(draw() * static_cast<double>(groups)), groups - 1);
  const std::int64_t first = unit * hazard.group;
  return Failure{.at = now_,
                 .cause = cause,
                 .of_job = hazard.of_job,
                 .node = first,
                 .nodes = std::min(std::max<std::int64_t>(hazard.taken, 1), nodes_ - first),
                 .takes = hazard.taken > 0,
                 .back = now_ + hazard.repair};
}

namespace {

constexpr Seconds kNeverHappens = Seconds::from_base(std::numeric_limits<double>::infinity());

enum class State : std::uint8_t {
  kComputing,
  kSaving,
  kDetecting,
  kWaiting,   // for nodes
  kStanding,  // restart and slices
};

struct Stage {
  Seconds Parts::*part;
  Seconds left;
};

// Steps that a checkpoint holds, and the time that was computed since.
struct SavedProgress {
  double steps = 0;
  Seconds since;
};

class Run {
 public:
  Run(const Rules& rules, Plans& plans, const Failures& drawn)
      : rules_(rules), plans_(plans), drawn_(drawn) {
    std::int64_t all = rules.nodes + rules.spares;
    for (const Addition& addition : rules.additions) all += addition.nodes;
    up_.assign(static_cast<std::size_t>(all), true);
    in_job_.assign(up_.size(), false);
    present_ = rules.nodes + rules.spares;
    current_ = {.nodes = rules.nodes};
    result_.fewest_nodes = rules.nodes;
  }

  Result<History> run() {
    FORESHARD_ASSIGN(const auto whole, plans_.step_of(current_));
    FORESHARD_CHECK(whole.has_value());
    whole_step_ = step_ = *whole;
    std::fill_n(in_job_.begin(), rules_.nodes, true);
    next_drawn_ = drawn_.next();
    next_save_ = steps_between();
    const Seconds longest = kLongest * rules_.steps * whole_step_;
    while (!result_.finished && now_ < longest) {
      FORESHARD_TRY(proceed(std::min(next_event(), longest)));
      if (result_.finished || now_ >= longest) break;
      FORESHARD_TRY(happen());
    }
    result_.wall = now_;
    result_.parts.useful = done_ * whole_step_;
    result_.parts.slowdown = computed_ - result_.parts.lost - result_.parts.useful;
    return std::move(result_);
  }

 private:
  // Steps nearest to the interval, but at least until the previous checkpoint is safe.
  double steps_between() const {
    constexpr double kRounding = 1e-9;  // of quotients that are whole
    const double writing = std::ceil((rules_.written - rules_.blocked) / step_ - kRounding);
    return std::max({1.0, std::round(rules_.interval / step_), writing});
  }

  // --- time ---

  Seconds next_event() const {
    Seconds next = back_.empty() ? kNeverHappens : back_.begin()->first;
    if (next_drawn_) next = std::min(next, next_drawn_->at);
    if (given_ < rules_.given.size()) next = std::min(next, rules_.given[given_].at);
    if (added_ < rules_.additions.size()) next = std::min(next, rules_.additions[added_].at);
    return next;
  }

  // Spends what is left of a stage, but not beyond `until`.
  //
  // \return Whether the stage is over.
  bool spend(Seconds& left, Seconds until, Seconds Parts::*part) {
    const bool over = now_ + left <= until;
    const Seconds time = over ? left : until - now_;
    result_.parts.*part += time;
    now_ = over ? now_ + left : until;
    left = over ? Seconds() : left - time;
    return over;
  }

  Status proceed(Seconds until) {
    while (!result_.finished) {
      switch (state_) {
        case State::kWaiting:
          if (now_ < until) result_.parts.waiting += until - now_;
          now_ = std::max(now_, until);
          return {};
        case State::kDetecting:
          if (!spend(detection_left_, until, &Parts::detection)) return {};
          FORESHARD_TRY(decide());
          break;
        case State::kStanding:
          if (stages_.empty()) {
            state_ = State::kComputing;
            next_save_ = done_ + steps_between();
          } else if (spend(stages_.front().left, until, stages_.front().part)) {
            stages_.pop_front();
          } else {
            return {};
          }
          break;
        case State::kComputing:
          if (!compute(until)) return {};
          begin_saving();
          break;
        case State::kSaving:
          if (!spend(saving_left_, until, &Parts::saving)) return {};
          FORESHARD_TRY(saved());
          break;
      }
    }
    return {};
  }

  // Computes up to the next checkpoint or `until`.
  //
  // \return Whether the checkpoint came first.
  bool compute(Seconds until) {
    const double target = std::min(next_save_, rules_.steps);
    const Seconds need = (target - done_) * step_;
    const bool reached = now_ + need <= until;
    const Seconds time = reached ? need : until - now_;
    done_ = reached ? target : done_ + time / step_;
    computed_ += time;
    safe_.since += time;
    pending_.since += time;
    now_ = reached ? now_ + need : until;
    return reached;
  }

  // --- checkpoints ---

  void begin_saving() {
    promote();
    ++result_.checkpoints;
    state_ = State::kSaving;
    // the run ends with this checkpoint, so it never becomes `pending_`
    if (done_ >= rules_.steps) {
      const bool writing = safe_at_ < kNeverHappens;
      saving_left_ = rules_.written + (writing ? safe_at_ - now_ : Seconds());
      return;
    }
    if (safe_at_ < kNeverHappens) safe_ = pending_;  // happens only by rounding: see steps_between
    pending_ = {.steps = done_, .since = {}};
    safe_at_ = now_ + rules_.written;
    saving_left_ = rules_.blocked;
  }

  // A checkpoint that is completely written by now becomes the safe one.
  void promote() {
    if (safe_at_ > now_) return;
    safe_ = pending_;
    safe_at_ = kNeverHappens;
  }

  Status saved() {
    if (done_ >= rules_.steps) {
      result_.finished = true;
      return {};
    }
    if (rules_.written <= rules_.blocked) safe_at_ = now_;
    state_ = State::kComputing;
    next_save_ = done_ + steps_between();
    return std::exchange(change_planned_, false) ? change() : Status();
  }

  void lose(Seconds time) {
    result_.parts.lost += time;
    safe_.since -= time;
    pending_.since -= time;
  }

  // --- what happens ---

  Status happen() {
    while (!back_.empty() && back_.begin()->first <= now_) {
      up_[back_.begin()->second] = true;
      back_.erase(back_.begin());
      FORESHARD_TRY(more_nodes());
    }
    while (added_ < rules_.additions.size() && rules_.additions[added_].at <= now_) {
      present_ += rules_.additions[added_++].nodes;
      FORESHARD_TRY(more_nodes());
    }
    while (given_ < rules_.given.size() && rules_.given[given_].at <= now_)
      FORESHARD_TRY(fail(rules_.given[given_++]));
    while (next_drawn_ && next_drawn_->at <= now_) {
      FORESHARD_TRY(fail(*next_drawn_));
      next_drawn_ = drawn_.next();
    }
    return {};
  }

  Status more_nodes() {
    if (state_ == State::kWaiting) return decide();
    change_planned_ = rules_.policy == Policy::kShrink || rules_.policy == Policy::kReroute;
    return {};
  }

  Status fail(const Failure& failure) {
    std::int64_t of_job = 0;
    bool any = failure.of_job;
    const std::int64_t end = std::min(failure.node + failure.nodes, present_);
    // A repaired node carries no rank before the run takes it back.
    std::vector<bool> out(in_job_.begin(), in_job_.begin() + rules_.nodes);
    out.flip();
    for (std::int64_t n = failure.node; n < end && !failure.of_job; ++n) {
      const auto node = static_cast<std::size_t>(n);
      if (!up_[node]) continue;
      any = true;
      if (in_job_[node]) ++of_job;
      if (n < rules_.nodes) out[node] = true;
      if (!failure.takes) continue;
      up_[node] = in_job_[node] = false;
      if (failure.back < kNeverHappens) back_.emplace(std::max(failure.back, now_), node);
    }
    if (any) ++result_.failures;
    bool hit = failure.of_job || of_job > 0;
    if (hit && !failure.of_job && rules_.policy == Policy::kReroute && running()) {
      FORESHARD_ASSIGN(const auto lost, plans_.replicas_on(out));
      hit = !lost || *lost > current_.replicas_lost;  // otherwise the node carries no rank
    }
    return hit ? interrupt(failure, of_job) : Status();
  }

  std::vector<bool> down_nodes() const {
    std::vector<bool> down(up_.begin(), up_.begin() + rules_.nodes);
    down.flip();
    return down;
  }

  bool running() const { return state_ == State::kComputing || state_ == State::kSaving; }

  Status interrupt(const Failure& failure, std::int64_t of_job) {
    ++result_.interrupted;
    ++result_.by_cause[failure.cause];
    promote();
    safe_at_ = kNeverHappens;
    if (running()) {
      from_replicas_ = rules_.recovery == Recovery::kReplicas && !failure.of_job;
      failed_ = of_job;
    } else {
      from_replicas_ = false;
      failed_ += of_job;
    }
    stages_.clear();
    detection_left_ = rules_.detection;
    state_ = State::kDetecting;
    return {};
  }

  // --- what to do ---

  // The arrangement that the policy wants on the nodes that are up, and these nodes (in `job`);
  // nothing if the policy waits.
  Result<std::optional<Arrangement>> wanted(std::vector<bool>& job) {
    job.assign(up_.size(), false);
    const bool all = rules_.policy == Policy::kReplace || rules_.policy == Policy::kShrink;
    const std::int64_t end = all ? present_ : rules_.nodes;
    const std::int64_t most = rules_.policy == Policy::kShrink ? present_ : rules_.nodes;
    std::int64_t count = 0;
    for (const bool stays : {true, false})  // nodes that are in the job already come first
      for (std::int64_t n = 0; n < end && count < most; ++n) {
        const auto node = static_cast<std::size_t>(n);
        if (!up_[node] || in_job_[node] != stays) continue;
        job[node] = true;
        ++count;
      }
    Arrangement to{.nodes = rules_.nodes};
    if (rules_.policy == Policy::kShrink) {
      to.nodes = count;
    } else if (count < rules_.nodes) {
      if (rules_.policy != Policy::kReroute) return std::optional<Arrangement>();
      FORESHARD_ASSIGN(const auto lost, plans_.replicas_on(down_nodes()));
      if (!lost) return std::optional<Arrangement>();
      to.replicas_lost = *lost;
    }
    if (to.nodes == 0) return std::optional<Arrangement>();
    FORESHARD_ASSIGN(const auto step, plans_.step_of(to));
    return step ? std::optional(to) : std::nullopt;
  }

  // Decides after the detection, and whenever nodes come while the run waits.
  Status decide() {
    std::vector<bool> job;
    FORESHARD_ASSIGN(const auto to, wanted(job));
    if (!to) {
      state_ = State::kWaiting;
      return {};
    }
    in_job_ = std::move(job);
    FORESHARD_ASSIGN(const StateTransfer shift,
                     plans_.shift(current_, *to, std::min(failed_, current_.nodes),
                                  from_replicas_ ? Recovery::kReplicas : Recovery::kCheckpoint));
    if (shift.from_checkpoint) {
      lose(safe_.since);
      done_ = safe_.steps;
      pending_ = safe_;
      safe_at_ = kNeverHappens;
    } else {
      const double whole = std::floor(done_);
      lose((done_ - whole) * step_);
      done_ = whole;
    }
    return go_on(*to, shift);
  }

  // At a checkpoint: changes to an arrangement with nodes that have come.
  Status change() {
    std::vector<bool> job;
    FORESHARD_ASSIGN(const auto to, wanted(job));
    if (!to || *to == current_) return {};
    FORESHARD_ASSIGN(const auto step, plans_.step_of(*to));
    if (*step >= step_) return {};
    in_job_ = std::move(job);
    FORESHARD_ASSIGN(const StateTransfer shift,
                     plans_.shift(current_, *to, 0, Recovery::kReplicas));
    failed_ = 0;
    return go_on(*to, shift);
  }

  Status go_on(Arrangement to, const StateTransfer& shift) {
    const bool regroups = rules_.policy == Policy::kReroute && !shift.from_checkpoint;
    stages_ = {{&Parts::restart, regroups ? rules_.regroup : rules_.restart},
               {&Parts::slices, shift.time}};
    state_ = State::kStanding;
    ++result_.moves;
    result_.moved += shift.bytes;
    current_ = to;
    FORESHARD_ASSIGN(const auto step, plans_.step_of(to));
    FORESHARD_CHECK(step.has_value());
    step_ = *step;
    const std::int64_t nodes = std::ranges::count(in_job_, true);
    result_.fewest_nodes = std::min(result_.fewest_nodes, nodes);
    return {};
  }

  const Rules& rules_;
  Plans& plans_;
  Failures drawn_;
  History result_;

  Seconds now_;
  State state_ = State::kComputing;
  Arrangement current_;
  Seconds whole_step_;
  Seconds step_;

  // The machine.
  std::vector<bool> up_;
  std::vector<bool> in_job_;
  std::int64_t present_ = 0;
  std::multimap<Seconds, std::size_t> back_;
  std::optional<Failure> next_drawn_;
  std::size_t given_ = 0;  // number of rules_.given that have happened
  std::size_t added_ = 0;  // number of rules_.additions that have happened

  // The work.
  double done_ = 0;
  double next_save_ = 0;
  Seconds computed_;
  SavedProgress safe_;
  SavedProgress pending_;
  Seconds safe_at_ = kNeverHappens;
  Seconds saving_left_;

  // While the run stands still.
  Seconds detection_left_;
  std::deque<Stage> stages_;
  bool from_replicas_ = false;
  std::int64_t failed_ = 0;
  bool change_planned_ = false;
};

}  // namespace

Result<History> history_of(const Rules& rules, Plans& plans, const Failures& drawn) {
  return Run(rules, plans, drawn).run();
}

Seconds young_interval(Seconds checkpoint, Seconds between) {
  return std::sqrt(2 * (checkpoint / between)) * between;
}

Seconds daly_interval(Seconds checkpoint, Seconds between) {
  const double x = checkpoint / (2 * between);
  if (x >= 1) return between;
  return young_interval(checkpoint, between) * (1 + std::sqrt(x) / 3 + x / 9) - checkpoint;
}

Seconds expected_time(Seconds work, Seconds interval, Seconds checkpoint, Seconds restart,
                      Seconds between) {
  return between * std::exp(restart / between) * std::expm1((interval + checkpoint) / between) *
         (work / interval);
}

}  // namespace foreshard::elastic
