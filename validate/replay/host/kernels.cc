#include "validate/replay/host/kernels.h"

#include <cblas.h>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "validate/replay/pass/operands.h"

namespace foreshard::replay::host {
namespace {

constexpr std::size_t kLine = 64;  // bytes; Region hands out whole cache lines

std::size_t floats(std::int64_t elements) {
  return (static_cast<std::size_t>(elements) * sizeof(float) + kLine - 1) / kLine * kLine;
}

struct AttentionSizes {
  std::int64_t query = 0;
  std::int64_t key = 0;
  std::int64_t rows = 0;
};
AttentionSizes sizes_of(const Attention& a) {
  return {.query = a.batch * a.query_heads * a.query_length * a.head_dim,
          .key = a.batch * a.kv_heads * a.key_length * a.head_dim,
          .rows = a.batch * a.query_heads * a.query_length};
}

Footprint footprint(const Gemm& g) {
  return {.read = floats(g.batch * g.m * g.k) + floats(g.batch * g.k * g.n),
          .written = floats(g.batch * g.m * g.n)};
}
Footprint footprint(const Attention& a) {
  const AttentionSizes size = sizes_of(a);
  const bool forward = a.direction == Direction::kForward;
  Footprint out;
  out.read = floats(size.query) + 2 * floats(size.key) +
             (forward ? 0 : 2 * floats(size.query) + floats(size.rows));
  out.written = floats(size.query) + (forward ? floats(size.rows) : 2 * floats(size.key));
  out.work = floats(2 * kQueryTile * kKeyTile + 2 * kQueryTile);
  return out;
}
Footprint footprint(const Pass& pass) {
  Footprint out;
  for (const PassArray& array : arrays_of(pass))
    (array.access == Access::kRead ? out.read : out.written) +=
        (array.bytes() + kLine - 1) / kLine * kLine;
  return out;
}

void run_on(const Gemm& g, Region& read, Region& written, std::span<std::byte> /*work*/) {
  const auto* a = read.take_array<float>(g.batch * g.m * g.k);
  const auto* b = read.take_array<float>(g.batch * g.k * g.n);
  multiply(g, a, b, written.take_array<float>(g.batch * g.m * g.n));
}
void run_on(const Attention& a, Region& read, Region& written, std::span<std::byte> work) {
  const AttentionSizes size = sizes_of(a);
  AttentionOperands x;
  x.query = read.take_array<float>(size.query);
  x.key = read.take_array<float>(size.key);
  x.value = read.take_array<float>(size.key);
  if (a.direction == Direction::kForward) {
    x.output = written.take_array<float>(size.query);
    x.statistics = written.take_array<float>(size.rows);
  } else {
    x.forward_output = read.take_array<float>(size.query);
    x.forward_statistics = read.take_array<float>(size.rows);
    x.output_gradient = read.take_array<float>(size.query);
    x.query_gradient = written.take_array<float>(size.query);
    x.key_gradient = written.take_array<float>(size.key);
    x.value_gradient = written.take_array<float>(size.key);
  }
  attend(a, x, work);
}
void run_on(const Pass& pass, Region& read, Region& written, std::span<std::byte> /*work*/) {
  std::vector<void*> arrays;
  for (const PassArray& array : arrays_of(pass))
    arrays.push_back((array.access == Access::kRead ? read : written).take(array.bytes()).data());
  run_on_host(pass, arrays);
}

std::optional<std::string> beyond_blas(
    std::initializer_list<std::pair<const char*, std::int64_t>> sizes) {
  for (const auto& [name, value] : sizes)
    if (value > std::numeric_limits<int>::max())
      return std::string(name) + " = " + std::to_string(value) + ": BLAS counts to " +
             std::to_string(std::numeric_limits<int>::max());
  return std::nullopt;
}

}  // namespace

Footprint footprint_of(const Kernel& kernel) {
  return std::visit([](const auto& k) { return footprint(k); }, kernel);
}

std::optional<std::string> refusal_of(const Kernel& kernel) {
  if (const auto* g = std::get_if<Gemm>(&kernel); g != nullptr && g->dtype == DType::kFp4)
    return "numbers of 4 bits are not carried out; take an fp8 recipe, or quantization: none";
  if (const auto* g = std::get_if<Gemm>(&kernel))
    return beyond_blas({{"m", g->m}, {"n", g->n}, {"k", g->k}});
  if (const auto* a = std::get_if<Attention>(&kernel)) {
    if (a->window > 0 || a->sample > 0 || a->value_width() != a->head_dim)
      return "windows, packed samples, and values that are not as wide as keys, do not run on "
             "hosts";
    return beyond_blas({{"head_dim", a->head_dim}});
  }
  return std::nullopt;
}

void run(const Kernel& kernel, Region& read, Region& written, std::span<std::byte> work) {
  const Footprint memory = footprint_of(kernel);
  read.begin(memory.read);
  written.begin(memory.written);
  std::visit([&](const auto& k) { run_on(k, read, written, work); }, kernel);
}

void multiply(const Gemm& gemm, const float* a, const float* b, float* d) {
  const auto m = static_cast<int>(gemm.m);
  const auto n = static_cast<int>(gemm.n);
  const auto k = static_cast<int>(gemm.k);
  const float keep = gemm.accumulate ? 1.0F : 0.0F;
  for (std::int64_t i = 0; i < gemm.batch; ++i)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0F, a + i * gemm.m * gemm.k,
                k, b + i * gemm.k * gemm.n, n, keep, d + i * gemm.m * gemm.n, n);
}

}  // namespace foreshard::replay::host
