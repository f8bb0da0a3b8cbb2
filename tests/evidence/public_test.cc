// Against public measurements, which are not part of the project: without them the tests say so and
// are skipped. Bounds hold what is reached; nothing is tuned to these rows.

#include "base/csv.h"
#include "base/file.h"
#include "evidence/accuracy.h"
#include "evidence/setting.h"
#include "evidence/training.h"
#include "tests/test.h"

namespace foreshard::accuracy {
namespace {

const std::filesystem::path kData = FORESHARD_SOURCE_DIR "/../shared/data/training";

Report scored(const char* file) {
  return value_of(
      score({kData / file}, {.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .threads = 2}));
}

TEST(PublicRows, VtrainOnSeveralNodes) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no measurements at " << kData;
  const Report report = scored("vtrain_a100_multinode.csv");
  EXPECT_EQ(report.overall.ok, report.overall.rows);
  EXPECT_LE(*report.overall.time.mape_pct, 12);
}

TEST(PublicRows, ZeroBubblesPlainPipelines) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no measurements at " << kData;
  EXPECT_LE(*scored("zero_bubble_pp_a100.csv").overall.time.mape_pct, 8);
}

struct AttentionCase {
  const char* file;
  double median, p90;  // of errors, in percent
};

// Forward, causal, of 1 to 64 query heads for each head of keys, beside the copies into the cache
// that it reads from.
TEST(PublicRows, AttentionOfServing) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no measurements at " << kData;
  for (const AttentionCase& c :
       {AttentionCase{"attn_fwd_causal_aic_a100_sxm_vllm-0.14.0.csv", 4, 10},
        AttentionCase{"attn_fwd_causal_aic_h100_sxm_vllm-0.24.0.csv", 6, 15},
        AttentionCase{"attn_fwd_causal_aic_b200_sxm_vllm-0.24.0.csv", 5, 15}}) {
    constexpr double kShortest = 100e-6;
    const Report report = scored(("../kernels/" + std::string(c.file)).c_str());
    std::vector<double> errors;
    for (const Outcome& one : report.rows)
      if (one.predicted && *one.measured >= kShortest)
        errors.push_back(100 * std::abs(*one.predicted / *one.measured - 1));
    ASSERT_GT(errors.size(), 3000U) << c.file;
    std::ranges::sort(errors);
    EXPECT_LE(errors[errors.size() / 2], c.median) << c.file;
    EXPECT_LE(errors[errors.size() * 9 / 10], c.p90) << c.file;
  }
}

// Peaks of allocated memory of four strategies of one model.
TEST(PublicRows, SimuMaxsPeaksOfMemory) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no measurements at " << kData;
  const Report report = scored("simumax_b200_memory.csv");
  double sum = 0;
  int count = 0;
  for (const Outcome& one : report.rows) {
    if (one.quantity != Quantity::kMemory || !one.predicted || !one.measured) continue;
    const double error = 100 * (*one.predicted / *one.measured - 1);
    EXPECT_GT(error, -1) << one.id;
    // Attention from latents, whose widths of heads are assumed.
    if (std::ranges::find(one.assumed, "head_dim") != one.assumed.end()) {
      EXPECT_LT(error, 3) << one.id;
      continue;
    }
    sum += std::abs(error);
    ++count;
  }
  ASSERT_EQ(count, 12);
  EXPECT_LE(sum / count, 0.5);
}

// A search among the strategies that were measured takes the one of least simulated time, whatever
// its bounds rule out; and what it takes was measured nearly as fast as the fastest.
TEST(PublicRows, RegretOfSearches) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no measurements at " << kData;
  std::vector<std::filesystem::path> tables;  // of all others, no model has enough strategies
  for (const char* file :
       {"internevo_a100.csv", "moe_parallel_folding_h100.csv", "nanotron_bench_cluster_llama1b.csv",
        "nvidia_megatron_bridge.csv", "vtrain_a100_multinode.csv", "vtrain_a100_singlenode.csv",
        "zero_bubble_pp_a100.csv"})
    tables.push_back(kData / file);
  const auto report =
      score(tables, {.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .regret = true, .threads = 2});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_TRUE(report->regret);
  const Regret& regret = *report->regret;
  EXPECT_GE(regret.overall.groups, 60);
  for (const RegretGroup& group : regret.groups) {
    EXPECT_TRUE(group.certified) << group.chosen;
    EXPECT_LE(std::abs(group.slower_pct), 1e-7) << group.chosen << ", not " << group.simulates;
  }
  RecordProperty("mean_regret_pct", std::to_string(regret.overall.mean_pct));
  EXPECT_LE(regret.overall.mean_pct, 7);
}

// Where a transcriber noted the step time that follows from a printed rate, ours is the same: to
// the digits of the note, and to 1 % because vocabularies were padded.
TEST(PublicRows, ConversionsAgreeWithNotedStepTimes) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "no measurements at " << kData;
  yaml::Loader loader(shipped_options());
  const auto format = value_of(loader.read_ref<RowFormat>("training-steps"));
  int checked = 0;
  for (const char* file : {"megatron_lm_papers_readme.csv", "papers_llama3_sc21_korthikanti.csv",
                           "zero_bubble_pp_a100.csv", "libai_v100_gpt2.csv"}) {
    const auto text = value_of(read_file(kData / file, 64_MiB));
    const auto table = value_of(read_csv(text, file));
    const auto rows = value_of(read_training(table, format, file));
    for (const TrainingRow& row : rows) {
      const auto noted = noted_step(row);
      const auto setting = setting_of(row, format, loader);
      if (!noted || !setting) continue;
      const auto step = measured_step(row, setting->model, setting->strategy.devices());
      ASSERT_TRUE(step) << row.id;
      EXPECT_NEAR(*step / *noted, 1, 0.01) << row.id;
      ++checked;
    }
  }
  EXPECT_GT(checked, 30);
}

}  // namespace
}  // namespace foreshard::accuracy
