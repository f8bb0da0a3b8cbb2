// The table of ideas (ideas.h), and what happens to what they propose, for advise.cc.
#include "sim/advise/internal/ideas.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/advise/internal/follow.h"

namespace foreshard::advise {
namespace {

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

Proposals::Proposals(const Start& start)
    : start_(start), known_(launch::limitations_in(start.strategy(), start.model())) {}

void Proposals::strategy(const std::function<void(Strategy&)>& change) {
  const Strategy& now = start_.strategy();
  Strategy strategy = now;
  change(strategy);
  follow(strategy, now, start_);
  std::string words = words_between(now, strategy);
  if (words.empty()) return;
  add({.idea = idea_,
       .words = std::move(words),
       .settings = settings_between(now, strategy, start_.study.settled.has_value()),
       .hardware = false,
       .refusal = refusal_of(strategy)});
}

void Proposals::hardware(std::string words, std::vector<yaml::Override> settings) {
  add({.idea = idea_,
       .words = std::move(words),
       .settings = std::move(settings),
       .hardware = true,
       .refusal = Refusal::kNone});
}

void Proposals::add(Candidate candidate) {
  std::string key;
  for (const yaml::Override& one : candidate.settings) key += one.path + '=' + one.value + '\n';
  if (seen_.insert(std::move(key)).second) candidates_.push_back(std::move(candidate));
}

// A framework runs the study already: only what it cannot do beside that counts.
Refusal Proposals::refusal_of(const Strategy& strategy) const {
  const study::LoadedStudy& study = start_.study;
  if (!study.graph) {
    const bool turns_evenly = strategy.schedule != "interleaved" ||
                              strategy.micro_batches() % strategy.pipeline_parallel == 0;
    if (strategy.stages() > start_.units() || !turns_evenly ||
        !faults_in(strategy, study.model, study.pool.size()).empty())
      return Refusal::kImpossible;
  }
  const auto is_new = [&](const launch::Limitation& one) {
    return std::ranges::find(known_, one.key, &launch::Limitation::key) == known_.end();
  };
  if (std::ranges::any_of(launch::limitations_in(strategy, study.model), is_new))
    return Refusal::kFramework;
  // No framework offers ZeRO 2 or 3 with a pipeline (sim/search/space.h).
  if (is_pipelined_fsdp(strategy) && !is_pipelined_fsdp(study.strategy)) return Refusal::kFramework;
  return Refusal::kNone;
}

}  // namespace foreshard::advise
