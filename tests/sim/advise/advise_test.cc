// Advice by hand where the best change is evident, and on shipped studies: the best of all single
// changes, with the figures that `simulate` gives.
#include "sim/advise/advise.h"

#include <atomic>
#include <fmt/format.h>

#include "tests/base/temporary_folder.h"
#include "tests/seeds.h"
#include "tests/test.h"

#include "sim/advise/internal/ideas.h"
#include "sim/advise/output.h"
#include "sim/study/run.h"

namespace foreshard::advise {
namespace {

// A study in a file, and how it is loaded again.
class Written {
 public:
  explicit Written(const std::string& text) : file_(folder_.write("study.yaml", text)) {}

  study::LoadedStudy load(const std::vector<yaml::Override>& settings = {}) const {
    return value_of(reload()(settings));
  }
  Reload reload() const { return reload_of(file_); }
  Advice advice(const AdviceOptions& options = {.top = 100}) const {
    return value_of(advise(load(), reload(), options));
  }

  static Reload reload_of(const std::filesystem::path& study) {
    return [study](const std::vector<yaml::Override>& settings) {
      yaml::Options options = shipped_options();
      options.overrides = settings;
      return study::load_study({.study = study}, options);
    };
  }

 private:
  TemporaryFolder folder_;
  std::filesystem::path file_;
};

std::string study_of(const std::string& cluster, const std::string& strategy) {
  return "cluster: " + cluster +
         "\nmodel: {name: wide, layers: 4, hidden: 8192, heads: 64, vocabulary: 1024, sequence: "
         "2048}\nstrategy: " +
         strategy + "\n";
}

constexpr const char* kOneDevice = "{name: one, node: h200-1gpu}";
constexpr const char* kTwoNodes =
    "{name: two, nodes: 2, node: dgx-h100, fabric: {kind: single-switch}}";

std::vector<std::string> words_of(const std::vector<Change>& changes) {
  std::vector<std::string> words;
  words.reserve(changes.size());
  for (const Change& change : changes) words.push_back(change.words);
  return words;
}

// The layers' products take 3 units of time, of which forward 1; recomputed in full, 4. Of one
// sequence on one device nothing else can change.
TEST(Advise, LeavesOutAForwardPassInFour) {
  const Written study(study_of(
      kOneDevice, "{micro_batch: 1, global_batch: 1, recompute: full, framework: megatron-lm}"));
  const Advice advice = study.advice();
  ASSERT_FALSE(advice.changes.empty());
  const Change& best = advice.changes.front();
  EXPECT_EQ(best.words, "recompute: none instead of full");
  EXPECT_EQ(best.idea, "recomputation");
  ASSERT_EQ(best.settings.size(), 1U);
  EXPECT_EQ(best.settings[0].path, "strategy.recompute");
  EXPECT_EQ(best.settings[0].value, "none");
  EXPECT_EQ(options_of(best), "--set strategy.recompute=none");
  // The optimizer, which nothing changes, takes a part of the step.
  ASSERT_TRUE(best.gain);
  EXPECT_GT(*best.gain, 0.1);
  EXPECT_LT(*best.gain, 0.25);
  for (const Change& change : advice.changes) EXPECT_EQ(change.idea, "recomputation");
  // With three quarters, a half and a quarter of the layers, the gain is that part of the whole.
  for (const auto& [layers, part] : {std::pair(3, 0.25), std::pair(2, 0.5), std::pair(1, 0.75)}) {
    const auto some =
        std::ranges::find(advice.changes,
                          fmt::format("recompute: full of {} {} a stage instead of full", layers,
                                      layers == 1 ? "layer" : "layers"),
                          &Change::words);
    ASSERT_NE(some, advice.changes.end()) << layers;
    EXPECT_NEAR(*some->gain, part * *best.gain, 0.02);
  }
}

// Eight ranks in two nodes and tensor parallelism across both: inside one node it is faster.
TEST(Advise, KeepsTensorRanksInsideANode) {
  const Written study(study_of(kTwoNodes,
                               "{tensor_parallel: 16, sequence_parallel: true, micro_batch: 1, "
                               "global_batch: 16, framework: megatron-lm}"));
  const Advice advice = study.advice();
  ASSERT_FALSE(advice.changes.empty());
  EXPECT_EQ(advice.changes.front().idea, "tensor parallelism");
  const auto words = words_of(advice.changes);
  EXPECT_THAT(words, Contains(StartsWith("tensor parallel: 8 instead of 16, data parallel: 2 "
                                         "instead of 1")));
}

TEST(Advise, OffersWhatTheFrameworkCanRun) {
  const auto text = [](const char* framework) {
    return study_of(kTwoNodes, fmt::format("{{tensor_parallel: 4, sequence_parallel: true, "
                                           "pipeline_parallel: 2, data_parallel: 2, micro_batch: "
                                           "1, global_batch: 32, framework: {}}}",
                                           framework));
  };
  const Advice megatron = Written(text("megatron-lm")).advice();
  EXPECT_GT(megatron.counts.framework, 0);
  for (const Change& change : megatron.changes)
    for (const yaml::Override& one : change.settings) {
      if (one.path == "strategy.schedule") {
        EXPECT_THAT(one.value, AnyOf("1f1b", "interleaved"));
      }
      if (one.path == "strategy.zero_stage") {
        EXPECT_EQ(one.value, "1");
      }
    }
  // Of `generic`, everything counts as possible but ZeRO 2 and 3 with a pipeline.
  const Advice generic = Written(text("generic")).advice();
  EXPECT_GT(generic.counts.candidates() - generic.counts.framework,
            megatron.counts.candidates() - megatron.counts.framework);
}

// The activations of 128 sequences are 36 GB on each of eight devices of 40 GB, beside 7 GB of
// states: they fit only where layers are recomputed.
TEST(Advise, OffersNothingThatDoesNotFit) {
  const Written study(study_of("{name: small, node: dgx-a100-40gb}",
                               "{tensor_parallel: 8, sequence_parallel: true, micro_batch: 128, "
                               "global_batch: 128, recompute: "
                               "full, framework: megatron-lm}"));
  const Advice advice = study.advice();
  EXPECT_TRUE(advice.now.fits);
  EXPECT_GT(advice.counts.too_large, 0);
  for (const auto* changes : {&advice.changes, &advice.hardware})
    for (const Change& change : *changes) {
      const study::LoadedStudy changed = study.load(change.settings);
      const auto run = value_of(study::run_study(changed, {}));
      EXPECT_TRUE(run.prediction.fits) << change.words;
      EXPECT_FALSE(study::memory_margin_of(changed).is_tight(run.prediction) &&
                   change.after.peak > advice.now.peak)
          << change.words;
    }
}

// What does not fit now is advised to fit, however long it takes.
TEST(Advise, MakesAStudyFit) {
  const Written study(
      study_of(kOneDevice, "{micro_batch: 64, global_batch: 64, framework: megatron-lm}"));
  const Advice advice = study.advice();
  ASSERT_FALSE(advice.now.fits);
  ASSERT_FALSE(advice.changes.empty());
  for (const Change& change : advice.changes) EXPECT_TRUE(change.after.fits);
  EXPECT_THAT(advice_text(advice), HasSubstr("It does not fit"));
}

TEST(Advise, KeepsHardwareApart) {
  const Written study(
      study_of("{name: slow, nodes: 2, node: hgx-a100-4x100g, fabric: {kind: "
               "single-switch}}",
               "{data_parallel: 16, micro_batch: 1, global_batch: 16, "
               "zero_stage: 1, framework: megatron-lm}"));
  const std::vector<std::filesystem::path> catalogue{FORESHARD_SOURCE_DIR "/configs"};
  const Advice advice = study.advice({.top = 100, .catalogue = catalogue});
  for (const Change& change : advice.changes)
    for (const yaml::Override& one : change.settings)
      EXPECT_THAT(one.path, StartsWith("strategy."));
  for (const Change& change : advice.hardware)
    for (const yaml::Override& one : change.settings) EXPECT_THAT(one.path, StartsWith("cluster."));
  const auto words = words_of(advice.hardware);
  EXPECT_THAT(words, Contains(StartsWith("adapters: 200 Gbit/s instead of 100 Gbit/s")));
  EXPECT_THAT(words, Contains("devices: B200 instead of A100-SXM-80GB, in nodes dgx-b200"));
  EXPECT_THAT(study.advice({.top = 100, .hardware = false}).hardware, IsEmpty());
}

TEST(Advise, IsTheSameOnAnyNumberOfThreads) {
  const auto reload = Written::reload_of("gpt-1.7b-a100-8");
  const study::LoadedStudy study = value_of(reload({}));
  const std::string one = advice_json(value_of(advise(study, reload, {.threads = 1})));
  EXPECT_EQ(advice_json(value_of(advise(study, reload, {.threads = 3}))), one);
}

TEST(Advise, EndsWithWhatIsKnown) {
  const auto reload = Written::reload_of("gpt-1.7b-a100-8");
  const study::LoadedStudy study = value_of(reload({}));
  std::atomic<int> done{0};
  const Advice advice = value_of(advise(study, reload,
                                        {.top = 100,
                                         .threads = 1,
                                         .stop = [&] { return done == 5; },
                                         .progress = [&](std::int64_t, std::int64_t) { ++done; }}));
  EXPECT_TRUE(advice.partial);
  const Counts& counts = advice.counts;
  EXPECT_LE(counts.faster + counts.too_large, 5);
  EXPECT_GT(counts.not_reached, 0);
  EXPECT_THAT(advice_text(advice), HasSubstr("stopped"));
}

// The settings that a study leaves open are part of each change: what was taken for them stays.
TEST(Advise, SaysWhatAStudyLeavesOpen) {
  const Written study(study_of("{name: one, node: dgx-h100}",
                               "{tensor_parallel: 2, pipeline_parallel: 2, data_parallel: 2, "
                               "global_batch: 16, framework: megatron-lm}") +
                      "open: [micro_batch, recompute]\n");
  const Advice advice = study.advice({.top = 1});
  ASSERT_EQ(advice.changes.size(), 1U);
  const Change& change = advice.changes.front();
  const auto run = value_of(study::run_study(study.load(change.settings), {}));
  EXPECT_EQ(run.prediction.step, change.after.step);
}

// Each figure is that of the study with the settings, simulated by itself; of all candidates that
// run and fit, none that is not listed is faster than one that is. A study that leaves less than
// the memory margin is no worse with a change that needs no more.
void expect_best_of_all_single_changes(const study::LoadedStudy& study, const Reload& reload) {
  const std::vector<std::filesystem::path> catalogue{FORESHARD_SOURCE_DIR "/configs"};
  const Advice advice = value_of(advise(study, reload, {.catalogue = catalogue}));
  const study::StudyRun now = value_of(study::run_study(study, {}));
  EXPECT_EQ(advice.now.step, now.prediction.step);
  EXPECT_EQ(advice.now.usd, now.prediction.expense.usd());

  std::map<bool, std::vector<Seconds>> steps;  // Whether of hardware -> of those that are faster.
  for (const Candidate& candidate : candidates_of(Start(study, now.cluster, catalogue), true)) {
    if (candidate.refusal != Refusal::kNone) continue;
    const auto changed = reload(candidate.settings);
    if (!changed) continue;
    const auto run = study::run_study(*changed, {});
    if (!run) continue;
    const sim::Prediction& after = run->prediction;
    const Bytes peak = after.classes[static_cast<std::size_t>(after.worst_memory)].memory.peak;
    const bool tight = study::memory_margin_of(*changed).is_tight(after) &&
                       !(advice.now.tight && peak <= advice.now.peak);
    if (after.fits && !tight && after.step < now.prediction.step)
      steps[candidate.hardware].push_back(after.step);
    for (const auto* changes : {&advice.changes, &advice.hardware})
      for (const Change& change : *changes) {
        if (change.words != candidate.words || change.idea != candidate.idea) continue;
        EXPECT_EQ(change.after.step, after.step) << change.words;
        EXPECT_EQ(change.after.low, after.low) << change.words;
        EXPECT_EQ(change.after.high, after.high) << change.words;
        EXPECT_EQ(change.after.usd, after.expense.usd()) << change.words;
        EXPECT_EQ(change.after.peak, peak);
      }
  }
  for (const bool hardware : {false, true}) {
    auto& best = steps[hardware];
    std::ranges::sort(best);
    best.resize(std::min<std::size_t>(best.size(), 3));
    std::vector<Seconds> listed;
    for (const Change& change : hardware ? advice.hardware : advice.changes)
      listed.push_back(change.after.step);
    EXPECT_EQ(listed, best) << hardware;
  }
  const Counts& counts = advice.counts;
  EXPECT_EQ(counts.not_reached, 0);
  EXPECT_EQ(counts.faster, std::ssize(steps[false]) < 3 ? std::ssize(steps[false]) : counts.faster);
}

class AdviceOnShippedStudy : public testing::TestWithParam<const char*> {};

TEST_P(AdviceOnShippedStudy, HasTheBestOfAllSingleChanges) {
  const auto reload = Written::reload_of(GetParam());
  expect_best_of_all_single_changes(value_of(reload({})), reload);
}
INSTANTIATE_TEST_SUITE_P(All, AdviceOnShippedStudy,
                         testing::Values("gpt-1.7b-a100-8", "llama3-8b-h100-64-fsdp",
                                         "llama3-8b-h100-8-fp8", "llama2-70b-h200-8-lora",
                                         "llama3-70b-h100-64-forward", "host-pp2",
                                         "moe-layer-h100-8", "gpt-39.1b-h100-32"));

// Shipped studies with another micro-batch, batch, model or size of the cluster, as far as they
// fit.
TEST(AdviceOnVariedStudies, HasTheBestOfAllSingleChanges) {
  using Settings = std::vector<yaml::Override>;
  const std::vector<Settings> variations{
      {{"strategy.micro_batch", "2"}},
      {{"strategy.micro_batch", "4"}},
      {{"strategy.global_batch", "128"}},
      {{"strategy.global_batch", "256"}, {"strategy.micro_batch", "2"}},
      {{"strategy.recompute", "full"}},
      {{"strategy.recompute", "none"}},
      {{"model.sequence", "1024"}},
      {{"model.layers", "16"}},
      {{"cluster.nodes", "2"}, {"strategy.data_parallel", "2"}},
      {{"cluster.node", "dgx-h200"}},
      {{"cluster.node", "dgx-a100-80gb"}}};
  const int most = seeds(1, 50);
  int held = 0;
  for (const Settings& variation : variations)
    for (const char* name :
         {"gpt-1.7b-a100-8", "llama3-8b-h100-8-fp8", "llama3-8b-h100-64-fsdp", "gpt-39.1b-h100-32",
          "gpt-39.1b-a100-64", "gpt-18.4b-a100-256", "llama2-70b-h200-8-lora"}) {
      if (held == most) break;
      const auto shipped = Written::reload_of(name);
      const Reload reload = [&](const Settings& settings) {
        Settings all = variation;
        all.insert(all.end(), settings.begin(), settings.end());
        return shipped(all);
      };
      const auto study = reload({});
      if (!study) continue;
      const auto now = study::run_study(*study, {});
      if (!now || !now->prediction.fits) continue;
      SCOPED_TRACE(fmt::format("{} with {}={}", name, variation[0].path, variation[0].value));
      expect_best_of_all_single_changes(*study, reload);
      ++held;
    }
  EXPECT_EQ(held, most);
}

}  // namespace
}  // namespace foreshard::advise
