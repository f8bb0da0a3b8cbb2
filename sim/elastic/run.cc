// Answers `foreshard elastic` (run.h): plays the histories of every policy and takes their
// statistics. Times are seconds.
#include "sim/elastic/run.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <utility>

#include "base/hash.h"
#include "base/text.h"

#include "sim/elastic/history.h"
#include "sim/elastic/study_plans.h"
#include "sim/search/space.h"
#include "sim/sweep/grid.h"

namespace foreshard::elastic {
namespace {

constexpr Seconds kNever = Seconds::from_base(std::numeric_limits<double>::infinity());

StudyQuestion question_of(const LoadedTimeline& loaded, const ElasticOptions& options) {
  const Timeline& timeline = loaded.timeline;
  StudyQuestion question{.files = {},
                         .catalogue = options.catalogue,
                         .overrides = {},
                         .search = {.space = *timeline.search.space,
                                    .simulate = timeline.search.simulate,
                                    .certify = timeline.search.certify,
                                    .front = 0,
                                    .threads = options.threads},
                         .storage = timeline.checkpoint.storage};
  question.files.study = sweep::seen_from_here({timeline.study}, loaded.folder);
  for (const auto& [path, value] : timeline.set)
    question.overrides.push_back({path, sweep::seen_from_here(value, loaded.folder)});
  if (timeline.train) question.overrides.push_back({"train", *timeline.train});
  return question;
}

// A message about the study, with places as the author of the timeline knows them.
Error shown(Error error, const LoadedTimeline& loaded) {
  const auto replace = [&](const std::string& given, const std::string& place) {
    for (std::size_t at = 0; (at = error.message.find(given, at)) != std::string::npos;
         at += place.size())
      error.message.replace(at, given.size(), place);
  };
  for (const auto& [path, value] : loaded.timeline.set)
    replace(fmt::format("--set {}={}", path, sweep::seen_from_here(value, loaded.folder)),
            loaded.loader.place("set." + path));
  if (loaded.timeline.train)
    replace("--set train=" + *loaded.timeline.train, loaded.loader.place("train"));
  return error;
}

std::int64_t units_of(const Cause& cause, std::int64_t nodes, std::int64_t devices) {
  switch (cause.of) {
    case Unit::kDevice:
      return devices;
    case Unit::kNode:
      return nodes;
    case Unit::kGroup:
      return (nodes + cause.group - 1) / cause.group;
    case Unit::kJob:
      return 1;
  }
  return 0;
}

// What a timeline says about the machine, and what follows from it for every policy.
class Machine {
 public:
  Machine(const LoadedTimeline& loaded, const StudyPlans& plans) : loaded_(loaded), plans_(plans) {
    nodes_ = plans.nodes();
    all_ = nodes_ + loaded.timeline.spares;
    for (const Event& event : loaded.timeline.events) all_ += event.adds.value_or(0);
  }

  Status read(ElasticResult& result) {
    result.nodes = nodes_;
    result.spares = loaded_.timeline.spares;
    add_causes(result);
    FORESHARD_TRY(add_checkpoint(result));
    return read_events();
  }

  Rules rules_of(Policy policy, const ElasticResult& result) const {
    const Timeline& timeline = loaded_.timeline;
    return {.policy = policy,
            .recovery = timeline.recovery,
            .steps = result.steps,
            .nodes = nodes_,
            .spares = policy == Policy::kReplace ? timeline.spares : 0,
            .detection = timeline.detection,
            .restart = timeline.restart,
            .regroup = timeline.regroup.value_or(timeline.restart),
            .interval = result.checkpoint.interval,
            .blocked = result.checkpoint.blocked,
            .written = result.checkpoint.written,
            .additions = additions_,
            .given = given_};
  }

  Failures history(std::int64_t number) const {
    const auto seed = static_cast<std::uint64_t>(loaded_.timeline.seed);
    return {hazards_, all_, mixed(seed) + static_cast<std::uint64_t>(number)};
  }
  std::size_t cause_of(std::size_t hazard) const { return cause_of_hazard_[hazard]; }

 private:
  void add_causes(ElasticResult& result) {
    if (!loaded_.timeline.failures) return;
    const FailureRates& rates = **loaded_.timeline.failures;
    const auto devices = static_cast<std::int64_t>(plans_.study().cluster.device_count());
    double rate = 0;
    for (const Cause& cause : rates.causes) {
      CauseFigures figures{.name = cause.name,
                           .units = units_of(cause, nodes_, devices),
                           .mtbf = mtbf_of(cause, rates),
                           .between = {},
                           .repair = {},
                           .takes = cause.takes != FailureDomain::kNothing};
      if (figures.takes)
        figures.repair = cause.repair ? std::optional(**cause.repair) : loaded_.timeline.repair;
      if (figures.mtbf) {
        figures.between = *figures.mtbf / static_cast<double>(figures.units);
        rate += 1_s / *figures.between;
        add_hazard(cause, figures, result.causes.size());
      } else {
        result.without_rate.push_back(cause.name);
      }
      result.causes.push_back(std::move(figures));
    }
    if (rate > 0) result.between = 1_s / rate;
  }

  // Spares and added nodes have as many units per node as the nodes of the run.
  void add_hazard(const Cause& cause, const CauseFigures& figures, std::size_t index) {
    const bool of_job = cause.of == Unit::kJob;
    const double share = of_job ? 1 : static_cast<double>(all_) / static_cast<double>(nodes_);
    const std::int64_t group =
        cause.of == Unit::kGroup || cause.takes == FailureDomain::kGroup ? cause.group : 1;
    std::int64_t taken = 0;
    if (cause.takes != FailureDomain::kNothing)
      taken = cause.takes == FailureDomain::kGroup ? group : 1;
    hazards_.push_back({.between = *figures.between / share,
                        .of_job = of_job,
                        .group = group,
                        .taken = taken,
                        .repair = figures.repair.value_or(kNever)});
    cause_of_hazard_.push_back(index);
  }

  Status add_checkpoint(ElasticResult& result) const {
    const CheckpointRule& rule = loaded_.timeline.checkpoint;
    CheckpointFigures& figures = result.checkpoint;
    figures.size = plans_.checkpoint();
    figures.written = figures.size / rule.storage;
    figures.blocked = figures.written;
    if (rule.asynchronous) {
      if (rule.blocks) {
        figures.blocked = *rule.blocks;
      } else {
        const auto copy = plans_.copy_to_hosts();
        if (!copy)
          return loaded_.loader.error_at(
              "checkpoint", copy.error().message,
              "give checkpoint.blocks, what the copy to the hosts takes");
        figures.blocked = *copy;
      }
      figures.written += figures.blocked;
    }
    const Optimum optimum = rule.optimum.value_or(Optimum::kDaly);
    figures.rule = rule.interval ? "given" : std::string(yaml::name_of(optimum));
    if (rule.interval) {
      figures.interval = *rule.interval;
    } else if (!result.between) {
      return loaded_.loader.error_at("checkpoint",
                                     "no cause of failures has a rate, so no interval "
                                     "is the best one",
                                     "give checkpoint.interval: 30 min");
    } else {
      figures.interval = optimum == Optimum::kDaly
                             ? daly_interval(figures.blocked, *result.between)
                             : young_interval(figures.blocked, *result.between);
    }
    // A checkpoint is written before the next one begins.
    figures.interval = std::max(figures.interval, figures.written - figures.blocked);
    return {};
  }

  Status read_events() {
    const auto& events = loaded_.timeline.events;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      if (event.adds) {
        additions_.push_back({.at = event.at, .nodes = *event.adds});
        continue;
      }
      const std::int64_t node = *node_number(*event.fails);
      if (node >= all_)
        return loaded_.loader.error_at(
            "events", fmt::format("'{}' fails, but the machine has {} nodes: node0 to node{}",
                                  *event.fails, all_, all_ - 1));
      given_.push_back(
          {.at = event.at, .node = node, .takes = true, .back = event.repaired.value_or(kNever)});
    }
    return {};
  }

  const LoadedTimeline& loaded_;
  const StudyPlans& plans_;
  std::int64_t nodes_ = 0;
  std::int64_t all_ = 0;  // number of nodes with spares and added ones
  std::vector<Hazard> hazards_;
  std::vector<std::size_t> cause_of_hazard_;
  std::vector<Addition> additions_;
  std::vector<Failure> given_;
};

// \pre `times` are sorted.
Spread spread_of(const std::vector<Seconds>& times) {
  Seconds sum;
  for (const Seconds time : times) sum += time;
  const auto count = static_cast<double>(times.size());
  const auto rank = [&](double part) {
    return times[static_cast<std::size_t>(std::max(std::ceil(part * count) - 1, 0.0))];
  };
  return {.mean = sum / count, .p10 = rank(0.1), .median = rank(0.5), .p90 = rank(0.9)};
}

void add(Parts& to, const Parts& from, double share) {
  for (Seconds Parts::*part : {&Parts::useful, &Parts::slowdown, &Parts::lost, &Parts::saving,
                               &Parts::detection, &Parts::restart, &Parts::slices, &Parts::waiting})
    to.*part += from.*part * share;
}

// Sum over all nodes of the time for which they are part of the machine.
Seconds node_time(const Rules& rules, Seconds wall) {
  Seconds time = static_cast<double>(rules.nodes + rules.spares) * wall;
  for (const Addition& added : rules.additions)
    time += static_cast<double>(added.nodes) * std::max(wall - added.at, Seconds());
  return time;
}

// The reason why nothing can be said about a policy, before any history; empty: none.
std::string unknown_of(Policy policy, const ElasticResult& result, bool tells_replicas) {
  std::vector<std::string> names;
  for (const CauseFigures& cause : result.causes)
    if (cause.takes && cause.mtbf && !cause.repair) names.push_back(cause.name);
  if (!names.empty()) return fmt::format("no repair time is known of {}: give repair", join(names));
  if (policy == Policy::kReroute && !tells_replicas)
    return "the replicas of a strategy with experts, or with several sets of shards, cannot be "
           "left out one by one";
  return "";
}

Result<PolicyFigures> figures_of(Policy policy, const Machine& machine, StudyPlans& plans,
                                 const ElasticResult& result, const ElasticOptions& options) {
  PolicyFigures figures{.policy = policy};
  const Rules rules = machine.rules_of(policy, result);
  figures.fewest_nodes = rules.nodes;
  std::vector<Seconds> times;
  Seconds there;
  const double share = 1 / static_cast<double>(result.histories);
  for (std::int64_t number = 0; number < result.histories; ++number) {
    FORESHARD_ASSIGN(const History history, history_of(rules, plans, machine.history(number)));
    if (options.progress) options.progress();
    if (history.finished) times.push_back(history.wall);
    there += share * node_time(rules, history.wall);
    add(figures.parts, history.parts, share);
    figures.failures += share * static_cast<double>(history.failures);
    figures.interrupted += share * static_cast<double>(history.interrupted);
    figures.checkpoints += share * static_cast<double>(history.checkpoints);
    figures.moves += share * static_cast<double>(history.moves);
    figures.moved += share * history.moved;
    figures.fewest_nodes = std::min(figures.fewest_nodes, history.fewest_nodes);
    for (const auto& [hazard, count] : history.by_cause)
      if (hazard != kGiven)
        figures.by_cause[machine.cause_of(hazard)] += share * static_cast<double>(count);
  }
  figures.finished = std::ssize(times);
  if (figures.finished < result.histories) {
    figures.unknown =
        fmt::format("{} of {} histories do not end within {:.0f} times the run without failures",
                    result.histories - figures.finished, result.histories, kLongest);
    return figures;
  }
  std::ranges::sort(times);
  figures.time = spread_of(times);
  figures.times = std::move(times);
  figures.goodput = result.ideal() / figures.time.mean;
  const sim::Prediction& prediction = plans.prediction();
  if (prediction.expense.rent)
    figures.rent =
        *prediction.expense.rent * (there / prediction.step) / static_cast<double>(rules.nodes);
  return figures;
}

}  // namespace

Result<ElasticResult> run_elastic(const LoadedTimeline& loaded, const ElasticOptions& options) {
  const Timeline& timeline = loaded.timeline;
  auto made = StudyPlans::make(question_of(loaded, options));
  if (!made) return shown(std::move(made).error(), loaded);
  const auto plans = *std::move(made);
  const sim::Prediction& prediction = plans->prediction();
  if (!prediction.training)
    return loaded.loader.error_at("",
                                  "neither the study nor the time line says how long the "
                                  "training is",
                                  "add train: 2T tokens");
  ElasticResult result{.name = loaded.name,
                       .model = plans->study().model.name,
                       .cluster = plans->study().cluster.name,
                       .strategy = search::in_words(plans->study().strategy),
                       .train = prediction.training->length,
                       .steps = prediction.training->steps,
                       .step = prediction.step,
                       .low = prediction.low,
                       .high = prediction.high,
                       .histories = timeline.failures ? timeline.histories : 1,
                       .seed = timeline.seed};
  Machine machine(loaded, *plans);
  FORESHARD_TRY(machine.read(result));
  const std::vector<bool> none(static_cast<std::size_t>(result.nodes), false);
  FORESHARD_ASSIGN(const auto replicas, plans->replicas_on(none));
  for (const Policy policy : timeline.policies) {
    std::string unknown = unknown_of(policy, result, replicas.has_value());
    if (!unknown.empty()) {
      result.policies.push_back({.policy = policy, .unknown = std::move(unknown)});
      continue;
    }
    FORESHARD_ASSIGN(auto figures, figures_of(policy, machine, *plans, result, options));
    result.policies.push_back(std::move(figures));
  }
  for (const auto& [arrangement, running] : plans->asked())
    result.arrangements.push_back(
        {.arrangement = arrangement,
         .strategy = running ? search::in_words(running->strategy) : "",
         .step = running ? std::optional(running->step) : std::nullopt,
         .tight = running && running->tight,
         .idle = running && arrangement.replicas_lost == 0 ? running->idle : 0,
         .low = running ? std::optional(running->low) : std::nullopt,
         .high = running ? std::optional(running->high) : std::nullopt});
  for (const auto& [arrangement, running] : plans->asked())
    if (running) result.unmeasured.push_back(running->unmeasured);
  return result;
}

}  // namespace foreshard::elastic
