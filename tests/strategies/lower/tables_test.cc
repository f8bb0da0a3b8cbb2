// Tables whose rows are looked up, and updated by rows: no gradient, no state but a number a row.

#include "tests/strategies/lower/lowered_graphs.h"
#include "tests/test.h"

namespace foreshard::lower {
namespace {

constexpr std::int64_t kRows = 640;
constexpr std::int64_t kFeatures = 3;
constexpr double kWeightGradients = 4 * kHidden * kWide;  // bytes
constexpr double kLookedUp = kBatch * kFeatures;          // rows

// ids [8, 3] -> rows [8, 3, 16] -> product [8, 3, 64].
Graph click_through() {
  Graph graph{.name = "clicks"};
  const TensorId ids = add_input(graph, "ids", {DType::kInt64, {kBatch, kFeatures}});
  const TensorId table = add_parameter(graph, "table", {DType::kFp32, {kRows, kHidden}});
  graph[table].frozen = graph[table].updated_by_rows = true;
  const TensorId weight = add_parameter(graph, "weight", {DType::kBf16, {kHidden, kWide}});
  const TensorId rows = added(graph, {.type = "embedding", .name = "rows", .inputs = {ids, table}});
  const TensorId narrow = added(graph, {.type = "cast",
                                        .name = "narrow",
                                        .inputs = {rows},
                                        .settings = {{"to", std::string("bf16")}}});
  graph.outputs = {added(graph, {.type = "matmul", .name = "product", .inputs = {narrow, weight}})};
  return graph;
}

double updated_elements(const Program& program) {
  double sum = 0;
  visit_tasks(program, [&](const program::Task& task) {
    const auto* kernel = std::get_if<Kernel>(&task.body);
    const auto* pass = kernel == nullptr ? nullptr : std::get_if<Pass>(kernel);
    if (pass != nullptr && pass->kind == PassKind::kEmbeddingBackward)
      sum += static_cast<double>(pass->rows * pass->columns);
  });
  return sum;
}

double memory(const Program& program, MemoryKind kind) {
  double sum = 0;
  for (const auto& held : program.roles[0].memory)
    if (held.kind == kind) sum += held.bytes.in_base();
  return sum;
}

// On one device: 4 B an element of the table, 4 B a row; 2 B a weight, with 4 B of its gradient and
// Adam's 12 B of it.
TEST(Tables, HaveANumberForEachRow) {
  const Program one = lowered(click_through(), strategy(1, 1)).program;
  const double weights = kHidden * kWide;
  EXPECT_EQ(memory(one, MemoryKind::kParameters), 4 * kRows * kHidden + 2 * weights);
  EXPECT_EQ(memory(one, MemoryKind::kGradients), 4 * weights);
  EXPECT_EQ(memory(one, MemoryKind::kOptimizer), 4 * kRows + 12 * weights);
  EXPECT_EQ(updated_elements(one), kLookedUp * kHidden);

  Strategy forward = strategy(1, 1);
  forward.mode = Mode::kForward;
  EXPECT_EQ(updated_elements(lowered(click_through(), forward).program), 0);
}

// Products by frozen weights have no gradient of these, and none at all below what is trained: of
// mlp() the first then counts once, the second twice.
TEST(Tables, ModelFlopsOfFrozenParameters) {
  Graph graph = mlp();
  for (Tensor& tensor : graph.tensors)
    if (tensor.name == "up.weight") tensor.frozen = true;
  const double product = 2.0 * kBatch * kHidden * kWide;
  EXPECT_EQ(lowered(graph, strategy(1, 1, 2)).program.totals.model_flops.in_base(),
            2 * (1 + 2) * product);
  for (Tensor& tensor : graph.tensors)
    if (tensor.role == TensorRole::kParameter) tensor.frozen = !tensor.frozen;
  EXPECT_EQ(lowered(graph, strategy(1, 1)).program.totals.model_flops.in_base(), (2 + 2) * product);
  for (Tensor& tensor : graph.tensors) tensor.frozen = tensor.role == TensorRole::kParameter;
  EXPECT_THAT(message_of(lower_graph(graph, strategy(1, 1), {})),
              HasSubstr("all parameters of 'mlp' are frozen"));
}

// What no rank trains is whole on each, in a forward pass under ZeRO 3, too: nothing is gathered.
TEST(Tables, AreNotGathered) {
  Strategy forward = strategy(1, 2);
  forward.mode = Mode::kForward;
  forward.zero_stage = 3;
  Graph graph = click_through();
  for (Tensor& tensor : graph.tensors) tensor.frozen = tensor.role == TensorRole::kParameter;
  EXPECT_EQ(traffic(lowered(graph, forward).program, Purpose::kData), Sums{});
}

// Columns over ranks: each looks up its columns for all samples (ids of 8 B), which an all-to-all
// brings to the samples; one takes their gradients back.
TEST(Tables, SplitByColumns) {
  const Program two = lowered(click_through(), strategy(1, 2), {},
                              {{.tensor = "table", .dims = {"-", "data"}},
                               {.tensor = "narrow", .dims = {"data", "-", "-"}}})
                          .program;
  const double part = 4 * kLookedUp * kHidden / 2;
  EXPECT_EQ(traffic(two, Purpose::kData),
            (Sums{{CollectiveKind::kAllGather, {2, 2 * 8 * kLookedUp}},
                  {CollectiveKind::kAllToAll, {2, 2 * part}},
                  {CollectiveKind::kAllReduce, {1, kWeightGradients}}}));
  EXPECT_EQ(updated_elements(two), kLookedUp * kHidden / 2);
  EXPECT_EQ(memory(two, MemoryKind::kOptimizer), 4 * kRows + 12 * kHidden * kWide);
}

// Rows over ranks: what is looked up are summands; of the gradients each rank needs all.
TEST(Tables, SplitByRows) {
  const Program two = lowered(click_through(), strategy(1, 2), {},
                              {{.tensor = "table", .dims = {"data", "-"}},
                               {.tensor = "narrow", .dims = {"data", "-", "-"}}})
                          .program;
  EXPECT_EQ(traffic(two, Purpose::kData),
            (Sums{{CollectiveKind::kAllGather, {3, (2 * 8 + 4 * kHidden) * kLookedUp}},
                  {CollectiveKind::kReduceScatter, {1, 4 * kLookedUp * kHidden}},
                  {CollectiveKind::kAllReduce, {1, kWeightGradients}}}));
  EXPECT_EQ(updated_elements(two), kLookedUp * kHidden / 2);
  EXPECT_EQ(memory(two, MemoryKind::kOptimizer), 4 * kRows / 2 + 12 * kHidden * kWide);
}

// A copy on every rank: each updates its own by the gradients of all samples, which are gathered.
TEST(Tables, Copied) {
  const Program two = lowered(click_through(), strategy(1, 2)).program;
  EXPECT_EQ(updated_elements(two), kLookedUp * kHidden);
  EXPECT_EQ(traffic(two, Purpose::kData),
            (Sums{{CollectiveKind::kAllGather, {2, (8 + 4 * kHidden) * kLookedUp}},
                  {CollectiveKind::kAllReduce, {1, kWeightGradients}}}));
}

}  // namespace
}  // namespace foreshard::lower
