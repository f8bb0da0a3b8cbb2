// The blocks of a transformer joined to one graph, in the order of the layers. Lowering takes
// the blocks themselves; benchmarks and tests take this.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "strategies/graph/transformer.h"

namespace foreshard {

Graph transformer_graph(const Model& model, const TransformerOptions& options) {
  const TransformerGraphs blocks = transformer_graphs(model, options);
  Graph whole{.name = "transformer", .tensors = {}, .operators = {}, .gradients_apart = true};
  std::vector<TensorId> streams;
  // Appends a block. Its inputs are the current streams; its first outputs are the streams after
  // it.
  const auto append = [&](const Graph& block, const std::string& name) {
    std::vector<TensorId> ids;
    ids.reserve(block.tensors.size());
    for (std::size_t t = 0; t < block.tensors.size(); ++t) {
      const auto input = std::ranges::find(block.inputs, TensorId{static_cast<std::int64_t>(t)});
      const auto which = static_cast<std::size_t>(input - block.inputs.begin());
      if (which < std::min(block.inputs.size(), streams.size())) {
        ids.push_back(streams[which]);
        continue;
      }
      Tensor tensor = block.tensors[t];
      tensor.name = name + "." + tensor.name;
      ids.push_back(whole.add(std::move(tensor)));
    }
    for (Operator op : block.operators) {
      op.name = name + "." + op.name;
      for (TensorId& id : op.inputs) id = ids[id.index()];
      for (TensorId& id : op.outputs) id = ids[id.index()];
      whole.operators.push_back(std::move(op));
    }
    streams.clear();
    for (const TensorId id : block.outputs) streams.push_back(ids[id.index()]);
  };
  append(blocks.embedding, "embedding");
  for (std::int64_t i = 0; i < model.layers; ++i)
    append(blocks.layers[model.kind_index(i, options.unquantized)], "layer" + std::to_string(i));
  for (const Graph& prediction : blocks.predictions) append(prediction, prediction.name);
  append(blocks.head, "head");
  whole.outputs = streams;
  return whole;
}

}  // namespace foreshard
