#include <algorithm>
#include <cmath>

#include "base/check.h"

#include "validate/replay/host/elementary.h"
#include "validate/replay/host/kernels.h"
#include "validate/replay/host/number.h"

namespace foreshard::replay::host {
namespace {

constexpr float kEpsilon = 1e-5F;            // Of normalisations.
constexpr float kKeep = 0.9F;                // Of dropout.
constexpr std::uint32_t kDrop = 429496730U;  // 0.1 of 2^32.
constexpr float kBeta1 = 0.9F;               // Of Adam, and of momentum.
constexpr float kBeta2 = 0.999F;
constexpr float kLearningRate = 1e-4F;

// Which row a gathering or scattering pass takes for row i: a permutation without locality, by a
// prime that divides no ordinary number of rows.
std::int64_t other_row(std::int64_t i, std::int64_t rows) {
  constexpr std::int64_t kPrime = 7919;
  return rows % kPrime == 0 ? rows - 1 - i : i * kPrime % rows;
}
// The token that cross-entropy expects in row i.
std::int64_t label_of(std::int64_t i, std::int64_t columns) {
  return static_cast<std::int64_t>(mixed(static_cast<std::uint32_t>(i))) % columns;
}

// A pass over elements of storage type T.
template <class T>
class Body {
 public:
  Body(const Pass& pass, const PassOperands& x)
      : x_(x), rows_(pass.rows), columns_(pass.columns), all_(pass.rows * pass.columns) {}

  void run(PassKind kind) const {
    switch (kind) {
      case PassKind::kLayerNormForward:
        return layer_norm_forward();
      case PassKind::kLayerNormBackward:
        return layer_norm_backward();
      case PassKind::kRmsNormForward:
        return rms_norm_forward();
      case PassKind::kRmsNormBackward:
        return rms_norm_backward();
      case PassKind::kGeluForward:
        return map([](float v) { return v * sigmoid(gelu_argument(v)); });
      case PassKind::kGeluBackward:
        return map2([](float v, float dy) {
          const float s = sigmoid(gelu_argument(v));
          return dy * (s + v * s * (1.0F - s) * (1.5957691F + 0.21406445F * v * v));
        });
      case PassKind::kSwigluForward:
        return map2([](float gate, float up) { return gate * sigmoid(gate) * up; });
      case PassKind::kSwigluBackward:
        return swiglu_backward();
      case PassKind::kSoftmaxForward:
        return softmax_forward();
      case PassKind::kSoftmaxBackward:
        return softmax_backward();
      case PassKind::kDropoutForward:
        return dropout_forward();
      case PassKind::kDropoutBackward:
      case PassKind::kBiasDropoutAddBackward:
        return dropout_backward();
      case PassKind::kBiasDropoutAddForward:
        return bias_dropout_add();
      case PassKind::kResidualAdd:
      case PassKind::kBinary:
        return map2([](float a, float b) { return a + b; });
      case PassKind::kBiasAdd:
        return bias_add();
      case PassKind::kBiasGradient:
        return bias_gradient();
      case PassKind::kRopeForward:
        return rotate(1.0F);
      case PassKind::kRopeBackward:
        return rotate(-1.0F);
      case PassKind::kTranspose:
        return transpose();
      case PassKind::kEmbeddingForward:
      case PassKind::kTokenPermute:
        return gather();
      case PassKind::kEmbeddingBackward:
        return scatter_add();
      case PassKind::kCrossEntropyForward:
        return cross_entropy_forward();
      case PassKind::kCrossEntropyBackward:
        return cross_entropy_backward();
      case PassKind::kGradientAccumulate:
        return accumulate();
      case PassKind::kGradientNorm:
        return gradient_norm();
      case PassKind::kAdam:
        return adam();
      case PassKind::kCast:
        return cast();
      case PassKind::kZero:
        return zero();
      case PassKind::kUnary:
        return map([](float v) { return -v; });
      case PassKind::kTernary:
        return ternary();
      case PassKind::kReduce:
        return reduce();
      case PassKind::kExpand:
        return expand();
      case PassKind::kStatistics:
        return statistics();
      case PassKind::kTopK:
        return largest_two();
      case PassKind::kOptimizer:
        return momentum();
    }
    FORESHARD_CHECK(false && "every pass has its loop");
  }

 private:
  const T* in(std::size_t i) const { return reinterpret_cast<const T*>(x_.in[i]); }
  T* out(std::size_t i) const { return reinterpret_cast<T*>(x_.out[i]); }
  const T* in(std::size_t i, std::int64_t row) const { return in(i) + row * columns_; }
  T* out(std::size_t i, std::int64_t row) const { return out(i) + row * columns_; }

  // GELU by its approximation with tanh, as x sigmoid(2 u): Hendrycks and Gimpel, 2016.
  static float gelu_argument(float v) { return 1.5957691F * v + 0.071354816F * v * v * v; }

  template <class F>
  void map(F f) const {
    const T* __restrict a = in(0);
    T* __restrict y = out(0);
    for (std::int64_t i = 0; i < all_; ++i) store(f(to_float(a[i])), y[i]);
  }
  template <class F>
  void map2(F f) const {
    const T* __restrict a = in(0);
    const T* __restrict b = in(1);
    T* __restrict y = out(0);
    for (std::int64_t i = 0; i < all_; ++i) store(f(to_float(a[i]), to_float(b[i])), y[i]);
  }
  template <class F>
  float sum(const T* row, F f) const {
    float total = 0.0F;
    for (std::int64_t c = 0; c < columns_; ++c) total += f(to_float(row[c]));
    return total;
  }
  float count() const { return static_cast<float>(columns_); }

  void layer_norm_forward() const {
    const float* __restrict gain = x_.column_in[0];
    const float* __restrict bias = x_.column_in[1];
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict a = in(0, r);
      T* __restrict y = out(0, r);
      const float mean = sum(a, [](float v) { return v; }) / count();
      const float variance = sum(a, [mean](float v) { return (v - mean) * (v - mean); }) / count();
      const float scale = 1.0F / std::sqrt(variance + kEpsilon);
      for (std::int64_t c = 0; c < columns_; ++c)
        store((to_float(a[c]) - mean) * scale * gain[c] + bias[c], y[c]);
      x_.row_out[0][r] = mean;
      x_.row_out[1][r] = scale;
    }
  }
  // x hat = (x - mean) scale; dx = scale (g - mean(g) - x hat mean(g x hat)), g = dy gain.
  void layer_norm_backward() const {
    const float* __restrict gain = x_.column_in[0];
    float* __restrict gain_gradient = x_.column_out[0];
    float* __restrict bias_gradient = x_.column_out[1];
    std::fill_n(gain_gradient, columns_, 0.0F);
    std::fill_n(bias_gradient, columns_, 0.0F);
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict a = in(0, r);
      const T* __restrict dy = in(1, r);
      T* __restrict dx = out(0, r);
      const float mean = x_.row_in[0][r];
      const float scale = x_.row_in[1][r];
      float first = 0.0F;
      float second = 0.0F;
      for (std::int64_t c = 0; c < columns_; ++c) {
        const float hat = (to_float(a[c]) - mean) * scale;
        const float d = to_float(dy[c]);
        first += d * gain[c];
        second += d * gain[c] * hat;
        gain_gradient[c] += d * hat;
        bias_gradient[c] += d;
      }
      first /= count();
      second /= count();
      for (std::int64_t c = 0; c < columns_; ++c) {
        const float hat = (to_float(a[c]) - mean) * scale;
        store(scale * (to_float(dy[c]) * gain[c] - first - hat * second), dx[c]);
      }
    }
  }
  void rms_norm_forward() const {
    const float* __restrict gain = x_.column_in[0];
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict a = in(0, r);
      T* __restrict y = out(0, r);
      const float scale =
          1.0F / std::sqrt(sum(a, [](float v) { return v * v; }) / count() + kEpsilon);
      for (std::int64_t c = 0; c < columns_; ++c) store(to_float(a[c]) * scale * gain[c], y[c]);
      x_.row_out[0][r] = scale;
    }
  }
  // dx = scale (g - x hat mean(g x hat)), x hat = x scale, g = dy gain.
  void rms_norm_backward() const {
    const float* __restrict gain = x_.column_in[0];
    float* __restrict gain_gradient = x_.column_out[0];
    std::fill_n(gain_gradient, columns_, 0.0F);
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict a = in(0, r);
      const T* __restrict dy = in(1, r);
      T* __restrict dx = out(0, r);
      const float scale = x_.row_in[0][r];
      float second = 0.0F;
      for (std::int64_t c = 0; c < columns_; ++c) {
        const float hat = to_float(a[c]) * scale;
        const float d = to_float(dy[c]);
        second += d * gain[c] * hat;
        gain_gradient[c] += d * hat;
      }
      second /= count();
      for (std::int64_t c = 0; c < columns_; ++c)
        store(scale * (to_float(dy[c]) * gain[c] - to_float(a[c]) * scale * second), dx[c]);
    }
  }
  // y = silu(gate) up.
  void swiglu_backward() const {
    const T* __restrict gate = in(0);
    const T* __restrict up = in(1);
    const T* __restrict dy = in(2);
    T* __restrict dgate = out(0);
    T* __restrict dup = out(1);
    for (std::int64_t i = 0; i < all_; ++i) {
      const float g = to_float(gate[i]);
      const float s = sigmoid(g);
      const float d = to_float(dy[i]);
      store(d * to_float(up[i]) * s * (1.0F + g * (1.0F - s)), dgate[i]);
      store(d * g * s, dup[i]);
    }
  }
  // Scores of a causal square: row r sees r mod columns + 1 columns; scaled by 1/8 (heads of 64).
  void softmax_forward() const {
    constexpr float kScale = 0.125F;
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict a = in(0, r);
      T* __restrict y = out(0, r);
      const std::int64_t seen = r % columns_ + 1;
      float most = to_float(a[0]);
      for (std::int64_t c = 0; c < columns_; ++c) {
        const float v = to_float(a[c]);
        most = c < seen && v > most ? v : most;
      }
      float total = 0.0F;
      for (std::int64_t c = 0; c < seen; ++c)
        total += exponential((to_float(a[c]) - most) * kScale);
      const float inverse = 1.0F / total;
      for (std::int64_t c = 0; c < seen; ++c)
        store(exponential((to_float(a[c]) - most) * kScale) * inverse, y[c]);
      for (std::int64_t c = seen; c < columns_; ++c) store(0.0F, y[c]);
    }
  }
  // dx = scale p (dp - sum(p dp)).
  void softmax_backward() const {
    constexpr float kScale = 0.125F;
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict p = in(0, r);
      const T* __restrict dp = in(1, r);
      T* __restrict dx = out(0, r);
      float dot = 0.0F;
      for (std::int64_t c = 0; c < columns_; ++c) dot += to_float(p[c]) * to_float(dp[c]);
      for (std::int64_t c = 0; c < columns_; ++c)
        store(kScale * to_float(p[c]) * (to_float(dp[c]) - dot), dx[c]);
    }
  }

  static bool keeps(std::int64_t element) {
    return mixed(static_cast<std::uint32_t>(element)) >= kDrop;
  }
  void dropout_forward() const {
    const T* __restrict a = in(0);
    T* __restrict y = out(0);
    std::uint8_t* __restrict mask = x_.mask_out[0];
    for (std::int64_t i = 0; i < all_; ++i) {
      const bool keep = keeps(i);
      store(keep ? to_float(a[i]) * (1.0F / kKeep) : 0.0F, y[i]);
      mask[i] = keep ? 1 : 0;
    }
  }
  void dropout_backward() const {
    const T* __restrict dy = in(0);
    T* __restrict dx = out(0);
    const std::uint8_t* __restrict mask = x_.mask_in[0];
    for (std::int64_t i = 0; i < all_; ++i)
      store(mask[i] != 0 ? to_float(dy[i]) * (1.0F / kKeep) : 0.0F, dx[i]);
  }
  void bias_dropout_add() const {
    const float* __restrict bias = x_.column_in[0];
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict a = in(0, r);
      const T* __restrict residual = in(1, r);
      T* __restrict y = out(0, r);
      std::uint8_t* __restrict mask = x_.mask_out[0] + r * columns_;
      for (std::int64_t c = 0; c < columns_; ++c) {
        const bool keep = keeps(r * columns_ + c);
        const float kept = keep ? (to_float(a[c]) + bias[c]) * (1.0F / kKeep) : 0.0F;
        store(to_float(residual[c]) + kept, y[c]);
        mask[c] = keep ? 1 : 0;
      }
    }
  }
  void bias_add() const {
    const float* __restrict bias = x_.column_in[0];
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict a = in(0, r);
      T* __restrict y = out(0, r);
      for (std::int64_t c = 0; c < columns_; ++c) store(to_float(a[c]) + bias[c], y[c]);
    }
  }
  void bias_gradient() const {
    float* __restrict total = x_.column_out[0];
    std::fill_n(total, columns_, 0.0F);
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict dy = in(0, r);
      for (std::int64_t c = 0; c < columns_; ++c) total[c] += to_float(dy[c]);
    }
  }
  // Columns in pairs, each turned by its own angle; of an odd number the last stays.
  void rotate(float direction) const {
    const float* __restrict cosine = x_.column_in[0];
    const float* __restrict sine = x_.column_in[1];
    const std::int64_t even = columns_ - columns_ % 2;
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict a = in(0, r);
      T* __restrict y = out(0, r);
      for (std::int64_t c = 0; c < even; c += 2) {
        const float first = to_float(a[c]);
        const float second = to_float(a[c + 1]);
        const float s = direction * sine[c];
        store(first * cosine[c] - second * s, y[c]);
        store(first * s + second * cosine[c], y[c + 1]);
      }
      if (even < columns_) y[even] = a[even];
    }
  }
  void transpose() const {
    constexpr std::int64_t kTile = 32;
    const T* __restrict a = in(0);
    T* __restrict y = out(0);
    for (std::int64_t r = 0; r < rows_; r += kTile)
      for (std::int64_t c = 0; c < columns_; c += kTile)
        for (std::int64_t i = r; i < std::min(r + kTile, rows_); ++i)
          for (std::int64_t j = c; j < std::min(c + kTile, columns_); ++j)
            y[j * rows_ + i] = a[i * columns_ + j];
  }
  void gather() const {
    for (std::int64_t r = 0; r < rows_; ++r)
      std::copy_n(in(0, other_row(r, rows_)), columns_, out(0, r));
  }
  void scatter_add() const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict dy = in(0, r);
      T* __restrict table = out(0, other_row(r, rows_));
      for (std::int64_t c = 0; c < columns_; ++c)
        store(to_float(table[c]) + to_float(dy[c]), table[c]);
    }
  }
  void cross_entropy_forward() const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* __restrict a = in(0, r);
      float* __restrict softmax = x_.wide_out[0] + r * columns_;
      float most = to_float(a[0]);
      for (std::int64_t c = 0; c < columns_; ++c) {
        const float v = to_float(a[c]);
        most = v > most ? v : most;
      }
      float total = 0.0F;
      for (std::int64_t c = 0; c < columns_; ++c) {
        const float e = exponential(to_float(a[c]) - most);
        softmax[c] = e;
        total += e;
      }
      const float inverse = 1.0F / total;
      for (std::int64_t c = 0; c < columns_; ++c) softmax[c] *= inverse;
      x_.row_out[0][r] = std::log(total) - (to_float(a[label_of(r, columns_)]) - most);
    }
  }
  void cross_entropy_backward() const {
    const float scale = 1.0F / static_cast<float>(rows_);
    for (std::int64_t r = 0; r < rows_; ++r) {
      const float* __restrict softmax = x_.wide_in[0] + r * columns_;
      T* __restrict dx = out(0, r);
      for (std::int64_t c = 0; c < columns_; ++c) store(softmax[c] * scale, dx[c]);
      const std::int64_t label = label_of(r, columns_);
      store((softmax[label] - 1.0F) * scale, dx[label]);
    }
  }

  void accumulate() const {
    const T* __restrict a = in(0);
    float* __restrict main = x_.wide_state[0];
    for (std::int64_t i = 0; i < all_; ++i) main[i] += to_float(a[i]);
  }
  void gradient_norm() const {
    const float* __restrict g = x_.wide_in[0];
    // fp32 sums of stretches, and their sum in double: 1e9 squares do not drown.
    constexpr std::int64_t kStretch = 4096;
    double total = 0.0;
    for (std::int64_t first = 0; first < all_; first += kStretch) {
      float part = 0.0F;
      for (std::int64_t i = first; i < std::min(first + kStretch, all_); ++i) part += g[i] * g[i];
      total += static_cast<double>(part);
    }
    x_.column_out[0][0] = static_cast<float>(total);
  }
  // Without weight decay, both corrections of bias as after the first step: Kingma and Ba, 2015.
  // |v|, because the second moment may lie where another kernel left its numbers.
  void adam() const {
    const float* __restrict g = x_.wide_in[0];
    float* __restrict p = x_.wide_state[0];
    float* __restrict m = x_.wide_state[1];
    float* __restrict v = x_.wide_state[2];
    T* __restrict working = out(0);
    for (std::int64_t i = 0; i < all_; ++i) {
      m[i] = kBeta1 * m[i] + (1.0F - kBeta1) * g[i];
      v[i] = kBeta2 * std::fabs(v[i]) + (1.0F - kBeta2) * g[i] * g[i];
      p[i] -=
          kLearningRate * (m[i] / (1.0F - kBeta1)) / (std::sqrt(v[i] / (1.0F - kBeta2)) + 1e-8F);
      store(p[i], working[i]);
    }
  }
  void momentum() const {
    const float* __restrict g = x_.wide_in[0];
    float* __restrict p = x_.wide_state[0];
    float* __restrict m = x_.wide_state[1];
    T* __restrict working = out(0);
    for (std::int64_t i = 0; i < all_; ++i) {
      m[i] = kBeta1 * m[i] + g[i];
      p[i] -= kLearningRate * m[i];
      store(p[i], working[i]);
    }
  }
  void cast() const {
    const T* __restrict a = in(0);
    float* __restrict y = x_.wide_out[0];
    for (std::int64_t i = 0; i < all_; ++i) y[i] = to_float(a[i]);
  }
  void zero() const {
    T* __restrict y = out(0);
    for (std::int64_t i = 0; i < all_; ++i) store(0.0F, y[i]);
  }
  void ternary() const {
    const T* __restrict a = in(0);
    const T* __restrict b = in(1);
    const T* __restrict c = in(2);
    T* __restrict y = out(0);
    for (std::int64_t i = 0; i < all_; ++i)
      store(to_float(a[i]) * to_float(b[i]) + to_float(c[i]), y[i]);
  }
  void reduce() const {
    for (std::int64_t r = 0; r < rows_; ++r)
      x_.row_out[0][r] = sum(in(0, r), [](float v) { return v; });
  }
  void expand() const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      T* __restrict y = out(0, r);
      const float value = x_.row_in[0][r];
      for (std::int64_t c = 0; c < columns_; ++c) store(value, y[c]);
    }
  }
  void statistics() const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      x_.row_out[0][r] = sum(in(0, r), [](float v) { return v; });
      x_.row_out[1][r] = sum(in(0, r), [](float v) { return v * v; });
    }
  }
  void largest_two() const {
    for (std::int64_t r = 0; r < rows_; ++r) {
      const T* a = in(0, r);
      float first = to_float(a[0]);
      float second = first;
      for (std::int64_t c = 1; c < columns_; ++c) {
        const float v = to_float(a[c]);
        second = c == 1 || v > second ? (v < first ? v : first) : second;
        first = v > first ? v : first;
      }
      x_.row_out[0][r] = first;
      x_.row_out[1][r] = second;
    }
  }

  const PassOperands& x_;
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t all_;
};

}  // namespace

PassArrays arrays_of(PassKind kind) {
  switch (kind) {
    case PassKind::kLayerNormForward:
      return {.in = 1, .out = 1, .row_out = 2, .column_in = 2};
    case PassKind::kLayerNormBackward:
      return {.in = 2, .out = 1, .row_in = 2, .column_in = 1, .column_out = 2};
    case PassKind::kRmsNormForward:
      return {.in = 1, .out = 1, .row_out = 1, .column_in = 1};
    case PassKind::kRmsNormBackward:
      return {.in = 2, .out = 1, .row_in = 1, .column_in = 1, .column_out = 1};
    case PassKind::kSwigluBackward:
      return {.in = 3, .out = 2};
    case PassKind::kGeluForward:
    case PassKind::kSoftmaxForward:
    case PassKind::kTranspose:
    case PassKind::kEmbeddingForward:
    case PassKind::kEmbeddingBackward:
    case PassKind::kTokenPermute:
    case PassKind::kUnary:
      return {.in = 1, .out = 1};
    case PassKind::kGeluBackward:
    case PassKind::kSwigluForward:
    case PassKind::kSoftmaxBackward:
    case PassKind::kResidualAdd:
    case PassKind::kBinary:
      return {.in = 2, .out = 1};
    case PassKind::kTernary:
      return {.in = 3, .out = 1};
    case PassKind::kDropoutForward:
      return {.in = 1, .out = 1, .mask_out = 1};
    case PassKind::kDropoutBackward:
    case PassKind::kBiasDropoutAddBackward:
      return {.in = 1, .out = 1, .mask_in = 1};
    case PassKind::kBiasDropoutAddForward:
      return {.in = 2, .out = 1, .mask_out = 1, .column_in = 1};
    case PassKind::kBiasAdd:
      return {.in = 1, .out = 1, .column_in = 1};
    case PassKind::kBiasGradient:
      return {.in = 1, .column_out = 1};
    case PassKind::kRopeForward:
    case PassKind::kRopeBackward:
      return {.in = 1, .out = 1, .column_in = 2};
    case PassKind::kCrossEntropyForward:
      return {.in = 1, .wide_out = 1, .row_out = 1};
    case PassKind::kCrossEntropyBackward:
      return {.out = 1, .wide_in = 1};
    case PassKind::kGradientAccumulate:
      return {.in = 1, .wide_state = 1};
    case PassKind::kGradientNorm:
      return {.wide_in = 1, .column_out = 1};
    case PassKind::kAdam:
      return {.out = 1, .wide_in = 1, .wide_state = 3};
    case PassKind::kOptimizer:
      return {.out = 1, .wide_in = 1, .wide_state = 2};
    case PassKind::kCast:
      return {.in = 1, .wide_out = 1};
    case PassKind::kZero:
      return {.out = 1};
    case PassKind::kReduce:
      return {.in = 1, .row_out = 1};
    case PassKind::kStatistics:
    case PassKind::kTopK:
      return {.in = 1, .row_out = 2};
    case PassKind::kExpand:
      return {.out = 1, .row_in = 1};
  }
  FORESHARD_CHECK(false && "every pass has its arrays");
  return {};
}

void pass_over(const Pass& pass, const PassOperands& operands) {
  with_storage(pass.dtype,
               [&](auto storage) { Body<decltype(storage)>(pass, operands).run(pass.kind); });
}

}  // namespace foreshard::replay::host
