// Simulates the candidates of the ideas (advise.h) and ranks them, for `foreshard advise`.
#include "sim/advise/advise.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "base/text.h"
#include "base/threads.h"

#include "sim/advise/internal/ideas.h"
#include "sim/search/space.h"
#include "sim/study/run.h"

namespace foreshard::advise {
namespace {

Figures figures_of(const study::LoadedStudy& study, const sim::Prediction& prediction) {
  const auto worst = static_cast<std::size_t>(prediction.worst_memory);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Figures figures{.step = prediction.step,
                  .low = prediction.low,
                  .high = prediction.high,
                  .peak = prediction.classes[worst].memory.peak,
                  .capacity = prediction.memory_capacity - prediction.memory_reserve,
                  .fits = prediction.fits,
                  .tight = study::memory_margin_of(study).is_tight(prediction),
                  .usd = prediction.expense.usd(),
                  .unmeasured = study::unmeasured_in(prediction)};
  if (prediction.interruption)
    figures.step = figures.low = figures.high = Seconds::from_base(kNever);
  return figures;
}

bool ends(const Figures& figures) {
  return std::isfinite(figures.step.in_base());
}

// The end of a candidate: its figures, or the reason why there are none.
enum class Missing : std::uint8_t { kImpossible, kNotReached };
using End = std::variant<Missing, Figures>;

// The text of check_memory (sim/simulate/memory_limit.h) about the limit.
constexpr std::string_view kOfMaxMemory = " of --max-memory";

End simulated(const Candidate& candidate, const Reload& reload,
              const sim::SimulateOptions& options) {
  const auto study = reload(candidate.settings);
  if (!study) return Missing::kImpossible;
  const auto run = study::run_study(*study, options);
  if (run) return figures_of(*study, run->prediction);
  return contains(run.error().message, kOfMaxMemory) ? Missing::kNotReached : Missing::kImpossible;
}

// The ends of those candidates that nothing refuses, in their order.
std::vector<End> ends_of(const std::vector<const Candidate*>& candidates, const Reload& reload,
                         const AdviceOptions& options) {
  std::vector<End> ends(candidates.size(), Missing::kNotReached);
  std::atomic<std::size_t> next{0};
  std::atomic<std::int64_t> done{0};
  const auto threads =
      std::clamp<std::int64_t>(options.threads, 1, std::max<std::int64_t>(std::ssize(ends), 1));
  const sim::SimulateOptions simulate{
      .critical_path = false, .max_memory = options.max_memory / static_cast<double>(threads)};
  in_threads(threads, [&](std::int64_t) {
    for (std::size_t i = next++; i < candidates.size(); i = next++) {
      if (options.stop && options.stop()) return;
      ends[i] = simulated(*candidates[i], reload, simulate);
      if (options.progress) options.progress(++done, std::ssize(ends));
    }
  });
  return ends;
}

// Sorts candidates into lists and counts.
class Judge {
 public:
  explicit Judge(Advice& advice) : advice_(advice) {}

  /// Counts a candidate that need not be simulated.
  bool rules_out(const Candidate& candidate) {
    Counts& counts = counts_of(candidate);
    if (candidate.refusal != Refusal::kNone)
      ++(candidate.refusal == Refusal::kFramework ? counts.framework : counts.impossible);
    else if (advice_.now.fits && candidate.bound >= advice_.now.step)
      ++counts.slower;
    else
      return false;
    return true;
  }

  void take(const Candidate& candidate, const End& end) {
    Counts& counts = counts_of(candidate);
    if (const auto* missing = std::get_if<Missing>(&end)) {
      ++(*missing == Missing::kNotReached ? counts.not_reached : counts.impossible);
      return;
    }
    const auto& after = std::get<Figures>(end);
    const Figures& now = advice_.now;
    if (!ends(after)) {
      ++counts.interrupted;
    } else if (!fits(after)) {
      ++counts.too_large;
    } else if (now.fits && !(after.step < now.step)) {
      ++counts.slower;
    } else {
      ++counts.faster;
      auto& list = candidate.hardware ? advice_.hardware : advice_.changes;
      list.push_back({.idea = candidate.idea,
                      .words = candidate.words,
                      .settings = candidate.settings,
                      .after = after,
                      .gain = ends(now) ? std::optional(1 - after.step / now.step) : std::nullopt});
    }
  }

 private:
  Counts& counts_of(const Candidate& candidate) {
    return candidate.hardware ? advice_.hardware_counts : advice_.counts;
  }
  // A study that leaves less than the margin is no worse with a change that needs no more.
  bool fits(const Figures& after) const {
    const bool as_now = advice_.now.fits && advice_.now.tight && after.peak <= advice_.now.peak;
    return after.fits && (!after.tight || as_now);
  }

  Advice& advice_;
};

void keep_best(std::vector<Change>& changes, std::int64_t top) {
  std::ranges::stable_sort(changes, {}, [](const Change& change) { return change.after.step; });
  if (std::ssize(changes) > top) changes.resize(static_cast<std::size_t>(top));
}

}  // namespace

Result<Advice> advise(const study::LoadedStudy& study, const Reload& reload,
                      const AdviceOptions& options) {
  FORESHARD_ASSIGN(const auto run, study::run_study(study, {.critical_path = false,
                                                            .max_memory = options.max_memory}));
  const study::MemoryMargin margin = study::memory_margin_of(study);
  Advice advice{.study = study.name,
                .model = study.model.name,
                .cluster = study.cluster.name,
                .strategy = search::in_words(study.strategy),
                .framework = study.strategy.framework->name,
                .now = figures_of(study, run.prediction),
                .memory_margin = margin.part,
                .margin_source = margin.source};
  const auto candidates =
      candidates_of(Start(study, run.cluster, options.catalogue), options.hardware);
  Judge judge(advice);
  std::vector<const Candidate*> sound;
  for (const Candidate& candidate : candidates)
    if (!judge.rules_out(candidate)) sound.push_back(&candidate);
  const std::vector<End> ends = ends_of(sound, reload, options);
  for (std::size_t i = 0; i < sound.size(); ++i) judge.take(*sound[i], ends[i]);
  keep_best(advice.changes, options.top);
  keep_best(advice.hardware, options.top);
  advice.partial = advice.counts.not_reached + advice.hardware_counts.not_reached > 0;
  return advice;
}

}  // namespace foreshard::advise
