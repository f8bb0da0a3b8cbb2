// Softmax, and norms along the last dimensions of one sample.
#include <algorithm>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

Result<Inferred> infer_softmax(const Call& call) {
  const Shape& shape = call.inputs[0].shape;
  FORESHARD_ASSIGN(const auto axis, axis_in(call.settings.integer("axis"), shape.size()));
  for (const TensorType& input : call.inputs)
    if (input.shape != shape) return wrong("inputs differ in shape");
  if (call.settings.flag("causal") && (axis == 0 || axis + 1 != shape.size()))
    return wrong("a causal mask needs [..., queries, keys] and the last axis");
  RuleMaker make;
  const auto factors = make.each(shape, {axis});
  for (std::size_t i = 0; i < call.inputs.size(); ++i) make.input(factors);
  make.output(factors);
  return Inferred{{call.inputs[0]}, make.take()};
}

std::vector<Kernel> softmax_kernels(const Call& local, const Call&) {
  const bool forward = local.inputs.size() == 1;
  const TensorType& y = local.outputs[0];
  if (local.settings.flag("causal") || local.settings.number("scale") != 1)
    return one_pass(forward ? PassKind::kSoftmaxForward : PassKind::kSoftmaxBackward, y);
  const auto axis = axis_in(local.settings.integer("axis"), y.shape.size());
  FORESHARD_CHECK(axis);
  // Not modelled: strided reads along another dimension than the last one.
  return one_pass(
      softmax_alone(forward ? Direction::kForward : Direction::kBackward, y.shape[*axis]), y);
}

void softmax_backward(Gradients& gradients) {
  gradients.give(
      0, gradients.add("softmax_gradient", "", {gradients.of_output(0), gradients.output(0)},
                       gradients.op().settings)[0]);
}

// Dimensions from `axis` on are normalised; scale and shift have their shape.
Result<std::size_t> normalised_from(const Call& call, const Shape& x, std::size_t scale) {
  FORESHARD_ASSIGN(const auto axis, axis_in(call.settings.integer("axis"), x.size()));
  const Shape inner(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end());
  for (std::size_t i = scale; i < call.inputs.size(); ++i)
    if (call.inputs[i].shape != inner)
      return wrong("scale and shift must have shape " + text_of(inner) + ", not " +
                   text_of(call.inputs[i].shape));
  return axis;
}

std::vector<std::size_t> from(std::size_t first, std::size_t end) {
  std::vector<std::size_t> list;
  for (std::size_t d = first; d < end; ++d) list.push_back(d);
  return list;
}

Result<Inferred> infer_norm(const Call& call) {
  const TensorType& x = call.inputs[0];
  FORESHARD_ASSIGN(const auto axis, normalised_from(call, x.shape, 1));
  RuleMaker make;
  const auto factors = make.each(x.shape, from(axis, x.shape.size()));
  const RuleMaker::Dimensions inner(factors.begin() + static_cast<std::ptrdiff_t>(axis),
                                    factors.end());
  make.input(factors);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) make.input(inner);
  make.output(factors);
  return Inferred{{x}, make.take()};
}

// dy, x[, scale] -> dx[, d scale[, d shift]]; d scale and d shift are sums over all samples.
Result<Inferred> infer_norm_gradient(const Call& call, bool shift) {
  const TensorType& x = call.inputs[1];
  if (call.inputs[0].shape != x.shape) return wrong("gradient and input differ in shape");
  FORESHARD_ASSIGN(const auto axis, normalised_from(call, x.shape, 2));
  RuleMaker make;
  const auto factors = make.each(x.shape, from(axis, x.shape.size()));
  const RuleMaker::Dimensions inner(factors.begin() + static_cast<std::ptrdiff_t>(axis),
                                    factors.end());
  make.input(factors).input(factors);
  if (call.inputs.size() > 2) make.input(inner);
  make.output(factors);
  Inferred inferred{{x}, {}};
  for (std::size_t i = 0; call.inputs.size() > 2 && i < (shift ? 2 : 1); ++i) {
    make.output(inner);
    inferred.outputs.push_back(call.inputs[2]);
  }
  inferred.rule = make.take();
  return inferred;
}

Result<Inferred> infer_layer_norm_gradient(const Call& call) {
  return infer_norm_gradient(call, call.settings.flag("shift"));
}
Result<Inferred> infer_rms_norm_gradient(const Call& call) {
  return infer_norm_gradient(call, false);
}

template <PassKind kind>
std::vector<Kernel> norm_kernels(const Call& local, const Call&) {
  return implemented(pass_over(kind, local.outputs[0]), local.settings.text("kernels"));
}

void norm_backward(Gradients& gradients) {
  const Operator& op = gradients.op();
  Settings settings = op.settings;
  if (op.type == "layer_norm") settings.set("shift", op.inputs.size() > 2);
  std::vector<TensorId> inputs{gradients.of_output(0), gradients.input(0)};
  if (op.inputs.size() > 1) inputs.push_back(gradients.input(1));
  const auto parts = gradients.add(op.type + "_gradient", "", std::move(inputs), settings);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) gradients.give(i, parts[i]);
}

std::vector<SettingDefinition> norm_settings(bool shift = false) {
  std::vector<SettingDefinition> settings{
      {.name = "axis",
       .fallback = std::int64_t{-1},
       .doc = "From this dimension to the last: normalised together."},
      norm_kernels_setting()};
  if (shift)
    settings.push_back(
        {.name = "shift", .fallback = true, .doc = "There is a shift, and a gradient of it."});
  return settings;
}

std::vector<SettingDefinition> softmax_settings() {
  return {{.name = "axis",
           .fallback = std::int64_t{-1},
           .doc = "The dimension whose elements add up to 1; it must be whole."},
          {.name = "scale", .fallback = 1.0, .doc = "What the elements are multiplied by first."},
          {.name = "causal",
           .fallback = false,
           .doc = "Of scores [..., queries, keys]: a query's share of later keys is 0."}};
}

}  // namespace

OperatorDefinition softmax() {
  return {.name = "softmax",
          .doc = "Exponentials along a dimension, divided by their sum.",
          .inputs = "x",
          .outputs = "y",
          .settings = softmax_settings(),
          .infer = infer_softmax,
          .kernels = softmax_kernels,
          .gradient = softmax_backward};
}

OperatorDefinition softmax_gradient() {
  return {.name = "softmax_gradient",
          .doc = "The gradient of `softmax`, from its output.",
          .inputs = "dy, y",
          .outputs = "dx",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = softmax_settings(),
          .infer = infer_softmax,
          .kernels = softmax_kernels};
}

OperatorDefinition layer_norm() {
  return {.name = "layer_norm",
          .doc = "Mean 0 and variance 1 along the last dimensions, then scale and shift.",
          .inputs = "x[, scale[, shift]]",
          .outputs = "y",
          .least_inputs = 1,
          .most_inputs = 3,
          .settings = norm_settings(),
          .infer = infer_norm,
          .kernels = norm_kernels<PassKind::kLayerNormForward>,
          .gradient = norm_backward};
}

OperatorDefinition layer_norm_gradient() {
  return {.name = "layer_norm_gradient",
          .doc = "The gradients of `layer_norm`; those of scale and shift are sums over samples.",
          .inputs = "dy, x[, scale]",
          .outputs = "dx[, dscale[, dshift]]",
          .least_inputs = 2,
          .most_inputs = 3,
          .settings = norm_settings(true),
          .infer = infer_layer_norm_gradient,
          .kernels = norm_kernels<PassKind::kLayerNormBackward>};
}

OperatorDefinition rms_norm() {
  return {.name = "rms_norm",
          .doc = "Root mean square 1 along the last dimensions, then scale.",
          .inputs = "x[, scale]",
          .outputs = "y",
          .least_inputs = 1,
          .most_inputs = 2,
          .settings = norm_settings(),
          .infer = infer_norm,
          .kernels = norm_kernels<PassKind::kRmsNormForward>,
          .gradient = norm_backward};
}

OperatorDefinition rms_norm_gradient() {
  return {.name = "rms_norm_gradient",
          .doc = "The gradients of `rms_norm`; that of scale is a sum over samples.",
          .inputs = "dy, x[, scale]",
          .outputs = "dx[, dscale]",
          .least_inputs = 2,
          .most_inputs = 3,
          .settings = norm_settings(),
          .infer = infer_rms_norm_gradient,
          .kernels = norm_kernels<PassKind::kRmsNormBackward>};
}

}  // namespace foreshard::operators
