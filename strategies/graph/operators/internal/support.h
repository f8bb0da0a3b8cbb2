/// \file
/// Helpers of the definitions: errors, axes, shapes, rules, passes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

#include "strategies/graph/layout.h"
#include "strategies/graph/operators/definition.h"
#include "strategies/graph/quantization.h"

namespace foreshard::operators {

Error wrong(std::string why);

/// "[2, 3, 4]"
std::string text_of(const Shape& shape);
std::int64_t product(const Shape& shape);
bool is_float(DType dtype);
Result<DType> dtype_named(const std::string& name);

/// The setting "recipe" (quantization.h).
Result<Quantization> recipe_in(const Settings& settings);

/// The setting "rate", the probability with which dropout zeroes an element; and what is wrong
/// with its value, empty if nothing is.
SettingDefinition rate_setting();
std::string rate_fault(const Settings& settings);

/// An axis of a tensor of `dimensions` dimensions; negative ones count from the end.
Result<std::size_t> axis_in(std::int64_t axis, std::size_t dimensions);
/// The same for several: ascending and distinct.
Result<std::vector<std::size_t>> axes_in(const Integers& axes, std::size_t dimensions);

/// Builds a rule factor by factor, for operators of any number of dimensions.
class RuleMaker {
 public:
  using Dimensions = std::vector<std::vector<std::int32_t>>;

  /// Factors are named f0, f1, ... unless `name` is given.
  std::int32_t factor(std::int64_t size, bool whole = false, std::string name = {});
  Factor& operator[](std::int32_t factor) {
    return rule_.factors[static_cast<std::size_t>(factor)];
  }
  /// A factor for each dimension; dimensions in `whole` must not be split.
  Dimensions each(const Shape& shape, const std::vector<std::size_t>& whole = {});
  RuleMaker& input(Dimensions dimensions);
  RuleMaker& output(Dimensions dimensions);
  Rule take(Linearity linearity = Linearity::kNone, bool uneven = false);

 private:
  Rule rule_;
};

/// A pass over a tensor, whose last dimension is the columns.
Kernel pass_over(PassKind kind, const TensorType& tensor);
std::vector<Kernel> one_pass(PassKind kind, const TensorType& tensor);

/// The kernels of a pass as PyTorch or a fused operator does it: "fused", "recomputed-fp32" or
/// "eager" (implementation.h).
std::vector<Kernel> implemented(const Kernel& pass, std::string_view how);
SettingDefinition eager_setting();         ///< The setting "eager", a flag; false: fused.
SettingDefinition norm_kernels_setting();  ///< The setting "kernels", a text.

/// The shape that `a` and `b` broadcast to, aligned at their last dimensions; an error names them.
Result<Shape> broadcast(const Shape& a, const Shape& b);
/// Dimensions of an operand of `shape` that is broadcast to `whole` (aligned at the end): each has
/// the factor of the result, or none if it is broadcast.
RuleMaker::Dimensions inside(const RuleMaker::Dimensions& factors, const Shape& whole,
                             const Shape& shape);

/// Sums `gradient`, which has the shape of a broadcast result, to the shape of input `index` and
/// gives it to that input.
void give_unbroadcast(Gradients& gradients, std::size_t index, TensorId gradient);

}  // namespace foreshard::operators
