#include "strategies/graph/onnx/internal/translate.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "strategies/graph/onnx/internal/fold.h"

namespace foreshard::onnx_file {
Error unsupported(const Node& node, const std::string& why) {
  return {Error::Code::kUnsupported, fmt::format("node '{}' ({}): {}", node.name, node.op, why)};
}

const Shape& shape_of(Scope& scope, ValueIndex index) {
  return scope.value(index).shape;
}
ValueIndex input(const Node& node, std::size_t index) {
  return index < node.inputs.size() ? node.inputs[index] : kNone;
}

Status emit(Scope& scope, const Node& node, std::string type, std::vector<TensorId> inputs,
            Settings settings) {
  FORESHARD_ASSIGN(auto made, add_operator(scope.graph(), {.type = std::move(type),
                                                           .name = node.name,
                                                           .inputs = std::move(inputs),
                                                           .settings = std::move(settings)}));
  scope.set(node.outputs[0], made.front());
  return {};
}

Result<TensorId> step(Scope& scope, const Node& node, const std::string& part, std::string type,
                      std::vector<TensorId> inputs, Settings settings) {
  return add_single(scope.graph(), {.type = std::move(type),
                                    .name = node.name + "." + part,
                                    .inputs = std::move(inputs),
                                    .settings = std::move(settings)});
}

Result<TensorId> reshaped(Scope& scope, const Node& node, const std::string& part, TensorId tensor,
                          const Shape& shape) {
  if (scope.graph()[tensor].shape == shape) return tensor;
  return step(scope, node, part, "reshape", {tensor}, {{"shape", shape}});
}

namespace {

using namespace std::string_literals;

std::int64_t positive_axis(std::int64_t axis, const Shape& shape) {
  return axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis;
}

// A list of integers from an attribute or, in newer versions, from an input.
std::optional<std::vector<std::int64_t>> listed(Scope& scope, const Node& node,
                                                const std::string& name, std::size_t index) {
  if (auto attribute = integers_of(node, name)) return attribute;
  const ValueIndex from = input(node, index);
  if (from == kNone) return std::nullopt;
  return integers_of(scope.value(from));
}

// --- element by element ----------------------------------------------------------------------
Status unary(Scope& scope, const Node& node) {
  static const std::map<std::string, std::string> names{{"Abs", "abs"},
                                                        {"Ceil", "ceil"},
                                                        {"Clip", "clip"},
                                                        {"Cos", "cos"},
                                                        {"Elu", "elu"},
                                                        {"Erf", "erf"},
                                                        {"Exp", "exp"},
                                                        {"Floor", "floor"},
                                                        {"Gelu", "gelu"},
                                                        {"HardSigmoid", "hard_sigmoid"},
                                                        {"HardSwish", "hard_swish"},
                                                        {"Log", "log"},
                                                        {"LeakyRelu", "leaky_relu"},
                                                        {"Neg", "neg"},
                                                        {"Not", "not"},
                                                        {"Relu", "relu"},
                                                        {"Reciprocal", "reciprocal"},
                                                        {"Round", "round"},
                                                        {"Sigmoid", "sigmoid"},
                                                        {"Sign", "sign"},
                                                        {"Sin", "sin"},
                                                        {"Softplus", "softplus"},
                                                        {"Sqrt", "sqrt"},
                                                        {"Swish", "silu"},
                                                        {"Tanh", "tanh"}};
  Settings settings{{"operation", names.at(node.op)}};
  if (node.op == "Elu" || node.op == "LeakyRelu")
    settings.set("value", real_of(node, "alpha", node.op == "Elu" ? 1.0 : 0.01));
  if (node.op == "HardSigmoid") settings.set("value", real_of(node, "alpha", 0.2));
  return emit(scope, node, "unary", {scope.tensor(node.inputs[0])}, settings);
}

Status binary(Scope& scope, const Node& node) {
  static const std::map<std::string, std::string> names{
      {"Add", "add"},   {"And", "and"}, {"Div", "div"}, {"Equal", "equal"}, {"Greater", "greater"},
      {"Less", "less"}, {"Max", "max"}, {"Min", "min"}, {"Mod", "mod"},     {"Mul", "mul"},
      {"Or", "or"},     {"Pow", "pow"}, {"Sub", "sub"}, {"Sum", "add"}};
  const std::string& operation = names.at(node.op);
  TensorId sum = scope.tensor(node.inputs[0]);
  if (node.inputs.size() == 1) {
    scope.set(node.outputs[0], sum);
    return {};
  }
  for (std::size_t i = 1; i + 1 < node.inputs.size(); ++i) {
    FORESHARD_ASSIGN(sum, step(scope, node, std::to_string(i), "binary",
                               {sum, scope.tensor(node.inputs[i])}, {{"operation", operation}}));
  }
  return emit(scope, node, "binary", {sum, scope.tensor(node.inputs.back())},
              {{"operation", operation}});
}

// a >= b is not (a < b).
Status not_strict(Scope& scope, const Node& node) {
  FORESHARD_ASSIGN(const auto strict,
                   step(scope, node, "strict", "binary",
                        {scope.tensor(node.inputs[0]), scope.tensor(node.inputs[1])},
                        {{"operation", node.op == "GreaterOrEqual" ? "less"s : "greater"s}}));
  return emit(scope, node, "unary", {strict}, {{"operation", "not"s}});
}

Status where(Scope& scope, const Node& node) {
  return emit(
      scope, node, "where",
      {scope.tensor(node.inputs[0]), scope.tensor(node.inputs[1]), scope.tensor(node.inputs[2])});
}

Status same(Scope& scope, const Node& node) {
  scope.set(node.outputs[0], scope.tensor(node.inputs[0]));
  return {};
}

Status cast(Scope& scope, const Node& node) {
  const TensorId from = scope.tensor(node.inputs[0]);
  const Value& to = scope.value(node.outputs[0]);
  const DType wanted = to.is_real() ? scope.options().precision : to.dtype;
  if (scope.graph()[from].dtype == wanted) return same(scope, node);
  return emit(scope, node, "cast", {from}, {{"to", std::string(name_of(wanted))}});
}

// Dropout, with its mask if something reads it. Outside of training, everything is kept.
Status dropout(Scope& scope, const Node& node) {
  const bool masked = node.outputs.size() > 1 && node.outputs[1] != kNone;
  if (!scope.options().training) {
    if (masked)
      scope.set(node.outputs[1], scope.constant(node.name + ".mask",
                                                {DType::kInt8, shape_of(scope, node.outputs[1])}));
    return same(scope, node);
  }
  double rate = real_of(node, "ratio", 0.5);
  const ValueIndex given = input(node, 1);
  if (given != kNone && scope.value(given).numbers) {
    const auto* reals = std::get_if<std::vector<double>>(&*scope.value(given).numbers);
    if (reals != nullptr && reals->size() == 1) rate = reals->front();
  }
  FORESHARD_ASSIGN(const auto made,
                   add_operator(scope.graph(), {.type = "dropout",
                                                .name = node.name,
                                                .inputs = {scope.tensor(node.inputs[0])},
                                                .settings = {{"rate", rate}}}));
  scope.set(node.outputs[0], made[0]);
  if (masked) scope.set(node.outputs[1], made[1]);
  return {};
}

// --- products --------------------------------------------------------------------------------
Status matmul(Scope& scope, const Node& node) {
  return emit(scope, node, "matmul", {scope.tensor(node.inputs[0]), scope.tensor(node.inputs[1])});
}

Status gemm(Scope& scope, const Node& node) {
  const Settings settings{{"transpose_a", integer_of(node, "transA", 0) != 0},
                          {"transpose_b", integer_of(node, "transB", 0) != 0}};
  const std::vector<TensorId> operands{scope.tensor(node.inputs[0]), scope.tensor(node.inputs[1])};
  if (input(node, 2) == kNone) return emit(scope, node, "matmul", operands, settings);
  FORESHARD_ASSIGN(const auto product, step(scope, node, "product", "matmul", operands, settings));
  return emit(scope, node, "binary", {product, scope.tensor(node.inputs[2])},
              {{"operation", "add"s}});
}

Status einsum(Scope& scope, const Node& node) {
  std::string equation = text_of(node, "equation", "");
  std::erase(equation, ' ');
  std::vector<TensorId> operands;
  for (const ValueIndex each : node.inputs) operands.push_back(scope.tensor(each));
  if (equation.find("->") == std::string::npos || equation.find('.') != std::string::npos)
    return unsupported(node, "only equations with '->' and without '...' are supported");
  return emit(scope, node, "einsum", operands, {{"equation", equation}});
}

// --- norms -----------------------------------------------------------------------------------
// Normalises, in training, by the statistics of each replica, as frameworks do by default; else by
// the statistics in the file.
Status batch_norm(Scope& scope, const Node& node) {
  const TensorId x = scope.tensor(node.inputs[0]);
  const std::int64_t channels = shape_of(scope, node.inputs[0]).at(1);
  TensorId statistics;
  if (scope.options().training) {
    const auto made =
        step(scope, node, "statistics", "batch_statistics", {x}, {{"scope", "replica"s}});
    if (!made) return made.error();
    statistics = *made;
  } else {
    statistics = scope.constant(node.name + ".statistics", {DType::kFp32, {2, channels}});
  }
  return emit(scope, node, "batch_norm",
              {x, scope.tensor(node.inputs[1]), scope.tensor(node.inputs[2]), statistics},
              {{"scope", "replica"s}});
}

Status layer_norm(Scope& scope, const Node& node) {
  const ValueIndex shift = input(node, 2);
  const TensorId scale = scope.tensor(node.inputs[1]);
  const TensorId bias =
      shift != kNone ? scope.tensor(shift)
                     : scope.constant(node.name + ".shift",
                                      {scope.graph()[scale].dtype, scope.graph()[scale].shape});
  return emit(scope, node, "layer_norm", {scope.tensor(node.inputs[0]), scale, bias},
              {{"axis", integer_of(node, "axis", -1)}});
}

Status softmax(Scope& scope, const Node& node) {
  const Shape& shape = shape_of(scope, node.inputs[0]);
  const bool old = node.opset < 13;
  const std::int64_t axis = positive_axis(integer_of(node, "axis", old ? 1 : -1), shape);
  TensorId x = scope.tensor(node.inputs[0]);
  const bool logarithm = node.op == "LogSoftmax";
  // Before opset 13 all dimensions from the axis on are normalised together.
  const bool together = old && axis + 1 < std::ssize(shape);
  if (!together && !logarithm) return emit(scope, node, "softmax", {x}, {{"axis", axis}});
  if (together) {
    std::int64_t rows = 1;
    for (std::int64_t d = 0; d < axis; ++d) rows *= shape[static_cast<std::size_t>(d)];
    const auto flat =
        reshaped(scope, node, "flat", x, {rows, count_of(shape) / std::max<std::int64_t>(rows, 1)});
    if (!flat) return flat.error();
    x = *flat;
  }
  auto y =
      step(scope, node, "softmax", "softmax", {x}, {{"axis", together ? std::int64_t{1} : axis}});
  if (y && logarithm) y = step(scope, node, "log", "unary", {*y}, {{"operation", "log"s}});
  if (y && together) y = reshaped(scope, node, "shape", *y, shape);
  if (!y) return y.error();
  scope.set(node.outputs[0], *y);
  return {};
}

Status reduce(Scope& scope, const Node& node) {
  static const std::map<std::string, std::string> names{
      {"ReduceMax", "max"}, {"ReduceMean", "mean"}, {"ReduceMin", "min"}, {"ReduceSum", "sum"}};
  const auto axes = listed(scope, node, "axes", 1);
  if ((!axes || axes->empty()) && integer_of(node, "noop_with_empty_axes", 0) != 0)
    return same(scope, node);
  Integers dimensions;
  for (const std::int64_t axis : axes.value_or(Integers{}))
    dimensions.push_back(positive_axis(axis, shape_of(scope, node.inputs[0])));
  return emit(scope, node, "reduce", {scope.tensor(node.inputs[0])},
              {{"operation", names.at(node.op)},
               {"axes", dimensions},
               {"keep_dims", integer_of(node, "keepdims", 1) != 0}});
}

// --- shapes ----------------------------------------------------------------------------------
Status reshape(Scope& scope, const Node& node) {
  const TensorId x = scope.tensor(node.inputs[0]);
  const Shape& shape = shape_of(scope, node.outputs[0]);
  if (scope.graph()[x].shape == shape) return same(scope, node);
  return emit(scope, node, "reshape", {x}, {{"shape", shape}});
}

Status expand(Scope& scope, const Node& node) {
  const TensorId x = scope.tensor(node.inputs[0]);
  const Shape& shape = shape_of(scope, node.outputs[0]);
  if (scope.graph()[x].shape == shape) return same(scope, node);
  return emit(scope, node, "expand", {x}, {{"shape", shape}});
}

Status transpose(Scope& scope, const Node& node) {
  const Shape& shape = shape_of(scope, node.inputs[0]);
  Integers order = integers_of(node, "perm").value_or(Integers{});
  if (order.empty())
    for (std::size_t d = shape.size(); d-- > 0;) order.push_back(static_cast<std::int64_t>(d));
  return emit(scope, node, "transpose", {scope.tensor(node.inputs[0])}, {{"order", order}});
}

Status concat(Scope& scope, const Node& node) {
  std::vector<TensorId> pieces;
  for (const ValueIndex each : node.inputs) pieces.push_back(scope.tensor(each));
  if (pieces.size() == 1) return same(scope, node);
  const std::int64_t axis =
      positive_axis(integer_of(node, "axis", 0), shape_of(scope, node.outputs[0]));
  return emit(scope, node, "concat", pieces, {{"axis", axis}});
}

Status split(Scope& scope, const Node& node) {
  const Shape& shape = shape_of(scope, node.inputs[0]);
  const std::int64_t axis = positive_axis(integer_of(node, "axis", 0), shape);
  Integers sizes;
  for (const ValueIndex output : node.outputs) {
    if (output == kNone) return unsupported(node, "outputs that are left out are not supported");
    sizes.push_back(shape_of(scope, output).at(static_cast<std::size_t>(axis)));
  }
  FORESHARD_ASSIGN(const auto pieces,
                   add_operator(scope.graph(), {.type = "split",
                                                .name = node.name,
                                                .inputs = {scope.tensor(node.inputs[0])},
                                                .settings = {{"axis", axis}, {"sizes", sizes}}}));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) scope.set(node.outputs[i], pieces[i]);
  return {};
}

Status slice(Scope& scope, const Node& node) {
  const Shape& shape = shape_of(scope, node.inputs[0]);
  const auto starts = listed(scope, node, "starts", 1);
  const auto ends = listed(scope, node, "ends", 2);
  auto axes = listed(scope, node, "axes", 3);
  const auto steps =
      input(node, 4) == kNone ? std::nullopt : integers_of(scope.value(node.inputs[4]));
  if (!starts || !ends || starts->size() != ends->size())
    return unsupported(node, "bounds that are known only when it runs are not supported");
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  TensorId x = scope.tensor(node.inputs[0]);
  for (std::size_t i = 0; i < starts->size() && i < axes->size(); ++i) {
    const std::int64_t axis = positive_axis((*axes)[i], shape);
    const std::int64_t extent = shape.at(static_cast<std::size_t>(axis));
    const std::int64_t by = steps && i < steps->size() ? (*steps)[i] : 1;
    if (by < 1) return unsupported(node, "slices backwards are not supported");
    const auto bound = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent);
    };
    const std::int64_t start = bound((*starts)[i]);
    const std::int64_t end = bound((*ends)[i]);
    if (start == 0 && end == extent && by == 1) continue;
    FORESHARD_ASSIGN(x, step(scope, node, std::to_string(i), "slice", {x},
                             {{"axis", axis}, {"start", start}, {"end", end}, {"step", by}}));
  }
  scope.set(node.outputs[0], x);
  return {};
}

Status pad(Scope& scope, const Node& node) {
  const Shape& shape = shape_of(scope, node.inputs[0]);
  const auto pads = listed(scope, node, "pads", 1);
  const std::size_t rank = shape.size();
  if (!pads || pads->size() != 2 * rank || text_of(node, "mode", "constant") != "constant")
    return unsupported(node, "only padding with a constant by known amounts is supported");
  TensorId x = scope.tensor(node.inputs[0]);
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t before = (*pads)[d];
    const std::int64_t after = (*pads)[d + rank];
    if (before < 0 || after < 0) return unsupported(node, "negative pads are not supported");
    if (before == 0 && after == 0) continue;
    const auto next =
        step(scope, node, std::to_string(d), "pad", {x},
             {{"axis", static_cast<std::int64_t>(d)}, {"before", before}, {"after", after}});
    if (!next) return next.error();
    x = *next;
  }
  scope.set(node.outputs[0], x);
  return {};
}

// Looking up rows of a table is an embedding; one index is a slice; everything else is a gather.
Status gather(Scope& scope, const Node& node) {
  const Value& data = scope.value(node.inputs[0]);
  const Value& indices = scope.value(node.inputs[1]);
  const std::int64_t axis = positive_axis(integer_of(node, "axis", 0), data.shape);
  const auto known = integers_of(indices);
  if (known && known->size() == 1) {
    const std::int64_t extent = data.shape.at(static_cast<std::size_t>(axis));
    const std::int64_t at = known->front() < 0 ? known->front() + extent : known->front();
    FORESHARD_ASSIGN(const auto row,
                     step(scope, node, "row", "slice", {scope.tensor(node.inputs[0])},
                          {{"axis", axis}, {"start", at}, {"end", at + 1}}));
    FORESHARD_ASSIGN(const auto shaped,
                     reshaped(scope, node, "shape", row, shape_of(scope, node.outputs[0])));
    scope.set(node.outputs[0], shaped);
    return {};
  }
  const std::vector<TensorId> operands{scope.tensor(node.inputs[0]), scope.tensor(node.inputs[1])};
  if (axis == 0 && data.kind == Value::Kind::kParameter && data.shape.size() == 2)
    return emit(scope, node, "embedding", {operands[1], operands[0]});
  return emit(scope, node, "gather", operands, {{"axis", axis}});
}

Status top_k(Scope& scope, const Node& node) {
  const Shape& shape = shape_of(scope, node.outputs[0]);
  if (positive_axis(integer_of(node, "axis", -1), shape) + 1 != std::ssize(shape))
    return unsupported(node, "only the last dimension is supported");
  FORESHARD_ASSIGN(const auto made,
                   add_operator(scope.graph(), {.type = "top_k",
                                                .name = node.name,
                                                .inputs = {scope.tensor(node.inputs[0])},
                                                .settings = {{"k", shape.back()}}}));
  for (std::size_t i = 0; i < node.outputs.size() && i < made.size(); ++i)
    if (node.outputs[i] != kNone) scope.set(node.outputs[i], made[i]);
  return {};
}

const std::map<std::string, Translate>& translations() {
  using windows::convolution, windows::pool, windows::transposed_convolution;
  using windows::local_response_norm, windows::resize;
  static const std::map<std::string, Translate> table{{"Abs", unary},
                                                      {"Add", binary},
                                                      {"And", binary},
                                                      {"AveragePool", pool},
                                                      {"BatchNormalization", batch_norm},
                                                      {"Cast", cast},
                                                      {"Ceil", unary},
                                                      {"Clip", unary},
                                                      {"Concat", concat},
                                                      {"Conv", convolution},
                                                      {"ConvTranspose", transposed_convolution},
                                                      {"Cos", unary},
                                                      {"Div", binary},
                                                      {"Dropout", dropout},
                                                      {"Einsum", einsum},
                                                      {"Elu", unary},
                                                      {"Equal", binary},
                                                      {"Erf", unary},
                                                      {"Exp", unary},
                                                      {"Expand", expand},
                                                      {"Flatten", reshape},
                                                      {"Floor", unary},
                                                      {"Gather", gather},
                                                      {"Gelu", unary},
                                                      {"Gemm", gemm},
                                                      {"HardSigmoid", unary},
                                                      {"HardSwish", unary},
                                                      {"LRN", local_response_norm},
                                                      {"Resize", resize},
                                                      {"Upsample", resize},
                                                      {"GlobalAveragePool", pool},
                                                      {"GlobalMaxPool", pool},
                                                      {"Greater", binary},
                                                      {"GreaterOrEqual", not_strict},
                                                      {"Identity", same},
                                                      {"LayerNormalization", layer_norm},
                                                      {"LeakyRelu", unary},
                                                      {"Less", binary},
                                                      {"LessOrEqual", not_strict},
                                                      {"Log", unary},
                                                      {"LogSoftmax", softmax},
                                                      {"MatMul", matmul},
                                                      {"Max", binary},
                                                      {"MaxPool", pool},
                                                      {"Min", binary},
                                                      {"Mod", binary},
                                                      {"Mul", binary},
                                                      {"Neg", unary},
                                                      {"Not", unary},
                                                      {"Or", binary},
                                                      {"Pad", pad},
                                                      {"Pow", binary},
                                                      {"Reciprocal", unary},
                                                      {"ReduceMax", reduce},
                                                      {"ReduceMean", reduce},
                                                      {"ReduceMin", reduce},
                                                      {"ReduceSum", reduce},
                                                      {"Relu", unary},
                                                      {"Reshape", reshape},
                                                      {"Round", unary},
                                                      {"Sigmoid", unary},
                                                      {"Sign", unary},
                                                      {"Sin", unary},
                                                      {"Slice", slice},
                                                      {"Softmax", softmax},
                                                      {"Softplus", unary},
                                                      {"Split", split},
                                                      {"Sqrt", unary},
                                                      {"Squeeze", reshape},
                                                      {"Sub", binary},
                                                      {"Sum", binary},
                                                      {"Swish", unary},
                                                      {"Tanh", unary},
                                                      {"TopK", top_k},
                                                      {"Transpose", transpose},
                                                      {"Unsqueeze", reshape},
                                                      {"Where", where}};
  return table;
}

}  // namespace

Translate find_translation(const std::string& op) {
  const auto found = translations().find(op);
  return found == translations().end() ? nullptr : found->second;
}

std::vector<std::string> translated_operators() {
  std::vector<std::string> names;
  names.reserve(translations().size());
  for (const auto& [name, translate] : translations()) names.push_back(name);
  return names;
}

}  // namespace foreshard::onnx_file
