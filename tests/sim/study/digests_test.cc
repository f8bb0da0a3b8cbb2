// What the middle of the house makes, by content: Programs of all shipped studies, of random
// strategies and of random graphs, byte by byte, and the closed form of the search. A change that
// is meant to move none of them moves none of them.
#include <fmt/format.h>

#include "base/digest/sha256.h"
#include "tests/golden/golden.h"
#include "tests/strategies/graph/random_graph.h"
#include "tests/strategies/lower/random_strategy.h"
#include "tests/test.h"

#include "sim/search/estimate.h"
#include "sim/search/search.h"
#include "sim/search/space.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"
#include "sim/study/study.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/lower/graph.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::study::digests_test {

std::string digest(const program::Program& program) {
  return sha256(program::to_json(program));
}

yaml::Options catalogue() {
  return {.catalogue = {FORESHARD_SOURCE_DIR "/configs"}};
}

TEST(Programs, OfShippedStudiesAreAsTheyWere) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(FORESHARD_SOURCE_DIR "/configs/studies"))
    files.push_back(entry.path());
  std::ranges::sort(files);
  std::string lines;
  for (const auto& file : files) {
    const auto study = value_of(load_study({.study = file}, catalogue()));
    const auto cluster = value_of(cluster_of(study));
    const auto program = value_of(program_of(study, cluster));
    lines += fmt::format("{} {}\n", file.stem().string(), digest(program));
  }
  expect_golden("digests/studies.txt", lines);
}

TEST(Programs, OfRandomStrategiesAreAsTheyWere) {
  std::string lines;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const Training training = random_training(random, 48);
    const auto program =
        value_of(lower::lower(training.model, training.strategy, {.launch_time = 1_us}));
    lines += fmt::format("{} {}\n", seed, digest(program));
  }
  expect_golden("digests/strategies.txt", lines);
}

// Operators that came after the golden: with them, other graphs would be drawn.
bool came_later(const Example& example) {
  static constexpr auto kTypes = std::to_array<std::string_view>({"add_positions",
                                                                  "bias_dropout_add",
                                                                  "bias_dropout_add_gradient",
                                                                  "bias_gelu",
                                                                  "bias_gelu_gradient",
                                                                  "bias_gradient",
                                                                  "context_attention",
                                                                  "context_attention_gradient",
                                                                  "dropout_gradient",
                                                                  "expert_bias",
                                                                  "expert_bias_gradient",
                                                                  "gradient_accumulate",
                                                                  "head_norm",
                                                                  "head_norm_gradient",
                                                                  "join_heads",
                                                                  "join_queries",
                                                                  "latent_heads",
                                                                  "latent_heads_gradient",
                                                                  "merge_heads",
                                                                  "merge_heads_gradient",
                                                                  "moe_slot_weights",
                                                                  "packed_attention",
                                                                  "packed_attention_gradient",
                                                                  "rope",
                                                                  "rope_gradient",
                                                                  "split_heads",
                                                                  "split_queries",
                                                                  "swiglu",
                                                                  "swiglu_gradient"});
  const bool settings =
      std::ranges::any_of(std::to_array<const char*>({"every_row", "fused", "grouped", "groups",
                                                      "kernels", "scale", "shift"}),
                          [&](const char* name) { return example.settings.has(name); });
  const bool is_product = example.type == "matmul" || example.type == "einsum";
  const bool bias = is_product && example.inputs.size() > 2;
  const bool ones = example.type == "moe_weight_gradient" && example.inputs.size() == 2;
  return settings || bias || ones || example.type.starts_with("vocabulary") ||
         std::ranges::find(kTypes, example.type) != kTypes.end();
}

// The first hundred that can be lowered.
TEST(Programs, OfRandomGraphsAreAsTheyWere) {
  auto examples = operator_examples();
  std::erase_if(examples, [](const Example& each) {
    return !graph_of(each).operators[0].bodies.empty() || came_later(each);
  });
  std::string lines;
  int lowered_graphs = 0;
  for (unsigned seed = 0; lowered_graphs < 100; ++seed) {
    ASSERT_LT(seed, 1000U);
    std::mt19937 random(seed);
    Strategy strategy;
    strategy.tensor_parallel = 2;
    strategy.data_parallel = 1 + random() % 2;
    strategy.micro_batch = 4 / strategy.data_parallel;
    strategy.global_batch = 4 * static_cast<std::int64_t>(1 + random() % 3);
    strategy.zero_stage = static_cast<std::int64_t>(random() % 3);
    strategy.framework.value.gradient_clipping = random() % 2 == 0;
    strategy.framework.value.gradient_reduction =
        random() % 2 == 0 ? GradientReduction::kAfterBackward : GradientReduction::kOverlapped;
    const lower::GraphOptions options{.axes = {{"other", 2}}, .launch_time = 1_us};
    Graph graph = random_graph(examples, random);
    annotate(graph, mesh_of(strategy, options.axes), random);
    const auto lowered = lower::lower_graph(graph, strategy, options);
    if (!lowered) continue;
    ++lowered_graphs;
    lines += fmt::format("{} {}\n", seed, digest(lowered->program));
  }
  expect_golden("digests/graphs.txt", lines);
}

TEST(Estimates, OfStrategiesOfTheSpaceAreAsTheyWere) {
  const auto study = value_of(
      load_study({.cluster = "two-dgx-a100", .model = "gpt-1.7b", .strategy = "{global_batch: 64}"},
                 catalogue()));
  const auto cluster = value_of(cluster_of(study));
  auto candidates = search::enumerate({.level = 3}, study.strategy, study.model,
                                      static_cast<std::int64_t>(cluster.devices().size()))
                        .candidates;
  std::ranges::shuffle(candidates, std::mt19937(1));  // NOLINT: repeatable on purpose
  candidates.resize(std::min<std::size_t>(candidates.size(), 200), study.strategy);
  const sim::SimulatedCost cost(cluster, study.communication);
  search::Estimator estimator(study.model, cluster, study.pool.devices, cost);
  std::string lines;
  for (const Strategy& strategy : candidates) {
    const auto estimate = value_of(estimator.estimate(strategy));
    lines +=
        fmt::format("{}: step {:.9g} s, bound {:.9g} s, peak {:.9g} bytes\n", describe(strategy),
                    estimate.step.in_base(), estimate.bound.in_base(), estimate.peak.in_base());
  }
  expect_golden("digests/estimates.txt", lines);
}

}  // namespace foreshard::study::digests_test
