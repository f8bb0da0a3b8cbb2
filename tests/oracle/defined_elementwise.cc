// Element by element, products, reductions, and what only moves elements.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "tests/oracle/internal/defined.h"
#include "tests/oracle/random.h"

namespace foreshard::execute::defined {
namespace {

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

double unary_value(const std::string& operation, double value, double x) {
  if (operation == "abs") return std::abs(x);
  if (operation == "ceil") return std::ceil(x);
  if (operation == "clip") return std::clamp(x, -value, value);
  if (operation == "cos") return std::cos(x);
  if (operation == "elu") return x > 0 ? x : value * std::expm1(x);
  if (operation == "erf") return std::erf(x);
  if (operation == "exp") return std::exp(x);
  if (operation == "floor") return std::floor(x);
  if (operation == "gelu") return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
  if (operation == "hard_sigmoid") return std::clamp(value * x + 0.5, 0.0, 1.0);
  if (operation == "hard_swish") return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
  if (operation == "identity") return x;
  if (operation == "leaky_relu") return x > 0 ? x : value * x;
  if (operation == "log") return std::log(x);
  if (operation == "neg") return -x;
  if (operation == "not") return x == 0 ? 1 : 0;
  if (operation == "reciprocal") return 1 / x;
  if (operation == "relu") return std::max(x, 0.0);
  if (operation == "round") return std::nearbyint(x);
  if (operation == "scale") return value * x;
  if (operation == "sigmoid") return logistic(x);
  if (operation == "sign") return x > 0 ? 1 : x < 0 ? -1 : 0;
  if (operation == "silu") return x * logistic(x);
  if (operation == "sin") return std::sin(x);
  if (operation == "softplus") return std::log1p(std::exp(x));
  if (operation == "sqrt") return std::sqrt(x);
  if (operation == "square") return x * x;
  if (operation == "squared_relu") return x > 0 ? x * x : 0;
  if (operation == "tanh") return std::tanh(x);
  FORESHARD_CHECK(false && "a unary operation without arithmetic");
}

double unary_slope(const std::string& operation, double value, double x) {
  constexpr double kTwoOverRootPi = 1.1283791670955126;
  if (operation == "abs") return x > 0 ? 1 : x < 0 ? -1 : 0;
  if (operation == "clip") return std::abs(x) < value ? 1 : 0;
  if (operation == "cos") return -std::sin(x);
  if (operation == "elu") return x > 0 ? 1 : value * std::exp(x);
  if (operation == "erf") return kTwoOverRootPi * std::exp(-x * x);
  if (operation == "exp") return std::exp(x);
  if (operation == "gelu")
    return 0.5 * (1 + std::erf(x * std::sqrt(0.5))) +
           x * 0.5 * std::sqrt(0.5) * kTwoOverRootPi * std::exp(-0.5 * x * x);
  if (operation == "hard_sigmoid") return std::abs(value * x) < 0.5 ? value : 0;
  if (operation == "hard_swish") return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
  if (operation == "leaky_relu") return x > 0 ? 1 : value;
  if (operation == "log") return 1 / x;
  if (operation == "reciprocal") return -1 / (x * x);
  if (operation == "relu") return x > 0 ? 1 : 0;
  if (operation == "sigmoid") return logistic(x) * (1 - logistic(x));
  if (operation == "silu") return logistic(x) * (1 + x * (1 - logistic(x)));
  if (operation == "sin") return std::cos(x);
  if (operation == "softplus") return logistic(x);
  if (operation == "sqrt") return 0.5 / std::sqrt(x);
  if (operation == "square") return 2 * x;
  if (operation == "squared_relu") return x > 0 ? 2 * x : 0;
  if (operation == "tanh") return 1 - std::tanh(x) * std::tanh(x);
  FORESHARD_CHECK(false && "a unary operation without a slope");
}

double binary_value(const std::string& operation, double a, double b) {
  if (operation == "add") return a + b;
  if (operation == "and") return a != 0 && b != 0 ? 1 : 0;
  if (operation == "div") return a / b;
  if (operation == "equal") return a == b ? 1 : 0;
  if (operation == "greater") return a > b ? 1 : 0;
  if (operation == "less") return a < b ? 1 : 0;
  if (operation == "max") return std::max(a, b);
  if (operation == "min") return std::min(a, b);
  if (operation == "mod") return std::fmod(a, b);
  if (operation == "mul") return a * b;
  if (operation == "or") return a != 0 || b != 0 ? 1 : 0;
  if (operation == "pow") return std::pow(a, b);
  if (operation == "sub") return a - b;
  FORESHARD_CHECK(false && "a binary operation without arithmetic");
}

}  // namespace

void unary(const Invocation& kernel) {
  need_same_slice(kernel.in[0], kernel.out[0]);
  const std::string& operation = kernel.op.settings.text("operation");
  const double value = kernel.op.settings.number("value");
  for (std::size_t i = 0; i < kernel.out[0].values.size(); ++i)
    kernel.out[0].values[i] = unary_value(operation, value, kernel.in[0].values[i]);
}

void unary_gradient(const Invocation& kernel) {
  need_same_slice(kernel.in[0], kernel.in[1]);
  need_same_slice(kernel.in[0], kernel.out[0]);
  const std::string& operation = kernel.op.settings.text("operation");
  const double value = kernel.op.settings.number("value");
  for (std::size_t i = 0; i < kernel.out[0].values.size(); ++i)
    kernel.out[0].values[i] =
        kernel.in[0].values[i] * unary_slope(operation, value, kernel.in[1].values[i]);
}

void binary(const Invocation& kernel) {
  const std::string& operation = kernel.op.settings.text("operation");
  std::size_t i = 0;
  each_index(local_shape_of(kernel.out[0]), [&](const Shape& index) {
    kernel.out[0].values[i++] =
        binary_value(operation, kernel.in[0].values[broadcast_place(index, kernel.in[0])],
                     kernel.in[1].values[broadcast_place(index, kernel.in[1])]);
  });
}

void where(const Invocation& kernel) {
  std::size_t i = 0;
  each_index(local_shape_of(kernel.out[0]), [&](const Shape& index) {
    const bool first = kernel.in[0].values[broadcast_place(index, kernel.in[0])] != 0;
    const Operand& from = kernel.in[first ? 1 : 2];
    kernel.out[0].values[i++] = from.values[broadcast_place(index, from)];
  });
}

// The type matters where fractions are lost; the rounding of floating-point types does not.
void cast(const Invocation& kernel) {
  need_same_slice(kernel.in[0], kernel.out[0]);
  const bool integral = kernel.op.settings.text("to").starts_with("int");
  for (std::size_t i = 0; i < kernel.out[0].values.size(); ++i) {
    const double x = kernel.in[0].values[i];
    kernel.out[0].values[i] = integral ? std::trunc(x) : x;
  }
}

void dropout(const Invocation& kernel) {
  need_same_slice(kernel.in[0], kernel.out[0]);
  need_same_slice(kernel.in[0], kernel.out[1]);
  const double rate = kernel.op.settings.number("rate");
  const std::uint64_t key = key_of(kernel.context.key, kernel.op.name);
  const auto indices = logical_indices(kernel.in[0].whole, kernel.in[0].box);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const double kept = uniform(key, indices[i]) < rate ? 0 : 1;
    kernel.out[0].values[i] = kernel.in[0].values[i] * kept / (1 - rate);
    kernel.out[1].values[i] = kept;
  }
}

void dropout_gradient(const Invocation& kernel) {
  const Operand& dy = kernel.in[0];
  need_same_slice(dy, kernel.in[1]);
  need_same_slice(dy, kernel.out[0]);
  const double rate = kernel.op.settings.number("rate");
  for (std::size_t i = 0; i < dy.values.size(); ++i)
    kernel.out[0].values[i] = dy.values[i] * kernel.in[1].values[i] / (1 - rate);
}

void expand(const Invocation& kernel) {
  std::size_t i = 0;
  each_index(local_shape_of(kernel.out[0]), [&](const Shape& index) {
    kernel.out[0].values[i++] = kernel.in[0].values[broadcast_place(index, kernel.in[0])];
  });
}

// The rule has the letters: one factor for each dimension.
void product(const Invocation& kernel) {
  std::vector<std::string> letters;
  for (const auto& operand : kernel.op.rule.operands) {
    letters.emplace_back();
    for (const auto& factors : operand) {
      FORESHARD_CHECK(factors.size() == 1);
      letters.back() += static_cast<char>('a' + factors.front());
    }
  }
  std::vector<const Operand*> inputs;
  for (const Operand& input : kernel.in) inputs.push_back(&input);
  std::ranges::fill(kernel.out[0].values, 0.0);
  if (kernel.in.size() > 2) {  // a bias, of the columns
    if (kernel.context.first_summand)
      contract(std::array{letters[2], letters[3]}, std::array{inputs[2]}, kernel.out[0]);
    letters.erase(letters.begin() + 2);
    inputs.pop_back();
  }
  contract(letters, inputs, kernel.out[0]);
}

void reduce(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  const std::string& operation = kernel.op.settings.text("operation");
  std::vector<bool> reduced(x.whole.size(), kernel.op.settings.integers("axes").empty());
  for (const std::int64_t axis : kernel.op.settings.integers("axes"))
    reduced[at(axis < 0 ? axis + static_cast<std::int64_t>(x.whole.size()) : axis)] = true;
  double weight = 1;  // of one element in a mean, all of the logical tensor's counted
  Shape kept_shape;
  for (std::size_t d = 0; d < x.whole.size(); ++d) {
    if (!reduced[d]) kept_shape.push_back(extent(x, d));
    if (reduced[d] && operation == "mean") weight /= static_cast<double>(x.whole[d]);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  std::ranges::fill(kernel.out[0].values, operation == "max"   ? -infinity
                                          : operation == "min" ? infinity
                                                               : 0.0);
  std::size_t i = 0;
  each_index(local_shape_of(x), [&](const Shape& index) {
    Shape kept;
    for (std::size_t d = 0; d < index.size(); ++d)
      if (!reduced[d]) kept.push_back(index[d]);
    double& y = kernel.out[0].values[place(kept, kept_shape)];
    const double value = x.values[i++];
    if (operation == "max") {
      y = std::max(y, value);
    } else if (operation == "min") {
      y = std::min(y, value);
    } else {
      y += weight * value;
    }
  });
}

// Slices follow leading factors, so local elements keep their order too.
void reshape(const Invocation& kernel) {
  FORESHARD_CHECK(kernel.in[0].values.size() == kernel.out[0].values.size());
  kernel.out[0].values = kernel.in[0].values;
}

void transpose(const Invocation& kernel) {
  const Integers& order = kernel.op.settings.integers("order");
  const Shape to = local_shape_of(kernel.out[0]);
  std::size_t i = 0;
  each_index(local_shape_of(kernel.in[0]), [&](const Shape& index) {
    Shape turned;
    for (const std::int64_t axis : order)
      turned.push_back(index[at(axis < 0 ? axis + static_cast<std::int64_t>(index.size()) : axis)]);
    kernel.out[0].values[place(turned, to)] = kernel.in[0].values[i++];
  });
}

void concat(const Invocation& kernel) {
  const std::size_t axis = axis_of_operand(kernel, kernel.in[0]);
  const Around to = around(kernel.out[0], axis);
  std::int64_t start = 0;
  for (const Operand& input : kernel.in) {
    const Around from = around(input, axis);
    for (std::int64_t b = 0; b < from.before; ++b)
      for (std::int64_t i = 0; i < from.extent; ++i)
        for (std::int64_t a = 0; a < from.after; ++a)
          kernel.out[0].values[to.at(b, start + i, a)] = input.values[from.at(b, i, a)];
    start += from.extent;
  }
}

void split(const Invocation& kernel) {
  const std::size_t axis = axis_of_operand(kernel, kernel.in[0]);
  const Around from = around(kernel.in[0], axis);
  std::int64_t start = 0;
  for (Operand& output : kernel.out) {
    const Around to = around(output, axis);
    for (std::int64_t b = 0; b < to.before; ++b)
      for (std::int64_t i = 0; i < to.extent; ++i)
        for (std::int64_t a = 0; a < to.after; ++a)
          output.values[to.at(b, i, a)] = kernel.in[0].values[from.at(b, start + i, a)];
    start += to.extent;
  }
}

void slice(const Invocation& kernel) {
  const std::size_t axis = axis_of_operand(kernel, kernel.in[0]);
  const std::int64_t start = kernel.op.settings.integer("start");
  const std::int64_t step = kernel.op.settings.integer("step");
  const Around from = around(kernel.in[0], axis);
  const Around to = around(kernel.out[0], axis);
  for (std::int64_t b = 0; b < to.before; ++b)
    for (std::int64_t i = 0; i < to.extent; ++i)
      for (std::int64_t a = 0; a < to.after; ++a)
        kernel.out[0].values[to.at(b, i, a)] = kernel.in[0].values[from.at(b, start + i * step, a)];
}

void pad(const Invocation& kernel) {
  const std::size_t axis = axis_of_operand(kernel, kernel.in[0]);
  const std::int64_t before = kernel.op.settings.integer("before");
  const std::int64_t step = kernel.op.settings.integer("between") + 1;
  const Around from = around(kernel.in[0], axis);
  const Around to = around(kernel.out[0], axis);
  std::ranges::fill(kernel.out[0].values, kernel.op.settings.number("value"));
  for (std::int64_t b = 0; b < from.before; ++b)
    for (std::int64_t i = 0; i < from.extent; ++i)
      for (std::int64_t a = 0; a < from.after; ++a)
        kernel.out[0].values[to.at(b, before + i * step, a)] =
            kernel.in[0].values[from.at(b, i, a)];
}

}  // namespace foreshard::execute::defined
