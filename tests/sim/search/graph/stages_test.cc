// Tables of graphs in pipelines, and of graphs with loops and conditions: against closed forms, all
// choices, and the iterations written out.

#include "tests/sim/search/graph/graph_studies.h"
#include "tests/strategies/lower/lowered_graphs.h"
#include "tests/test.h"

#include "sim/search/graph/annotations.h"
#include "sim/search/graph/flat.h"
#include "sim/search/graph/pipeline.h"
#include "sim/search/graph/search.h"
#include "sim/search/graph/tables.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/units.h"

namespace foreshard::search::stages_test {

using lower::added;

constexpr std::int64_t kRows = 4096;
const std::vector<MeshAxis> kMesh{{"tensor", 2}, {"data", 1}};

// Four nodes of sockets, whose devices come first, and one of GPUs.
struct DeviceSubset {
  study::LoadedStudy study = graph_study(
      "mlp", "{data_parallel: 2, micro_batch: 2048, global_batch: 32768}",
      "{name: mixed, groups: [{nodes: 4, node: host-2-sockets}, {nodes: 1, node: dgx-h100}], "
      "fabric: {kind: single-switch}}");
  ClusterView cluster = *cluster_of(study, study.pool.devices);
  sim::SimulatedCost cost{cluster, study.communication};

  Strategy strategy(std::int64_t stages, std::int64_t micro_batches) const {
    Strategy s = study.strategy;
    s.pipeline_parallel = stages;
    s.data_parallel = 1;
    s.tensor_parallel = 2;
    s.micro_batch = kRows;
    s.global_batch = kRows * micro_batches;
    return s;
  }
  MeshOfGraph on(std::vector<std::int32_t> devices) const {
    return {.axes = kMesh,
            .cost = &cost,
            .placement = {.cluster = &cluster, .device_of_rank = std::move(devices)}};
  }
};

const std::vector<std::int32_t> kSockets{0, 1};
const std::vector<std::int32_t> kGpus{8, 9};

void product(Graph& graph, TensorId& x, const std::string& name, std::int64_t from,
             std::int64_t to) {
  const TensorId w = add_parameter(graph, name + ".weight", {DType::kBf16, {from, to}});
  x = added(graph, {.type = "matmul", .name = name, .inputs = {x, w}});
}

Graph chain(const std::vector<std::int64_t>& widths) {
  Graph graph{.name = "chain"};
  TensorId x = add_input(graph, "x", {DType::kBf16, {kRows, widths.front()}});
  for (std::size_t i = 1; i < widths.size(); ++i)
    product(graph, x, "p" + std::to_string(i), widths[i - 1], widths[i]);
  graph.outputs = {x};
  return graph;
}

MeshOfGraph two_stages(const DeviceSubset& place, std::vector<std::size_t> stage_of) {
  MeshOfGraph mesh = place.on(kSockets);
  mesh.devices_of_stage = {kSockets, kGpus};
  mesh.stage_of = std::move(stage_of);
  mesh.batch = kRows;
  return mesh;
}

// A product on a socket and one on a GPU, nothing split. Where hosts wait for transfers, the step
// is both and what goes between them once, and the slower one for each further micro-batch; else
// what goes between may be the slowest.
TEST(StagesOfTables, TheSlowestSetsThePace) {
  const DeviceSubset place;
  const Graph graph = chain({4096, 4096, 4096});
  const std::vector<MeshAxis> one{{"tensor", 1}, {"data", 1}};
  const auto on = [&](std::int32_t device) {
    MeshOfGraph mesh = place.on({device});
    mesh.axes = one;
    return mesh;
  };
  // Of one micro-batch, what it costs and what is once a step are one sum: two tell them apart.
  const auto cost_of = [&](std::int32_t device, std::size_t op, std::int64_t micro_batches) {
    const Tables tables = tables_of(graph, place.strategy(1, micro_batches), on(device));
    return tables.problem.variables[op].cost[0];
  };
  const auto pass = [&](std::int32_t device, std::size_t op) {
    return cost_of(device, op, 2) - cost_of(device, op, 1);
  };
  const double slow = pass(kSockets[0], 0);
  const double fast = pass(kGpus[0], 1);
  const double once = cost_of(kSockets[0], 0, 1) - slow;
  const double sent = 2 *
                      *place.cost.communication_time(program::CollectiveKind::kSend,
                                                     Bytes::from_base(2.0 * kRows * 4096),
                                                     {DeviceId{kSockets[0]}, DeviceId{kGpus[0]}}) /
                      1_s;
  ASSERT_GT(slow, fast + sent);
  MeshOfGraph mesh = on(kSockets[0]);
  mesh.devices_of_stage = {{kSockets[0]}, {kGpus[0]}};
  mesh.stage_of = {0, 1};
  mesh.batch = kRows;
  for (const std::int64_t micro_batches : {1, 2, 8}) {
    Strategy strategy = place.strategy(2, micro_batches);
    for (const bool decoupled : {false, true}) {
      strategy.granularity.assign(decoupled ? 2 : 0, 1);
      const Tables both = tables_of(graph, strategy, mesh);
      EXPECT_EQ(both.stages(), decoupled ? 3U : 2U);
      EXPECT_NEAR(step_of(both, std::vector<std::size_t>(both.problem.variables.size())),
                  slow + sent + fast + static_cast<double>(micro_batches - 1) * slow + once,
                  1e-9 * slow * static_cast<double>(micro_batches));
    }
  }
}

// Of single micro-batches, where the first stage sets the pace by far, it never waits: what the
// other does is done while it computes. A coarse stage behind a fine one begins when its last
// micro-batch is there: passes of the fine stage, and one message, come before.
TEST(StagesOfTables, AWalkOverlapsWhatRoundsAddUp) {
  const DeviceSubset place;
  const Graph graph = chain({4096, 4096, 4096});
  MeshOfGraph mesh = place.on({kSockets[0]});
  mesh.axes = {{"tensor", 1}, {"data", 1}};
  mesh.devices_of_stage = {{kSockets[0]}, {kGpus[0]}};
  mesh.stage_of = {0, 1};
  mesh.batch = kRows;
  Strategy strategy = place.strategy(2, 8);
  strategy.granularity = {1, 1};
  const auto of = [&](const Tables& tables) {
    return std::vector<std::size_t>(tables.problem.variables.size());
  };
  const Tables fine = tables_of(graph, strategy, mesh);
  const auto costs = costs_of(fine, of(fine));
  ASSERT_EQ(costs.size(), 3U);
  ASSERT_GT(costs[0].forward, costs[1].pass + costs[2].pass);
  EXPECT_NEAR(walked_step(fine, strategy, of(fine)),
              8 * costs[0].pass + std::max(costs[0].once, costs[1].once), 1e-9 * costs[0].pass);
  EXPECT_NEAR(step_of(fine, of(fine)) / walked_step(fine, strategy, of(fine)), 1, 0.05);
  strategy.granularity = {1, 8};
  const Tables coarse = tables_of(graph, strategy, mesh);
  const auto whole = costs_of(coarse, of(coarse));
  // All go forward on the socket, the last message follows; the GPU's pass; the first message back,
  // and all backward.
  EXPECT_NEAR(
      walked_step(coarse, strategy, of(coarse)),
      8 * whole[0].pass + whole[1].pass + whole[2].pass + std::max(whole[0].once, whole[1].once),
      1e-9 * whole[0].pass);
  EXPECT_LT(walked_step(coarse, strategy, of(coarse)), step_of(coarse, of(coarse)));
}

// All choices of a chain whose first products are on sockets and last ones on GPUs.
TEST(StagesOfTables, LeastStepIsThatOfAllChoices) {
  const DeviceSubset place;
  const Graph graph = chain({2048, 8192, 1024, 4096});
  const Strategy strategy = place.strategy(2, 4);
  for (const std::vector<std::size_t>& stage_of : {std::vector<std::size_t>{0, 0, 1}, {0, 1, 1}}) {
    const Tables tables = tables_of(graph, strategy, two_stages(place, stage_of));
    const std::vector<double> rooms(2, kForbidden);
    const auto answer = value_of(solve(tables, rooms, 1));
    double least = std::numeric_limits<double>::infinity();
    std::vector<std::size_t> choice(tables.problem.variables.size());
    while (true) {
      least = std::min(least, step_of(tables, choice));
      std::size_t v = 0;
      for (; v < choice.size(); ++v) {
        if (++choice[v] < tables.problem.variables[v].cost.size()) break;
        choice[v] = 0;
      }
      if (v == choice.size()) break;
    }
    EXPECT_NEAR(answer.cost, step_of(tables, answer.choice), 1e-12 * least);
    EXPECT_NEAR(answer.cost, least, 1e-9 * least);
    EXPECT_LE(answer.bound, least * (1 + 1e-9));
  }
}

TEST(StagesOfTables, EachStageKeepsToItsOwnMemory) {
  const DeviceSubset place;
  const Graph graph = chain({2048, 8192, 8192, 1024});
  const Tables tables = tables_of(graph, place.strategy(2, 4), two_stages(place, {0, 0, 1}));
  std::vector<double> rooms(2, 1e15);
  const auto free = value_of(solve(tables, rooms, 1));
  const std::vector<double> only_first{1e9, kForbidden};
  const double fill = fill_of(tables, only_first, free.choice);
  // What the first stage takes now, less a little: it has to be split more, or there is nothing.
  rooms[0] = fill * 1e9 * 0.99;
  const auto tight = solve(tables, rooms, 1);
  if (tight) {
    EXPECT_LE(fill_of(tables, rooms, tight->choice), 1);
    EXPECT_GE(tight->cost, free.cost);
  }
  rooms[0] = 1;  // a byte
  EXPECT_FALSE(solve(tables, rooms, 1));
}

// A pass of the GPUs takes four micro-batches, one of the sockets one: a round is four of theirs.
TEST(StagesOfTables, ARoundIsThePassThatTakesMost) {
  const DeviceSubset place;
  const Graph graph = chain({4096, 4096, 4096});
  Strategy strategy = place.strategy(2, 8);
  strategy.granularity = {1, 4};
  const Tables tables = tables_of(graph, strategy, two_stages(place, {0, 1}));
  EXPECT_THAT(tables.passes, ElementsAre(4, 1, 4));  // and messages of one
  EXPECT_EQ(tables.rounds, 2);
}

// Layers of two products, as a loop.
Graph layers(std::int64_t count) {
  Graph layer{.name = "layer"};
  TensorId x = add_input(layer, "x", {DType::kBf16, {kRows, 1024}});
  product(layer, x, "up", 1024, 4096);
  product(layer, x, "down", 4096, 1024);
  layer.outputs = {x};
  Graph graph{.name = "layers"};
  TensorId in = add_input(graph, "in", {DType::kBf16, {kRows, 2048}});
  product(graph, in, "first", 2048, 1024);
  in = added(graph, {.type = "loop",
                     .name = "stack",
                     .inputs = {in},
                     .settings = {{"count", count}},
                     .bodies = {layer}});
  product(graph, in, "last", 1024, 2048);
  graph.outputs = {in};
  return graph;
}

// The least of the flat graph, as annotations of the graph with its five iterations written out,
// costs the same there.
TEST(FlatGraph, CostsWhatTheIterationsWrittenOutCost) {
  const DeviceSubset place;
  const Graph graph = layers(5);
  const auto flattened = value_of(flat(graph));
  EXPECT_EQ(flattened.graph.operators.size(), 4U);
  EXPECT_THAT(flattened.runs, ElementsAre(1, 5, 5, 1));
  EXPECT_THAT(flattened.copies, ElementsAre(1, 5, 5, 1));
  const Strategy strategy = place.strategy(1, 3);
  MeshOfGraph mesh = place.on(kGpus);
  const Graph out = with_cuts(graph, {"stack"})->graph;
  ASSERT_EQ(out.operators.size(), 12U);
  const Tables written_out = tables_of(out, strategy, mesh);
  mesh.runs = flattened.runs;
  mesh.copies = flattened.copies;
  mesh.alike = flattened.alike;
  const Tables tables = tables_of(flattened.graph, strategy, mesh);
  const auto answer = value_of(solve(tables.problem));
  auto annotations = annotations_of(flattened.graph, tables, answer.choice, kMesh);
  for (Annotation& one : annotations) {  // "stack[3].up" too
    if (!one.op.empty()) one.op = "*" + one.op;
    if (!one.tensor.empty()) one.tensor = "*" + one.tensor;
  }
  Graph annotated = out;
  value_of(annotate(annotated, kMesh, {.annotations = annotations}));
  const auto sharded =
      value_of(distribute(annotated, kMesh, Flow::kBothWays, BackwardPass::kFollows));
  const auto choice = value_of(choice_of(out, written_out, sharded));
  EXPECT_NEAR(answer.cost, written_out.problem.cost_of(choice), 1e-9 * answer.cost);
  EXPECT_NEAR(tables.problem.load_of(answer.choice), written_out.problem.load_of(choice),
              1e-9 * written_out.problem.load_of(choice));
  // Nothing of the written out graph is less than its own least.
  EXPECT_GE(answer.cost * (1 + 1e-9), solve(written_out.problem)->cost);
}

// With probability 1/4 a wide product, else a narrow one: a quarter and three quarters of what each
// costs alone.
TEST(FlatGraph, BranchesCostTheirExpectation) {
  const DeviceSubset place;
  const auto branch = [](const std::string& name, std::int64_t width) {
    Graph body{.name = name};
    TensorId x = add_input(body, "x", {DType::kBf16, {kRows, 1024}});
    product(body, x, name + ".up", 1024, width);
    product(body, x, name + ".down", width, 1024);
    body.outputs = {x};
    return body;
  };
  Graph graph{.name = "choice"};
  const TensorId in = add_input(graph, "in", {DType::kBf16, {kRows, 1024}});
  graph.outputs = {added(graph, {.type = "condition",
                                 .name = "which",
                                 .inputs = {in},
                                 .settings = {{"probability", 0.25}},
                                 .bodies = {branch("wide", 8192), branch("narrow", 2048)}})};
  const auto flattened = value_of(flat(graph));
  EXPECT_THAT(flattened.runs, ElementsAre(0.25, 0.25, 0.75, 0.75));
  Strategy strategy = place.strategy(1, 1);
  strategy.mode = Mode::kForward;
  MeshOfGraph mesh = place.on(kGpus);
  const auto whole = [&](const Graph& one) {  // nothing is split
    const Tables tables = tables_of(one, strategy, mesh);
    return tables.problem.cost_of(std::vector<std::size_t>(tables.problem.variables.size()));
  };
  const double wide = whole(graph.bodies[0]);
  const double narrow = whole(graph.bodies[1]);
  mesh.runs = flattened.runs;
  mesh.copies = flattened.copies;
  mesh.alike = flattened.alike;
  EXPECT_NEAR(whole(flattened.graph), 0.25 * wide + 0.75 * narrow, 1e-9 * wide);
}

TEST(FlatGraph, RefusesNamesThatBodiesShare) {
  Graph graph = layers(2);
  graph.bodies[0].operators[0].name = "first";
  EXPECT_THAT(message_of(flat(graph)), HasSubstr("'first' stands in two bodies of graph 'layers'"));
}

// The click-through model with its tables on eight sockets and the rest on eight GPUs: each kind
// takes its own number of micro-batches, and the step is shorter than with any number that both
// take, of micro-batches of any size, hosts waiting for transfers or not.
TEST(GranularityOfKinds, BeatsTheUniformChoiceOfTheClickThroughModel) {
  const auto study = value_of(study::load_study(
      {.study = "click-through-hosts-h100-8", .sizes_matter = false},
      yaml::Options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"},
                    .overrides = {{"use", "[node0, node1, node2, node3, node4]"}}}));
  const auto result = value_of(search_graph(study, {.simulate = 60}));
  const auto is_uniform = [](const GraphCandidate& one) {
    const auto& taken = one.grouping.strategy.granularity;
    return taken.empty() || std::ranges::max(taken) == std::ranges::min(taken);
  };
  const GraphCandidate& best = result.simulated.front();
  EXPECT_FALSE(is_uniform(best));
  const auto uniform = std::ranges::find_if(result.simulated, is_uniform);
  ASSERT_NE(uniform, result.simulated.end());
  EXPECT_LT(best.step, 0.95 * uniform->step);
  // The default finds it too.
  const auto few = value_of(search_graph(study, {}));
  EXPECT_FALSE(is_uniform(few.simulated.front()));
  EXPECT_LT(few.simulated.front().step, 0.95 * uniform->step);
  RecordProperty("best_ms", std::to_string(best.step / 1_ms));
  RecordProperty("uniform_ms", std::to_string(uniform->step / 1_ms));
}

// A study can name what the search found: other micro-batches than the graph's shapes have.
TEST(GranularityOfKinds, IsReadWithMicroBatchesOfAnySize) {
  const auto study =
      value_of(study::load_study({.study = "click-through-hosts-h100-8"},
                                 yaml::Options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"},
                                               .overrides = {{"strategy.micro_batch", "512"},
                                                             {"strategy.granularity", "[1, 4]"}}}));
  EXPECT_EQ(study.graph->batch, 8 * 512);
  EXPECT_EQ(value_of(study::run_study(study, {})).prediction.samples, 65536);
}

// Two boxes, of which one has lost a GPU: the whole one comes first, so that eight ranks lie on it
// alone. Of two kinds of nodes each alone is tried too.
TEST(PlacesOfGraphs, LeaveDamagedNodesAndSlowKindsOut) {
  const auto placed = [](const std::string& cluster) {
    const auto study = graph_study("wide-mlp", "{global_batch: 4096}", cluster);
    return value_of(search_graph(study, {.level = 1, .simulate = 60}));
  };
  const auto damaged = placed(
      "{name: two, nodes: 2, node: dgx-h100, fabric: {kind: single-switch}, "
      "down: [node0/gpu3]}");
  const auto uses = [](const GraphSearchResult& result, const std::vector<std::string>& nodes) {
    return std::ranges::any_of(result.simulated, [&](const GraphCandidate& one) {
      return one.grouping.place.use == nodes;
    });
  };
  const bool on_the_whole_one =
      std::ranges::any_of(damaged.simulated, [](const GraphCandidate& one) {
        std::int64_t ranks = 1;
        for (const MeshAxis& axis : one.grouping.mesh()) ranks *= axis.size;
        return ranks == 8 && one.grouping.place.use.front() == "node1";
      });
  EXPECT_TRUE(on_the_whole_one);
  const auto mixed = placed(
      "{name: mixed, groups: [{nodes: 1, node: dgx-a100-80gb}, {nodes: 1, node: dgx-h100}], "
      "fabric: {kind: single-switch}}");
  EXPECT_TRUE(uses(mixed, {"node1"}));
  EXPECT_TRUE(uses(mixed, {"node0"}));
  // Eight of the faster kind beat eight of the slower one.
  const auto of = [&](const char* node) {
    return std::ranges::find_if(mixed.simulated, [&](const GraphCandidate& one) {
      return one.grouping.place.use == std::vector<std::string>{node};
    });
  };
  EXPECT_LT(of("node1")->step, of("node0")->step);
}

// A decoder as a loop of layers has a plan, which the simulation runs.
TEST(SearchOfLoops, GivesAPlanForADecoder) {
  const auto study = graph_study("decoder", "{global_batch: 64}");
  const auto result = value_of(search_graph(study, {.simulate = 4}));
  ASSERT_FALSE(result.simulated.empty());
  const GraphCandidate& best = result.simulated.front();
  EXPECT_TRUE(best.fits);
  ASSERT_TRUE(best.estimate);
  EXPECT_NEAR(*best.estimate / best.step, 1, 0.5);
}

}  // namespace foreshard::search::stages_test
