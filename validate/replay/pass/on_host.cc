#include <algorithm>
#include <type_traits>

#include "base/check.h"

#include "validate/replay/number.h"
#include "validate/replay/pass/elements.h"
#include "validate/replay/pass/operands.h"
#include "validate/replay/pass/rows.h"

namespace foreshard::replay {

template <class T>
struct HostConversion {
  static float read(T number) { return to_float(number); }
  static T write(float number) {
    T stored;
    store(number, stored);
    return stored;
  }
};
template <>
struct Conversion<Bf16> : HostConversion<Bf16> {};
template <>
struct Conversion<Fp16> : HostConversion<Fp16> {};
template <>
struct Conversion<Fp8> : HostConversion<Fp8> {};

namespace {

// Number of neighbours that a body takes at once; loops of this length are vectorised.
constexpr int kStretch = 64;

// Calls f(integral_constant<int, count>, index) for stretches that cover [first, last).
template <class F>
void over_stretches(std::int64_t first, std::int64_t last, F f) {
  for (; first + kStretch <= last; first += kStretch)
    f(std::integral_constant<int, kStretch>{}, first);
  for (; first < last; ++first) f(std::integral_constant<int, 1>{}, first);
}

// A team (rows.h) with one member, the core.
struct Alone {
  template <class F>
  static void over_row(std::int64_t columns, F f) {
    over_stretches(0, columns, f);
  }
  template <class V, class Combine>
  static V reduced(V value, Combine) {
    return value;
  }
  static bool first() { return true; }
};

template <class T, bool kCentred>
void norm_backward(const Pass& p, std::span<void* const> o) {
  const auto* statistics = static_cast<const float*>(o[3]);
  const auto* gamma = static_cast<const T*>(o[4]);
  auto* gradients = static_cast<float*>(o[5]);
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const T* dy = static_cast<const T*>(o[0]) + r * p.columns;
    const T* x = static_cast<const T*>(o[1]) + r * p.columns;
    T* dx = static_cast<T*>(o[2]) + r * p.columns;
    const NormBackward norm{kCentred ? statistics[2 * r] : 0.0F, statistics[2 * r + 1]};
    float sum = 0.0F;
    float along = 0.0F;
    over_stretches(0, p.columns, [&](auto count, std::int64_t c) {
      float d[count.value];
      float a[count.value];
      float weight[count.value];
      float slope[count.value];
      load(d, dy + c);
      load(a, x + c);
      load(weight, gamma + c);
      load(slope, gradients + c);
      for (int e = 0; e < count.value; ++e) {
        const float h = norm.normal(a[e]);
        slope[e] += d[e] * h;
        sum += d[e] * weight[e];
        along += d[e] * h * weight[e];
      }
      store(gradients + c, slope);
      if constexpr (kCentred) {
        load(slope, gradients + p.columns + c);
        for (int e = 0; e < count.value; ++e) slope[e] += d[e];
        store(gradients + p.columns + c, slope);
      }
    });
    const auto n = static_cast<float>(p.columns);
    sum = kCentred ? sum / n : 0.0F;
    along /= n;
    over_stretches(0, p.columns, [&](auto count, std::int64_t c) {
      float d[count.value];
      float a[count.value];
      float weight[count.value];
      load(d, dy + c);
      load(a, x + c);
      load(weight, gamma + c);
      for (int e = 0; e < count.value; ++e) a[e] = norm.input(d[e] * weight[e], a[e], sum, along);
      store(dx + c, a);
    });
  }
}

template <class T>
void bias_gradient(const Pass& p, std::span<void* const> o) {
  auto* sums = static_cast<float*>(o[1]);
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const T* dy = static_cast<const T*>(o[0]) + r * p.columns;
    for (std::int64_t c = 0; c < p.columns; ++c) sums[c] += Conversion<T>::read(dy[c]);
  }
}

template <class T>
void transpose(const Pass& p, std::span<void* const> o) {
  constexpr std::int64_t kTile = 32;
  const auto* x = static_cast<const T*>(o[0]);
  auto* y = static_cast<T*>(o[1]);
  for (std::int64_t r = 0; r < p.rows; r += kTile)
    for (std::int64_t c = 0; c < p.columns; c += kTile)
      for (std::int64_t i = r; i < std::min(r + kTile, p.rows); ++i)
        for (std::int64_t j = c; j < std::min(c + kTile, p.columns); ++j)
          y[j * p.rows + i] = x[i * p.columns + j];
}

// Stretches are summed in fp32 and their sums in double, so that 1e9 squares lose no precision.
void gradient_norm(const Pass& p, std::span<void* const> o) {
  constexpr std::int64_t kPart = 4096;
  const auto* g = static_cast<const float*>(o[0]);
  const std::int64_t n = p.rows * p.columns;
  double total = 0.0;
  for (std::int64_t first = 0; first < n; first += kPart) {
    float part = 0.0F;
    for (std::int64_t i = first; i < std::min(first + kPart, n); ++i) part += g[i] * g[i];
    total += static_cast<double>(part);
  }
  *static_cast<float*>(o[1]) += static_cast<float>(total);
}

template <class T>
bool run_columns(const Pass& p, std::span<void* const> o) {
  switch (p.kind) {
    case PassKind::kLayerNormBackward:
      norm_backward<T, true>(p, o);
      return true;
    case PassKind::kRmsNormBackward:
      norm_backward<T, false>(p, o);
      return true;
    case PassKind::kBiasGradient:
      bias_gradient<T>(p, o);
      return true;
    case PassKind::kTranspose:
      transpose<T>(p, o);
      return true;
    case PassKind::kGradientNorm:
      gradient_norm(p, o);
      return true;
    default:
      return false;
  }
}

template <class T>
void run_as(const Pass& p, std::span<void* const> o) {
  const auto elements = [](const auto& body, std::int64_t n, std::int64_t together) {
    const std::int64_t step = together % kStretch == 0 ? n : together;
    for (std::int64_t first = 0; first < n; first += step)
      over_stretches(first, std::min(first + step, n),
                     [&](auto count, std::int64_t i) { body.template run<count.value>(i); });
  };
  const auto rows = [&](const auto& body) {
    for (std::int64_t r = 0; r < p.rows; ++r) body.template run<Alone>(r, true);
  };
  const bool known =
      with_elements<T, Fp8>(p, o, elements) || with_rows<T>(p, o, rows) || run_columns<T>(p, o);
  FORESHARD_CHECK(known && "every pass has its loop");
}

}  // namespace

void run_on_host(const Pass& given, std::span<void* const> arrays) {
  const Pass pass = in_floating_point(given);
  if (pass.rows == 0 || pass.columns == 0) return;
  with_storage(pass.dtype, [&]<class T>(T) {
    if constexpr (!std::is_integral_v<T>) run_as<T>(pass, arrays);
  });
}

}  // namespace foreshard::replay
