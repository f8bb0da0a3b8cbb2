// What the files of all families of operators share: axes, rules, passes, broadcasts.
#include "strategies/graph/operators/internal/support.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "base/check.h"

#include "strategies/graph/implementation.h"

namespace foreshard::operators {

Error wrong(std::string why) {
  return {Error::Code::kInvalidInput, std::move(why)};
}

std::string text_of(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

std::int64_t product(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(n, extent, &n)) return std::numeric_limits<std::int64_t>::max();
  return n;
}

bool is_float(DType dtype) {
  return dtype != DType::kInt8 && dtype != DType::kInt32 && dtype != DType::kInt64;
}

Result<DType> dtype_named(const std::string& name) {
  if (const auto dtype = find_dtype(name)) return *dtype;
  return wrong("unknown type '" + name + "'");
}

SettingDefinition rate_setting() {
  return {.name = "rate", .fallback = 0.1, .doc = "Probability of a zero."};
}

std::string rate_fault(const Settings& settings) {
  const double rate = settings.number("rate");
  return rate >= 0 && rate < 1 ? "" : "rate must be at least 0 and less than 1";
}

Result<std::size_t> axis_in(std::int64_t axis, std::size_t dimensions) {
  const auto n = static_cast<std::int64_t>(dimensions);
  if (axis < -n || axis >= n)
    return wrong(fmt::format("axis {} is outside {} to {} of a tensor of {} dimensions", axis, -n,
                             n - 1, n));
  return static_cast<std::size_t>(axis < 0 ? axis + n : axis);
}

Result<std::vector<std::size_t>> axes_in(const Integers& axes, std::size_t dimensions) {
  std::vector<std::size_t> found;
  for (const std::int64_t axis : axes) {
    FORESHARD_ASSIGN(const auto at, axis_in(axis, dimensions));
    found.push_back(at);
  }
  std::ranges::sort(found);
  if (std::ranges::adjacent_find(found) != found.end())
    return wrong("axes " + text_of(axes) + " name a dimension twice");
  return found;
}

std::int32_t RuleMaker::factor(std::int64_t size, bool whole, std::string name) {
  const auto index = static_cast<std::int32_t>(rule_.factors.size());
  rule_.factors.push_back({.name = name.empty() ? "f" + std::to_string(index) : std::move(name),
                           .size = size,
                           .whole = whole || size == 0});
  return index;
}

RuleMaker::Dimensions RuleMaker::each(const Shape& shape, const std::vector<std::size_t>& whole) {
  Dimensions dimensions;
  for (std::size_t d = 0; d < shape.size(); ++d)
    dimensions.push_back({factor(shape[d], std::ranges::find(whole, d) != whole.end())});
  return dimensions;
}

RuleMaker& RuleMaker::input(Dimensions dimensions) {
  FORESHARD_CHECK(rule_.inputs == rule_.operands.size());
  rule_.operands.push_back(std::move(dimensions));
  ++rule_.inputs;
  return *this;
}

RuleMaker& RuleMaker::output(Dimensions dimensions) {
  rule_.operands.push_back(std::move(dimensions));
  return *this;
}

Rule RuleMaker::take(Linearity linearity, bool uneven) {
  rule_.linearity = linearity;
  rule_.uneven = uneven;
  return std::move(rule_);
}

Kernel pass_over(PassKind kind, const TensorType& tensor) {
  const std::int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  return Pass{.kind = kind,
              .rows = columns == 0 ? 0 : product(tensor.shape) / columns,
              .columns = columns,
              .dtype = tensor.dtype};
}

std::vector<Kernel> one_pass(PassKind kind, const TensorType& tensor) {
  return {pass_over(kind, tensor)};
}

std::vector<Kernel> implemented(const Kernel& pass, std::string_view how) {
  const Implementation implementation = how == "eager"             ? Implementation::kEager
                                        : how == "recomputed-fp32" ? Implementation::kRecomputedFp32
                                        : how == "recomputed"      ? Implementation::kRecomputed
                                        : how == "autocast"        ? Implementation::kAutocast
                                        : how == "log-softmax"     ? Implementation::kLogSoftmax
                                                                   : Implementation::kFused;
  return foreshard::kernels_of(std::get<Pass>(pass), implementation);
}

SettingDefinition eager_setting() {
  return {.name = "eager", .fallback = false, .doc = "A kernel for each operator of PyTorch."};
}

SettingDefinition norm_kernels_setting() {
  return {.name = "kernels",
          .fallback = std::string("fused"),
          .doc =
              "One kernel; one on a copy in fp32, which the backward pass makes again; one in fp32 "
              "and a cast; or one for each operator of PyTorch.",
          .words = {"fused", "recomputed-fp32", "autocast", "eager"}};
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return wrong("shapes " + text_of(a) + " and " + text_of(b) +
                   " do not broadcast: " + std::to_string(x) + " meets " + std::to_string(y));
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

RuleMaker::Dimensions inside(const RuleMaker::Dimensions& factors, const Shape& whole,
                             const Shape& shape) {
  RuleMaker::Dimensions dimensions(shape.size());
  const std::size_t offset = whole.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == whole[offset + d]) dimensions[d] = factors[offset + d];
  return dimensions;
}

void give_unbroadcast(Gradients& gradients, std::size_t index, TensorId gradient) {
  const Shape from = gradients.shape(gradient);
  const Shape to = gradients.shape(gradients.input(index));
  if (from != to) {
    const std::size_t offset = from.size() - to.size();
    Integers axes;
    for (std::size_t d = 0; d < from.size(); ++d)
      if (d < offset || to[d - offset] != from[d]) axes.push_back(static_cast<std::int64_t>(d));
    const std::string part = "input" + std::to_string(index);
    gradient = gradients.add("reduce", part + ".sum", {gradient},
                             {{"axes", axes}, {"operation", std::string("sum")}})[0];
    if (gradients.shape(gradient) != to)
      gradient = gradients.add("reshape", part + ".shape", {gradient}, {{"shape", to}})[0];
  }
  gradients.give(index, gradient);
}

}  // namespace foreshard::operators
