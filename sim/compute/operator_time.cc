// The time of every kind of kernel on an idle device (operator_time.h), for simulations, the
// estimates of a search, tables of measured kernels, and calibration. Times are seconds, sizes
// elements unless a name says bytes.
#include "sim/compute/operator_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <type_traits>

#include "base/check.h"
#include "base/hash.h"
#include "base/quantity.h"

#include "sim/compute/internal/attention_time.h"
#include "sim/compute/measured.h"

namespace foreshard::compute {
namespace {

// Time of a memory-bound kernel; see operator_time.h for the formula.
OperatorTime pass_time(const Pass& pass, const DeviceType& device) {
  const PassEfficiency& efficiency = device.efficiency->passes;
  const auto own = efficiency.of.find(std::string(traffic_of(pass.kind).name));
  const double share = own == efficiency.of.end() ? *efficiency.streaming : *own->second;
  Bytes bytes = bytes_of(pass);
  if (pass.kind == PassKind::kQuantizeTranspose && reads_fp8_either_way(device))
    bytes -=
        static_cast<double>(pass.rows) * static_cast<double>(pass.columns) * size_of(DType::kFp8);
  return {.compute = flops_of(pass) / *device.vector_peak,
          .memory = bytes / (*device.memory_bandwidth * share),
          .floor = static_cast<double>(pass.launches) * *efficiency.floor};
}

// Time of a matrix product by tiles and waves; see operator_time.h for the formula.

OperatorTime gemm_time(const Gemm& gemm, const DeviceType& device, Duty duty);

// What all candidate tilings of one product have in common.
struct Setting {
  FlopsPerSecond rate;          // one multiprocessor's
  BytesPerSecond operand_rate;  // one multiprocessor's
  BytesPerSecond adding_rate;   // one multiprocessor's
  BytesPerSecond bandwidth;     // memory bandwidth that streaming reaches
  std::int64_t multiprocessors;
};

double share_of(const std::string& dtype, const std::map<std::string, double>& own,
                double otherwise) {
  const auto found = own.find(dtype);
  return found == own.end() ? otherwise : found->second;
}

double clocks_of(const std::string& dtype, const DeviceType& device, Duty duty) {
  if (duty != Duty::kSustained) return 1;
  const GemmEfficiency& e = device.efficiency->gemm;
  return sustained_on(device, share_of(dtype, e.sustained_of, e.sustained));
}

// Rate that the inner loop of a large tile reaches on all multiprocessors together.
FlopsPerSecond rate_of(const Gemm& gemm, const DeviceType& device, Duty duty) {
  const GemmEfficiency& e = device.efficiency->gemm;
  if (!gemm.matrix_units && e.vector) return *device.vector_peak * *e.vector;
  const std::string dtype(name_of(gemm.dtype));
  const double rate = share_of(dtype, e.rate_of, e.rate);
  const double clocks = clocks_of(dtype, device, duty);
  const double rows = has_aligned_rows(gemm) ? 1.0 : e.unaligned;
  const double scales = gemm.scales == Scales::kBlocks    ? e.block_scales
                        : gemm.scales == Scales::kVectors ? e.vector_scales
                                                          : 1.0;
  return peak_of(device, dtype) * (rate * clocks * rows * scales);
}

Setting setting_of(const Gemm& gemm, const DeviceType& device, Duty duty) {
  const GemmEfficiency& e = device.efficiency->gemm;
  return {.rate = rate_of(gemm, device, duty) / count(*device.multiprocessors),
          .operand_rate = operands_on(device, e.operand_rate),
          .adding_rate = operands_on(device, e.adding_rate.value_or(e.operand_rate)),
          .bandwidth = *device.memory_bandwidth * e.streaming,
          .multiprocessors = *device.multiprocessors};
}

// Extra time of a tile that adds to fp32 numbers (it reads and writes them), compared with a tile
// that writes 16 bits.
Seconds adding(const Gemm& g, GemmTile tile, const Setting& s) {
  if (!g.accumulate) return {};
  const Bytes element = 2 * size_of(DType::kFp32) - size_of(DType::kBf16);
  return count(tile.m) * count(tile.n) * element / s.adding_rate;
}

// The longer time grows by the part of the shorter one that it does not hide.
// Not modelled: where arithmetic is the longer one, other work that slows memory slows that part
// too, and the reverse.
void overlap(OperatorTime& time, double exponent) {
  Seconds& longer = time.compute < time.memory ? time.memory : time.compute;
  const Seconds shorter = std::min(time.compute, time.memory);
  longer = longer * std::pow(1 + std::pow(shorter / longer, exponent), 1 / exponent);
}

OperatorTime with(const Gemm& g, GemmTile tile, std::int64_t split, const GemmEfficiency& e,
                  const Setting& s) {
  const std::int64_t units = g.batch * parts(g.m, tile.m) * parts(g.n, tile.n) * split;
  const std::int64_t waves = parts(units, s.multiprocessors);
  const double depth = count(parts(parts(g.k, split), e.k_step) * e.k_step);

  // A tile that extends beyond the edge computes its full area but loads only what is there.
  const Flops work = 2.0 * count(tile.m) * count(tile.n) * depth * 1_FLOP;
  const Bytes operands =
      count(std::min(tile.m, g.m) + std::min(tile.n, g.n)) * depth * size_of(g.dtype);
  const Seconds one =
      e.tile_overhead + std::max(work / s.rate, operands / s.operand_rate) + adding(g, tile, s);

  OperatorTime time{.compute = count(waves) * one,
                    .memory = bytes_of(g) / s.bandwidth,
                    .floor = e.floor,
                    .units = units,
                    .waves = waves,
                    .tile = tile,
                    .split = split};
  if (split > 1) {
    // Each part is written as fp32 and read again.
    const Bytes sums =
        2.0 * count(split) * count(g.batch) * count(g.m) * count(g.n) * size_of(DType::kFp32);
    time.compute += e.split_overhead;
    time.memory += e.split_traffic * sums / s.bandwidth;
  }
  const std::optional<double>& exponent =
      g.scales != Scales::kTensor && e.scaled_overlap ? e.scaled_overlap : e.overlap;
  if (exponent) overlap(time, *exponent);
  return time;
}

// Products on several streams fill the device as a batch of that many products does; then the next
// batch comes.
// Not modelled: the first products of the next batch begin before the last ones of this batch end.
OperatorTime time_apart(Gemm gemm, const DeviceType& device, Duty duty) {
  const std::int64_t products = gemm.batch;
  gemm.apart = false;
  gemm.batch = std::min(products, device.efficiency->gemm.side_by_side);
  OperatorTime time = gemm_time(gemm, device, duty);
  const double rounds = count(products) / count(gemm.batch);
  for (Seconds* part : {&time.compute, &time.memory, &time.floor}) *part = rounds * *part;
  time.units = time.units * products / gemm.batch;
  time.waves *= parts(products, gemm.batch);
  return time;
}

OperatorTime gemm_time(const Gemm& gemm, const DeviceType& device, Duty duty) {
  const GemmEfficiency& efficiency = device.efficiency->gemm;
  if (gemm.batch < 1 || gemm.m < 1 || gemm.n < 1 || gemm.k < 1) return {.floor = efficiency.floor};

  if (gemm.apart) return time_apart(gemm, device, duty);
  const Setting setting = setting_of(gemm, device, duty);
  // Kernels that apply scales to partial sums do not split k: in TensorRT-LLM (Hopper: CUTLASS,
  // Blackwell: DeepGEMM), times of products with few tiles grow in proportion to k (aiconfigurator,
  // fp8_block).
  const bool splits = gemm.scales == Scales::kTensor;
  std::optional<OperatorTime> best;
  for (const GemmTile& tile : efficiency.tiles) {
    for (const std::int64_t split : efficiency.splits) {
      if (split > 1 && (!splits || gemm.k < split * efficiency.smallest_part)) break;
      const OperatorTime time = with(gemm, tile, split, efficiency, setting);
      if (!best || time.total() < best->total()) best = time;
    }
  }
  FORESHARD_CHECK(best.has_value());
  return *best;
}

}  // namespace
}  // namespace foreshard::compute

namespace foreshard {
namespace {

std::size_t mix(std::size_t seed, std::uint64_t value) {
  return static_cast<std::size_t>(mixed(seed + value));
}
std::size_t hash_of(std::size_t seed, std::initializer_list<std::int64_t> values) {
  for (const std::int64_t value : values) seed = mix(seed, static_cast<std::uint64_t>(value));
  return seed;
}
std::size_t hash_of(const Gemm& g) {
  return hash_of(1, {g.batch, g.m, g.n, g.k, static_cast<std::int64_t>(g.dtype), g.accumulate,
                     g.matrix_units, static_cast<std::int64_t>(g.scales), g.apart});
}
std::size_t hash_of(const Attention& a) {
  return hash_of(
      2, {a.batch, a.query_heads, a.kv_heads, a.query_length, a.key_length, a.head_dim, a.value_dim,
          a.causal, a.window, a.sample, static_cast<std::int64_t>(a.direction),
          static_cast<std::int64_t>(a.dtype), static_cast<std::int64_t>(a.implementation)});
}
std::size_t hash_of(const Pass& p) {
  return hash_of(3, {static_cast<std::int64_t>(p.kind), p.rows, p.columns,
                     static_cast<std::int64_t>(p.dtype), p.state_bytes, p.launches});
}

std::string two_decimals(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

}  // namespace

std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "compute";
    case Bound::kMemory:
      return "memory";
    case Bound::kFloor:
      return "floor";
  }
  FORESHARD_CHECK(false && "every bound has a name");
  return {};
}

Bound OperatorTime::bound() const {
  if (floor > std::max(compute, memory)) return Bound::kFloor;
  return memory > compute ? Bound::kMemory : Bound::kCompute;
}

OperatorTime time_of(const Kernel& kernel, const DeviceType& device, Duty duty) {
  const OperatorTime model = model_time_of(kernel, device, duty);
  if (!lists_measured(device)) return model;
  return MeasuredKernels(device).corrected(kernel, model, duty);
}

OperatorTime model_time_of(const Kernel& kernel, const DeviceType& device, Duty duty) {
  return std::visit(
      [&](const auto& k) {
        using K = std::decay_t<decltype(k)>;
        if constexpr (std::is_same_v<K, Gemm>) return compute::gemm_time(k, device, duty);
        if constexpr (std::is_same_v<K, Attention>) return compute::attention_time(k, device, duty);
        if constexpr (std::is_same_v<K, Pass>) return compute::pass_time(k, device);
      },
      kernel);
}

std::string explain(const Kernel& kernel, const OperatorTime& time) {
  std::string text = describe(kernel) + ": " + format(time.total()) + ", " +
                     std::string(name_of(time.bound())) + "-bound";
  if (time.basis == Basis::kMeasured) text += ", measured";
  if (time.basis == Basis::kNeighbours)
    text += ", x " + two_decimals(time.correction) + " as its measured neighbours";
  if (time.units == 0) return text;
  text += " (" + std::to_string(time.units);
  if (time.tile.m > 0) {
    text += " tiles of " + std::to_string(time.tile.m) + "x" + std::to_string(time.tile.n);
    if (time.split > 1) text += ", k split in " + std::to_string(time.split) + ",";
  } else {
    text += " units";
  }
  return text + " in " + std::to_string(time.waves) + (time.waves == 1 ? " wave)" : " waves)");
}

std::size_t KernelHash::operator()(const Kernel& kernel) const noexcept {
  return std::visit([](const auto& k) { return hash_of(k); }, kernel);
}

CachedOperatorTime::CachedOperatorTime(const DeviceType& device) : device_(&device) {
  if (lists_measured(device)) measured_ = std::make_unique<const MeasuredKernels>(device);
}
CachedOperatorTime::~CachedOperatorTime() = default;
CachedOperatorTime::CachedOperatorTime(CachedOperatorTime&&) noexcept = default;
CachedOperatorTime& CachedOperatorTime::operator=(CachedOperatorTime&&) noexcept = default;

const OperatorTime& CachedOperatorTime::time_of(const Kernel& kernel) {
  const auto [place, is_new] = times_.try_emplace(kernel);
  if (is_new) {
    place->second = model_time_of(kernel, *device_);
    if (measured_) place->second = measured_->corrected(kernel, place->second, Duty::kSustained);
  }
  return place->second;
}

}  // namespace foreshard
