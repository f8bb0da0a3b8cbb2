// Levels of a search contain those below, and keep the memory margin: properties of random
// clusters.
#include <fmt/format.h>

#include "tests/sim/search/written_study.h"
#include "tests/test.h"

#include "sim/search/output.h"
#include "sim/search/search.h"
#include "sim/search/shares.h"
#include "sim/study/run.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search::levels_test {

constexpr const char* kSmall =
    "{name: small, layers: 10, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024}";

// A cluster with nodes of one or two kinds and numbers of devices that may be prime, of which some
// are slow or down.
std::string random_cluster(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const char* devices[] = {"A100-SXM-80GB", "H100-SXM"};
  const int groups = 1 + below(2);
  const int gpus = std::vector{1, 2, 3, 4, 5, 8}[static_cast<std::size_t>(below(6))];
  std::string text;
  std::vector<int> nodes;
  for (int i = 0; i < groups; ++i) {
    nodes.push_back(1 + below(2));
    text += fmt::format(
        "{}{{nodes: {}, node: {{device: {}, gpus: {}, nvlink: {{bandwidth: 300 GB/s}}, nics: "
        "{{count: 1, bandwidth: 200 Gbit/s}}}}}}",
        i > 0 ? ", " : "", nodes.back(), devices[below(2)], gpus);
  }
  const int all = std::accumulate(nodes.begin(), nodes.end(), 0);
  std::string cluster =
      fmt::format("{{name: random, groups: [{}], fabric: {{kind: single-switch}}", text);
  const auto device = [&] { return fmt::format("node{}/gpu{}", below(all), below(gpus)); };
  if (all * gpus > 1 && below(3) == 0) cluster += fmt::format(", down: [{}]", device());
  if (below(2) == 0)
    cluster += fmt::format(", degraded: [{{devices: {}, speed: 0.{}}}]", device(), 5 + below(4));
  return cluster + "}";
}

std::optional<Simulated> best_at(const study::LoadedStudy& study, std::int64_t level) {
  SearchOptions options;
  options.space.level = level;
  const auto found = run_search(study, options);
  if (!found || !found->has_answer()) return std::nullopt;
  // The first is the fastest of those that keep the margin, or nothing does.
  for (const Simulated& one : found->simulated) {
    if (one.fits && !one.tight) {
      EXPECT_FALSE(found->is_tight());
      EXPECT_LE(found->simulated.front().step, one.step);
    }
  }
  return found->simulated.front();
}

// By default a few of 30; all of them where FORESHARD_ALL_SEEDS is set.
TEST(Levels, AreNeverSlowerThanThoseBelow) {
  const unsigned seeds = std::getenv("FORESHARD_ALL_SEEDS") != nullptr ? 30 : 3;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(seed);
    const std::string cluster = random_cluster(random);
    const int batch = 24 + static_cast<int>(random() % 24);
    const auto study = study_of(cluster, kSmall,
                                fmt::format("{{global_batch: {}, framework: megatron-lm}}", batch));
    std::optional<Simulated> below;
    for (std::int64_t level = 0; level <= kEverything; ++level) {
      const auto found = best_at(study, level);
      if (below) {
        ASSERT_TRUE(found) << cluster;
        EXPECT_LE(found->tight, below->tight) << cluster << " at level " << level;
        if (found->tight == below->tight) {
          EXPECT_LE(found->step, below->step) << cluster << " at level " << level;
        }
      }
      if (found) below = found;
    }
    ASSERT_TRUE(below) << cluster;
  }
}

// Of four equal devices one is slow: which one does not matter, nor does which node has lost one.
TEST(Levels, FindTheSameWhicheverOfEqualDevicesIsSlow) {
  const auto of = [](const std::string& rest) {
    const auto study = study_of(
        "{name: equal, nodes: 2, node: {device: A100-SXM-80GB, gpus: 4, "
        "nvlink: {bandwidth: 300 GB/s}, nics: {count: 1, bandwidth: 200 "
        "Gbit/s}}, fabric: {kind: single-switch}, " +
            rest + "}",
        kSmall, "{global_batch: 32, framework: megatron-lm}");
    return best_at(study, 1)->step;
  };
  const auto slow = [](const char* device) {
    return fmt::format("degraded: [{{devices: {}, speed: 0.6}}]", device);
  };
  const Seconds first = of(slow("node0/gpu0"));
  for (const char* other : {"node0/gpu2", "node1/gpu3"}) EXPECT_EQ(of(slow(other)), first);
  EXPECT_EQ(of("down: [node0/gpu1]"), of("down: [node1/gpu2]"));
}

// 64 micro-batches on 15 ranks: four take 5 and eleven take 4, which ends before the 8 that each of
// the eight ranks takes by which 64 divides.
TEST(Levels, ShareABatchThatDoesNotDivide) {
  EXPECT_THAT(even_shares(64, 15, 1), ElementsAre(5, 5, 5, 5, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4));
  EXPECT_THAT(even_shares(24, 4, 4),
              ElementsAre(8, 4));  // multiples of four stages, two ranks each
  EXPECT_THAT(even_shares(64, 8, 1), ElementsAre());
  EXPECT_THAT(even_shares(25, 4, 4), ElementsAre());
  const auto study = study_of(
      "{name: dead, nodes: 1, node: {device: A100-SXM-80GB, gpus: 8, nvlink: {bandwidth: 300 "
      "GB/s}}, down: [node0/gpu5]}",
      kSmall, "{global_batch: 64, framework: megatron-lm}");
  for (std::int64_t level = 0; level <= 2; ++level) {
    const auto found = value_of(best_at(study, level));
    // 7 ranks take at most 10 of 64 sequences: as good as can be. 4 would take 16 each.
    EXPECT_EQ(found.strategy.devices(), 7) << level << ": " << in_words(found.strategy);
    EXPECT_EQ(found.strategy.batch_shares, even_shares(64 / found.strategy.micro_batch, 7, 1))
        << level;
  }
}

// Megatron-LM has no option for unequal shares: beside them a search lists what it can run, which
// is what a search without such shares finds.
TEST(Levels, NameWhatTheFrameworkCanRunBesideUnequalShares) {
  const auto of = [](const std::string& framework, const std::string& more, bool shares) {
    const auto study = study_of(
        "{name: dead, nodes: 1, node: {device: A100-SXM-80GB, gpus: 8, nvlink: {bandwidth: 300 "
        "GB/s}}" +
            more + "}",
        kSmall, "{global_batch: 64, framework: " + framework + "}");
    SearchOptions options;
    options.space.unequal_shares = shares;
    options.runnable = true;
    return value_of(run_search(study, options));
  };
  for (const std::string more :
       {", down: [node0/gpu5]", ", degraded: [{devices: node0/gpu3, speed: 0.5}]"}) {
    const SearchResult found = of("megatron-lm", more, true);
    const SearchResult equal = of("megatron-lm", more, false);
    ASSERT_TRUE(found.runnable) << more;
    EXPECT_FALSE(found.simulated.front().strategy.batch_shares.empty());
    const Simulated& runnable = found.simulated[*found.runnable];
    EXPECT_TRUE(runnable.strategy.batch_shares.empty());
    EXPECT_EQ(runnable.step, equal.simulated.front().step);
    EXPECT_GT(runnable.step, found.simulated.front().step);
    EXPECT_EQ(found.runnable_certified, equal.certified);
    EXPECT_FALSE(equal.runnable);
    EXPECT_FALSE(of("generic", more, true).runnable);  // it runs everything
  }
  EXPECT_FALSE(of("megatron-lm", "", true).runnable);
}

// With the whole memory free but for what the fastest strategy leaves, that one is tight: another
// is the answer. Where all memory is to stay free, the answer says so first.
TEST(Levels, KeepTheMemoryMarginOrSaySo) {
  const auto with = [](const std::string& margin) {
    auto study = study_of(
        "{name: eight, node: {device: A100-SXM-80GB, gpus: 8, nvlink: "
        "{bandwidth: 300 GB/s}}}",
        "llama2-7b", "{global_batch: 64, framework: megatron-lm}");
    if (!margin.empty()) study.memory_margin = std::stod(margin);
    return study;
  };
  SearchOptions options{.simulate = 6, .certify = 20, .front = 0};
  options.space.level = 1;
  const auto loose = run_search(with("0"), options);
  ASSERT_TRUE(loose && loose->has_answer());
  const Simulated& fastest = loose->simulated.front();
  EXPECT_FALSE(fastest.tight);
  const Bytes memory = fastest.capacity + reserve_of(fastest.strategy);
  // A little more than it leaves.
  const double margin = 1.01 * (fastest.headroom() / memory);
  const auto study = with(fmt::format("{}", margin));
  const auto kept = run_search(study, options);
  ASSERT_TRUE(kept && kept->has_answer());
  const Simulated& first = kept->simulated.front();
  EXPECT_FALSE(kept->is_tight());
  EXPECT_GE(first.headroom(), margin * memory);
  EXPECT_GT(first.step, fastest.step);

  const auto none = with("0.9");
  const auto tight = run_search(none, options);
  ASSERT_TRUE(tight && tight->has_answer());
  EXPECT_TRUE(tight->is_tight());
  EXPECT_EQ(tight->simulated.front().step, fastest.step);
  EXPECT_THAT(search_text(none, *tight, 3),
              HasSubstr("\n\nTIGHT: nothing leaves the margin of 90 %"));
}

// The default: measured peaks are above predicted ones by at most h in nine of ten cases.
TEST(Levels, HaveAMarginByMeasuredPeaks) {
  auto study = study_of("{name: one, node: dgx-h100}", kSmall, "{global_batch: 8}");
  study.errors.memory.high = 1.25;
  study.errors.memory_of.clear();
  EXPECT_DOUBLE_EQ(study::memory_margin_of(study).part, 0.2);  // 1 - 1 / 1.25
  study.errors.memory_of["generic"] = {.high = 2, .measurements = 3, .source = "test"};
  EXPECT_DOUBLE_EQ(study::memory_margin_of(study).part, 0.5);
  study.memory_margin = 0.07;
  EXPECT_DOUBLE_EQ(study::memory_margin_of(study).part, 0.07);
}

}  // namespace foreshard::search::levels_test
