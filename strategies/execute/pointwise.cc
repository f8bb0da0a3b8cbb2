// Activations and dropout, element by element.
#include <array>
#include <cmath>

#include "strategies/execute/internal/kernels.h"
#include "strategies/execute/random.h"

namespace foreshard::execute {
namespace {

// gelu(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); Hendrycks and Gimpel, "Gaussian error
// linear units", 2016, section 2.
constexpr double kGeluScale = 0.7978845608028654;
constexpr double kGeluCubic = 0.044715;

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(kGeluScale * (x + kGeluCubic * x * x * x)));
}

double gelu_slope(double x) {
  const double t = std::tanh(kGeluScale * (x + kGeluCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kGeluScale * (1 + 3 * kGeluCubic * x * x);
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

// 0, or what a kept element is multiplied by.
std::vector<double> drawn_mask(const Operand& like, const Invocation& kernel) {
  const std::uint64_t key = key_of(kernel.context.key, kernel.op.name);
  std::vector<double> mask;
  mask.reserve(like.values.size());
  for (const std::int64_t index : logical_indices(like.whole, like.box))
    mask.push_back(uniform(key, index) < kernel.context.dropout ? 0.0 : 1.0);
  return mask;
}

double kept_scale(const Invocation& kernel) {
  return 1 / (1 - kernel.context.dropout);
}

}  // namespace

void gelu_forward(const Invocation& kernel) {
  sum(kernel);  // of the product and its bias
  for (double& y : kernel.out[0].values) y = gelu(y);
}

// Inputs: dy, x and, if it has one, the bias.
void gelu_backward(const Invocation& kernel) {
  const Operand& dy = kernel.in[0];
  need_same_slice(dy, kernel.in[1]);
  need_same_slice(dy, kernel.out[0]);
  std::vector<double> x = kernel.in[1].values;
  if (kernel.in.size() > 2) {
    const std::int64_t width = columns(dy);
    FORESHARD_CHECK(kernel.in[2].box.begin.back() == dy.box.begin.back() &&
                    kernel.in[2].box.end.back() == dy.box.end.back());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += kernel.in[2].values[i % at(width)];
  }
  for (std::size_t i = 0; i < x.size(); ++i)
    kernel.out[0].values[i] = dy.values[i] * gelu_slope(x[i]);
}

// Shazeer, "GLU variants improve transformer", 2020: silu(gate) * up.
void swiglu_forward(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  Operand& y = kernel.out[0];
  FORESHARD_CHECK(x.box.begin.back() == 2 * y.box.begin.back() && rows(x) == rows(y) &&
                  columns(x) == 2 * columns(y));
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const double gate = x.values[2 * i];
    y.values[i] = gate * logistic(gate) * x.values[2 * i + 1];
  }
}

void swiglu_backward(const Invocation& kernel) {
  const Operand& dy = kernel.in[0];
  const Operand& x = kernel.in[1];
  FORESHARD_CHECK(x.box.begin.back() == 2 * dy.box.begin.back() && columns(x) == 2 * columns(dy));
  need_same_slice(x, kernel.out[0]);
  for (std::size_t i = 0; i < dy.values.size(); ++i) {
    const double gate = x.values[2 * i];
    const double up = x.values[2 * i + 1];
    const double s = logistic(gate);
    kernel.out[0].values[2 * i] = dy.values[i] * up * s * (1 + gate * (1 - s));
    kernel.out[0].values[2 * i + 1] = dy.values[i] * gate * s;
  }
}

void dropout_backward(const Invocation& kernel) {
  need_same_slice(kernel.in[0], kernel.in[1]);
  need_same_slice(kernel.in[0], kernel.out[0]);
  for (std::size_t i = 0; i < kernel.in[0].values.size(); ++i)
    kernel.out[0].values[i] = kernel.in[0].values[i] * kernel.in[1].values[i] * kept_scale(kernel);
}

// Inputs: the branch, the residual and, if it has one, the bias.
void bias_dropout_add_forward(const Invocation& kernel) {
  const auto letters = operand_letters(kernel.op.equation);
  Operand& y = kernel.out[0];
  need_same_slice(kernel.in[0], y);
  need_same_slice(kernel.in[1], y);
  need_same_slice(kernel.out[1], y);
  y.values = kernel.in[0].values;
  if (kernel.in.size() > 2) {
    const std::array<const Operand*, 1> bias{&kernel.in[2]};
    const std::array<std::string, 2> along{letters[2], letters[3]};
    contract(along, bias, y);
  }
  kernel.out[1].values = drawn_mask(kernel.out[1], kernel);
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    y.values[i] =
        kernel.in[1].values[i] + y.values[i] * kernel.out[1].values[i] * kept_scale(kernel);
  }
}

}  // namespace foreshard::execute
