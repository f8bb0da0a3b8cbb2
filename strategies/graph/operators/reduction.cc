// Reductions over dimensions, and their reverse.
#include <algorithm>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

std::vector<std::int64_t> all_axes(std::size_t dimensions) {
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < dimensions; ++d) axes.push_back(static_cast<std::int64_t>(d));
  return axes;
}

Result<Inferred> infer_reduce(const Call& call) {
  const TensorType& x = call.inputs[0];
  const Integers& given = call.settings.integers("axes");
  FORESHARD_ASSIGN(const auto axes,
                   axes_in(given.empty() ? all_axes(x.shape.size()) : given, x.shape.size()));
  const std::string& operation = call.settings.text("operation");
  RuleMaker make;
  const auto factors = make.each(x.shape);
  TensorType y{x.dtype, {}};
  RuleMaker::Dimensions out;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    if (std::ranges::find(axes, d) == axes.end()) {
      y.shape.push_back(x.shape[d]);
      out.push_back(factors[d]);
      continue;
    }
    Factor& factor = make[factors[d].front()];
    if (operation == "max") factor.reduction = Reduction::kMax;
    if (operation == "min") factor.reduction = Reduction::kMin;
    if (!call.settings.flag("keep_dims")) continue;
    y.shape.push_back(1);
    out.emplace_back();
  }
  make.input(factors).output(std::move(out));
  // A mean divides by the whole extent, so its parts add up.
  const bool linear = operation == "sum" || operation == "mean";
  return Inferred{{std::move(y)}, make.take(linear ? Linearity::kJoint : Linearity::kNone)};
}

std::vector<Kernel> reduce_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kReduce, local.inputs[0]);
}

void reduce_backward(Gradients& gradients) {
  const Shape whole = gradients.shape(gradients.input(0));
  const Settings& settings = gradients.op().settings;
  const std::string operation = settings.text("operation");
  const Integers given = settings.integers("axes");
  const auto axes = *axes_in(given.empty() ? all_axes(whole.size()) : given, whole.size());
  Shape unit = whole;
  std::int64_t reduced = 1;
  for (const std::size_t axis : axes) {
    reduced *= unit[axis];
    unit[axis] = 1;
  }
  const auto shaped = [&](TensorId tensor, const std::string& part) {
    if (gradients.shape(tensor) == unit) return tensor;
    return gradients.add("reshape", part, {tensor}, {{"shape", unit}})[0];
  };
  TensorId gradient = shaped(gradients.of_output(0), "shape");
  if (operation == "mean" && reduced > 0)
    gradient = gradients.add(
        "unary", "mean", {gradient},
        {{"operation", std::string("scale")}, {"value", 1.0 / static_cast<double>(reduced)}})[0];
  if (unit != whole) gradient = gradients.add("expand", "", {gradient}, {{"shape", whole}})[0];
  if (operation == "max" || operation == "min") {
    const TensorId chosen = gradients.add(
        "binary", "chosen", {gradients.input(0), shaped(gradients.output(0), "value.shape")},
        {{"operation", std::string("equal")}})[0];
    const TensorId mask =
        gradients.add("cast", "mask", {chosen},
                      {{"to", std::string(name_of(gradients.tensor(gradient).dtype))}})[0];
    gradient = gradients.add("binary", "chosen.gradient", {gradient, mask},
                             {{"operation", std::string("mul")}})[0];
  }
  gradients.give(0, gradient);
}

Result<Inferred> infer_expand(const Call& call) {
  const Shape& x = call.inputs[0].shape;
  const Shape& to = call.settings.integers("shape");
  FORESHARD_ASSIGN(const auto wide, broadcast(x, to));
  if (wide != to) return wrong("shape " + text_of(x) + " does not expand to " + text_of(to));
  RuleMaker make;
  const auto factors = make.each(to);
  make.input(inside(factors, to, x)).output(factors);
  return Inferred{{{call.inputs[0].dtype, to}}, make.take(Linearity::kJoint, true)};
}

std::vector<Kernel> expand_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kExpand, local.outputs[0]);
}

void expand_backward(Gradients& gradients) {
  give_unbroadcast(gradients, 0, gradients.of_output(0));
}

}  // namespace

OperatorDefinition reduce() {
  return {.name = "reduce",
          .doc =
              "Reduces over dimensions. A split of a reduced dimension leaves summands (or "
              "maxima, minima).",
          .inputs = "x",
          .outputs = "y",
          .settings = {{.name = "operation",
                        .fallback = std::string{},
                        .required = true,
                        .doc = "How elements combine.",
                        .words = {"sum", "mean", "max", "min"}},
                       {.name = "axes", .fallback = Integers{}, .doc = "Dimensions; none: all."},
                       {.name = "keep_dims",
                        .fallback = false,
                        .doc = "Reduced dimensions stay, with size 1."}},
          .infer = infer_reduce,
          .kernels = reduce_kernels,
          .gradient = reduce_backward};
}

OperatorDefinition expand() {
  return {.name = "expand",
          .doc = "Repeats dimensions of size 1 and missing leading ones.",
          .inputs = "x",
          .outputs = "y",
          .settings = {{.name = "shape",
                        .fallback = Integers{},
                        .required = true,
                        .doc = "Of the result."}},
          .infer = infer_expand,
          .kernels = expand_kernels,
          .gradient = expand_backward};
}

}  // namespace foreshard::operators
