// Norms of rows, and of the heads in rows of a packed projection.
#include <algorithm>
#include <cmath>

#include "tests/oracle/internal/kernels.h"
#include "tests/oracle/internal/packed.h"

namespace foreshard::execute {
namespace {

constexpr double kRowEpsilon = 1e-5;

// Mean (0 of an RMS norm) and 1 / standard deviation.
struct Statistics {
  double mean = 0;
  double inverse = 0;
};
Statistics statistics(const double* row, const Normed& group, bool centred) {
  Statistics s;
  const auto n = static_cast<double>(group.columns.size());
  if (centred) {
    for (const std::int64_t c : group.columns) s.mean += row[c] / n;
  }
  double square = 0;
  for (const std::int64_t c : group.columns) square += (row[c] - s.mean) * (row[c] - s.mean) / n;
  s.inverse = 1 / std::sqrt(square + kRowEpsilon);
  return s;
}

// Of heads. `weights`: columns of the slice of a weight of queries.
RowNorm heads_of(const Operand& x, const Settings& settings, std::int64_t weights) {
  const Packed packed(x, settings);
  const std::int64_t d = packed.head_dim();
  const bool together = settings.flag("together");
  const bool own = !together && weights > d;  // each head has its own weights
  RowNorm how{.centred = settings.text("norm") == "layer", .norms = 2};
  const auto add = [&](std::int64_t begin, std::size_t norm, std::int64_t head) {
    if (head == 0 || !together)
      how.groups.push_back({.columns = {}, .norm = norm, .weight = own ? head * d : 0});
    for (std::int64_t i = 0; i < d; ++i) how.groups.back().columns.push_back(begin + i);
  };
  for (std::int64_t h = 0; h < packed.query_heads(); ++h) add(packed.query(h), 0, h);
  for (std::int64_t g = 0; g < packed.groups(); ++g)
    add(packed.key(g * packed.queries_of_group()), 1, g);
  return how;
}

}  // namespace

void head_norm(const Invocation& kernel) {
  norm_forward(kernel, heads_of(kernel.in[0], kernel.op.settings, columns(kernel.in[1])));
}
void head_norm_gradient(const Invocation& kernel) {
  norm_backward(kernel, heads_of(kernel.in[1], kernel.op.settings, columns(kernel.in[2])));
}

// Ba et al., "Layer normalization", 2016: y = (x - mean) / sigma * scale + shift; Zhang and
// Sennrich, "Root mean square layer normalization", 2019: without mean and shift. Inputs: x, the
// scale of each norm, the shift of each, as far as they are there.
void norm_forward(const Invocation& kernel, const RowNorm& how) {
  const Operand& x = kernel.in[0];
  Operand& y = kernel.out[0];
  const std::size_t norms = how.norms;
  need_same_slice(x, y);
  const bool scaled = kernel.in.size() > 1;
  const bool shifted = kernel.in.size() > 1 + norms;
  y.values = x.values;  // values of heads stay
  for (std::int64_t r = 0; r < rows(x); ++r) {
    const double* row = &x.values[at(r * columns(x))];
    for (const Normed& group : how.groups) {
      const Statistics s = statistics(row, group, how.centred);
      for (std::size_t i = 0; i < group.columns.size(); ++i) {
        const std::size_t w = at(group.weight) + i;
        const double scale = scaled ? kernel.in[1 + group.norm].values[w] : 1.0;
        const double shift = shifted ? kernel.in[1 + norms + group.norm].values[w] : 0.0;
        y.values[at(r * columns(x) + group.columns[i])] =
            (row[group.columns[i]] - s.mean) * s.inverse * scale + shift;
      }
    }
  }
}

// With n = (x - mean) / sigma and g = dy * scale: dx = (g - mean(g) - n mean(g n)) / sigma.
// Inputs: dy, x, scales; outputs: dx, the gradients of scales, then of shifts.
void norm_backward(const Invocation& kernel, const RowNorm& how) {
  const Operand& dy = kernel.in[0];
  const Operand& x = kernel.in[1];
  const std::size_t norms = how.norms;
  need_same_slice(x, dy);
  need_same_slice(x, kernel.out[0]);
  const bool scaled = kernel.in.size() > 2;
  const bool shifted = kernel.out.size() > 1 + norms;
  kernel.out[0].values = dy.values;
  for (std::size_t o = 1; o < kernel.out.size(); ++o) std::ranges::fill(kernel.out[o].values, 0.0);
  for (std::int64_t r = 0; r < rows(x); ++r) {
    const double* row = &x.values[at(r * columns(x))];
    const double* gradient = &dy.values[at(r * columns(x))];
    for (const Normed& group : how.groups) {
      const Statistics s = statistics(row, group, how.centred);
      const auto n = static_cast<double>(group.columns.size());
      const auto scaled_gradient = [&](std::size_t i) {
        const double scale = scaled ? kernel.in[2 + group.norm].values[at(group.weight) + i] : 1.0;
        return gradient[group.columns[i]] * scale;
      };
      double mean_g = 0;
      double mean_gn = 0;
      for (std::size_t i = 0; i < group.columns.size(); ++i) {
        const std::size_t w = at(group.weight) + i;
        const double normal = (row[group.columns[i]] - s.mean) * s.inverse;
        if (how.centred) mean_g += scaled_gradient(i) / n;
        mean_gn += scaled_gradient(i) * normal / n;
        const double dy_i = gradient[group.columns[i]];
        if (scaled) kernel.out[1 + group.norm].values[w] += dy_i * normal;
        if (shifted) kernel.out[1 + norms + group.norm].values[w] += dy_i;
      }
      for (std::size_t i = 0; i < group.columns.size(); ++i) {
        const double normal = (row[group.columns[i]] - s.mean) * s.inverse;
        kernel.out[0].values[at(r * columns(x) + group.columns[i])] =
            (scaled_gradient(i) - mean_g - normal * mean_gn) * s.inverse;
      }
    }
  }
}

}  // namespace foreshard::execute
