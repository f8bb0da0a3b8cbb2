// Softmax, norms and batch norm.
#include <algorithm>
#include <array>
#include <cmath>

#include "tests/oracle/internal/defined.h"

namespace foreshard::execute::defined {
namespace {

constexpr double kEpsilon = 1e-5;

// Dimensions from `axis` on as one: the kernels of pointwise.cc work on rows.
Operand as_rows(const Operand& operand, std::size_t axis) {
  std::int64_t width = 1;
  for (std::size_t d = axis; d < operand.whole.size(); ++d) {
    FORESHARD_CHECK(extent(operand, d) == operand.whole[d]);
    width *= operand.whole[d];
  }
  const auto count = static_cast<std::int64_t>(operand.values.size());
  const std::int64_t height = width == 0 ? 0 : count / width;
  return {{height, width}, {{0, 0}, {height, width}}, operand.values};
}

// A norm of rows; operand `x` tells which dimensions are normalised.
void by_rows(const Invocation& kernel, bool forward, bool centred) {
  const std::size_t x = forward ? 0 : 1;
  const std::size_t axis = axis_of_operand(kernel, kernel.in[x]);
  std::vector<Operand> in;
  std::vector<Operand> out;
  for (const Operand& operand : kernel.in)
    in.push_back(as_rows(operand, operand.whole.size() == kernel.in[x].whole.size() ? axis : 0));
  for (const Operand& operand : kernel.out)
    out.push_back(as_rows(operand, operand.whole.size() == kernel.in[x].whole.size() ? axis : 0));
  RowNorm how{.centred = centred, .groups = {{}}};
  for (std::int64_t i = 0; i < columns(in[x]); ++i) how.groups[0].columns.push_back(i);
  const Invocation rows{kernel.op, in, out, kernel.context};
  forward ? norm_forward(rows, how) : norm_backward(rows, how);
  for (std::size_t o = 0; o < out.size(); ++o) kernel.out[o].values = std::move(out[o].values);
}

// Mean and 1 / standard deviation of the channel, from sum and sum of squares [2, channels].
struct Channel {
  double mean;
  double inverse;
};
Channel channel_of(const Operand& statistics, std::int64_t c, double count) {
  const std::int64_t channels = extent(statistics, 1);
  const double mean = statistics.values[at(c)] / count;
  const double square = statistics.values[at(channels + c)] / count;
  return {mean, 1 / std::sqrt(square - mean * mean + kEpsilon)};
}

// Samples of a channel, of all ranks.
double count_of(const Operand& x) {
  double count = 1;
  for (std::size_t d = 0; d < x.whole.size(); ++d)
    if (d != 1) count *= static_cast<double>(x.whole[d]);
  return count;
}

template <class Visit>
void each_of_channel(const Operand& x, Visit visit) {
  const Around shape = around(x, 1);
  for (std::int64_t b = 0; b < shape.before; ++b)
    for (std::int64_t c = 0; c < shape.extent; ++c)
      for (std::int64_t a = 0; a < shape.after; ++a) visit(c, shape.at(b, c, a));
}

}  // namespace

void softmax(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  const std::size_t axis = axis_of_operand(kernel, x);
  FORESHARD_CHECK(extent(x, axis) == x.whole[axis]);
  need_same_slice(x, kernel.out[0]);
  const Around shape = around(x, axis);
  const double scale = kernel.op.settings.number("scale");
  const bool causal = kernel.op.settings.flag("causal");  // then the axis is the last
  for (std::int64_t b = 0; b < shape.before; ++b) {
    std::int64_t seen = shape.extent;
    if (causal) {
      const std::size_t queries = axis - 1;
      seen = std::min(seen, x.box.begin[queries] + b % extent(x, queries) + 1);
    }
    for (std::int64_t a = 0; a < shape.after; ++a) {
      double largest = x.values[shape.at(b, 0, a)];
      for (std::int64_t i = 1; i < seen; ++i)
        largest = std::max(largest, x.values[shape.at(b, i, a)]);
      double total = 0;
      for (std::int64_t i = 0; i < seen; ++i)
        total += std::exp((x.values[shape.at(b, i, a)] - largest) * scale);
      for (std::int64_t i = 0; i < shape.extent; ++i)
        kernel.out[0].values[shape.at(b, i, a)] =
            i < seen ? std::exp((x.values[shape.at(b, i, a)] - largest) * scale) / total : 0.0;
    }
  }
}

void softmax_gradient(const Invocation& kernel) {
  const Operand& dy = kernel.in[0];
  const Operand& y = kernel.in[1];
  const std::size_t axis = axis_of_operand(kernel, y);
  FORESHARD_CHECK(extent(y, axis) == y.whole[axis]);
  need_same_slice(dy, y);
  need_same_slice(y, kernel.out[0]);
  const double scale = kernel.op.settings.number("scale");
  const Around shape = around(y, axis);
  for (std::int64_t b = 0; b < shape.before; ++b) {
    for (std::int64_t a = 0; a < shape.after; ++a) {
      double along = 0;
      for (std::int64_t i = 0; i < shape.extent; ++i)
        along += dy.values[shape.at(b, i, a)] * y.values[shape.at(b, i, a)];
      for (std::int64_t i = 0; i < shape.extent; ++i) {
        const std::size_t k = shape.at(b, i, a);
        kernel.out[0].values[k] = scale * y.values[k] * (dy.values[k] - along);
      }
    }
  }
}

void layer_norm(const Invocation& kernel) {
  by_rows(kernel, true, true);
}
void layer_norm_gradient(const Invocation& kernel) {
  by_rows(kernel, false, true);
}
void rms_norm(const Invocation& kernel) {
  by_rows(kernel, true, false);
}
void rms_norm_gradient(const Invocation& kernel) {
  by_rows(kernel, false, false);
}

void batch_statistics(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  auto& y = kernel.out[0].values;
  const std::int64_t channels = extent(kernel.out[0], 1);
  std::ranges::fill(y, 0.0);
  each_of_channel(x, [&](std::int64_t c, std::size_t i) {
    y[at(c)] += x.values[i];
    y[at(channels + c)] += x.values[i] * x.values[i];
  });
}

// Ioffe and Szegedy, "Batch normalization", 2015, algorithm 1.
void batch_norm(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  need_same_slice(x, kernel.out[0]);
  each_of_channel(x, [&](std::int64_t c, std::size_t i) {
    const Channel channel = channel_of(kernel.in[3], c, count_of(x));
    kernel.out[0].values[i] =
        (x.values[i] - channel.mean) * channel.inverse * kernel.in[1].values[at(c)] +
        kernel.in[2].values[at(c)];
  });
}

void batch_norm_gradient_sums(const Invocation& kernel) {
  const Operand& dy = kernel.in[0];
  const Operand& x = kernel.in[1];
  need_same_slice(dy, x);
  for (Operand& out : kernel.out) {
    const std::int64_t channels = extent(out, 1);
    std::ranges::fill(out.values, 0.0);
    each_of_channel(x, [&](std::int64_t c, std::size_t i) {
      const Channel channel = channel_of(kernel.in[2], c, count_of(x));
      out.values[at(c)] += dy.values[i];
      out.values[at(channels + c)] += dy.values[i] * (x.values[i] - channel.mean) * channel.inverse;
    });
  }
}

void batch_norm_gradient(const Invocation& kernel) {
  const Operand& dy = kernel.in[0];
  const Operand& x = kernel.in[1];
  const Operand& sums = kernel.in[4];
  need_same_slice(dy, x);
  need_same_slice(x, kernel.out[0]);
  const std::int64_t channels = extent(sums, 1);
  const double count = count_of(x);
  each_of_channel(x, [&](std::int64_t c, std::size_t i) {
    const Channel channel = channel_of(kernel.in[3], c, count);
    const double normal = (x.values[i] - channel.mean) * channel.inverse;
    kernel.out[0].values[i] = kernel.in[2].values[at(c)] * channel.inverse *
                              (dy.values[i] - sums.values[at(c)] / count -
                               normal * sums.values[at(channels + c)] / count);
  });
}

}  // namespace foreshard::execute::defined
