// Steps of a graph with a condition, drawn again and again: two times, each as often as it should
// be.
#include "sim/study/draws.h"

#include "tests/sim/search/graph/graph_studies.h"
#include "tests/test.h"

#include "sim/study/run.h"

namespace foreshard::study::draws_test {

// With that probability a wide product, else a narrow one.
std::string body(const std::string& name, int width) {
  const std::string w = std::to_string(width);
  const auto parameter = [&](const std::string& part, const std::string& shape) {
    return "{name: " + name + part + ", role: parameter, dtype: bf16, shape: [" + shape + "]}";
  };
  return "{name: " + name + ", tensors: [{name: " + name +
         ".x, role: input, dtype: bf16, shape: [4096, 1024]}, " +
         parameter(".up.weight", "1024, " + w) + ", " + parameter(".down.weight", w + ", 1024") +
         "], operators: [{op: matmul, name: " + name + ".up, inputs: [" + name + ".x, " + name +
         ".up.weight]}, {op: matmul, name: " + name + ".down, inputs: [" + name + ".up, " + name +
         ".down.weight]}], outputs: [" + name + ".down]}";
}

std::string graph(double probability) {
  return "name: branches\ntensors:\n  - {name: x, role: input, dtype: bf16, shape: [4096, 1024]}\n"
         "operators:\n  - {op: condition, name: which, inputs: [x], settings: {probability: " +
         std::to_string(probability) + "}, bodies: [" + body("wide", 16384) + ", " +
         body("narrow", 1024) + "]}\noutputs: [which]\n";
}

LoadedStudy study_of(double probability, int micro_batches) {
  return search::graph_study(graph(probability),
                             "{mode: forward, micro_batch: 4096, global_batch: " +
                                 std::to_string(4096 * micro_batches) + "}");
}

Seconds step_of(double probability) {
  return run_study(study_of(probability, 1), {})->prediction.step;
}

// A step of one micro-batch takes one branch or the other. Of 200 draws a quarter takes the wide
// one (four deviations of the binomial are 25 of them); its steps are the longest, so that the 90th
// percentile is one of them and the median is not.
TEST(DrawnSteps, OfOneMicroBatchAreOneOrTheOther) {
  const Seconds wide = step_of(1);
  const Seconds narrow = step_of(0);
  ASSERT_GT(wide, 2 * narrow);
  const auto drawn = value_of(drawn_steps(study_of(0.25, 1), {}, 200));
  EXPECT_EQ(drawn.draws, 200);
  EXPECT_DOUBLE_EQ(drawn.low / 1_s, narrow / 1_s);
  EXPECT_DOUBLE_EQ(drawn.median / 1_s, narrow / 1_s);
  EXPECT_DOUBLE_EQ(drawn.high / 1_s, wide / 1_s);
  const double share = (drawn.mean - narrow) / (wide - narrow);
  EXPECT_NEAR(share, 0.25, 0.125);
  EXPECT_NEAR(200 * share, std::round(200 * share), 1e-6);  // so many of them
}

// Of many micro-batches the step is near its expectation, and spreads as the binomial does.
TEST(DrawnSteps, OfManyMicroBatchesSpreadAroundTheExpectation) {
  const int count = 64;
  const auto all = [&](double p) { return run_study(study_of(p, count), {})->prediction.step; };
  const Seconds wide = all(1);
  const Seconds narrow = all(0);
  const auto drawn = value_of(drawn_steps(study_of(0.25, count), {}, 40));
  const double deviation = std::sqrt(0.25 * 0.75 / count);
  EXPECT_NEAR((drawn.mean - narrow) / (wide - narrow), 0.25, 4 * deviation / std::sqrt(40.0));
  // 10th to 90th percentile of a normal distribution: 2.56 deviations, give or take half.
  EXPECT_NEAR((drawn.high - drawn.low) / (wide - narrow), 2.56 * deviation, 1.28 * deviation);
}

TEST(DrawnSteps, RefusesWhatHasNoBranches) {
  EXPECT_THAT(message_of(drawn_steps(search::graph_study("mlp", "{global_batch: 4096}"), {}, 3)),
              HasSubstr("only graphs with conditions have branches"));
}

}  // namespace foreshard::study::draws_test
