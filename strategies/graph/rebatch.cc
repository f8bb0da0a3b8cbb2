#include "strategies/graph/rebatch.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "strategies/graph/operators/build.h"

namespace foreshard {
namespace {

class Rebatch {
 public:
  Rebatch(std::int64_t batch, std::int64_t samples) : batch_(batch), samples_(samples) {}

  // Infers all shapes again. \pre the graph's inputs have their new shapes.
  Status run(Graph& graph, const Graph& before) const {
    for (const Tensor& tensor : graph.tensors)
      if (tensor.pinned && std::ranges::any_of(tensor.pinned->sizes,
                                               [](const auto& sizes) { return !sizes.empty(); }))
        return fault(tensor.name + " lies in slices of unequal size");
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      FORESHARD_TRY(run(graph, graph.operators[i], before, before.operators[i]));
    }
    return {};
  }

  // Scales an extent that is a multiple of the batch; others stay. \return whether it did.
  bool scale(std::int64_t& extent) const {
    if (extent <= 0 || extent % batch_ != 0) return false;
    extent = extent / batch_ * samples_;
    return true;
  }

 private:
  Error fault(const std::string& why) const {
    return {Error::Code::kInvalidInput,
            fmt::format("the graph cannot be taken for {} samples instead of {}: {}", samples_,
                        batch_, why)};
  }

  Status run(Graph& graph, Operator& op, const Graph& before, const Operator& old) const {
    OperatorSpec spec{
        .type = op.type, .name = op.name, .inputs = op.inputs, .settings = op.settings};
    for (const std::int32_t index : op.bodies) {
      Graph& body = graph.bodies[static_cast<std::size_t>(index)];
      const Graph body_before = body;
      for (std::size_t n = 0; n < std::min(body.inputs.size(), op.inputs.size()); ++n)
        body[body.inputs[n]].shape = graph[op.inputs[n]].shape;
      FORESHARD_TRY(run(body, body_before));
      spec.bodies.push_back(body);
    }
    if (!op.inputs.empty() && graph[op.inputs[0]].shape != before[old.inputs[0]].shape)
      scale_shape(spec.settings, before[old.inputs[0]]);
    auto inferred = infer_operator(graph, spec);
    if (!inferred) return fault(inferred.error().message);
    op.settings = std::move(spec.settings);
    op.rule = inferred->rule;
    for (std::size_t o = 0; o < op.outputs.size(); ++o)
      graph[op.outputs[o]].shape = inferred->outputs[o].shape;
    return {};
  }

  void scale_shape(Settings& settings, const Tensor& read) const {
    if (!settings.has("shape") || read.shape.empty() || read.shape[0] % batch_ != 0) return;
    Integers shape = settings.integers("shape");
    if (!shape.empty() && scale(shape[0])) settings.set("shape", std::move(shape));
  }

  std::int64_t batch_;
  std::int64_t samples_;
};

}  // namespace

Result<Graph> rebatched(const Graph& graph, std::int64_t batch, std::int64_t samples) {
  if (batch == samples) return graph;
  const Rebatch rebatch(batch, samples);
  Graph changed = graph;
  for (const TensorId id : changed.inputs) {
    auto& shape = changed[id].shape;
    if (!shape.empty() && shape[0] == batch) rebatch.scale(shape[0]);
  }
  FORESHARD_TRY(rebatch.run(changed, graph));
  return changed;
}

}  // namespace foreshard
