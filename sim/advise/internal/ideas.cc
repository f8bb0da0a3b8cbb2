// The table of ideas (ideas.h), and what happens to what they propose, for advise.cc.
#include "sim/advise/internal/ideas.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/yaml/describe.h"

#include "sim/advise/internal/follow.h"
#include "sim/search/space.h"
#include "strategies/program/lower/exchanges.h"

namespace foreshard::advise {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kIdeas = std::to_array<Idea>({
    {"tensor parallelism", propose_tensor},
    {"pipeline parallelism", propose_pipeline},
    {"context parallelism", propose_context},
    {"experts", propose_experts},
    {"idle devices", propose_idle_devices},
    {"micro-batch", propose_micro_batches},
    {"recomputation", propose_recomputation},
    {"schedule", propose_schedules},
    {"pipeline cuts", propose_cuts},
    {"sequence parallelism", propose_sequence},
    {"sharding", propose_sharding},
    {"overlap", propose_overlaps},
    {"buckets", propose_buckets},
    {"order of ranks", propose_rank_orders},
    {"network", propose_network, true},
    {"devices", propose_devices, true},
});

bool is_pipelined_fsdp(const Strategy& strategy) {
  return strategy.pipeline_parallel > 1 && strategy.zero_stage > 1;
}

}  // namespace

std::span<const Idea> ideas() {
  return kIdeas;
}

std::vector<Candidate> candidates_of(const Start& start, bool hardware) {
  Proposals proposals(start);
  for (const Idea& idea : kIdeas) {
    if (idea.hardware && !hardware) continue;
    proposals.begin(idea.name);
    idea.propose(proposals);
  }
  return std::move(proposals).take();
}

Start::Start(const study::LoadedStudy& study, const ClusterView& cluster,
             const std::vector<std::filesystem::path>& catalogue)
    : study_(study),
      catalogue_(catalogue),
      cost_(cluster, study.communication, lower::routing_of(study.model)) {
  if (!study.graph && study.strategy.mode == Mode::kTrain &&
      search::can_estimate(study.model, study.strategy))
    estimator_ =
        std::make_unique<search::Estimator>(study.model, cluster, study.pool.devices, cost_);
}

// Estimates are of one framework, on the devices of the study's ranks, which nothing disturbs.
Seconds Start::bound_of(const Strategy& strategy) const {
  const Strategy& now = study_.strategy;
  if (!estimator_ || study_.disturbances || strategy.devices() != now.devices() ||
      yaml::echo(*strategy.framework) != yaml::echo(*now.framework))
    return {};
  const auto estimate = estimator_->estimate(strategy);
  return estimate ? estimate->bound : Seconds{};
}

Proposals::Proposals(const Start& start)
    : start_(start), known_(launch::limitations_in(start.strategy(), start.model())) {}

void Proposals::strategy(const std::function<void(Strategy&)>& change) {
  const Strategy& now = start_.strategy();
  Strategy strategy = now;
  change(strategy);
  follow(strategy, now, start_);
  std::string words = words_between(now, strategy);
  if (words.empty()) return;
  const Refusal refusal = refusal_of(strategy);
  add({.idea = idea_,
       .words = std::move(words),
       .settings = settings_between(now, strategy, start_.study().settled.has_value()),
       .hardware = false,
       .refusal = refusal,
       .bound = refusal == Refusal::kNone ? start_.bound_of(strategy) : Seconds{}});
}

void Proposals::hardware(std::string words, std::vector<yaml::Override> settings) {
  add({.idea = idea_,
       .words = std::move(words),
       .settings = std::move(settings),
       .hardware = true});
}

void Proposals::add(Candidate candidate) {
  std::string key;
  for (const yaml::Override& one : candidate.settings) key += one.path + '=' + one.value + '\n';
  if (seen_.insert(std::move(key)).second) candidates_.push_back(std::move(candidate));
}

// Whether the framework has no option for a value that the change sets. Values that the study has
// already are allowed, because the study runs.
bool Proposals::is_beyond_framework(const Strategy& strategy) const {
  const auto before = search::knobs_of(start_.strategy());
  const auto after = search::knobs_of(strategy);
  const auto is_as_now = [&](std::string_view key) {
    const std::string name(key);
    return std::ranges::find(known_, key, &launch::Limitation::key) != known_.end() &&
           before.value(name, Json()) == after.value(name, Json());
  };
  return std::ranges::any_of(launch::limitations_in(strategy, start_.model()),
                             [&](const launch::Limitation& one) { return !is_as_now(one.key); });
}

Refusal Proposals::refusal_of(const Strategy& strategy) const {
  const study::LoadedStudy& study = start_.study();
  if (!study.graph) {
    const bool turns_evenly = strategy.schedule != "interleaved" ||
                              strategy.micro_batches() % strategy.pipeline_parallel == 0;
    if (strategy.stages() > start_.units() || !turns_evenly ||
        !faults_in(strategy, study.model, study.pool.size()).empty())
      return Refusal::kImpossible;
  }
  if (is_beyond_framework(strategy)) return Refusal::kFramework;
  // No framework offers ZeRO 2 or 3 with a pipeline (sim/search/space.h).
  if (is_pipelined_fsdp(strategy) && !is_pipelined_fsdp(study.strategy)) return Refusal::kFramework;
  return Refusal::kNone;
}

}  // namespace foreshard::advise
