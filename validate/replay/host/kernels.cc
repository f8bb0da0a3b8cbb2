#include "validate/replay/host/kernels.h"

#include <initializer_list>
#include <limits>
#include <utility>

#include "base/check.h"

#include "validate/replay/host/internal/attention_tiles.h"

namespace foreshard::replay::host {
namespace {

constexpr std::size_t kLine = 64;  // Region hands out whole cache lines

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
  out.work = floats(2 * internal::kQueryTile * internal::kKeyTile + 2 * internal::kQueryTile);
  return out;
}
// Calls `each(count, bytes of one element, elements, written)` for every kind of array.
template <class Each>
void for_arrays(const Pass& pass, Each each) {
  const PassArrays arrays = arrays_of(pass.kind);
  const auto stored = static_cast<std::size_t>(size_of(pass.dtype).in_base());
  const std::int64_t all = pass.rows * pass.columns;
  each(arrays.in, stored, all, false);
  each(arrays.wide_in, sizeof(float), all, false);
  each(arrays.mask_in, 1, all, false);
  each(arrays.row_in, sizeof(float), pass.rows, false);
  each(arrays.column_in, sizeof(float), pass.columns, false);
  each(arrays.out, stored, all, true);
  each(arrays.wide_state, sizeof(float), all, true);
  each(arrays.wide_out, sizeof(float), all, true);
  each(arrays.mask_out, 1, all, true);
  each(arrays.row_out, sizeof(float), pass.rows, true);
  each(arrays.column_out, sizeof(float), pass.columns, true);
}
Footprint footprint(const Pass& pass) {
  Footprint out;
  for_arrays(pass, [&](int count, std::size_t bytes, std::int64_t elements, bool written) {
    const std::size_t each =
        (bytes * static_cast<std::size_t>(elements) + kLine - 1) / kLine * kLine;
    (written ? out.written : out.read) += static_cast<std::size_t>(count) * each;
  });
  return out;
}

template <class T, std::size_t N, class Take>
void take_each(std::array<T*, N>& arrays, int count, std::int64_t elements, std::size_t bytes,
               Take take) {
  FORESHARD_CHECK(static_cast<std::size_t>(count) <= N);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    arrays[i] = reinterpret_cast<T*>(take(static_cast<std::size_t>(elements) * bytes).data());
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
  const PassArrays arrays = arrays_of(pass.kind);
  const auto stored = static_cast<std::size_t>(size_of(pass.dtype).in_base());
  const std::int64_t all = pass.rows * pass.columns;
  const auto reads = [&](std::size_t bytes) { return read.take(bytes); };
  const auto writes = [&](std::size_t bytes) { return written.take(bytes); };
  PassOperands x;
  take_each(x.in, arrays.in, all, stored, reads);
  take_each(x.wide_in, arrays.wide_in, all, sizeof(float), reads);
  take_each(x.mask_in, arrays.mask_in, all, 1, reads);
  take_each(x.row_in, arrays.row_in, pass.rows, sizeof(float), reads);
  take_each(x.column_in, arrays.column_in, pass.columns, sizeof(float), reads);
  take_each(x.out, arrays.out, all, stored, writes);
  take_each(x.wide_state, arrays.wide_state, all, sizeof(float), writes);
  take_each(x.wide_out, arrays.wide_out, all, sizeof(float), writes);
  take_each(x.mask_out, arrays.mask_out, all, 1, writes);
  take_each(x.row_out, arrays.row_out, pass.rows, sizeof(float), writes);
  take_each(x.column_out, arrays.column_out, pass.columns, sizeof(float), writes);
  pass_over(pass, x);
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
  if (const auto* g = std::get_if<Gemm>(&kernel))
    return beyond_blas({{"m", g->m}, {"n", g->n}, {"k", g->k}});
  if (const auto* a = std::get_if<Attention>(&kernel))
    return beyond_blas({{"head_dim", a->head_dim}});
  return std::nullopt;
}

void run(const Kernel& kernel, Region& read, Region& written, std::span<std::byte> work) {
  const Footprint memory = footprint_of(kernel);
  read.begin(memory.read);
  written.begin(memory.written);
  std::visit([&](const auto& k) { run_on(k, read, written, work); }, kernel);
}

}  // namespace foreshard::replay::host
