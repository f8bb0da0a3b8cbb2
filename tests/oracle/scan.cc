// The scan and the norm of a Mamba-2 layer (operators/ssd_scan.cc, operators/gated_norm.cc): token
// by token, as mamba.h defines them.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/oracle/internal/kernels.h"

namespace foreshard::execute {
namespace {

constexpr double kGatedEpsilon = 1e-5;

double scan_logistic(double x) {
  return 1 / (1 + std::exp(-x));
}
double scan_silu(double x) {
  return x * scan_logistic(x);
}
double scan_silu_slope(double x) {
  return scan_logistic(x) * (1 + x * (1 - scan_logistic(x)));
}

using ScanValues = std::vector<double>;

// What one rank has of a scan; `in` begins at x, B and C.
class Scan {
 public:
  Scan(const Settings& settings, std::span<const Operand> in)
      : in_(in),
        batch_(extent(in[0], 0)),
        tokens_(extent(in[0], 1)),
        columns_(extent(in[0], 2)),
        taps_(extent(in[2], 1)),
        heads_(extent(in[1], 2)),
        of_group_(settings.integer("heads") / settings.integer("groups")),
        state_(settings.integer("state")) {
    FORESHARD_CHECK(tokens_ == in[0].whole[1] && heads_ % of_group_ == 0);
    channels_ = (columns_ / (heads_ / of_group_) - 2 * state_) / of_group_;
    FORESHARD_CHECK((heads_ / of_group_) * (of_group_ * channels_ + 2 * state_) == columns_);
    before_.resize(in[0].values.size());
    after_.resize(in[0].values.size());
    for (std::int64_t row = 0; row < batch_ * tokens_; ++row)
      for (std::int64_t c = 0; c < columns_; ++c) {
        double sum = has_bias() ? in[6].values[at(c)] : 0;
        each_tap(row, [&](std::int64_t tap, std::int64_t from) {
          sum += in_[2].values[at(c * taps_ + tap)] * in_[0].values[at(from * columns_ + c)];
        });
        before_[at(row * columns_ + c)] = sum;
        after_[at(row * columns_ + c)] = scan_silu(sum);
      }
  }

  // visit(tap, row) of the rows that row `row` of the convolution's result is made of.
  template <class Visit>
  void each_tap(std::int64_t row, Visit visit) const {
    for (std::int64_t tap = 0; tap < taps_; ++tap) {
      const std::int64_t back = taps_ - 1 - tap;
      if (row % tokens_ >= back) visit(tap, row - back);
    }
  }

  bool has_bias() const { return in_.size() > 6; }

  void forward(ScanValues& y) const {
    for (std::int64_t b = 0; b < batch_; ++b)
      for (std::int64_t h = 0; h < heads_; ++h) {
        ScanValues state(at(channels_ * state_), 0.0);
        for (std::int64_t t = 0; t < tokens_; ++t) {
          const std::int64_t row = b * tokens_ + t;
          advance(row, h, state);
          for (std::int64_t p = 0; p < channels_; ++p) {
            double sum = in_[5].values[at(h)] * x(row, h, p);
            for (std::int64_t n = 0; n < state_; ++n)
              sum += state[at(p * state_ + n)] * after_[c_at(row, h, n)];
            y[at((row * heads_ + h) * channels_ + p)] = sum;
          }
        }
      }
  }

  // Gradients of the inputs, in their order.
  void backward(const ScanValues& dy, std::span<Operand> out) const {
    for (Operand& each : out) std::ranges::fill(each.values, 0.0);
    ScanValues dafter(after_.size(), 0.0);
    for (std::int64_t b = 0; b < batch_; ++b)
      for (std::int64_t h = 0; h < heads_; ++h) backward_of_head(b, h, dy, dafter, out);
    for (std::int64_t row = 0; row < batch_ * tokens_; ++row)
      for (std::int64_t c = 0; c < columns_; ++c) {
        const double d =
            dafter[at(row * columns_ + c)] * scan_silu_slope(before_[at(row * columns_ + c)]);
        if (has_bias()) out[6].values[at(c)] += d;
        each_tap(row, [&](std::int64_t tap, std::int64_t from) {
          out[2].values[at(c * taps_ + tap)] += d * in_[0].values[at(from * columns_ + c)];
          out[0].values[at(from * columns_ + c)] += d * in_[2].values[at(c * taps_ + tap)];
        });
      }
  }

 private:
  std::int64_t group_width() const { return of_group_ * channels_ + 2 * state_; }
  std::size_t x_at(std::int64_t row, std::int64_t h, std::int64_t p) const {
    return at(row * columns_ + h / of_group_ * group_width() + h % of_group_ * channels_ + p);
  }
  std::size_t b_at(std::int64_t row, std::int64_t h, std::int64_t n) const {
    return at(row * columns_ + h / of_group_ * group_width() + of_group_ * channels_ + n);
  }
  std::size_t c_at(std::int64_t row, std::int64_t h, std::int64_t n) const {
    return b_at(row, h, n) + at(state_);
  }
  double x(std::int64_t row, std::int64_t h, std::int64_t p) const {
    return after_[x_at(row, h, p)];
  }
  double a(std::int64_t h) const { return -std::exp(in_[3].values[at(h)]); }
  double raw_step(std::int64_t row, std::int64_t h) const {
    return in_[1].values[at(row * heads_ + h)] + in_[4].values[at(h)];
  }
  double step(std::int64_t row, std::int64_t h) const {
    return std::log1p(std::exp(raw_step(row, h)));
  }

  void advance(std::int64_t row, std::int64_t h, ScanValues& state) const {
    const double dt = step(row, h);
    const double decay = std::exp(dt * a(h));
    for (std::int64_t p = 0; p < channels_; ++p)
      for (std::int64_t n = 0; n < state_; ++n) {
        double& s = state[at(p * state_ + n)];
        s = decay * s + dt * x(row, h, p) * after_[b_at(row, h, n)];
      }
  }

  void backward_of_head(std::int64_t b, std::int64_t h, const ScanValues& dy, ScanValues& dafter,
                        std::span<Operand> out) const {
    std::vector<ScanValues> states(1,
                                   ScanValues(at(channels_ * state_), 0.0));  // before each token
    for (std::int64_t t = 0; t < tokens_; ++t) {
      states.push_back(states.back());
      advance(b * tokens_ + t, h, states.back());
    }
    ScanValues dstate(at(channels_ * state_), 0.0);
    for (std::int64_t t = tokens_ - 1; t >= 0; --t) {
      const std::int64_t row = b * tokens_ + t;
      const double dt = step(row, h);
      const double decay = std::exp(dt * a(h));
      double ddt = 0;
      double ddecay = 0;
      for (std::int64_t p = 0; p < channels_; ++p) {
        const double d = dy[at((row * heads_ + h) * channels_ + p)];
        out[5].values[at(h)] += d * x(row, h, p);
        dafter[x_at(row, h, p)] += d * in_[5].values[at(h)];
        for (std::int64_t n = 0; n < state_; ++n) {
          const std::size_t i = at(p * state_ + n);
          const double added = x(row, h, p) * after_[b_at(row, h, n)];
          dafter[c_at(row, h, n)] += d * states[at(t + 1)][i];
          dstate[i] += d * after_[c_at(row, h, n)];
          dafter[x_at(row, h, p)] += dt * dstate[i] * after_[b_at(row, h, n)];
          dafter[b_at(row, h, n)] += dt * dstate[i] * x(row, h, p);
          ddt += dstate[i] * added;
          ddecay += dstate[i] * states[at(t)][i];
          dstate[i] *= decay;
        }
      }
      ddt += ddecay * decay * a(h);
      out[3].values[at(h)] += ddecay * decay * dt * a(h);
      const double draw = ddt * scan_logistic(raw_step(row, h));
      out[1].values[at(row * heads_ + h)] += draw;
      out[4].values[at(h)] += draw;
    }
  }

  std::span<const Operand> in_;
  std::int64_t batch_;
  std::int64_t tokens_;
  std::int64_t columns_;
  std::int64_t taps_;
  std::int64_t heads_;
  std::int64_t of_group_;
  std::int64_t state_;
  std::int64_t channels_ = 0;
  ScanValues before_{};  // silu
  ScanValues after_{};
};

// visit(first, width) of each group of columns in each row.
template <class Visit>
void each_normed_group(const Operand& y, const Settings& settings, Visit visit) {
  const std::int64_t width = y.whole[2] / settings.integer("groups");
  FORESHARD_CHECK(columns(y) % width == 0 && y.box.begin[2] % width == 0);
  for (std::int64_t row = 0; row < rows(y); ++row)
    for (std::int64_t c = 0; c < columns(y); c += width) visit(row * columns(y) + c, c, width);
}

// 1 / root mean square of so many gated values from `first` on.
double inverse_root(const Operand& y, const Operand& z, std::int64_t first, std::int64_t width) {
  double square = 0;
  for (std::int64_t i = first; i < first + width; ++i) {
    const double gated = y.values[at(i)] * scan_silu(z.values[at(i)]);
    square += gated * gated / static_cast<double>(width);
  }
  return 1 / std::sqrt(square + kGatedEpsilon);
}

}  // namespace

void ssd_scan(const Invocation& kernel) {
  Scan(kernel.op.settings, kernel.in).forward(kernel.out[0].values);
}

void ssd_scan_gradient(const Invocation& kernel) {
  Scan(kernel.op.settings, kernel.in.subspan(1)).backward(kernel.in[0].values, kernel.out);
}

void gated_norm(const Invocation& kernel) {
  const Operand& y = kernel.in[0];
  const Operand& z = kernel.in[1];
  need_same_slice(y, z);
  each_normed_group(
      y, kernel.op.settings, [&](std::int64_t first, std::int64_t c, std::int64_t width) {
        const double inverse = inverse_root(y, z, first, width);
        for (std::int64_t i = 0; i < width; ++i)
          kernel.out[0].values[at(first + i)] = y.values[at(first + i)] *
                                                scan_silu(z.values[at(first + i)]) * inverse *
                                                kernel.in[2].values[at(c + i)];
      });
}

void gated_norm_gradient(const Invocation& kernel) {
  const Operand& y = kernel.in[1];
  const Operand& z = kernel.in[2];
  need_same_slice(y, z);
  std::ranges::fill(kernel.out[2].values, 0.0);
  each_normed_group(
      y, kernel.op.settings, [&](std::int64_t first, std::int64_t c, std::int64_t width) {
        const double inverse = inverse_root(y, z, first, width);
        double mean = 0;  // of gradient times value
        for (std::int64_t i = 0; i < width; ++i) {
          const double value =
              y.values[at(first + i)] * scan_silu(z.values[at(first + i)]) * inverse;
          const double d = kernel.in[0].values[at(first + i)];
          kernel.out[2].values[at(c + i)] += d * value;
          mean += d * kernel.in[3].values[at(c + i)] * value / static_cast<double>(width);
        }
        for (std::int64_t i = 0; i < width; ++i) {
          const double gate = scan_silu(z.values[at(first + i)]);
          const double value = y.values[at(first + i)] * gate * inverse;
          const double d =
              inverse *
              (kernel.in[0].values[at(first + i)] * kernel.in[3].values[at(c + i)] - value * mean);
          kernel.out[0].values[at(first + i)] = d * gate;
          kernel.out[1].values[at(first + i)] =
              d * y.values[at(first + i)] * scan_silu_slope(z.values[at(first + i)]);
        }
      });
}

}  // namespace foreshard::execute
