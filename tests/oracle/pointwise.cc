// Activations and dropout, element by element.
#include <algorithm>
#include <cmath>

#include "tests/oracle/internal/kernels.h"
#include "tests/oracle/random.h"

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
  const double rate = kernel.op.settings.number("rate");
  std::vector<double> mask;
  mask.reserve(like.values.size());
  for (const std::int64_t index : logical_indices(like.whole, like.box))
    mask.push_back(uniform(key, index) < rate ? 0.0 : 1.0);
  return mask;
}

// What a bias of the last dimension adds to element `i` of `x`.
double bias_of(const Operand& x, const Operand& bias, std::size_t i) {
  return bias.values[i % at(columns(x))];
}
void need_bias_of(const Operand& x, const Operand& bias) {
  FORESHARD_CHECK(bias.box.begin.back() == x.box.begin.back() &&
                  bias.box.end.back() == x.box.end.back());
}

}  // namespace

void bias_gelu(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  const Operand& bias = kernel.in[1];
  need_same_slice(x, kernel.out[0]);
  need_bias_of(x, bias);
  for (std::size_t i = 0; i < x.values.size(); ++i)
    kernel.out[0].values[i] = gelu(x.values[i] + bias_of(x, bias, i));
}

// Inputs: dy, x, bias.
void bias_gelu_gradient(const Invocation& kernel) {
  const Operand& x = kernel.in[1];
  const Operand& bias = kernel.in[2];
  need_same_slice(kernel.in[0], x);
  need_same_slice(x, kernel.out[0]);
  need_bias_of(x, bias);
  for (std::size_t i = 0; i < x.values.size(); ++i)
    kernel.out[0].values[i] =
        kernel.in[0].values[i] * gelu_slope(x.values[i] + bias_of(x, bias, i));
}

// Columns of `x` stand for pairs of `y`'s.
void need_halves(const Operand& x, const Operand& y) {
  FORESHARD_CHECK(x.box.begin.back() == 2 * y.box.begin.back() && rows(x) == rows(y) &&
                  columns(x) == 2 * columns(y));
}

// Shazeer, "GLU variants improve transformer", 2020: silu(gate) * up.
struct GateAndUp {
  double gate;
  double up;
};

// Of element `i` of the result: of columns that alternate, or of two tensors.
GateAndUp gate_and_up(std::span<const Operand> in, std::size_t i) {
  if (in.size() == 2) return {in[0].values[i], in[1].values[i]};
  return {in[0].values[2 * i], in[0].values[2 * i + 1]};
}

// Weights are the last input: one for each row of `y`.
double row_weight(const Invocation& kernel, const Operand& y, std::size_t i) {
  if (!kernel.op.settings.flag("weighted")) return 1;
  return kernel.in.back().values[i / static_cast<std::size_t>(columns(y))];
}

void swiglu_forward(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  Operand& y = kernel.out[0];
  const bool weighted = kernel.op.settings.flag("weighted");
  const std::span<const Operand> read = kernel.in.first(weighted ? 1 : kernel.in.size());
  if (read.size() == 2) {
    need_same_slice(kernel.in[0], y);
    need_same_slice(kernel.in[1], y);
  } else {
    need_halves(x, y);
  }
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const auto [gate, up] = gate_and_up(read, i);
    y.values[i] = gate * logistic(gate) * up * row_weight(kernel, y, i);
  }
}

void swiglu_backward(const Invocation& kernel) {
  const Operand& dy = kernel.in[0];
  const bool weighted = kernel.op.settings.flag("weighted");
  const std::span<const Operand> read = kernel.in.subspan(1, kernel.in.size() - (weighted ? 2 : 1));
  const bool apart = read.size() == 2;
  for (std::size_t i = 0; i < read.size(); ++i) need_same_slice(read[i], kernel.out[i]);
  if (apart) {
    need_same_slice(dy, read[0]);
  } else {
    need_halves(read[0], dy);
  }
  if (weighted) std::ranges::fill(kernel.out[1].values, 0.0);
  for (std::size_t i = 0; i < dy.values.size(); ++i) {
    const auto [gate, up] = gate_and_up(read, i);
    const double s = logistic(gate);
    const double flows = dy.values[i] * row_weight(kernel, dy, i);
    const double of_gate = flows * up * s * (1 + gate * (1 - s));
    const double of_up = flows * gate * s;
    (apart ? kernel.out[0].values[i] : kernel.out[0].values[2 * i]) = of_gate;
    (apart ? kernel.out[1].values[i] : kernel.out[0].values[2 * i + 1]) = of_up;
    if (weighted)
      kernel.out[1].values[i / static_cast<std::size_t>(columns(dy))] +=
          dy.values[i] * gate * s * up;
  }
}

// Inputs: the branch, the residual and, if it has one, the bias.
void bias_dropout_add(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  Operand& y = kernel.out[0];
  Operand& mask = kernel.out[1];
  need_same_slice(x, y);
  need_same_slice(kernel.in[1], y);
  need_same_slice(mask, y);
  const bool biased = kernel.in.size() > 2;
  if (biased) need_bias_of(x, kernel.in[2]);
  mask.values = drawn_mask(mask, kernel);
  const double kept = 1 / (1 - kernel.op.settings.number("rate"));
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const double bias = biased ? bias_of(x, kernel.in[2], i) : 0.0;
    y.values[i] = kernel.in[1].values[i] + (x.values[i] + bias) * mask.values[i] * kept;
  }
}

namespace {

// Calls `visit(element, entry)` with each element of `tokens` and that of the table in the row of
// its position.
template <class Visit>
void each_position(const Operand& tokens, const Operand& table, Visit visit) {
  need_bias_of(tokens, table);
  const std::int64_t width = columns(tokens);
  for (std::int64_t r = 0; r < rows(tokens); ++r) {
    const std::int64_t row = tokens.box.begin[1] + r % extent(tokens, 1) - table.box.begin[0];
    FORESHARD_CHECK(row >= 0 && row < extent(table, 0));
    for (std::int64_t i = 0; i < width; ++i) visit(at(r * width + i), at(row * width + i));
  }
}

}  // namespace

void add_positions(const Invocation& kernel) {
  need_same_slice(kernel.in[0], kernel.out[0]);
  each_position(kernel.in[0], kernel.in[1], [&](std::size_t element, std::size_t entry) {
    kernel.out[0].values[element] = kernel.in[0].values[element] + kernel.in[1].values[entry];
  });
}

void bias_gradient(const Invocation& kernel) {
  const Operand& dy = kernel.in[0];
  Operand& sum = kernel.out[0];
  std::ranges::fill(sum.values, 0.0);
  const auto add = [&](std::size_t element, std::size_t entry) {
    sum.values[entry] += dy.values[element];
  };
  if (kernel.op.settings.integer("rows") > 0) return each_position(dy, sum, add);
  need_bias_of(dy, sum);
  for (std::size_t i = 0; i < dy.values.size(); ++i) add(i, i % at(columns(dy)));
}

void copy(const Invocation& kernel) {
  need_same_slice(kernel.in[0], kernel.out[0]);
  kernel.out[0].values = kernel.in[0].values;
}

}  // namespace foreshard::execute
