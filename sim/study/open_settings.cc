// Settles what a study leaves open (open_settings.h), for study.cc: every choice is tried, and the
// fastest that fits is taken.
#include "sim/study/open_settings.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <utility>

#include "base/text.h"

#include "sim/study/alternatives.h"
#include "sim/study/run.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::study {
namespace {

bool is_open(const std::vector<OpenSetting>& open, OpenSetting setting) {
  return std::ranges::find(open, setting) != open.end();
}

bool divides_batch(const Strategy& strategy) {
  return strategy.global_batch % (strategy.data_parallel * strategy.micro_batch) == 0;
}

// The strategy with interleaved chunks of `layers` layers each, where its layers divide into such
// chunks; of layers that do not divide over the ranks either, some chunks have one layer less.
std::optional<Strategy> interleaved(Strategy strategy, const Model& model, std::int64_t layers) {
  const std::int64_t ranks = strategy.pipeline_parallel;
  const bool is_even = model.layers % ranks == 0;
  const std::int64_t chunks = (model.layers + ranks * layers - 1) / (ranks * layers);
  if (chunks < 2 || (is_even && model.layers % (ranks * layers) != 0) ||
      strategy.micro_batches() % ranks != 0)
    return std::nullopt;
  strategy.schedule = "interleaved";
  strategy.virtual_stages = chunks;
  strategy.layers_per_stage =
      is_even ? std::vector<std::int64_t>{} : uneven_split(model.layers, strategy.stages());
  return strategy;
}

// What the branch of experts computes again (Megatron-LM, module "moe").
const std::vector<LayerPart>& branch_of_experts() {
  static const std::vector<LayerPart> parts{LayerPart::kRouting, LayerPart::kExpertsUp,
                                            LayerPart::kExpertActivation, LayerPart::kExpertsDown};
  return parts;
}

struct Trial {
  Strategy strategy;
  program::Program program;
  Bytes excess;  ///< Peak of the fullest role less the room on its device; <= 0 if it fits.
};

Result<Trial> tried(const LoadedStudy& study, const ClusterView& cluster,
                    const Strategy& strategy) {
  if (const auto faults = faults_in(strategy, study.model, study.pool.size()); !faults.empty())
    return study.loader.error_at("strategy." + faults.front().key, faults.front().message,
                                 faults.front().help);
  FORESHARD_ASSIGN(auto lowered, lower::lower(study.model, strategy, {}));
  auto program = with_launch_times(study.pool.placed(std::move(lowered)), cluster);
  Bytes excess = Bytes::from_base(-std::numeric_limits<double>::infinity());
  for (const program::Role& role : program.roles)
    excess = std::max(excess, peak_in_issue_order(program, role) + reserve_of(strategy) -
                                  capacity_of(program, role, cluster));
  return Trial{strategy, std::move(program), excess};
}

std::string words_of(const Strategy& strategy, const std::vector<OpenSetting>& open) {
  std::vector<std::string> words;
  if (is_open(open, OpenSetting::kMicroBatch))
    words.push_back(fmt::format("micro_batch {}", strategy.micro_batch));
  if (is_open(open, OpenSetting::kVirtualStages))
    words.push_back(fmt::format("virtual_stages {}", strategy.virtual_stages));
  if (is_open(open, OpenSetting::kRecompute))
    words.push_back("recompute " + words_of_recomputation(strategy));
  return join(words);
}

// The trials so far.
class Trials {
 public:
  Trials(const LoadedStudy& study, const ClusterView& cluster) : study_(study), cluster_(cluster) {}

  void run(const Strategy& strategy) {
    ++count_;
    auto trial = tried(study_, cluster_, strategy);
    if (!trial) return fail(trial.error());
    if (trial->excess > 0_B) {
      if (!closest_ || trial->excess < closest_->excess) closest_ = *std::move(trial);
      return;
    }
    const auto prediction = simulated(study_, strategy, study_.used(), cluster_, trial->program,
                                      {.critical_path = false, .every_class = false});
    if (!prediction) return fail(prediction.error());
    ++fits_;
    slowest_ = std::max(slowest_, prediction->step);
    if (best_ && prediction->step >= fastest_) return;
    fastest_ = prediction->step;
    best_ = strategy;
  }

  Result<std::pair<Strategy, Settled>> settled() const {
    if (best_)
      return std::pair(
          *best_,
          Settled{.message = fmt::format("left open, and so the fastest of {} choices "
                                         "that fit in memory: {}; the interval "
                                         "reaches to the slowest, {:.2f} times as long",
                                         fits_, words_of(*best_, study_.open), slowest_ / fastest_),
                  .slowest = slowest_ / fastest_,
                  .fits = fits_});
    if (closest_)
      return std::pair(
          closest_->strategy,
          Settled{.message = fmt::format("left open, and so the smallest of {} choices, none of "
                                         "which fits in memory: {}",
                                         count_, words_of(closest_->strategy, study_.open))});
    if (error_) return *error_;
    return study_.loader.error_at(
        "open", fmt::format("{} sequences do not divide into {} equal parts",
                            study_.strategy.global_batch, study_.strategy.data_parallel));
  }

 private:
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  const LoadedStudy& study_;
  const ClusterView& cluster_;
  std::optional<Strategy> best_;
  std::optional<Trial> closest_;
  std::optional<Error> error_;
  Seconds fastest_;
  Seconds slowest_;
  std::int64_t count_ = 0;
  std::int64_t fits_ = 0;
};

}  // namespace

const yaml::Names<OpenSetting>& yaml_names(const OpenSetting*) {
  static const yaml::Names<OpenSetting> names{
      {"micro_batch", OpenSetting::kMicroBatch, "1, 2, 4, 8 or 16 sequences."},
      {"virtual_stages", OpenSetting::kVirtualStages,
       "Not interleaved, or in chunks of one or two layers."},
      {"recompute", OpenSetting::kRecompute, "None, selective or full."},
  };
  return names;
}

std::vector<std::vector<Strategy>> choices_of(const Strategy& strategy, const Model& model,
                                              const std::vector<OpenSetting>& open) {
  std::vector<Strategy> shapes{strategy};
  if (is_open(open, OpenSetting::kMicroBatch)) {
    shapes.clear();
    for (const std::int64_t micro_batch : {1, 2, 4, 8, 16}) {
      shapes.push_back(strategy);
      shapes.back().micro_batch = micro_batch;
    }
  }
  std::erase_if(shapes, [](const Strategy& shape) { return !divides_batch(shape); });
  if (is_open(open, OpenSetting::kVirtualStages) && strategy.pipeline_parallel > 1) {
    for (std::size_t i = 0, plain = shapes.size(); i < plain; ++i)
      for (const std::int64_t layers : {1, 2})
        if (auto shape = interleaved(shapes[i], model, layers)) shapes.push_back(*std::move(shape));
  }
  std::vector<std::vector<Strategy>> choices;
  for (const Strategy& shape : shapes) {
    auto& ways = choices.emplace_back();
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      ways.push_back(shape);
      if (!is_open(open, OpenSetting::kRecompute)) break;
      ways.back().recompute = recompute;
      if (recompute == Recompute::kSelective && model.experts > 0)
        ways.back().recompute_parts = branch_of_experts();
    }
  }
  return choices;
}

Status settle(LoadedStudy& study) {
  if (study.open.empty()) return {};
  FORESHARD_ASSIGN(const auto cluster, cluster_of(study));
  Trials trials(study, cluster);
  for (const auto& ways : choices_of(study.strategy, study.model, study.open))
    for (const Strategy& strategy : ways) trials.run(strategy);
  FORESHARD_ASSIGN(auto settled, trials.settled());
  study.strategy = std::move(settled.first);
  study.settled = std::move(settled.second);
  return {};
}

}  // namespace foreshard::study
