#include "validate/replay/gpu/checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "validate/replay/gpu/attention.h"
#include "validate/replay/gpu/check_harness.h"
#include "validate/replay/gpu/cuda_error.h"
#include "validate/replay/gpu/passes.h"
#include "validate/replay/pass/operands.h"

namespace foreshard::replay::gpu {
namespace {

std::optional<std::string> fault(cudaError_t status) {
  if (status == cudaSuccess) return std::nullopt;
  return said(status);
}

std::optional<std::string> check(const Attention& a) {
  const auto operands = operands_of(Kernel(a));
  const bool backward = a.direction == Direction::kBackward;
  const Stored stored = stored_as(a.dtype);
  std::vector<Stored> stores(operands.size(), stored);
  if (backward)
    stores[5] = stores[6] = stores[7] = Stored::kFp32;
  else
    stores[4] = Stored::kFp32;
  Arrays want = inputs_for(operands, stores);
  if (backward) {  // o and the logarithms belong to q, k and v
    Attention forward = a;
    forward.direction = Direction::kForward;
    Arrays first = {want[0], want[1], want[2], want[3], want[5]};
    compute(forward, first);
    want[3] = first[3];
    want[5] = first[4];
    for (double& value : want[3]) value = as_stored(stored, value);
  }
  Arrays got = want;
  if (auto wrong = on_device(stores, got, [&](std::span<void* const> pointers) {
        return fault(launch_attention(a, pointers, nullptr));
      }))
    return wrong;
  compute(a, want);
  // Probabilities and their gradients are rounded to the dtype before the next product. The errors
  // of single terms are relative to the size of the inputs, not of the result.
  const double absolute = step_of(stored) * 4;
  return difference(stores, got, want, 8, absolute);
}

}  // namespace

std::optional<std::string> disagreement(const Pass& pass, std::uint64_t seed) {
  const std::vector<PassArray> arrays = arrays_of(pass);
  std::vector<Stored> stores;
  stores.reserve(arrays.size());
  for (const PassArray& array : arrays) stores.push_back(stored_as(array.dtype));
  Arrays got = inputs_for(operands_of(Kernel(pass)), stores, seed);
  Bytes host = encoded(stores, got);
  if (auto wrong = on_device(stores, got, [&](std::span<void* const> pointers) {
        return fault(launch_pass(pass, pointers, nullptr));
      }))
    return wrong;
  std::vector<void*> pointers;
  for (auto& bytes : host) pointers.push_back(bytes.data());
  run_on_host(pass, pointers);
  // If the exact number is half-way between two neighbours, the results may be different
  // neighbours, which are two steps apart; the smallest numbers of fp8 differ by 2^-9.
  const bool coarse = std::ranges::find(arrays, DType::kFp8, &PassArray::dtype) != arrays.end();
  return difference(stores, got, decoded(stores, host), 2.2, coarse ? 0x1p-9 : 1e-4);
}

std::vector<Check> pass_checks() {
  struct Shape {
    std::int64_t rows;
    std::int64_t columns;
  };
  // Rows for groups of four lanes, a warp and a block; lengths that are no multiple of a pack; odd
  // lengths.
  constexpr std::array kShapes{Shape{37, 24},  Shape{5, 256}, Shape{9, 130}, Shape{3, 2056},
                               Shape{2, 1101}, Shape{1, 1},   Shape{70, 33}};
  std::vector<Check> checks;
  for (int kind = 0; kind <= static_cast<int>(PassKind::kOptimizer); ++kind)
    for (const DType dtype : {DType::kFp32, DType::kBf16, DType::kFp16, DType::kFp8})
      for (const Shape& shape : kShapes) {
        const Pass pass{static_cast<PassKind>(kind), shape.rows, shape.columns, dtype};
        if (dtype == DType::kFp8 && shape.columns != 24) continue;  // its own rounding is coarse
        checks.push_back({describe(Kernel(pass)), [pass] { return disagreement(pass, 0); }});
      }
  return checks;
}

std::vector<Check> attention_checks() {
  struct Shape {
    std::int64_t batch, query_heads, kv_heads, query_length, key_length, head_dim;
    bool causal;
    DType dtype;
  };
  std::vector<Check> checks;
  for (const Direction direction : {Direction::kForward, Direction::kBackward})
    for (const Shape& shape : {
             Shape{1, 1, 1, 64, 64, 64, false, DType::kBf16},
             Shape{1, 2, 1, 128, 128, 128, true, DType::kBf16},
             Shape{2, 4, 2, 100, 100, 64, true, DType::kFp16},
             Shape{1, 1, 1, 40, 150, 128, true, DType::kBf16},
             Shape{1, 1, 1, 150, 40, 64, true, DType::kFp16},  // some queries see nothing
             Shape{1, 2, 2, 33, 70, 80, false, DType::kFp16},
             Shape{1, 1, 1, 200, 200, 40, true, DType::kBf16},
         }) {
      const Attention a{.batch = shape.batch,
                        .query_heads = shape.query_heads,
                        .kv_heads = shape.kv_heads,
                        .query_length = shape.query_length,
                        .key_length = shape.key_length,
                        .head_dim = shape.head_dim,
                        .causal = shape.causal,
                        .direction = direction,
                        .dtype = shape.dtype};
      checks.push_back({describe(Kernel(a)), [a] { return check(a); }});
    }
  return checks;
}

void compute(const Attention& a, std::vector<std::vector<double>>& o) {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const std::size_t dim = size(a.head_dim);
  const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
  const bool backward = a.direction == Direction::kBackward;
  std::vector<double>* logarithms = backward ? nullptr : &o[4];
  if (backward)
    for (const std::size_t i :
         {std::size_t{6}, std::size_t{7}, std::size_t{8}, std::size_t{9}, std::size_t{10}})
      o[i].assign(o[i].size(), 0.0);
  std::vector<double> p(size(a.key_length));
  for (std::size_t b = 0; b < size(a.batch); ++b)
    for (std::size_t h = 0; h < size(a.query_heads); ++h)
      for (std::size_t i = 0; i < size(a.query_length); ++i) {
        const std::size_t kv = h / size(a.query_heads / a.kv_heads);
        const std::size_t query = ((b * size(a.query_length) + i) * size(a.query_heads) + h) * dim;
        const std::size_t row = (b * size(a.query_heads) + h) * size(a.query_length) + i;
        const auto key = [&](std::size_t j) {
          return ((b * size(a.key_length) + j) * size(a.kv_heads) + kv) * dim;
        };
        const auto dot = [&](const std::vector<double>& x, std::size_t x0,
                             const std::vector<double>& y, std::size_t y0) {
          double sum = 0;
          for (std::size_t d = 0; d < dim; ++d) sum += x[x0 + d] * y[y0 + d];
          return sum;
        };
        double sum = 0;
        for (std::size_t j = 0; j < p.size(); ++j) {
          const bool seen =
              !a.causal || static_cast<std::int64_t>(j) <=
                               static_cast<std::int64_t>(i) + a.key_length - a.query_length;
          p[j] = seen ? std::exp(scale * dot(o[0], query, o[1], key(j))) : 0.0;
          sum += p[j];
        }
        for (double& each : p) each = sum > 0 ? each / sum : 0.0;
        if (!backward) {
          (*logarithms)[row] = sum > 0 ? std::log(sum) : INFINITY;
          for (std::size_t d = 0; d < dim; ++d) {
            double out = 0;
            for (std::size_t j = 0; j < p.size(); ++j) out += p[j] * o[2][key(j) + d];
            o[3][query + d] = out;
          }
          continue;
        }
        const double along = dot(o[3], query, o[4], query);
        o[6][row] = along;
        for (std::size_t j = 0; j < p.size(); ++j) {
          const double ds = p[j] * (dot(o[4], query, o[2], key(j)) - along) * scale;
          for (std::size_t d = 0; d < dim; ++d) {
            o[8][query + d] += ds * o[1][key(j) + d];
            o[9][key(j) + d] += ds * o[0][query + d];
            o[10][key(j) + d] += p[j] * o[4][query + d];
          }
        }
        for (std::size_t d = 0; d < dim; ++d) o[7][query + d] = o[8][query + d];
      }
}

}  // namespace foreshard::replay::gpu
