// Convolution, pooling, and attention on separate queries, keys and values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/oracle/internal/defined.h"

namespace foreshard::execute::defined {
namespace {

// A window that moves over the spatial dimensions of [batch, channels, ...].
struct Window {
  Shape kernel;
  Shape strides;
  Shape dilations;
  Shape before;
};

Shape each(const Settings& settings, const char* name, std::size_t spatial, std::int64_t fallback) {
  Shape values = settings.integers(name);
  if (values.empty()) values = {fallback};
  if (values.size() < spatial) values.resize(spatial, values[0]);
  return values;
}

Window window_of(const Settings& settings, Shape kernel) {
  const std::size_t spatial = kernel.size();
  return {.kernel = std::move(kernel),
          .strides = each(settings, "strides", spatial, 1),
          .dilations = each(settings, "dilations", spatial, 1),
          .before = each(settings, "pads", spatial, 0)};
}

Shape spatial_of(const Operand& operand) {
  const Shape shape = local_shape_of(operand);
  for (std::size_t d = 2; d < shape.size(); ++d) FORESHARD_CHECK(shape[d] == operand.whole[d]);
  return {shape.begin() + 2, shape.end()};
}

// Visits (place in the input's space, place in the window, place in the output's space) for every
// element that a window position covers inside the input.
template <class Visit>
void each_position(const Window& window, const Shape& in, const Shape& out, Visit visit) {
  each_index(out, [&](const Shape& position) {
    each_index(window.kernel, [&](const Shape& offset) {
      Shape from(in.size());
      for (std::size_t d = 0; d < in.size(); ++d) {
        from[d] =
            position[d] * window.strides[d] + offset[d] * window.dilations[d] - window.before[d];
        if (from[d] < 0 || from[d] >= in[d]) return;
      }
      visit(place(from, in), place(offset, window.kernel), place(position, out));
    });
  });
}

std::size_t volume(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return at(n);
}

// The products that convolution and both its gradients sum: `add(x, weight, y)` with the places of
// one element each, for slices of all three.
template <class Add>
void each_product(const Settings& settings, const Operand& x, const Operand& weight,
                  const Operand& y, Add add) {
  const Shape in = spatial_of(x);
  const Shape out = spatial_of(y);
  const Window window = window_of(settings, spatial_of(weight));
  const std::int64_t groups = x.whole[1] / weight.whole[1];
  const std::int64_t out_of_group = weight.whole[0] / groups;
  FORESHARD_CHECK(x.box.begin[0] == y.box.begin[0] && x.box.end[0] == y.box.end[0]);
  FORESHARD_CHECK(weight.box.begin[0] == y.box.begin[1] && weight.box.end[0] == y.box.end[1]);
  for (std::int64_t n = 0; n < extent(x, 0); ++n) {
    for (std::int64_t o = y.box.begin[1]; o < y.box.end[1]; ++o) {
      for (std::int64_t i = weight.box.begin[1]; i < weight.box.end[1]; ++i) {
        // Channel i of the group that output channel o belongs to.
        const std::int64_t channel = o / out_of_group * weight.whole[1] + i;
        FORESHARD_CHECK(channel >= x.box.begin[1] && channel < x.box.end[1]);
        const std::size_t x_at = at(n * extent(x, 1) + channel - x.box.begin[1]) * volume(in);
        const std::size_t w_at =
            at((o - weight.box.begin[0]) * extent(weight, 1) + i - weight.box.begin[1]) *
            volume(window.kernel);
        const std::size_t y_at = at(n * extent(y, 1) + o - y.box.begin[1]) * volume(out);
        each_position(window, in, out, [&](std::size_t a, std::size_t b, std::size_t c) {
          add(x_at + a, w_at + b, y_at + c);
        });
      }
    }
  }
}

}  // namespace

void conv(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  const Operand& weight = kernel.in[1];
  auto& y = kernel.out[0].values;
  std::ranges::fill(y, 0.0);
  each_product(
      kernel.op.settings, x, weight, kernel.out[0],
      [&](std::size_t a, std::size_t b, std::size_t c) { y[c] += x.values[a] * weight.values[b]; });
}

void conv_data_gradient(const Invocation& kernel) {
  const Operand& dy = kernel.in[0];
  const Operand& weight = kernel.in[1];
  auto& dx = kernel.out[0].values;
  std::ranges::fill(dx, 0.0);
  each_product(kernel.op.settings, kernel.out[0], weight, dy,
               [&](std::size_t a, std::size_t b, std::size_t c) {
                 dx[a] += weight.values[b] * dy.values[c];
               });
}

void conv_weight_gradient(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  const Operand& dy = kernel.in[1];
  auto& dweight = kernel.out[0].values;
  std::ranges::fill(dweight, 0.0);
  each_product(kernel.op.settings, x, kernel.out[0], dy,
               [&](std::size_t a, std::size_t b, std::size_t c) {
                 dweight[b] += x.values[a] * dy.values[c];
               });
}

namespace {

Shape pool_kernel(const Settings& settings, const Shape& in) {
  Shape kernel = settings.integers("kernel");
  if (kernel.empty()) return in;  // global
  if (kernel.size() < in.size()) kernel.resize(in.size(), kernel[0]);
  return kernel;
}

}  // namespace

// A mean divides by the elements inside the input, as ONNX does without count_include_pad.
void pool(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  Operand& y = kernel.out[0];
  const bool mean = kernel.op.settings.text("operation") == "mean";
  const Shape in = spatial_of(x);
  const Shape out = spatial_of(y);
  const Window window = window_of(kernel.op.settings, pool_kernel(kernel.op.settings, in));
  std::ranges::fill(y.values, mean ? 0.0 : -std::numeric_limits<double>::infinity());
  const std::int64_t planes = extent(x, 0) * extent(x, 1);
  for (std::int64_t p = 0; p < planes; ++p) {
    std::vector<double> covered(volume(out), 0.0);
    each_position(window, in, out, [&](std::size_t a, std::size_t, std::size_t c) {
      double& value = y.values[at(p) * volume(out) + c];
      const double element = x.values[at(p) * volume(in) + a];
      value = mean ? value + element : std::max(value, element);
      covered[c] += 1;
    });
    for (std::size_t c = 0; mean && c < covered.size(); ++c)
      y.values[at(p) * volume(out) + c] /= covered[c];
  }
}

// A maximum's gradient goes to the first element that is the maximum.
void pool_gradient(const Invocation& kernel) {
  const Operand& dy = kernel.in[0];
  const Operand& x = kernel.in[1];
  auto& dx = kernel.out[0].values;
  const bool mean = kernel.op.settings.text("operation") == "mean";
  const Shape in = spatial_of(x);
  const Shape out = spatial_of(dy);
  const Window window = window_of(kernel.op.settings, pool_kernel(kernel.op.settings, in));
  std::ranges::fill(dx, 0.0);
  const std::int64_t planes = extent(x, 0) * extent(x, 1);
  for (std::int64_t p = 0; p < planes; ++p) {
    std::vector<double> covered(volume(out), 0.0);
    std::vector<std::size_t> chosen(volume(out), std::numeric_limits<std::size_t>::max());
    each_position(window, in, out, [&](std::size_t a, std::size_t, std::size_t c) {
      covered[c] += 1;
      if (chosen[c] == std::numeric_limits<std::size_t>::max() ||
          x.values[at(p) * volume(in) + a] > x.values[at(p) * volume(in) + chosen[c]])
        chosen[c] = a;
    });
    each_position(window, in, out, [&](std::size_t a, std::size_t, std::size_t c) {
      const double gradient = dy.values[at(p) * volume(out) + c];
      if (mean) {
        dx[at(p) * volume(in) + a] += gradient / covered[c];
      } else if (chosen[c] == a) {
        dx[at(p) * volume(in) + a] += gradient;
      }
    });
  }
}

namespace {

// Rows of one query head and of the key head that it shares.
struct HeadRows {
  std::int64_t query;
  std::int64_t key;
};

class Heads {
 public:
  Heads(const Invocation& kernel, const Operand& q, const Operand& k)
      : q_(q), k_(k), causal_(kernel.op.settings.flag("causal")) {
    FORESHARD_CHECK(extent(k, 2) == k.whole[2] && extent(q, 3) == q.whole[3]);
    FORESHARD_CHECK(q.box.begin[0] == k.box.begin[0] && extent(q, 0) == extent(k, 0));
    scale_ = 1 / std::sqrt(static_cast<double>(q.whole[3]));
  }

  std::int64_t width() const { return q_.whole[3]; }
  double scale() const { return scale_; }
  /// Keys that the local query `s` sees; with a causal mask the last query sees them all.
  std::int64_t visible(std::int64_t s) const {
    if (!causal_) return k_.whole[2];
    return std::min(k_.whole[2], q_.box.begin[2] + s + 1 + k_.whole[2] - q_.whole[2]);
  }

  /// visit(rows of the head, local query, its row).
  template <class Visit>
  void each_query(Visit visit) const {
    const std::int64_t group = q_.whole[1] / k_.whole[1];
    for (std::int64_t b = 0; b < extent(q_, 0); ++b) {
      for (std::int64_t h = 0; h < extent(q_, 1); ++h) {
        const std::int64_t key_head = (q_.box.begin[1] + h) / group - k_.box.begin[1];
        FORESHARD_CHECK(key_head >= 0 && key_head < extent(k_, 1));
        const HeadRows rows_of{(b * extent(q_, 1) + h) * extent(q_, 2),
                               (b * extent(k_, 1) + key_head) * extent(k_, 2)};
        for (std::int64_t s = 0; s < extent(q_, 2); ++s) visit(rows_of, s, rows_of.query + s);
      }
    }
  }

  double score(std::int64_t query_row, std::int64_t key_row) const {
    double sum = 0;
    for (std::int64_t i = 0; i < width(); ++i)
      sum += q_.values[at(query_row * width() + i)] * k_.values[at(key_row * width() + i)];
    return sum * scale_;
  }

 private:
  const Operand& q_;
  const Operand& k_;
  bool causal_;
  double scale_ = 1;
};

}  // namespace

void attention(const Invocation& kernel) {
  const Heads heads(kernel, kernel.in[0], kernel.in[1]);
  const std::int64_t d = heads.width();
  std::ranges::fill(kernel.out[0].values, 0.0);
  heads.each_query([&](const HeadRows& rows_of, std::int64_t s, std::int64_t row) {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t t = 0; t < heads.visible(s); ++t)
      largest = std::max(largest, heads.score(row, rows_of.key + t));
    double total = 0;
    for (std::int64_t t = 0; t < heads.visible(s); ++t)
      total += std::exp(heads.score(row, rows_of.key + t) - largest);
    for (std::int64_t t = 0; t < heads.visible(s); ++t) {
      const double weight = std::exp(heads.score(row, rows_of.key + t) - largest) / total;
      for (std::int64_t i = 0; i < d; ++i)
        kernel.out[0].values[at(row * d + i)] +=
            weight * kernel.in[2].values[at((rows_of.key + t) * d + i)];
    }
    kernel.out[1].values[at(row)] = largest + std::log(total);
  });
}

// Inputs: dy, queries, keys, values, y, logsumexp.
void attention_gradient(const Invocation& kernel) {
  const Operand& q = kernel.in[1];
  const Operand& k = kernel.in[2];
  const Heads heads(kernel, q, k);
  const std::int64_t d = heads.width();
  for (Operand& out : kernel.out) std::ranges::fill(out.values, 0.0);
  heads.each_query([&](const HeadRows& rows_of, std::int64_t s, std::int64_t row) {
    const double* dy = &kernel.in[0].values[at(row * d)];
    double along = 0;
    for (std::int64_t i = 0; i < d; ++i) along += dy[i] * kernel.in[4].values[at(row * d + i)];
    for (std::int64_t t = 0; t < heads.visible(s); ++t) {
      const std::int64_t key = rows_of.key + t;
      const double weight = std::exp(heads.score(row, key) - kernel.in[5].values[at(row)]);
      double slope = 0;
      for (std::int64_t i = 0; i < d; ++i) {
        slope += dy[i] * kernel.in[3].values[at(key * d + i)];
        kernel.out[2].values[at(key * d + i)] += weight * dy[i];
      }
      const double score = weight * (slope - along) * heads.scale();
      for (std::int64_t i = 0; i < d; ++i) {
        kernel.out[0].values[at(row * d + i)] += score * k.values[at(key * d + i)];
        kernel.out[1].values[at(key * d + i)] += score * q.values[at(row * d + i)];
      }
    }
  });
}

}  // namespace foreshard::execute::defined
