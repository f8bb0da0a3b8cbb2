#include "sim/search/search.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "tests/sim/search/small_studies.h"
#include "tests/test.h"

#include "sim/search/output.h"
#include "sim/study/run.h"

namespace foreshard::search::search_test {

TEST(Search, NamesTheFastestOfWhatItSimulated) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  const auto result =
      value_of(run_search(study, {.space = {.level = 0}, .simulate = 8, .certify = 0, .front = 0}));
  ASSERT_EQ(result.simulated.size(), 8U);
  EXPECT_TRUE(std::ranges::is_sorted(result.simulated, {}, &Simulated::step));
  EXPECT_GT(result.lowest_ratio, 0.8);
  EXPECT_LT(result.highest_ratio, 1.1);
  std::int64_t misfits = 0;
  for (const auto& [key, count] : result.misfits) misfits += count;
  EXPECT_EQ(result.considered, misfits + result.too_large + result.unroutable + result.slower +
                                   static_cast<std::int64_t>(result.simulated.size()));
  EXPECT_EQ(result.unroutable, 0);
}

// A certificate is a promise about all candidates: simulating every one must not beat the winner.
TEST(Search, CertifiedWinnersAreNotBeaten) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  SearchOptions options{.simulate = 4};
  options.space.level = 1;
  const auto some = run_search(study, options);
  options.simulate = 100'000;
  const auto all = run_search(study, options);
  ASSERT_TRUE(some && all);
  EXPECT_TRUE(all->certified);
  EXPECT_FALSE(all->best_bound);
  if (some->certified) {
    EXPECT_EQ(some->simulated.front().step, all->simulated.front().step);
  }
  EXPECT_LE(some->simulated.front().step * (1 - some->gap()), all->simulated.front().step);
}

// The layout that MoE Parallel Folding (arXiv 2504.14960, table 3) found for Mixtral 8x22B on 128
// H100: tensor 2, pipeline 8, experts 8 ways, each whole. It is in the space, and what the search
// names is as fast at least.
TEST(Search, FindsThePublishedLayoutOfAMixtureOrBeatsIt) {
  const auto study =
      value_of(study::load_study({.study = "mixtral-8x22b-h100-128"}, shipped_options()));
  SearchOptions options{.simulate = 4};
  options.space = {.tensor_parallel = {2, 4},
                   .pipeline_parallel = {8},
                   .micro_batch = {1},
                   .virtual_stages = {1, 7},
                   .zero_stage = {1},
                   .recompute = {Recompute::kNone}};
  const Strategy& published = study.strategy;
  const auto space = enumerate(options.space, published, study.model, study.pool.size());
  EXPECT_TRUE(std::ranges::any_of(
      space.candidates, [&](const Strategy& one) { return knobs_of(one) == knobs_of(published); }));
  const auto found = value_of(run_search(study, options));
  const auto simulated = value_of(study::run_study(study, {.critical_path = false}));
  EXPECT_LE(found.simulated.front().step, simulated.prediction.step);
}

TEST(Search, SaysTheSameWithAnyNumberOfThreads) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  const auto one = run_search(study, {.simulate = 6, .threads = 1});
  const auto three = run_search(study, {.simulate = 6, .threads = 3});
  ASSERT_TRUE(one && three);
  EXPECT_EQ(search_json(study, *one, 10), search_json(study, *three, 10));
  EXPECT_EQ(search_csv(*one, 10), search_csv(*three, 10));
}

TEST(Search, TellsHowFarTheNearestIsFromFitting) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kHuge);
  const auto result = value_of(run_search(study, {.space = {.offload = false}}));
  EXPECT_TRUE(result.simulated.empty());
  ASSERT_TRUE(result.nearest);
  EXPECT_GT(result.nearest->estimate.peak, result.nearest->estimate.memory);
  EXPECT_THAT(search_text(study, result, 10),
              HasSubstr("Nothing fits. The one that misses least needs"));
  const auto json = nlohmann::json::parse(search_json(study, result, 10));
  EXPECT_EQ(json["schema"], "foreshard.search/1");
  const auto& nearest = json["nearest"];
  EXPECT_GT(nearest["missing_bytes"], 0);
  EXPECT_EQ(nearest["missing_bytes"].get<std::int64_t>(),
            nearest["peak_bytes"].get<std::int64_t>() -
                nearest["capacity_bytes"].get<std::int64_t>() +
                nearest["reserve_bytes"].get<std::int64_t>());
  EXPECT_EQ(nearest["capacity_bytes"],
            std::llround(study.cluster.node_groups().front().node->device->memory.value.in_base()));
  EXPECT_TRUE(json["gap"].is_null());
  EXPECT_TRUE(json["certified_within"].is_null());
}

// By hand: 10 s (9 to 11) is the best; 10.5 s (10 to 12) reaches into its interval, 13 s (11.5 to
// 14) does not, and what does not fit does not count.
TEST(Search, SaysWhichIntervalsReachIntoThatOfTheBest) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  const auto one = [&](Seconds low, Seconds step, Seconds high, bool fits) {
    Simulated result;
    result.strategy = study.strategy;
    result.step = step;
    result.low = low;
    result.high = high;
    result.fits = fits;
    return result;
  };
  SearchResult result;
  result.simulated = {one(9_s, 10_s, 11_s, true), one(10_s, 10.5_s, 12_s, true),
                      one(11.5_s, 13_s, 14_s, true), one(8_s, 9_s, 10_s, false)};
  result.certified = true;
  EXPECT_EQ(result.overlapping(), 1);
  const std::string text = search_text(study, result, 3);
  EXPECT_THAT(text, HasSubstr("Certified within the model"));
  EXPECT_THAT(text, HasSubstr(format(9_s) + " to " + format(11_s)));
  EXPECT_THAT(text, HasSubstr("The intervals of the first ("));
  result.simulated.erase(result.simulated.begin() + 1);
  EXPECT_EQ(result.overlapping(), 0);
  EXPECT_THAT(search_text(study, result, 3), Not(HasSubstr("The intervals of the first")));
}

// By hand: the second is 10 % slower; intervals of 0.9 to 1.1 have sigma = ln(1.1 / 0.9) / 2.5632 =
// 0.0783 each, 0.1107 together; ln(1.1) / 0.1107 = 0.861, of which the normal distribution is
// 0.805.
TEST(Search, SaysHowProbablyTheFirstBeatsTheSecond) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  Simulated one;
  one.strategy = study.strategy;
  one.step = 1_s;
  one.low = 0.9_s;
  one.high = 1.1_s;
  SearchResult result;
  EXPECT_FALSE(result.first_beats_second());
  result.simulated = {one, one};
  EXPECT_DOUBLE_EQ(result.first_beats_second().value_or(0), 0.5);
  result.simulated[1].step = 1.1_s;
  result.simulated[1].low = 0.99_s;
  result.simulated[1].high = 1.21_s;
  EXPECT_NEAR(result.first_beats_second().value_or(0), 0.805, 0.001);
}

// No member of the front is beaten in time, memory and money by any other that fits, and all others
// are.
TEST(Search, MarksTheFront) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  const auto result = value_of(run_search(study, {.simulate = 10, .certify = 4, .front = 8}));
  ASSERT_TRUE(result.is_priced);
  const auto beats = [](const Simulated& a, const Simulated& b) {
    return a.step <= b.step && a.peak <= b.peak && *a.rent_of_used <= *b.rent_of_used &&
           (a.step < b.step || a.peak < b.peak || *a.rent_of_used < *b.rent_of_used);
  };
  for (const Simulated& one : result.simulated)
    EXPECT_EQ(one.on_front, std::ranges::none_of(result.simulated, [&](const Simulated& other) {
                return beats(other, one);
              }));
  const auto least = std::ranges::min_element(result.simulated, {}, &Simulated::peak);
  EXPECT_LT(least->peak, result.simulated.front().peak);
}

TEST(Search, RanksTheBestAgainWithOtherNumbers) {
  const study::LoadedStudy study = small_study("two-dgx-a100", "megatron-lm", kSmall);
  const auto result = value_of(run_search(study, {.simulate = 6, .certify = 0}));
  const Robustness& of = result.robustness;
  EXPECT_EQ(of.draws, kDraws);
  ASSERT_EQ(std::ssize(of.firsts), kContenders);
  EXPECT_EQ(std::accumulate(of.firsts.begin(), of.firsts.end(), std::int64_t{0}), kDraws);
  EXPECT_LT(of.beside_slow, kContenders);
  Robustness lost{.draws = 10, .firsts = {4, 6}};
  EXPECT_FALSE(lost.holds());
  lost.firsts = {5, 5};
  EXPECT_TRUE(lost.holds());
}

// Each of what can rule a strategy out.
// Of what time did not allow to look at, nothing is claimed.
TEST(Search, ClaimsNothingOfWhatItDidNotLookAt) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  std::atomic<int> asked = 0;  // from any thread
  const auto result = value_of(
      run_search(study, {.simulate = 2, .certify = 0, .stop = [&] { return ++asked > 40; }}));
  EXPECT_TRUE(result.partial);
  EXPECT_FALSE(result.certified);
  EXPECT_FALSE(result.best_bound);
  EXPECT_EQ(result.gap(), 0);
}

TEST(Search, SaysWhyNot) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  const auto cause = [&](const std::string& words) {
    const auto result = run_search(study, {.simulate = 8, .certify = 0, .why_not = words});
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result && result->why_not ? *result->why_not : WhyNot{};
  };
  EXPECT_EQ(cause("tp3").cause, WhyNot::Cause::kSizes);
  EXPECT_FALSE(cause("tp3").in_space);
  const WhyNot slow = cause("tp8 pp=1 mb1 full");
  EXPECT_TRUE(slow.in_space);
  EXPECT_TRUE(slow.cause == WhyNot::Cause::kBound || slow.cause == WhyNot::Cause::kEstimate);
  EXPECT_THAT(slow.message, HasSubstr(" behind: "));
  const WhyNot other = cause("mb64 dp1 tp1 pp1");
  EXPECT_FALSE(other.in_space);
  EXPECT_EQ(other.cause, WhyNot::Cause::kSpace);
  const auto huge =
      run_search(small_study(kOneDgx, "megatron-lm", kHuge), {.simulate = 1, .why_not = "tp8 pp1"});
  ASSERT_TRUE(huge && huge->why_not);
  EXPECT_EQ(huge->why_not->cause, WhyNot::Cause::kMemory);
  EXPECT_THAT(huge->why_not->message, HasSubstr(" more than the "));
  // What there is none of, and cuts that are not those of the space.
  EXPECT_EQ(cause("ep8").cause, WhyNot::Cause::kSizes);
  EXPECT_THAT(message_of(run_search(study, {.why_not = "tp8 tp4"})),
              HasSubstr("'tp4' says tp once more"));
  EXPECT_THAT(message_of(run_search(study, {.why_not = "tp8 fast"})),
              HasSubstr("'fast' is no part of a strategy; write words"));
}

// Asked to stop before it has begun, a search still looks at nothing; in the midst (60 strategies
// of level 0 are put in order first, which asks once each), it has the best so far.
TEST(Search, GivesTheBestSoFarWhenItIsStopped) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  std::int64_t asked = 0;
  const auto result =
      value_of(run_search(study, {.threads = 1, .stop = [&] { return ++asked > 100; }}));
  EXPECT_TRUE(result.partial);
  EXPECT_FALSE(result.certified);
  EXPECT_GT(result.not_reached, 0);
  EXPECT_EQ(result.simulated.size(), 1U);
  EXPECT_THAT(search_text(study, result, 3), HasSubstr("not looked at: the time was over"));
}

// Memory that ends after the third simulation: what is simulated by then is judged and shown.
TEST(Search, GivesTheBestSoFarWhenMemoryEnds) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  std::atomic<std::int64_t> simulated = 0;
  const auto found = [&](std::int64_t last, std::int64_t threads, bool best_so_far) {
    simulated = 0;
    return run_search(study, {.threads = threads,
                              .best_so_far = best_so_far,
                              .why_not = "tp8 pp1",
                              .progress = [&, last](std::int64_t, std::int64_t) {
                                if (++simulated >= last) throw std::bad_alloc();
                              }});
  };
  const auto whole = value_of(found(1'000'000, 2, true));
  EXPECT_FALSE(whole.partial);
  EXPECT_EQ(whole.missing, "");
  for (const std::int64_t threads : {1, 2}) {
    const auto result = value_of(found(3, threads, true));
    EXPECT_TRUE(result.partial);
    EXPECT_FALSE(result.certified || result.best_bound);
    EXPECT_TRUE(result.has_answer());
    EXPECT_GE(std::ssize(result.simulated), 3);
    EXPECT_LT(std::ssize(result.simulated), 3 + threads);
    EXPECT_TRUE(std::ranges::is_sorted(result.simulated, {}, &Simulated::step));
    EXPECT_GE(result.simulated.front().step, whole.simulated.front().step);
    EXPECT_THAT(search_text(study, result, 3), HasSubstr("through (out of memory"));
    EXPECT_THAT(search_json(study, result, 3, {}), HasSubstr("\"missing_resource\": \"out of"));
    EXPECT_THAT(result.why_not->message, HasSubstr("not looked into: out of memory"));
  }
  EXPECT_THROW(static_cast<void>(found(3, 2, false)), std::bad_alloc);
}

TEST(Search, StopsAtItsTimeLimit) {
  const study::LoadedStudy study = small_study(kOneDgx, "megatron-lm", kSmall);
  const auto result = value_of(run_search(study, {.time_limit = std::chrono::duration<double>(0)}));
  EXPECT_TRUE(result.partial);
  EXPECT_TRUE(result.simulated.empty());
}

}  // namespace foreshard::search::search_test
