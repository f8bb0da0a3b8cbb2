// The same graph for other numbers of samples: shapes by hand, arithmetic in proportion, and what
// is refused.
#include "strategies/graph/rebatch.h"

#include "tests/strategies/lower/lowered_graphs.h"
#include "tests/test.h"

#include "strategies/graph/counts.h"

namespace foreshard::lower {
namespace {

TEST(Rebatch, ScalesWhatFollowsFromTheBatch) {
  const Graph graph = mlp();
  const auto doubled = value_of(rebatched(graph, kBatch, 2 * kBatch));
  EXPECT_THAT(doubled[doubled.inputs[0]].shape, ElementsAre(2 * kBatch, kHidden));
  EXPECT_THAT(doubled[doubled.outputs[0]].shape, ElementsAre(2 * kBatch, kHidden));
  EXPECT_EQ(parameter_elements(doubled), parameter_elements(graph));
  EXPECT_DOUBLE_EQ(product_flops(doubled) / product_flops(graph), 2);
  const auto back = value_of(rebatched(doubled, 2 * kBatch, kBatch));
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    EXPECT_EQ(back.tensors[t].shape, graph.tensors[t].shape);
}

TEST(Rebatch, EntersLoops) {
  const Graph graph = stack(true);
  const auto halved = value_of(rebatched(graph, kBatch, kBatch / 2));
  EXPECT_DOUBLE_EQ(product_flops(halved) / product_flops(graph), 0.5);
}

// A reshape says its shape: the samples come first in it.
TEST(Rebatch, ScalesShapesThatOperatorsSay) {
  Graph graph{.name = "heads"};
  const TensorId x = add_input(graph, "x", {DType::kBf16, {kBatch, kHidden}});
  graph.outputs = {added(graph, {.type = "reshape",
                                 .name = "apart",
                                 .inputs = {x},
                                 .settings = {{"shape", Integers{kBatch * 4, kHidden / 4}}}})};
  const auto doubled = value_of(rebatched(graph, kBatch, 2 * kBatch));
  EXPECT_THAT(doubled[doubled.outputs[0]].shape, ElementsAre(kBatch * 8, kHidden / 4));
}

TEST(Rebatch, NamesWhatHasTheBatchInIt) {
  Graph graph{.name = "positions"};
  const TensorId x = add_input(graph, "x", {DType::kBf16, {kBatch, kHidden}});
  const TensorId each = add_parameter(graph, "each", {DType::kBf16, {kBatch, kHidden}});
  graph.outputs = {added(graph, {.type = "binary",
                                 .name = "sum",
                                 .inputs = {x, each},
                                 .settings = {{"operation", std::string("add")}}})};
  EXPECT_THAT(message_of(rebatched(graph, kBatch, 2 * kBatch)),
              HasSubstr("the graph cannot be taken for 16 samples instead of 8: operator 'sum'"));
}

// Both stages take two micro-batches at a time: the step of micro-batches twice as large, but for
// their numbers. Calls, blocks and bytes are the same.
TEST(Granularity, OfAllStagesIsALargerMicroBatch) {
  const auto two_stages = [](std::int64_t micro_batches) {
    Strategy s = strategy(1, 2, micro_batches);
    s.pipeline_parallel = 2;
    s.framework.value.pipeline_transfers = PipelineTransfers::kOverlapped;  // as of a granularity
    return s;
  };
  Strategy coarse = two_stages(8);
  coarse.granularity = {2, 2};
  const auto by_passes = lowered(mlp(), coarse, {.cuts = {"down"}, .batch = kBatch});
  const auto large = value_of(rebatched(mlp(), kBatch, 2 * kBatch));
  Strategy whole = two_stages(8);
  whole.micro_batch *= 2;
  Graph annotated = large;
  ASSERT_TRUE(annotate(annotated, mesh_of(whole), {.batch = 2 * kBatch}));
  const auto by_size =
      value_of(lower_graph(annotated, whole, {.cuts = {"down"}, .batch = 2 * kBatch}));
  EXPECT_EQ(by_passes.program.blocks, by_size.program.blocks);
  ASSERT_EQ(by_passes.program.roles.size(), by_size.program.roles.size());
  for (std::size_t r = 0; r < by_passes.program.roles.size(); ++r) {
    auto one = by_passes.program.roles[r];
    EXPECT_EQ(one.memory, by_size.program.roles[r].memory);
    for (program::Call& call : one.calls) call.micro_batch /= 2;
    EXPECT_TRUE(one.calls == by_size.program.roles[r].calls) << "role " << r;
  }
  EXPECT_DOUBLE_EQ(by_passes.program.totals.model_flops / by_size.program.totals.model_flops, 1);
}

// Stages that exchange parts of what others take whole would wait for each other for ever.
TEST(Granularity, LetsNoHostWaitForTransfers) {
  Strategy s = strategy(1, 2, 8);
  s.pipeline_parallel = 2;
  s.framework.value.pipeline_host_sync = true;
  for (const auto& granularity : {std::vector<std::int64_t>{4, 1}, {1, 4}, {2, 2}}) {
    s.granularity = granularity;
    const auto done = lowered(mlp(), s, {.cuts = {"down"}, .batch = kBatch});
    s.framework.value.pipeline_host_sync = false;
    const auto free = lowered(mlp(), s, {.cuts = {"down"}, .batch = kBatch});
    s.framework.value.pipeline_host_sync = true;
    EXPECT_EQ(done.program.blocks, free.program.blocks);
    ASSERT_EQ(done.program.roles.size(), free.program.roles.size());
    for (std::size_t r = 0; r < done.program.roles.size(); ++r)
      EXPECT_TRUE(done.program.roles[r].calls == free.program.roles[r].calls) << "role " << r;
  }
}

TEST(Granularity, SaysWhatItCannotBe) {
  const auto fault = [](const std::function<void(Strategy&)>& change) {
    Strategy s = strategy(1, 2, 8);
    s.pipeline_parallel = 2;
    s.granularity = {1, 2};
    change(s);
    std::string text;
    for (const StrategyFault& one : faults_in_graph(s, mlp(), {}, 2, kBatch, 8))
      if (one.key == "granularity") text += one.message + " | " + one.help;
    return text;
  };
  EXPECT_EQ(fault([](Strategy&) {}), "");
  EXPECT_EQ(fault([](Strategy& s) {
              s.granularity = {1, 3};
            }),
            "8 micro-batches cannot be taken 3 at a time | give divisors of the micro-batches of a "
            "step");
  EXPECT_EQ(fault([](Strategy& s) {
              s.granularity = {0, 1};
            }),
            "8 micro-batches cannot be taken 0 at a time | give divisors of the micro-batches of a "
            "step");
  EXPECT_EQ(fault([](Strategy& s) { s.granularity = {1}; }),
            "1 entries for 2 stages | granularity: [1, 1]");
  EXPECT_THAT(fault([](Strategy& s) { s.pipeline_parallel = 1; }), HasSubstr("there is one stage"));
  EXPECT_THAT(fault([](Strategy& s) { s.schedule = "gpipe"; }),
              HasSubstr("has an order of single micro-batches alone | set schedule: 1f1b"));
  Strategy six = strategy(1, 2, 6);
  six.pipeline_parallel = 2;
  six.granularity = {2, 3};
  EXPECT_THAT(faults_in_graph(six, mlp(), {}, 2, kBatch, 8).front().message,
              HasSubstr("neither is a multiple of the other"));
}

}  // namespace
}  // namespace foreshard::lower
