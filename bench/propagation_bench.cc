// Benchmark of `distribute` (strategies/graph/distribute.h), which propagates annotations through a
// graph. The graph is a whole GPT of GPT-3's width with 24 to 192 layers: forward and backward pass
// with unfused attention. In the benchmark `layers` every tensor that a Megatron strategy annotates
// keeps its annotation, with sequence parallelism; in `sparse` the weights and the integer inputs
// keep theirs, and all other activations are left to propagation, without sequence parallelism.
// Google Benchmark's BigO line shows how the time grows with the number of operators.
#include <benchmark/benchmark.h>

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/transformer.h"

namespace foreshard {
namespace {

const std::vector<MeshAxis> kMesh{{"tensor", 8}, {"data", 8}, {"pipeline", 1}};

// The graph of a training step. `sparse`: activations other than integer inputs are not pinned.
Graph gpt(std::int64_t layers, bool sparse) {
  const Model model{.name = "gpt",
                    .layers = layers,
                    .hidden = 12288,
                    .heads = 96,
                    .vocabulary = 51200,
                    .sequence = 2048,
                    .source = ""};
  Graph graph = transformer_graph(model, {.mesh = kMesh,
                                          .batch = 8,
                                          .sequence_parallel = !sparse,
                                          .attention = AttentionImplementation::kUnfused,
                                          .vocabulary_multiple = 1024});
  for (Tensor& tensor : graph.tensors) {
    const bool is_input = tensor.dtype == DType::kInt64;
    if (sparse && tensor.role == TensorRole::kActivation && !is_input) tensor.pinned.reset();
  }
  return training_graph(graph, BackwardOptions{});
}

// Counts, besides the time, the operators of the graph and the conversions between layouts that
// `distribute` inserts.
void propagate(benchmark::State& state, bool sparse) {
  const Graph graph = gpt(state.range(0), sparse);
  std::size_t conversions = 0;
  for (auto _ : state) {
    auto sharded = distribute(graph, kMesh);
    if (!sharded) return state.SkipWithError(sharded.error().message.c_str());
    conversions = sharded->conversions.size();
    benchmark::DoNotOptimize(sharded);
  }
  const auto operators = static_cast<benchmark::IterationCount>(graph.operators.size());
  state.SetComplexityN(operators);
  state.counters["operators"] = static_cast<double>(operators);
  state.counters["conversions"] = static_cast<double>(conversions);
}

void layers(benchmark::State& state) {
  propagate(state, false);
}
void sparse(benchmark::State& state) {
  propagate(state, true);
}

#define FORESHARD_SIZES Arg(24)->Arg(48)->Arg(96)->Arg(192)->Unit(benchmark::kMillisecond)
BENCHMARK(layers)->FORESHARD_SIZES->Complexity();
BENCHMARK(sparse)->FORESHARD_SIZES->Complexity();

}  // namespace
}  // namespace foreshard

BENCHMARK_MAIN();
