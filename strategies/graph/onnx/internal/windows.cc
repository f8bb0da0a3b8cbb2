// Translations of ONNX operators on images: convolutions, pooling, and operators composed of them.
// The table of translations (translate.cc) refers to them. Shapes are [batch, channels, extents of
// the image ...]; pads list the beginnings of all dimensions of the image, then the ends.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "strategies/graph/onnx/internal/fold.h"
#include "strategies/graph/onnx/internal/translate.h"

namespace foreshard::onnx_file::windows {
namespace {

using namespace std::string_literals;

// Strides, dilations and pads of a window of extents `kernel`, with ONNX's defaults and automatic
// pads replaced by numbers. `rank` is the number of dimensions of the window.
Result<Settings> window(Scope& scope, const Node& node, const Shape& kernel) {
  const std::size_t rank = kernel.size();
  const auto strides = integers_of(node, "strides").value_or(Shape(rank, 1));
  const auto dilations = integers_of(node, "dilations").value_or(Shape(rank, 1));
  auto pads = integers_of(node, "pads").value_or(Shape(2 * rank, 0));
  if (strides.size() != rank || dilations.size() != rank || pads.size() != 2 * rank)
    return Error{
        Error::Code::kInvalidInput,
        fmt::format("node '{}' ({}): strides, dilations and pads do not fit a window of {} "
                    "dimensions",
                    node.name, node.op, rank)};
  const std::string automatic = text_of(node, "auto_pad", "NOTSET");
  if (automatic.starts_with("SAME")) {
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t in = shape_of(scope, node.inputs[0])[d + 2];
      const std::int64_t out = shape_of(scope, node.outputs[0])[d + 2];
      const std::int64_t needed = (out - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 - in;
      const std::int64_t total = std::max<std::int64_t>(needed, 0);
      const std::int64_t smaller_half = total / 2;
      pads[d] = automatic == "SAME_UPPER" ? smaller_half : total - smaller_half;
      pads[d + rank] = total - pads[d];
    }
  }
  return Settings{{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
}

// Emits the node's result: `product`, its result without bias, plus one number per channel. `rank`
// is the number of dimensions of the product.
Status biased(Scope& scope, const Node& node, TensorId product, std::size_t rank,
              std::int64_t channels) {
  Shape shape(rank - 1, 1);
  shape[0] = channels;
  FORESHARD_ASSIGN(const auto bias,
                   reshaped(scope, node, "bias", scope.tensor(node.inputs[2]), shape));
  return emit(scope, node, "binary", {product, bias}, {{"operation", "add"s}});
}

// The window of a transposed convolution. A transposed convolution computes the gradient of a
// convolution with respect to its input, so the node's output has the shape of that convolution's
// input. Where the file gives the output's shape or asks for automatic pads, the pads follow from
// the shapes.
Result<Settings> transposed_window(Scope& scope, const Node& node, const Shape& weight) {
  const Shape kernel(weight.begin() + 2, weight.end());
  FORESHARD_ASSIGN(Settings settings, window(scope, node, kernel));
  const Shape& in = shape_of(scope, node.inputs[0]);
  const Shape& out = shape_of(scope, node.outputs[0]);
  const std::size_t rank = kernel.size();
  const bool pads_follow = integers_of(node, "output_shape").has_value() ||
                           text_of(node, "auto_pad", "NOTSET").starts_with("SAME");
  if (pads_follow) {
    const auto extra = integers_of(node, "output_padding").value_or(Shape(rank, 0));
    Shape pads(2 * rank, 0);
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t full = settings.integers("strides")[d] * (in[d + 2] - 1) + extra[d] +
                                settings.integers("dilations")[d] * (kernel[d] - 1) + 1;
      const std::int64_t total = std::max<std::int64_t>(full - out[d + 2], 0);
      pads[d] = total / 2;
      pads[d + rank] = total - pads[d];
    }
    settings.set("pads", pads);
  }
  settings.set("shape", out);
  return settings;
}

}  // namespace

Status convolution(Scope& scope, const Node& node) {
  const Shape& weight = shape_of(scope, node.inputs[1]);
  FORESHARD_ASSIGN(const auto settings,
                   window(scope, node, Shape(weight.begin() + 2, weight.end())));
  const std::vector<TensorId> operands{scope.tensor(node.inputs[0]), scope.tensor(node.inputs[1])};
  if (input(node, 2) == kNone) return emit(scope, node, "conv", operands, settings);
  FORESHARD_ASSIGN(const auto product, step(scope, node, "product", "conv", operands, settings));
  return biased(scope, node, product, weight.size(), weight[0]);
}

Status pool(Scope& scope, const Node& node) {
  if (std::ranges::count(node.outputs, kNone) + 1 < std::ssize(node.outputs))
    return unsupported(node, "the indices of its maxima are not supported");
  Settings settings{{"operation", node.op.ends_with("MaxPool") ? "max"s : "mean"s}};
  if (!node.op.starts_with("Global")) {
    const auto kernel = integers_of(node, "kernel_shape").value_or(Shape{});
    FORESHARD_ASSIGN(const auto steps, window(scope, node, kernel));
    for (const auto& [name, value] : steps.all()) settings.set(name, value);
    settings.set("kernel", kernel);
    settings.set("ceiling", integer_of(node, "ceil_mode", 0) != 0);
  }
  return emit(scope, node, "pool", {scope.tensor(node.inputs[0])}, settings);
}

Status transposed_convolution(Scope& scope, const Node& node) {
  const Shape& weight = shape_of(scope, node.inputs[1]);
  FORESHARD_ASSIGN(const auto settings, transposed_window(scope, node, weight));
  const std::vector<TensorId> operands{scope.tensor(node.inputs[0]), scope.tensor(node.inputs[1])};
  if (input(node, 2) == kNone) return emit(scope, node, "conv_data_gradient", operands, settings);
  FORESHARD_ASSIGN(const auto product,
                   step(scope, node, "product", "conv_data_gradient", operands, settings));
  return biased(scope, node, product, weight.size(), shape_of(scope, node.outputs[0])[1]);
}

// x / (bias + alpha * mean of x^2 over `size` neighbouring channels)^beta, as the operators that
// PyTorch runs (torch/nn/functional.py, local_response_norm).
Status local_response_norm(Scope& scope, const Node& node) {
  const TensorId x = scope.tensor(node.inputs[0]);
  const Shape shape = shape_of(scope, node.inputs[0]);
  const std::int64_t size = integer_of(node, "size", 1);
  const std::int64_t pixels = shape.size() < 3 ? 0 : count_of(shape) / (shape[0] * shape[1]);
  if (pixels == 0 || size < 1)
    return unsupported(node, "only norms over channels of images are supported");
  // A constant of one element, whose value does not affect costs.
  const auto number = [&](const char* name) {
    return scope.constant(node.name + "." + name, {scope.graph()[x].dtype, {1}});
  };
  auto y = step(scope, node, "square", "unary", {x}, {{"operation", "square"s}});
  if (y)
    y = step(scope, node, "flat", "reshape", {*y},
             {{"shape", Shape{shape[0], 1, shape[1], pixels}}});
  if (y)
    y = step(scope, node, "mean", "pool", {*y},
             {{"operation", "mean"s},
              {"kernel", Shape{size, 1}},
              {"pads", Shape{size / 2, 0, (size - 1) / 2, 0}}});
  if (y) y = step(scope, node, "shape", "reshape", {*y}, {{"shape", shape}});
  if (y)
    y = step(scope, node, "scale", "unary", {*y},
             {{"operation", "scale"s}, {"value", real_of(node, "alpha", 1e-4)}});
  if (y) y = step(scope, node, "sum", "binary", {*y, number("bias")}, {{"operation", "add"s}});
  if (y) y = step(scope, node, "power", "binary", {*y, number("beta")}, {{"operation", "pow"s}});
  if (!y) return y.error();
  return emit(scope, node, "binary", {x, *y}, {{"operation", "div"s}});
}

// Nearest-neighbour enlargement by a whole factor in each dimension, which repeats every element.
Status resize(Scope& scope, const Node& node) {
  const Shape in = shape_of(scope, node.inputs[0]);
  const Shape out = shape_of(scope, node.outputs[0]);
  if (in == out) {
    scope.set(node.outputs[0], scope.tensor(node.inputs[0]));
    return {};
  }
  if (text_of(node, "mode", "nearest") != "nearest")
    return unsupported(node, fmt::format("mode '{}' is not supported, only 'nearest'",
                                         text_of(node, "mode", "nearest")));
  Shape apart;     // `in`, with an extent of 1 after each dimension that grows
  Shape repeated;  // `apart`, with the factor in place of each such 1
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (in[d] == 0 || out[d] % in[d] != 0)
      return unsupported(node,
                         fmt::format("from {} to {} elements is no whole factor", in[d], out[d]));
    apart.push_back(in[d]);
    repeated.push_back(in[d]);
    if (out[d] == in[d]) continue;
    apart.push_back(1);
    repeated.push_back(out[d] / in[d]);
  }
  FORESHARD_ASSIGN(const auto pieces,
                   reshaped(scope, node, "apart", scope.tensor(node.inputs[0]), apart));
  FORESHARD_ASSIGN(const auto copies,
                   step(scope, node, "copies", "expand", {pieces}, {{"shape", repeated}}));
  return emit(scope, node, "reshape", {copies}, {{"shape", out}});
}

}  // namespace foreshard::onnx_file::windows
