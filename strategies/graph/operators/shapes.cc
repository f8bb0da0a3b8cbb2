// Operators that move elements without computing: reshape, transpose, concat, split, slice, pad.
#include <algorithm>
#include <numeric>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

Result<Shape> reshaped(const Shape& from, Shape to) {
  const auto open = std::ranges::find(to, -1);
  if (std::ranges::any_of(to, [](std::int64_t extent) { return extent < -1; }) ||
      std::ranges::count(to, -1) > 1)
    return wrong("shape " + text_of(to) + " has negative extents; one -1 may stand for the rest");
  if (open != to.end()) {
    std::int64_t known = 1;
    for (const std::int64_t extent : to) known = product({known, extent == -1 ? 1 : extent});
    if (known == 0 || product(from) % known != 0)
      return wrong("shape " + text_of(to) + " does not divide the " +
                   std::to_string(product(from)) + " elements of " + text_of(from));
    *open = product(from) / known;
  }
  if (product(from) != product(to))
    return wrong("shape " + text_of(from) + " has " + std::to_string(product(from)) +
                 " elements, " + text_of(to) + " has " + std::to_string(product(to)));
  return to;
}

// Finds the factors common to both shapes, major to minor, as Shardy does. If neither of two
// extents divides the other, their greatest common divisor is a factor, and the rest of the
// dimensions up to the next common border has none. If both have a dimension of one element, it is
// a factor, too.
void match(RuleMaker& make, const Shape& from, const Shape& to, RuleMaker::Dimensions& in,
           RuleMaker::Dimensions& out) {
  in.resize(from.size());
  out.resize(to.size());
  std::size_t i = 0;
  std::size_t j = 0;
  std::int64_t a = from.empty() ? 1 : from[0];
  std::int64_t b = to.empty() ? 1 : to[0];
  bool lost = false;  // between two common borders, after the last common factor
  while (i < from.size() && j < to.size()) {
    const std::int64_t common = std::gcd(a, b);
    if (common == 0) return;
    if (!lost && (common > 1 || (from[i] == 1 && to[j] == 1))) {
      const std::int32_t factor = make.factor(common);
      in[i].push_back(factor);
      out[j].push_back(factor);
      a /= common;
      b /= common;
    }
    if (!lost && a > 1 && b > 1) lost = true;
    if (lost) {  // skip to the next common border, comparing products only
      if (a == b) {
        a = b = 1;
        lost = false;
      } else if (a < b) {
        if (++i < from.size()) a *= from[i];
        continue;
      } else {
        if (++j < to.size()) b *= to[j];
        continue;
      }
    }
    if (a == 1 && ++i < from.size()) a = from[i];
    if (b == 1 && ++j < to.size()) b = to[j];
  }
}

Result<Inferred> infer_reshape(const Call& call) {
  FORESHARD_ASSIGN(auto to, reshaped(call.inputs[0].shape, call.settings.integers("shape")));
  RuleMaker make;
  RuleMaker::Dimensions in;
  RuleMaker::Dimensions out;
  match(make, call.inputs[0].shape, to, in, out);
  make.input(std::move(in)).output(std::move(out));
  return Inferred{{{call.inputs[0].dtype, std::move(to)}}, make.take(Linearity::kJoint, true)};
}

void reshape_backward(Gradients& gradients) {
  gradients.give(0, gradients.add("reshape", "", {gradients.of_output(0)},
                                  {{"shape", gradients.shape(gradients.input(0))}})[0]);
}

Result<Inferred> infer_transpose(const Call& call) {
  const TensorType& x = call.inputs[0];
  const Integers& order = call.settings.integers("order");
  FORESHARD_ASSIGN(const auto sorted, axes_in(order, x.shape.size()));
  if (sorted.size() != x.shape.size())
    return wrong("order " + text_of(order) + " does not name the " +
                 std::to_string(x.shape.size()) + " dimensions of " + text_of(x.shape));
  RuleMaker make;
  const auto factors = make.each(x.shape);
  TensorType y{x.dtype, {}};
  RuleMaker::Dimensions out;
  for (const std::int64_t axis : order) {
    const std::size_t d = *axis_in(axis, x.shape.size());
    y.shape.push_back(x.shape[d]);
    out.push_back(factors[d]);
  }
  make.input(factors).output(std::move(out));
  return Inferred{{std::move(y)}, make.take(Linearity::kJoint, true)};
}

std::vector<Kernel> copy_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kTranspose, local.outputs[0]);
}

void transpose_backward(Gradients& gradients) {
  const Integers order = gradients.op().settings.integers("order");
  Integers back(order.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    back[*axis_in(order[d], order.size())] = static_cast<std::int64_t>(d);
  gradients.give(0, gradients.add("transpose", "", {gradients.of_output(0)}, {{"order", back}})[0]);
}

// A rule in which all dimensions but `axis` are common to all operands; `axis` is never split.
Rule along(const Shape& shape, std::size_t axis, std::size_t inputs, std::size_t outputs) {
  RuleMaker make;
  auto factors = make.each(shape);
  // Its extent differs between operands: no common factor.
  factors[axis].clear();
  for (std::size_t i = 0; i < inputs; ++i) make.input(factors);
  for (std::size_t i = 0; i < outputs; ++i) make.output(factors);
  return make.take(Linearity::kJoint, true);
}

Result<Inferred> infer_concat(const Call& call) {
  TensorType y = call.inputs[0];
  FORESHARD_ASSIGN(const auto axis, axis_in(call.settings.integer("axis"), y.shape.size()));
  y.shape[axis] = 0;
  for (const TensorType& input : call.inputs) {
    Shape rest = input.shape;
    if (rest.size() != y.shape.size() || input.dtype != y.dtype)
      return wrong("inputs differ in type or number of dimensions");
    const std::int64_t extent = std::exchange(rest[axis], y.shape[axis]);
    if (rest != y.shape)
      return wrong("shapes " + text_of(call.inputs[0].shape) + " and " + text_of(input.shape) +
                   " differ in another dimension than " + std::to_string(axis));
    y.shape[axis] += extent;
  }
  const Shape shape = y.shape;
  return Inferred{{std::move(y)}, along(shape, axis, call.inputs.size(), 1)};
}

void concat_backward(Gradients& gradients) {
  const std::size_t axis =
      *axis_in(gradients.op().settings.integer("axis"), gradients.shape(gradients.input(0)).size());
  Integers sizes;
  for (const TensorId input : gradients.op().inputs) sizes.push_back(gradients.shape(input)[axis]);
  const auto parts = gradients.add("split", "", {gradients.of_output(0)},
                                   {{"axis", static_cast<std::int64_t>(axis)}, {"sizes", sizes}});
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (gradients.wants(i)) gradients.give(i, parts[i]);
}

Result<Inferred> infer_split(const Call& call) {
  const TensorType& x = call.inputs[0];
  FORESHARD_ASSIGN(const auto axis, axis_in(call.settings.integer("axis"), x.shape.size()));
  const Integers& sizes = call.settings.integers("sizes");
  const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (sizes.empty() || sum != x.shape[axis] || std::ranges::min(sizes) < 0)
    return wrong("sizes " + text_of(sizes) + " do not add up to " + std::to_string(x.shape[axis]) +
                 ", the extent of dimension " + std::to_string(axis));
  Inferred inferred{{}, along(x.shape, axis, 1, sizes.size())};
  for (const std::int64_t size : sizes) {
    inferred.outputs.push_back(x);
    inferred.outputs.back().shape[axis] = size;
  }
  return inferred;
}

void split_backward(Gradients& gradients) {
  gradients.give(0, gradients.add("concat", "", gradients.of_outputs_or_zero(),
                                  {{"axis", gradients.op().settings.integer("axis")}})[0]);
}

Result<Inferred> infer_slice(const Call& call) {
  TensorType y = call.inputs[0];
  FORESHARD_ASSIGN(const auto axis, axis_in(call.settings.integer("axis"), y.shape.size()));
  const std::int64_t extent = y.shape[axis];
  const std::int64_t start = call.settings.integer("start");
  const std::int64_t end = call.settings.integer("end");
  const std::int64_t step = call.settings.integer("step");
  if (start < 0 || end < start || end > extent || step < 1)
    return wrong("slice " + std::to_string(start) + " to " + std::to_string(end) + " step " +
                 std::to_string(step) + " is outside dimension " + std::to_string(axis) +
                 " of size " + std::to_string(extent));
  y.shape[axis] = (end - start + step - 1) / step;
  const Shape shape = y.shape;
  return Inferred{{std::move(y)}, along(shape, axis, 1, 1)};
}

void slice_backward(Gradients& gradients) {
  const Settings& settings = gradients.op().settings;
  const Shape& whole = gradients.shape(gradients.input(0));
  const std::size_t axis = *axis_in(settings.integer("axis"), whole.size());
  const std::int64_t step = settings.integer("step");
  const std::int64_t count = gradients.shape(gradients.output(0))[axis];
  const std::int64_t covered = count == 0 ? 0 : (count - 1) * step + 1;
  gradients.give(0, gradients.add("pad", "", {gradients.of_output(0)},
                                  {{"axis", settings.integer("axis")},
                                   {"before", settings.integer("start")},
                                   {"after", whole[axis] - settings.integer("start") - covered},
                                   {"between", step - 1}})[0]);
}

Result<Inferred> infer_pad(const Call& call) {
  TensorType y = call.inputs[0];
  FORESHARD_ASSIGN(const auto axis, axis_in(call.settings.integer("axis"), y.shape.size()));
  const std::int64_t before = call.settings.integer("before");
  const std::int64_t after = call.settings.integer("after");
  const std::int64_t between = call.settings.integer("between");
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  constexpr std::int64_t kMostBetween = 1 << 20;
  if (before < 0 || after < 0 || between < 0) return wrong("padding must not be negative");
  if (before > kMost || after > kMost || between > kMostBetween)
    return wrong("padding is too large");
  std::int64_t& extent = y.shape[axis];
  extent = before + after + (extent == 0 ? 0 : extent + (extent - 1) * between);
  const Shape shape = y.shape;
  Rule rule = along(shape, axis, 1, 1);
  if (call.settings.number("value") != 0) rule.linearity = Linearity::kNone;
  return Inferred{{std::move(y)}, std::move(rule)};
}

void pad_backward(Gradients& gradients) {
  const Settings& settings = gradients.op().settings;
  const Shape& whole = gradients.shape(gradients.output(0));
  const std::size_t axis = *axis_in(settings.integer("axis"), whole.size());
  gradients.give(0, gradients.add("slice", "", {gradients.of_output(0)},
                                  {{"axis", settings.integer("axis")},
                                   {"start", settings.integer("before")},
                                   {"end", whole[axis] - settings.integer("after")},
                                   {"step", settings.integer("between") + 1}})[0]);
}

SettingDefinition axis_setting() {
  return {.name = "axis", .fallback = std::int64_t{0}, .doc = "The dimension; -1 is the last."};
}

}  // namespace

OperatorDefinition reshape() {
  return {.name = "reshape",
          .doc = "Another shape for the same elements in the same order.",
          .inputs = "x",
          .outputs = "y",
          .settings = {{.name = "shape",
                        .fallback = Integers{},
                        .required = true,
                        .doc = "Of the result; one -1 is what is left."}},
          .view = true,
          .infer = infer_reshape,
          .gradient = reshape_backward};
}

OperatorDefinition transpose() {
  return {.name = "transpose",
          .doc = "Dimensions in another order (a copy).",
          .inputs = "x",
          .outputs = "y",
          .settings = {{.name = "order",
                        .fallback = Integers{},
                        .required = true,
                        .doc = "Which dimension of the input is the first, second, ..."}},
          .infer = infer_transpose,
          .kernels = copy_kernels,
          .gradient = transpose_backward};
}

OperatorDefinition concat() {
  return {.name = "concat",
          .doc = "Puts tensors one behind the other along a dimension, which must be whole.",
          .inputs = "x, ...",
          .outputs = "y",
          .most_inputs = OperatorDefinition::kMany,
          .settings = {axis_setting()},
          .infer = infer_concat,
          .kernels = copy_kernels,
          .gradient = concat_backward};
}

OperatorDefinition split() {
  return {.name = "split",
          .doc = "Cuts a tensor along a dimension, which must be whole (a view).",
          .inputs = "x",
          .outputs = "y, ...",
          .settings = {axis_setting(),
                       {.name = "sizes",
                        .fallback = Integers{},
                        .required = true,
                        .doc = "Extents of the pieces."}},
          .view = true,
          .infer = infer_split,
          .gradient = split_backward};
}

OperatorDefinition slice() {
  return {.name = "slice",
          .doc = "A range of a dimension, which must be whole (a view).",
          .inputs = "x",
          .outputs = "y",
          .settings = {axis_setting(),
                       {.name = "start", .fallback = std::int64_t{0}, .doc = "First index."},
                       {.name = "end",
                        .fallback = std::int64_t{0},
                        .required = true,
                        .doc = "Behind the last index."},
                       {.name = "step", .fallback = std::int64_t{1}, .doc = "Every so many."}},
          .view = true,
          .infer = infer_slice,
          .gradient = slice_backward};
}

OperatorDefinition pad() {
  return {.name = "pad",
          .doc = "Adds elements around and between those of a dimension, which must be whole.",
          .inputs = "x",
          .outputs = "y",
          .settings = {axis_setting(),
                       {.name = "before", .fallback = std::int64_t{0}, .doc = "So many in front."},
                       {.name = "after", .fallback = std::int64_t{0}, .doc = "So many behind."},
                       {.name = "between",
                        .fallback = std::int64_t{0},
                        .doc = "So many between any two."},
                       {.name = "value", .fallback = 0.0, .doc = "Of what is added."}},
          .infer = infer_pad,
          .kernels = copy_kernels,
          .gradient = pad_backward};
}

}  // namespace foreshard::operators
