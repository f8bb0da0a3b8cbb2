// Reads an ONNX file as a Model (model.h): infers all types and shapes, and folds what is the same
// in every step. An operator that libonnx's schemas lack is added in older_form() or keeps_shape(),
// one that folds in fold(). A file with a fault gives an error and no Model.
#include <algorithm>
#include <cmath>
#include <exception>
#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <limits>
#include <onnx/onnx_pb.h>
#include <set>
#include <utility>

#include "base/text.h"

#include "strategies/graph/onnx/internal/fold.h"
#include "strategies/graph/onnx/internal/proto.h"
#include "strategies/graph/onnx/model.h"

namespace foreshard::onnx_file {
namespace {

constexpr double kMostElements = 9e15;  // exact in a double, also times bytes per element
constexpr int kDeepest = 8;             // levels of bodies within bodies

Error invalid(std::string why) {
  return {Error::Code::kInvalidInput, std::move(why)};
}

using Names = std::map<std::string, ValueIndex>;

class Reader {
 public:
  explicit Reader(const ReadOptions& options) : options_(options) {}

  Result<Model> run(const ::onnx::ModelProto& file) {
    model_.producer = file.producer_name();
    if (!file.producer_version().empty()) model_.producer += " " + file.producer_version();
    for (const auto& opset : file.opset_import())
      model_.opsets[domain(opset.domain())] = opset.version();
    if (!file.has_graph() || (file.graph().node().empty() && file.graph().output().empty()))
      return invalid("it has no graph: it is not an ONNX model, or an empty one");
    if (model_.opsets.empty()) return invalid("it names no operator set (opset_import)");
    const ::onnx::GraphProto& graph = file.graph();
    model_.name = graph.name();
    Names names;
    FORESHARD_TRY(initializers(graph, names));
    FORESHARD_TRY(inputs(graph, names));
    FORESHARD_TRY(body(graph, names, model_.main, 0));
    FORESHARD_TRY(unused_dims());
    return std::move(model_);
  }

 private:
  static std::string domain(const std::string& name) { return name == "ai.onnx" ? "" : name; }

  ValueIndex add(Value value, ::onnx::TypeProto type) {
    model_.values.push_back(std::move(value));
    types_.push_back(std::move(type));
    return static_cast<ValueIndex>(model_.values.size()) - 1;
  }
  const Value& value(ValueIndex index) const {
    return model_.values[static_cast<std::size_t>(index)];
  }

  // --- inputs and initializers -------------------------------------------------------------
  // Refuses a name that stands for two values (the format requires static single assignment).
  static Status written_twice(const ::onnx::GraphProto& graph) {
    std::set<std::string> names;
    const auto twice = [&](const std::string& name) -> Status {
      if (name.empty() || names.insert(name).second) return {};
      return Error{
          Error::Code::kInvalidInput,
          fmt::format("'{}' is written twice: a name stands for one value of a graph", name)};
    };
    for (const ::onnx::TensorProto& tensor : graph.initializer()) {
      FORESHARD_TRY(twice(tensor.name()));
    }
    for (const ::onnx::NodeProto& node : graph.node()) {
      for (const std::string& output : node.output()) {
        FORESHARD_TRY(twice(output));
      }
    }
    return {};
  }

  Status initializers(const ::onnx::GraphProto& graph, Names& names) {
    if (graph.sparse_initializer_size() > 0)
      return Error{Error::Code::kUnsupported, "sparse initializers are not supported"};
    FORESHARD_TRY(written_twice(graph));
    for (const ::onnx::TensorProto& tensor : graph.initializer()) {
      Value value{.name = tensor.name(), .kind = Value::Kind::kConstant};
      const auto dtype = dtype_of(tensor.data_type());
      if (!dtype)
        return unsupported_type(fmt::format("initializer '{}'", tensor.name()), tensor.data_type());
      value.dtype = *dtype;
      for (const std::int64_t extent : tensor.dims()) value.shape.push_back(extent);
      FORESHARD_TRY(oversized(value));
      const bool parameter = value.is_real() && count_of(value.shape) != 1;
      if (parameter) {
        value.kind = Value::Kind::kParameter;
      } else {
        value.numbers = numbers_of(tensor, kMostFolded);
      }
      ::onnx::TypeProto type = type_of(tensor.data_type(), value.shape);
      initializers_.insert(tensor.name());
      names[tensor.name()] = add(std::move(value), std::move(type));
    }
    return {};
  }

  Status inputs(const ::onnx::GraphProto& graph, Names& names) {
    std::vector<std::string> open;
    bool first = true;
    for (const ::onnx::ValueInfoProto& input : graph.input()) {
      if (names.contains(input.name())) continue;  // old files list initializers as inputs, too
      if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
        return Error{Error::Code::kUnsupported,
                     fmt::format("input '{}' is not a tensor of known rank", input.name())};
      const auto& tensor = input.type().tensor_type();
      Value value{.name = input.name(), .kind = Value::Kind::kInput};
      const auto dtype = dtype_of(tensor.elem_type());
      if (!dtype)
        return unsupported_type(fmt::format("input '{}'", input.name()), tensor.elem_type());
      value.dtype = *dtype;
      for (int d = 0; d < tensor.shape().dim_size(); ++d) {
        const auto extent =
            extent_of(input.name(), d, tensor.shape().dim(d), first && d == 0, open);
        value.shape.push_back(extent);
      }
      first = false;
      FORESHARD_TRY(oversized(value));
      ::onnx::TypeProto type = type_of(tensor.elem_type(), value.shape);
      const ValueIndex index = add(std::move(value), std::move(type));
      names[input.name()] = index;
      model_.main.inputs.push_back(index);
    }
    if (open.empty()) return {};
    std::string example;
    for (const std::string& name : open)
      example += fmt::format("{}{}: 1", example.empty() ? "" : ", ",
                             name.find('[') == std::string::npos ? name : '"' + name + '"');
    return invalid(fmt::format("{} left open: {}; give the size{}, for example dims: {{{}}}",
                               open.size() == 1 ? "a dimension is" : "dimensions are",
                               quoted_choice(open), open.size() == 1 ? "" : "s", example));
  }

  std::int64_t extent_of(const std::string& input, int position,
                         const ::onnx::TensorShapeProto::Dimension& dim, bool is_batch,
                         std::vector<std::string>& open) {
    if (dim.has_dim_value() && dim.dim_value() > 0) return dim.dim_value();
    const std::string place = fmt::format("{}[{}]", input, position);
    const std::string name = dim.dim_param().empty() ? place : dim.dim_param();
    for (const std::string& key : {name, place}) {
      const auto given = options_.dims.find(key);
      if (given == options_.dims.end()) continue;
      used_.insert(key);
      return given->second;
    }
    if (const auto filled = batch_dims_.find(name); filled != batch_dims_.end())
      return *options_.batch;
    if (is_batch && options_.batch) {
      batch_dims_.insert(name);
      return *options_.batch;
    }
    if (std::ranges::find(open, name) == open.end()) open.push_back(name);
    return 1;
  }

  Status unused_dims() const {
    for (const auto& [name, size] : options_.dims) {
      if (used_.contains(name)) continue;
      std::vector<std::string> legal(batch_dims_.begin(), batch_dims_.end());
      legal.insert(legal.end(), used_.begin(), used_.end());
      return invalid(fmt::format(
          "dims: no input has an open dimension '{}'; {}", name,
          legal.empty() ? "all sizes are fixed in the file" : "there are " + join(legal)));
    }
    return {};
  }

  static Status oversized(const Value& value) {
    double count = 1;
    for (const std::int64_t extent : value.shape) {
      if (extent < 0)
        return invalid(fmt::format("'{}' has a dimension of size {}", value.name, extent));
      count *= static_cast<double>(extent);
    }
    if (count <= kMostElements) return {};
    return invalid(fmt::format("'{}' has {:.3g} elements, more than {:.0e}", value.name, count,
                               kMostElements));
  }

  static Error unsupported_type(const std::string& what, std::int32_t type) {
    return {Error::Code::kUnsupported,
            fmt::format("{} has element type {}, which is not supported", what, type_name(type))};
  }

  // --- nodes -------------------------------------------------------------------------------
  Status body(const ::onnx::GraphProto& graph, Names names, Body& into, int depth) {
    if (depth > kDeepest) return invalid("bodies of loops and conditions are nested too deeply");
    for (const ::onnx::NodeProto& proto : graph.node()) {
      FORESHARD_TRY(node(proto, names, into, depth));
    }
    for (const ::onnx::ValueInfoProto& output : graph.output()) {
      const auto found = names.find(output.name());
      if (found == names.end())
        return invalid(fmt::format("output '{}' is computed by no node", output.name()));
      into.outputs.push_back(found->second);
    }
    return {};
  }

  Status node(const ::onnx::NodeProto& proto, Names& names, Body& into, int depth) {
    Node node{.name = proto.name(), .op = proto.op_type(), .domain = domain(proto.domain())};
    if (node.name.empty()) node.name = fmt::format("{}_{}", node.op, count_);
    ++count_;
    const auto version = model_.opsets.find(node.domain);
    if (version == model_.opsets.end())
      return invalid(fmt::format("node '{}': its domain '{}' is missing in the file's opset_import",
                                 node.name, node.domain));
    node.opset = version->second;
    for (const std::string& input : proto.input()) {
      const auto found = names.find(input);
      if (input.empty()) {
        node.inputs.push_back(kNone);
      } else if (found != names.end()) {
        node.inputs.push_back(found->second);
      } else {
        return invalid(fmt::format("node '{}' ({}) reads '{}', which nothing before it computes",
                                   node.name, node.op, input));
      }
    }
    for (const auto& attribute : proto.attribute()) {
      if (auto value = attribute_of(attribute))
        node.attributes[attribute.name()] = *std::move(value);
    }
    if (node.op == "If" && node.domain.empty())
      return condition(proto, std::move(node), names, into, depth);
    if (node.op == "Loop" && node.domain.empty())
      return loop(proto, std::move(node), names, into, depth);
    return plain(proto, std::move(node), names, into);
  }

  Status plain(const ::onnx::NodeProto& proto, Node node, Names& names, Body& into) {
    if (node.op == "Constant" && node.domain.empty()) return constant(proto, node, names);
    auto types = types_of(proto, node);
    if (!types) return at(node, types.error());
    const bool is_constant = is_same_every_step(node);
    bool all_known = is_constant;
    for (int i = 0; i < proto.output_size(); ++i) {
      if (proto.output(i).empty()) {
        node.outputs.push_back(kNone);
        continue;
      }
      FORESHARD_ASSIGN(Value made,
                       computed(node, proto.output(i), (*types)[static_cast<std::size_t>(i)]));
      if (abbreviates(node, made)) {
        made.kind = Value::Kind::kParameter;
      } else if (is_constant) {
        made.kind = Value::Kind::kConstant;
        if (i == 0) made.numbers = fold(node, made);
      }
      all_known = all_known && made.kind != Value::Kind::kComputed;
      ::onnx::TypeProto type = (*types)[static_cast<std::size_t>(i)];
      const ValueIndex index = add(std::move(made), std::move(type));
      node.outputs.push_back(index);
      names[proto.output(i)] = index;
    }
    if (all_known) {
      ++model_.folded;
    } else {
      into.nodes.push_back(std::move(node));
    }
    return {};
  }

  // Whether the results of a node are the same in every step: its inputs are constants and it draws
  // nothing, or it is the Shape or Size of any value.
  bool is_same_every_step(const Node& node) const {
    if (!node.domain.empty()) return false;
    if (node.op == "Shape" || node.op == "Size") return true;
    if (node.op.starts_with("Random") || node.op == "Multinomial" || node.op == "Bernoulli")
      return false;
    return std::ranges::all_of(node.inputs, [&](ValueIndex input) {
      return input == kNone || value(input).kind == Value::Kind::kConstant;
    });
  }

  // Whether a node abbreviates an initializer: a ConstantOfShape whose shape is written in the file
  // stands for an initializer of that shape, without its bytes.
  bool abbreviates(const Node& node, const Value& made) const {
    return node.op == "ConstantOfShape" && node.domain.empty() && made.is_real() &&
           count_of(made.shape) != 1 && node.inputs.at(0) != kNone &&
           initializers_.contains(value(node.inputs[0]).name);
  }

  std::optional<Numbers> fold(const Node& node, const Value& result) const {
    if (node.op == "Shape" || node.op == "Size") {
      const Shape& shape = value(node.inputs.at(0)).shape;
      if (node.op == "Size") return std::vector<std::int64_t>{count_of(shape)};
      const auto rank = static_cast<std::int64_t>(shape.size());
      std::int64_t start = integer_of(node, "start", 0);
      if (start < 0) start += rank;
      start = std::clamp<std::int64_t>(start, 0, rank);
      const std::int64_t count = std::min(count_of(result.shape), rank - start);
      return std::vector<std::int64_t>(shape.begin() + start, shape.begin() + start + count);
    }
    if (node.op == "ConstantOfShape") return filled(node, result);
    std::vector<const Value*> operands;
    for (const ValueIndex input : node.inputs)
      operands.push_back(input == kNone ? nullptr : &value(input));
    return folded(node, operands, result.shape, result.is_real());
  }

  static std::optional<Numbers> filled(const Node& node, const Value& result) {
    if (count_of(result.shape) > kMostFolded) return std::nullopt;
    const auto count = static_cast<std::size_t>(count_of(result.shape));
    const double fill = real_of(node, "value", 0);
    if (result.is_real()) return std::vector<double>(count, fill);
    return std::vector<std::int64_t>(count, std::llround(fill));
  }

  Status constant(const ::onnx::NodeProto& proto, const Node& node, Names& names) {
    if (proto.output_size() != 1 || proto.attribute_size() < 1)
      return invalid(fmt::format("node '{}': a Constant has one value and one output", node.name));
    auto tensor = constant_tensor(proto.attribute(0));
    if (!tensor)
      return Error{Error::Code::kUnsupported,
                   fmt::format("node '{}': a Constant of kind '{}' is not supported", node.name,
                               proto.attribute(0).name())};
    Value value{.name = proto.output(0), .kind = Value::Kind::kConstant};
    const auto dtype = dtype_of(tensor->data_type());
    if (!dtype)
      return unsupported_type(fmt::format("constant '{}'", value.name), tensor->data_type());
    value.dtype = *dtype;
    for (const std::int64_t extent : tensor->dims()) value.shape.push_back(extent);
    FORESHARD_TRY(oversized(value));
    value.numbers = numbers_of(*tensor, kMostFolded);
    ::onnx::TypeProto type = type_of(tensor->data_type(), value.shape);
    names[proto.output(0)] = add(std::move(value), std::move(type));
    ++model_.folded;
    return {};
  }

  // --- shapes ------------------------------------------------------------------------------
  Result<std::vector<::onnx::TypeProto>> types_of(const ::onnx::NodeProto& proto,
                                                  const Node& node) {
    if (!node.domain.empty())
      return Error{Error::Code::kUnsupported, "operators of this domain are not supported"};
    ::onnx::NodeProto plain = older_form(proto, node);
    std::vector<::onnx::TensorProto> data(node.inputs.size());
    std::vector<Operand> operands(node.inputs.size());
    for (std::size_t i = 0; i < operands.size() && i < static_cast<std::size_t>(plain.input_size());
         ++i) {
      const ValueIndex input = node.inputs[i];
      if (input == kNone) continue;
      operands[i].type = &types_[static_cast<std::size_t>(input)];
      if (!value(input).numbers) continue;
      data[i] = tensor_of(*value(input).numbers, types_[static_cast<std::size_t>(input)]);
      operands[i].data = &data[i];
    }
    operands.resize(static_cast<std::size_t>(plain.input_size()));
    if (keeps_shape(node.op) && !operands.empty() && operands[0].type != nullptr)
      return std::vector<::onnx::TypeProto>{*operands[0].type};
    FORESHARD_ASSIGN(std::vector<::onnx::TypeProto> types,
                     inferred_types(std::move(plain), operands, node.opset));
    // Schemas before opset 10 leave the mask's type open: the mask is like the dropped tensor.
    if (node.op == "Dropout" && types.size() == 2 && !types[1].has_tensor_type())
      types[1] = types[0];
    if (types.size() < static_cast<std::size_t>(proto.output_size()))
      return invalid("it has more outputs than its operator");
    return types;
  }

  // Rewrites operators that are newer than libonnx's schemas (opset 17) in terms of those schemas.
  ::onnx::NodeProto older_form(const ::onnx::NodeProto& proto, const Node& node) const {
    ::onnx::NodeProto plain = proto;
    // The schemas of these are functions of other operators; their results have Greater's types.
    if (node.op == "GreaterOrEqual" || node.op == "LessOrEqual") plain.set_op_type("Greater");
    if (node.opset >= 18 && node.op.starts_with("Reduce") && node.op != "ReduceSum" &&
        node.inputs.size() == 2) {
      // Since opset 18 the axes are an input.
      const auto axes = node.inputs[1] == kNone ? std::nullopt : integers_of(value(node.inputs[1]));
      if (axes) {
        auto* attribute = plain.add_attribute();
        attribute->set_name("axes");
        attribute->set_type(::onnx::AttributeProto::INTS);
        for (const std::int64_t axis : *axes) attribute->add_ints(axis);
      }
      plain.mutable_input()->RemoveLast();
    }
    return plain;
  }
  // Whether it is an elementwise operator that libonnx's schemas do not have yet.
  static bool keeps_shape(const std::string& op) {
    return op == "Gelu" || op == "Mish" || op == "Swish" || op == "HardSwish";
  }

  Result<Value> computed(const Node& node, const std::string& name,
                         const ::onnx::TypeProto& type) const {
    if (!type.has_tensor_type())
      return Error{
          Error::Code::kUnsupported,
          fmt::format("node '{}' ({}): its result '{}' is not a tensor", node.name, node.op, name)};
    const auto dtype = dtype_of(type.tensor_type().elem_type());
    if (!dtype)
      return unsupported_type(
          fmt::format("node '{}' ({}): its result '{}'", node.name, node.op, name),
          type.tensor_type().elem_type());
    Value value{.name = name, .dtype = *dtype};
    bool known = type.tensor_type().has_shape();
    for (const auto& dim : type.tensor_type().shape().dim()) {
      known = known && dim.has_dim_value();
      value.shape.push_back(dim.dim_value());
    }
    if (!known)
      return invalid(
          fmt::format("node '{}' ({}): the shape of '{}' depends on values that are known "
                      "only when it runs; export the model with fixed shapes there",
                      node.name, node.op, name));
    FORESHARD_TRY(oversized(value));
    return value;
  }

  static Error at(const Node& node, const Error& error) {
    const std::string name = node.domain.empty() ? node.op : node.domain + "::" + node.op;
    if (error.code == Error::Code::kUnsupported)
      return {
          error.code,
          fmt::format("node '{}': operator '{}' (opset {}) is not supported: {}; export the model "
                      "with ONNX's own operators, or write the graph in YAML",
                      node.name, name, node.opset, error.message)};
    return {error.code, fmt::format("node '{}' ({}): {}", node.name, name, error.message)};
  }

  // --- loops and conditions ----------------------------------------------------------------
  static const ::onnx::GraphProto* graph_named(const ::onnx::NodeProto& proto,
                                               const std::string& name) {
    for (const auto& attribute : proto.attribute()) {
      if (attribute.name() == name && attribute.has_g()) return &attribute.g();
    }
    return nullptr;
  }

  Status condition(const ::onnx::NodeProto& proto, Node node, Names& names, Body& into, int depth) {
    const auto* yes = graph_named(proto, "then_branch");
    const auto* no = graph_named(proto, "else_branch");
    if (yes == nullptr || no == nullptr || node.inputs.size() != 1 || node.inputs[0] == kNone)
      return invalid(fmt::format("node '{}': an If has a condition and two branches", node.name));
    const auto known = integers_of(value(node.inputs[0]));
    const auto branch = [&](const ::onnx::GraphProto& graph, Body& body) -> Status {
      Names inner = names;
      FORESHARD_TRY(initializers(graph, inner));
      FORESHARD_TRY(this->body(graph, std::move(inner), body, depth + 1));
      if (body.outputs.size() == static_cast<std::size_t>(proto.output_size())) return {};
      return invalid(fmt::format("node '{}': a branch has {} outputs, not {}", node.name,
                                 body.outputs.size(), proto.output_size()));
    };
    if (known && known->size() == 1) {  // decided by shapes: only that branch is read
      Body taken;
      FORESHARD_TRY(branch(known->front() != 0 ? *yes : *no, taken));
      for (Node& inner : taken.nodes) into.nodes.push_back(std::move(inner));
      for (int i = 0; i < proto.output_size(); ++i)
        names[proto.output(i)] = taken.outputs[static_cast<std::size_t>(i)];
      ++model_.folded;
      return {};
    }
    Body taken;
    Body other;
    FORESHARD_TRY(branch(*yes, taken));
    FORESHARD_TRY(branch(*no, other));
    for (int i = 0; i < proto.output_size(); ++i) {
      const ValueIndex a = taken.outputs[static_cast<std::size_t>(i)];
      const ValueIndex b = other.outputs[static_cast<std::size_t>(i)];
      if (value(a).shape != value(b).shape)
        return Error{Error::Code::kUnsupported,
                     fmt::format("node '{}': the branches give '{}' different shapes", node.name,
                                 proto.output(i))};
      result(node, proto.output(i), a, names);
    }
    keep(node, "then_branch", std::move(taken));
    keep(node, "else_branch", std::move(other));
    into.nodes.push_back(std::move(node));
    return {};
  }

  void keep(Node& node, const std::string& name, Body body) {
    node.bodies[name] = model_.bodies.size();
    model_.bodies.push_back(std::move(body));
  }

  // Adds a result of `node`: a computed value with type and shape of `like`.
  void result(Node& node, const std::string& name, ValueIndex like, Names& names) {
    Value made{.name = name, .dtype = value(like).dtype, .shape = value(like).shape};
    ::onnx::TypeProto type = types_[static_cast<std::size_t>(like)];
    const ValueIndex index = add(std::move(made), std::move(type));
    node.outputs.push_back(index);
    names[name] = index;
  }

  Status loop(const ::onnx::NodeProto& proto, Node node, Names& names, Body& into, int depth) {
    const auto* graph = graph_named(proto, "body");
    const auto carried = static_cast<int>(node.inputs.size()) - 2;
    if (graph == nullptr || carried < 0 || graph->input_size() != carried + 2 ||
        graph->output_size() < carried + 1 || proto.output_size() != graph->output_size() - 1)
      return invalid(fmt::format(
          "node '{}': the inputs and outputs of its body do not fit the Loop", node.name));
    const auto trips = node.inputs[0] == kNone ? std::nullopt : integers_of(value(node.inputs[0]));
    if (!trips || trips->size() != 1)
      return invalid(
          fmt::format("node '{}': how often this Loop runs is known only when it runs; "
                      "export the model with a fixed number of iterations",
                      node.name));
    if (proto.output_size() > carried)
      return Error{
          Error::Code::kUnsupported,
          fmt::format(
              "node '{}': a Loop that collects the results of its iterations is not supported",
              node.name)};
    node.attributes["count"] = trips->front();
    Names inner = names;
    Body body_of;
    FORESHARD_TRY(initializers(*graph, inner));
    for (int i = 0; i < graph->input_size(); ++i) {
      const std::string& name = graph->input(i).name();
      const bool own = i < 2;  // the iteration's number and the condition
      Value made{.name = name, .dtype = i == 0 ? DType::kInt64 : DType::kInt8};
      ::onnx::TypeProto type =
          type_of(i == 0 ? ::onnx::TensorProto::INT64 : ::onnx::TensorProto::BOOL, {});
      if (!own) {
        const ValueIndex from = node.inputs[static_cast<std::size_t>(i)];
        if (from == kNone)
          return invalid(
              fmt::format("node '{}': a value that the Loop carries is left out", node.name));
        made.dtype = value(from).dtype;
        made.shape = value(from).shape;
        type = types_[static_cast<std::size_t>(from)];
      }
      const ValueIndex index = add(std::move(made), std::move(type));
      inner[name] = index;
      body_of.inputs.push_back(index);
    }
    FORESHARD_TRY(body(*graph, std::move(inner), body_of, depth + 1));
    for (int i = 0; i < carried; ++i) {
      const ValueIndex in = node.inputs[static_cast<std::size_t>(i) + 2];
      const ValueIndex out = body_of.outputs[static_cast<std::size_t>(i) + 1];
      if (value(in).shape != value(out).shape)
        return Error{Error::Code::kUnsupported,
                     fmt::format("node '{}': '{}' changes its shape from one iteration to the next",
                                 node.name, value(out).name)};
      result(node, proto.output(i), out, names);
    }
    keep(node, "body", std::move(body_of));
    into.nodes.push_back(std::move(node));
    return {};
  }

  const ReadOptions& options_;
  Model model_;
  std::vector<::onnx::TypeProto> types_;  // types of model_.values, by index
  std::int64_t count_ = 0;
  std::set<std::string> initializers_;
  std::set<std::string> used_;        // keys of options_.dims that were used
  std::set<std::string> batch_dims_;  // names of dimensions filled with options_.batch
};

}  // namespace

Result<Model> read_onnx(std::string_view bytes, const ReadOptions& options) {
  // Without this the parser would write its errors to stderr.
  const google::protobuf::LogSilencer silence;
  try {
    ::onnx::ModelProto file;
    if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      return invalid("it is larger than 2 GiB: export the weights as external data");
    if (!file.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return invalid(fmt::format(
          "it is not an ONNX file, or it is truncated or corrupt (its {} bytes do not parse)",
          bytes.size()));
    auto model = Reader(options).run(file);
    if (!model || !options.rebatch || !options.batch) return model;
    return with_batch(file, *std::move(model), *options.batch,
                      [&](const ::onnx::ModelProto& other) { return Reader(options).run(other); });
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return invalid(fmt::format("it is corrupt: {}", error.what()));
  }
}

}  // namespace foreshard::onnx_file
