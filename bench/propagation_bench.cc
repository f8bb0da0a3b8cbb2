// Propagation through a whole GPT: forward and backward in one graph, unfused attention, GPT-3's
// width, for 24 to 192 layers. `layers` has everything that a Megatron strategy pins annotated;
// `sparse` annotates the weights alone and leaves all activations to propagation. The complexity
// line says how time grows with the number of operators.
#include <benchmark/benchmark.h>

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/transformer.h"

namespace foreshard {
namespace {

const std::vector<MeshAxis> kMesh{{"tensor", 8}, {"data", 8}, {"pipeline", 1}};

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
    const bool input = tensor.dtype == DType::kInt64;
    if (sparse && tensor.role == TensorRole::kActivation && !input) tensor.pinned.reset();
  }
  return training_graph(graph, {});
}

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
