#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

#include "strategies/graph/onnx/internal/fold.h"
#include "strategies/graph/onnx/internal/proto.h"

namespace foreshard::onnx_file {
namespace {

class Rebatch {
 public:
  Rebatch(const Model& model, std::int64_t from, std::int64_t to)
      : model_(model), from_(from), to_(to) {
    for (const ValueIndex input : model.main.inputs)
      if (begins_with_batch(value(input).shape)) grows_.insert(input);
    for (const Node& node : model.main.nodes) {
      const bool any = std::ranges::any_of(
          node.inputs, [&](ValueIndex input) { return grows_.contains(input); });
      if (!any) continue;
      for (const ValueIndex output : node.outputs) grows_.insert(output);
    }
  }

  // The file with the new batch in inputs and in the shapes of Reshapes.
  ::onnx::ModelProto rewritten(const ::onnx::ModelProto& file) {
    ::onnx::ModelProto result = file;
    ::onnx::GraphProto& graph = *result.mutable_graph();
    std::set<std::string> inputs;
    for (const ValueIndex input : model_.main.inputs)
      if (grows_.contains(input)) inputs.insert(value(input).name);
    for (auto& input : *graph.mutable_input())
      if (inputs.contains(input.name()))
        input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(
            to_);
    const std::set<std::string> written = written_constants(file.graph());
    std::map<std::string, Shape> targets;  // result of a Reshape -> its new shape
    for (const Node& node : model_.main.nodes) {
      if (node.op != "Reshape" || !grows_.contains(node.inputs.at(0))) continue;
      const bool constant = node.inputs.size() < 2 || written.contains(value(node.inputs[1]).name);
      const Value& made = value(node.outputs.at(0));
      if (!constant || made.shape.empty() || made.shape[0] % from_ != 0) continue;
      Shape target = made.shape;
      target[0] = target[0] / from_ * to_;
      targets[made.name] = target;
    }
    for (auto& node : *graph.mutable_node()) {
      const auto target = node.output_size() > 0 ? targets.find(node.output(0)) : targets.end();
      if (target != targets.end()) set_target(graph, node, target->second);
    }
    return result;
  }

  // Why `again`, the rewritten file as read, is not the same model with another batch.
  Status fault(const Model& again) const {
    std::map<std::string, Shape> shapes;
    for (const Value& value : again.values) shapes[value.name] = value.shape;
    const auto place_of = [&](ValueIndex index) {
      const auto found = shapes.find(value(index).name);
      return found == shapes.end() ? kLost : place(value(index).shape, found->second);
    };
    for (const Node& node : model_.main.nodes) {
      if (node.inputs.empty() || node.inputs[0] == kNone || !grows_.contains(node.inputs[0]))
        continue;
      const int in = place_of(node.inputs[0]);
      const int out = place_of(node.outputs.at(0));
      if (in == kLost || out == kLost)
        return refused(node, "its result does not grow with the batch in one dimension");
      if (node.op == "Reshape" && in > 0)
        return refused(node, "it reshapes what has the batch not in its first dimension");
      const bool merged = value(node.inputs[0]).shape[0] != from_;
      if (node.op == "Transpose" && out > 0 && merged)
        return refused(node, "it moves a dimension that holds the batch and more");
    }
    for (const ValueIndex output : model_.main.outputs)
      if (place_of(output) != 0)
        return Error{Error::Code::kUnsupported,
                     fmt::format("output '{}' has no dimension of the batch", value(output).name)};
    return {};
  }

 private:
  static constexpr int kLost = -2;  // neither unchanged nor with the new batch in one dimension

  const Value& value(ValueIndex index) const {
    return model_.values[static_cast<std::size_t>(index)];
  }
  bool begins_with_batch(const Shape& shape) const { return !shape.empty() && shape[0] == from_; }

  // The dimension that changed with the batch from one shape to the other, or kLost.
  int place(const Shape& before, const Shape& after) const {
    if (before.size() != after.size()) return kLost;
    int place = kLost;
    for (std::size_t d = 0; d < before.size(); ++d) {
      if (before[d] == after[d]) continue;
      if (place != kLost || before[d] % from_ != 0 || before[d] / from_ * to_ != after[d])
        return kLost;
      place = static_cast<int>(d);
    }
    return place;
  }

  static Error refused(const Node& node, const std::string& why) {
    return {Error::Code::kUnsupported, fmt::format("node '{}' ({}): {}", node.name, node.op, why)};
  }

  static std::set<std::string> written_constants(const ::onnx::GraphProto& graph) {
    std::set<std::string> names;
    for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
    for (const auto& node : graph.node())
      if (node.op_type() == "Constant" && node.output_size() == 1) names.insert(node.output(0));
    return names;
  }

  static void set_target(::onnx::GraphProto& graph, ::onnx::NodeProto& node, const Shape& target) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.name() != "shape") continue;  // before opset 5
      attribute.clear_ints();
      for (const std::int64_t extent : target) attribute.add_ints(extent);
      return;
    }
    if (node.input_size() < 2) return;
    ::onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(node.output(0) + ".shape");
    tensor.set_data_type(::onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<std::int64_t>(target.size()));
    for (const std::int64_t extent : target) tensor.add_int64_data(extent);
    node.set_input(1, tensor.name());
  }

  const Model& model_;
  std::int64_t from_;
  std::int64_t to_;
  std::set<ValueIndex> grows_;
};

}  // namespace

Result<Model> with_batch(const ::onnx::ModelProto& file, Model model, std::int64_t batch,
                         const std::function<Result<Model>(const ::onnx::ModelProto&)>& read) {
  if (model.main.inputs.empty()) return model;
  const Shape& first = model.values[static_cast<std::size_t>(model.main.inputs.front())].shape;
  if (first.empty() || first[0] == batch) return model;
  const std::int64_t fixed = first[0];
  const auto refused = [&](const std::string& why) {
    return Error{Error::Code::kUnsupported,
                 fmt::format("its batch is written as {0}, and cannot become {1}: {2}; export it "
                             "with an open batch dimension, or divide it as a batch of {0}",
                             fixed, batch, why)};
  };
  if (!model.bodies.empty()) return refused("it has loops or conditions");
  Rebatch rebatch(model, fixed, batch);
  auto read_again = read(rebatch.rewritten(file));
  if (!read_again) return refused(read_again.error().message);
  Model again = *std::move(read_again);
  if (const Status fault = rebatch.fault(again); !fault.ok()) return refused(fault.error().message);
  again.remarks.push_back(
      fmt::format("the file's batch is written as {}; it is {} here", fixed, batch));
  return again;
}

}  // namespace foreshard::onnx_file
