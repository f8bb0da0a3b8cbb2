// Convolution over any number of spatial dimensions, as the matrix product that implicit-GEMM
// kernels compute: per group, rows are batch x output positions, columns output channels, and the
// contracted dimension is input channels x window.
// Source: Chetlur et al., "cuDNN: efficient primitives for deep learning", 2014.
// Not modelled: splits of spatial dimensions (they need the neighbours' borders), Winograd and FFT
// algorithms (fewer operations than counted).
#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

constexpr std::int64_t kMostWindow = 1 << 20;

// A window, with one number per spatial dimension. (The settings may also give one number for all
// dimensions, or none for the default.)
struct Window {
  Shape kernel;
  Shape strides;
  Shape dilations;
  Shape before;
  Shape after;
};

Result<Shape> each(const Settings& settings, const char* name, std::size_t spatial,
                   std::int64_t fallback, std::int64_t least) {
  Shape values = settings.integers(name);
  if (values.empty()) values = {fallback};
  if (values.size() == 1) values.resize(spatial, values[0]);
  if (values.size() != spatial)
    return wrong(std::string(name) + " " + text_of(values) + " must have " +
                 std::to_string(spatial) + " numbers, one for each spatial dimension");
  for (const std::int64_t value : values)
    if (value < least || value > kMostWindow)
      return wrong(std::string(name) + " must be between " + std::to_string(least) + " and " +
                   std::to_string(kMostWindow));
  return values;
}

Result<Window> window_of(const Settings& settings, Shape kernel) {
  const std::size_t spatial = kernel.size();
  Window window{
      .kernel = std::move(kernel), .strides = {}, .dilations = {}, .before = {}, .after = {}};
  FORESHARD_ASSIGN(window.strides, each(settings, "strides", spatial, 1, 1));
  FORESHARD_ASSIGN(window.dilations, each(settings, "dilations", spatial, 1, 1));
  Shape pads = settings.integers("pads");
  if (pads.empty()) pads = {0};
  if (pads.size() == 1) pads.resize(2 * spatial, pads[0]);
  if (pads.size() != 2 * spatial)
    return wrong("pads " + text_of(pads) + " must have " + std::to_string(2 * spatial) +
                 " numbers: before each spatial dimension, then behind each");
  for (const std::int64_t pad : pads)
    if (pad < 0 || pad > kMostWindow)
      return wrong("pads must be between 0 and " + std::to_string(kMostWindow));
  window.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(spatial));
  window.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(spatial), pads.end());
  return window;
}

// Spatial extents of the result: floor((extent + pads - dilation (kernel - 1) - 1) / stride) + 1;
// with `ceiling` (pooling only), ceil in place of floor.
Result<Shape> moved_over(const Window& window, const Shape& x, bool ceiling) {
  Shape out;
  for (std::size_t d = 0; d < window.kernel.size(); ++d) {
    const std::int64_t span = window.dilations[d] * (window.kernel[d] - 1) + 1;
    const std::int64_t room = x[d + 2] + window.before[d] + window.after[d] - span;
    if (room < 0)
      return wrong("a window of " + std::to_string(span) + " does not fit dimension " +
                   std::to_string(d + 2) + " of size " + std::to_string(x[d + 2]) + " with pads " +
                   std::to_string(window.before[d]) + " and " + std::to_string(window.after[d]));
    out.push_back((room + (ceiling ? window.strides[d] - 1 : 0)) / window.strides[d] + 1);
  }
  return out;
}

// Dimensions of input, weight and result in a rule, for any order and role of them.
struct ConvolutionFactors {
  RuleMaker make;
  RuleMaker::Dimensions x;
  RuleMaker::Dimensions weight;
  RuleMaker::Dimensions y;
};

ConvolutionFactors factors_of(const Shape& x, const Shape& weight, const Shape& y) {
  ConvolutionFactors f;
  const std::int64_t groups = x[1] / weight[1];
  const std::int32_t batch = f.make.factor(x[0], false, "batch");
  const std::int32_t group = f.make.factor(groups, false, "group");
  const std::int32_t in = f.make.factor(weight[1], false, "in");
  const std::int32_t out = f.make.factor(weight[0] / groups, false, "out");
  f.x = {{batch}, {group, in}};
  f.weight = {{group, out}, {in}};
  f.y = {{batch}, {group, out}};
  f.x.resize(x.size());
  f.weight.resize(weight.size());
  f.y.resize(y.size());
  return f;
}

// The output's shape for input x and weight.
Result<Shape> convolved(const Settings& settings, const Shape& x, const Shape& weight) {
  if (x.size() < 3 || weight.size() != x.size())
    return wrong("needs input [batch, channels, ...] and weight [out, in / groups, ...], not " +
                 text_of(x) + " and " + text_of(weight));
  if (weight[1] == 0 || x[1] % weight[1] != 0 || x[1] == 0 || weight[0] % (x[1] / weight[1]) != 0)
    return wrong("channels do not group: input " + text_of(x) + ", weight " + text_of(weight) +
                 "; the weight's second dimension divides the input's channels, and the number of "
                 "groups that makes divides the weight's first");
  FORESHARD_ASSIGN(const auto window, window_of(settings, Shape(weight.begin() + 2, weight.end())));
  FORESHARD_ASSIGN(const auto spatial, moved_over(window, x, false));
  Shape y{x[0], weight[0]};
  y.insert(y.end(), spatial.begin(), spatial.end());
  return y;
}

Result<Inferred> infer_conv(const Call& call) {
  const Shape& x = call.inputs[0].shape;
  const Shape& weight = call.inputs[1].shape;
  if (call.inputs[0].dtype != call.inputs[1].dtype) return wrong("input and weight differ in type");
  FORESHARD_ASSIGN(const auto y, convolved(call.settings, x, weight));
  auto f = factors_of(x, weight, y);
  f.make.input(f.x).input(f.weight).output(f.y);
  return Inferred{{{call.inputs[0].dtype, y}}, f.make.take(Linearity::kSeparate)};
}

std::int64_t spatial(const Shape& shape) {
  return product(Shape(shape.begin() + 2, shape.end()));
}

// One product per group; the forward pass and both gradients have the same multiplications.
std::vector<Kernel> conv_kernels(const Call& local, const Call&) {
  const Shape& x = local.inputs[0].shape;
  const Shape& weight = local.inputs[1].shape;
  const Shape& y = local.outputs[0].shape;
  const std::int64_t groups = x[1] / weight[1];
  return {Gemm{.batch = groups,
               .m = y[0] * spatial(y),
               .n = y[1] / groups,
               .k = weight[1] * spatial(weight),
               .dtype = local.inputs[0].dtype}};
}

void conv_backward(Gradients& gradients) {
  const TensorId dy = gradients.of_output(0);
  Settings settings = gradients.op().settings;
  if (gradients.wants(0)) {
    settings.set("shape", gradients.shape(gradients.input(0)));
    gradients.give(
        0, gradients.add("conv_data_gradient", "data", {dy, gradients.input(1)}, settings)[0]);
  }
  settings.set("shape", gradients.shape(gradients.input(1)));
  gradients.give(
      1, gradients.add("conv_weight_gradient", "weight", {gradients.input(0), dy}, settings)[0]);
}

Result<Inferred> infer_conv_data_gradient(const Call& call) {
  const Shape& x = call.settings.integers("shape");
  const Shape& weight = call.inputs[1].shape;
  FORESHARD_ASSIGN(const auto y, convolved(call.settings, x, weight));
  if (y != call.inputs[0].shape)
    return wrong("the gradient has shape " + text_of(call.inputs[0].shape) + ", not " + text_of(y));
  auto f = factors_of(x, weight, y);
  f.make.input(f.y).input(f.weight).output(f.x);
  return Inferred{{{call.inputs[0].dtype, x}}, f.make.take(Linearity::kSeparate)};
}

// conv_data_gradient in a forward graph is a transposed convolution: the gradient of its input is
// the convolution; its weight has a gradient as the convolution's.
void conv_data_gradient_backward(Gradients& gradients) {
  const TensorId dx = gradients.of_output(0);
  Settings settings;
  for (const char* name : {"strides", "pads", "dilations"})
    settings.set(name, gradients.op().settings.integers(name));
  if (gradients.wants(0))
    gradients.give(0, gradients.add("conv", "data", {dx, gradients.input(1)}, settings)[0]);
  settings.set("shape", gradients.shape(gradients.input(1)));
  gradients.give(
      1, gradients.add("conv_weight_gradient", "weight", {dx, gradients.input(0)}, settings)[0]);
}

std::vector<Kernel> conv_data_gradient_kernels(const Call& local, const Call&) {
  const Shape& y = local.inputs[0].shape;
  const Shape& weight = local.inputs[1].shape;
  const std::int64_t groups = local.outputs[0].shape[1] / weight[1];
  return {Gemm{.batch = groups,
               .m = y[0] * spatial(y),
               .n = weight[1] * spatial(weight),
               .k = y[1] / groups,
               .dtype = local.inputs[0].dtype}};
}

Result<Inferred> infer_conv_weight_gradient(const Call& call) {
  const Shape& x = call.inputs[0].shape;
  const Shape& weight = call.settings.integers("shape");
  FORESHARD_ASSIGN(const auto y, convolved(call.settings, x, weight));
  if (y != call.inputs[1].shape)
    return wrong("the gradient has shape " + text_of(call.inputs[1].shape) + ", not " + text_of(y));
  auto f = factors_of(x, weight, y);
  f.make.input(f.x).input(f.y).output(f.weight);
  return Inferred{{{call.inputs[0].dtype, weight}}, f.make.take(Linearity::kSeparate)};
}

std::vector<Kernel> conv_weight_gradient_kernels(const Call& local, const Call&) {
  const Shape& y = local.inputs[1].shape;
  const Shape& weight = local.outputs[0].shape;
  const std::int64_t groups = local.inputs[0].shape[1] / weight[1];
  return {Gemm{.batch = groups,
               .m = weight[0] / groups,
               .n = weight[1] * spatial(weight),
               .k = y[0] * spatial(y),
               .dtype = local.inputs[0].dtype,
               .accumulate = local.accumulates}};
}

Result<Shape> pooled(const Settings& settings, const Shape& x) {
  if (x.size() < 3) return wrong("needs [batch, channels, ...], not " + text_of(x));
  const std::size_t dimensions = x.size() - 2;
  Shape kernel = settings.integers("kernel");
  if (kernel.empty()) {  // global pooling
    Shape y{x[0], x[1]};
    y.resize(x.size(), 1);
    return y;
  }
  if (kernel.size() == 1) kernel.resize(dimensions, kernel[0]);
  if (kernel.size() != dimensions)
    return wrong("kernel " + text_of(kernel) + " must have " + std::to_string(dimensions) +
                 " numbers, one for each spatial dimension");
  for (const std::int64_t extent : kernel)
    if (extent < 1 || extent > kMostWindow)
      return wrong("kernel must be between 1 and " + std::to_string(kMostWindow));
  FORESHARD_ASSIGN(const auto window, window_of(settings, std::move(kernel)));
  FORESHARD_ASSIGN(const auto out, moved_over(window, x, settings.flag("ceiling")));
  Shape y{x[0], x[1]};
  y.insert(y.end(), out.begin(), out.end());
  return y;
}

RuleMaker::Dimensions channels(RuleMaker& make, const Shape& x) {
  RuleMaker::Dimensions factors{{make.factor(x[0], false, "batch")},
                                {make.factor(x[1], false, "channel")}};
  factors.resize(x.size());
  return factors;
}

Result<Inferred> infer_pool(const Call& call) {
  FORESHARD_ASSIGN(auto y, pooled(call.settings, call.inputs[0].shape));
  RuleMaker make;
  const auto factors = channels(make, call.inputs[0].shape);
  make.input(factors).output(factors);
  const bool linear = call.settings.text("operation") == "mean";
  return Inferred{{{call.inputs[0].dtype, std::move(y)}},
                  make.take(linear ? Linearity::kJoint : Linearity::kNone, true)};
}

std::vector<Kernel> pool_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kReduce, local.inputs[0]);
}

void pool_backward(Gradients& gradients) {
  gradients.give(0, gradients.add("pool_gradient", "", {gradients.of_output(0), gradients.input(0)},
                                  gradients.op().settings)[0]);
}

Result<Inferred> infer_pool_gradient(const Call& call) {
  FORESHARD_ASSIGN(const auto y, pooled(call.settings, call.inputs[1].shape));
  if (y != call.inputs[0].shape)
    return wrong("the gradient has shape " + text_of(call.inputs[0].shape) + ", not " + text_of(y));
  RuleMaker make;
  const auto factors = channels(make, call.inputs[1].shape);
  make.input(factors).input(factors).output(factors);
  return Inferred{{call.inputs[1]}, make.take(Linearity::kNone, true)};
}

std::vector<Kernel> pool_gradient_kernels(const Call& local, const Call&) {
  const bool mean = local.settings.text("operation") == "mean";
  return one_pass(mean ? PassKind::kExpand : PassKind::kUnary, local.outputs[0]);
}

std::vector<SettingDefinition> window_settings() {
  return {{.name = "strides", .fallback = Integers{}, .doc = "Steps of the window (1)."},
          {.name = "pads",
           .fallback = Integers{},
           .doc = "Zeroes before each spatial dimension, then behind each (0)."},
          {.name = "dilations", .fallback = Integers{}, .doc = "Distance inside the window (1)."}};
}

std::vector<SettingDefinition> gradient_settings(std::string_view doc) {
  auto settings = window_settings();
  settings.push_back({.name = "shape", .fallback = Integers{}, .required = true, .doc = doc});
  return settings;
}

std::vector<SettingDefinition> pool_settings() {
  auto settings = window_settings();
  settings.push_back({.name = "operation",
                      .fallback = std::string{},
                      .required = true,
                      .doc = "What it makes of a window.",
                      .words = {"max", "mean"}});
  settings.push_back({.name = "kernel",
                      .fallback = Integers{},
                      .doc = "Extents of the window; none: all of space (global pooling)."});
  settings.push_back({.name = "ceiling",
                      .fallback = false,
                      .doc = "A window that begins inside counts even if it ends outside."});
  return settings;
}

}  // namespace

OperatorDefinition conv() {
  return {.name = "conv",
          .doc =
              "Convolution of [batch, channels, ...] by [out, channels / groups, ...]; spatial "
              "dimensions must be whole.",
          .inputs = "x, weight",
          .outputs = "y",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = window_settings(),
          .infer = infer_conv,
          .kernels = conv_kernels,
          .gradient = conv_backward};
}

OperatorDefinition conv_data_gradient() {
  return {.name = "conv_data_gradient",
          .doc = "The gradient of the input of `conv` (a transposed convolution).",
          .inputs = "dy, weight",
          .outputs = "dx",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = gradient_settings("Of the input."),
          .infer = infer_conv_data_gradient,
          .kernels = conv_data_gradient_kernels,
          .gradient = conv_data_gradient_backward};
}

OperatorDefinition conv_weight_gradient() {
  return {.name = "conv_weight_gradient",
          .doc = "The gradient of the weight of `conv`.",
          .inputs = "x, dy",
          .outputs = "dweight",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = gradient_settings("Of the weight."),
          .infer = infer_conv_weight_gradient,
          .kernels = conv_weight_gradient_kernels};
}

OperatorDefinition pool() {
  return {.name = "pool",
          .doc = "Maximum or mean of a window that moves over space, which must be whole.",
          .inputs = "x",
          .outputs = "y",
          .settings = pool_settings(),
          .infer = infer_pool,
          .kernels = pool_kernels,
          .gradient = pool_backward};
}

OperatorDefinition pool_gradient() {
  return {.name = "pool_gradient",
          .doc = "The gradient of `pool`.",
          .inputs = "dy, x",
          .outputs = "dx",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = pool_settings(),
          .infer = infer_pool_gradient,
          .kernels = pool_gradient_kernels};
}

}  // namespace foreshard::operators
