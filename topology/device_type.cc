#include "topology/device_type.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <string_view>

#include "base/quantity.h"

namespace foreshard {

const yaml::Table<DeviceDraw>& yaml_table(const DeviceDraw*) {
  using D = DeviceDraw;
  static const auto table =
      yaml::Table<D>("draw",
                     "What a device draws while it does what, as shares of the way from idle_power "
                     "to power.")
          .folder("devices/draw")
          .optional("products", &D::products, "Matrix products. Default: 1.", yaml::between(0, 1))
          .optional("attention", &D::attention, "Fused attention. Default: 1.", yaml::between(0, 1))
          .optional("passes", &D::passes,
                    "Memory-bound kernels, those of the optimizer among them. Default: 1.",
                    yaml::between(0, 1))
          .optional("communication", &D::communication,
                    "Communication while no kernel runs. Default: 1.", yaml::between(0, 1))
          .optional("waiting", &D::waiting,
                    "Waiting for the host or for other devices, with a program loaded. Default: 0.",
                    yaml::between(0, 1));
  return table;
}

namespace {

// The wider types that stand in for a dtype without tensor cores of its own, nearest first.
struct StandIns {
  std::string_view dtype;
  std::array<std::string_view, 3> stand_ins;
};
constexpr std::array kStandIns{
    StandIns{"fp4", {"fp8", "bf16", "fp16"}},   StandIns{"fp8", {"bf16", "fp16", "tf32"}},
    StandIns{"int8", {"bf16", "fp16", "tf32"}}, StandIns{"bf16", {"tf32", "", ""}},
    StandIns{"fp16", {"tf32", "", ""}},
};

// Types that tensor cores compute, and all types of matrix products.
constexpr std::array kTensorTypes{"tf32", "fp16", "bf16", "fp8", "fp4", "int8"};
constexpr std::array kProductTypes{"fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8"};

std::string fault_in_types(const auto& by_type, const auto& legal) {
  for (const auto& [type, number] : by_type)
    if (std::ranges::find(legal, type) == legal.end())
      return fmt::format("has no type '{}'; legal: {}", type, fmt::join(legal, ", "));
  return "";
}

std::string fault_in_peaks(const DeviceType& device) {
  return fault_in_types(device.tensor_peak, kTensorTypes);
}
std::string fault_in_rate_types(const GemmEfficiency& gemm) {
  return fault_in_types(gemm.rate_of, kProductTypes);
}
std::string fault_in_sustained_types(const GemmEfficiency& gemm) {
  return fault_in_types(gemm.sustained_of, kProductTypes);
}

std::string fault_in_power(const DeviceType& device) {
  if (!device.idle_power)
    return device.power ? "is missing: what the device draws while it waits; energy takes both"
                        : "";
  if (!device.power) return "is given, but not power: what it draws when it works";
  if (device.idle_power->value <= device.power->value) return "";
  return "is " + format(device.idle_power->value) +
         ", more than power: " + format(device.power->value);
}

std::string fault_in_splits(const GemmEfficiency& gemm) {
  const bool ascends =
      std::ranges::adjacent_find(gemm.splits, std::greater_equal<>()) == gemm.splits.end();
  return !gemm.splits.empty() && gemm.splits.front() == 1 && ascends ? "" : "must ascend from 1";
}

std::string fault_in_rates(const AttentionEfficiency& attention) {
  const auto out_of_order = std::ranges::adjacent_find(
      attention.rates, [](const auto& a, const auto& b) { return a.head_dim >= b.head_dim; });
  return out_of_order == attention.rates.end() ? "" : "must ascend in head_dim";
}

}  // namespace

const yaml::Table<FitRecord>& yaml_table(const FitRecord*) {
  static const auto table =
      yaml::Table<FitRecord>("fit", "Where a group of parameters comes from.")
          .required("source", &FitRecord::source, "The measurements.", yaml::non_empty())
          .required("evidence", &FitRecord::evidence,
                    "How the numbers follow from the measurements.")
          .optional("rows", &FitRecord::rows, "Measurements fitted or checked.", yaml::at_least(0))
          .optional("median_error", &FitRecord::median_error,
                    "Median relative error on rows kept out of the fit.", yaml::non_negative())
          .optional("p90_error", &FitRecord::p90_error,
                    "90th percentile of the relative error on these rows.", yaml::non_negative());
  return table;
}

const yaml::Table<MeasuredAt>& yaml_table(const MeasuredAt*) {
  static const auto table =
      yaml::Table<MeasuredAt>("measured_at", "The device that products were measured on.")
          .required("power", &MeasuredAt::power, "Its power limit.", yaml::positive())
          .required("peak", &MeasuredAt::peak, "Its dense peak of bf16 (else fp16).",
                    yaml::positive())
          .required("multiprocessors", &MeasuredAt::multiprocessors, "Its multiprocessors.",
                    yaml::at_least(1));
  return table;
}

const yaml::Table<GemmTile>& yaml_table(const GemmTile*) {
  static const auto table =
      yaml::Table<GemmTile>("tile", "A part of a product that one multiprocessor computes.")
          .required("m", &GemmTile::m, "Rows.", yaml::at_least(1))
          .required("n", &GemmTile::n, "Columns.", yaml::at_least(1));
  return table;
}

const yaml::Table<GemmEfficiency>& yaml_table(const GemmEfficiency*) {
  using G = GemmEfficiency;
  static const auto table =
      yaml::Table<G>("gemm", "Efficiency of matrix products.")
          .required("fit", &G::fit, "Where these numbers come from.")
          .required("rate", &G::rate, "Share of the dense peak in a large tile's inner loop.",
                    yaml::positive(), yaml::at_most(1))
          .optional("rate_of", &G::rate_of, "The same share by dtype, where it differs.",
                    yaml::positive(), yaml::at_most(1))
          .optional("unaligned", &G::unaligned,
                    "Share of the rate left where rows are no multiple of 16 bytes. Default: all.",
                    yaml::positive(), yaml::at_most(1))
          .optional("block_scales", &G::block_scales,
                    "Share of the rate left to products of fp8 with a scale for each 128 numbers "
                    "of activations and each 128 x 128 of weights. Default: all.",
                    yaml::positive(), yaml::at_most(1))
          .optional("vector_scales", &G::vector_scales,
                    "Likewise with scales for each 128 numbers along k of both operands: gradients "
                    "of weights. Default: all.",
                    yaml::positive(), yaml::at_most(1))
          .optional("vector", &G::vector,
                    "Share of vector_peak that products reach which run on the vector units, for "
                    "want of a kernel that takes their rows. Default: as unaligned ones.",
                    yaml::positive(), yaml::at_most(1))
          .required("sustained", &G::sustained,
                    "Share of the rate that remains under the power limit in continuous use.",
                    yaml::positive(), yaml::at_most(1))
          .optional("sustained_of", &G::sustained_of, "The same share by dtype, where it differs.",
                    yaml::positive(), yaml::at_most(1))
          .required("streaming", &G::streaming, "Share of the memory bandwidth reached.",
                    yaml::positive(), yaml::at_most(1))
          .optional("overlap", &G::overlap,
                    "Exponent of the norm that joins the times of arithmetic and of memory: 1 adds "
                    "them up. Default: the longer one.",
                    yaml::at_least(1))
          .optional("scaled_overlap", &G::scaled_overlap,
                    "The same of products whose scales change along k. Default: overlap.",
                    yaml::at_least(1))
          .required("operand_rate", &G::operand_rate, "Rate from L2 into one multiprocessor.",
                    yaml::positive())
          .optional("adding_rate", &G::adding_rate,
                    "Rate of one multiprocessor at the fp32 numbers that a product adds to. "
                    "Default: operand_rate.",
                    yaml::positive())
          .optional(
              "measured_at", &G::measured_at,
              "The device that products were measured on: of another one, operand and adding "
              "rates go by the peak of a multiprocessor, sustained clocks by the cube root of "
              "the power limit for each operation of the peak. Default: they stay.")
          .required("tile_overhead", &G::tile_overhead, "Time to start and end a tile.",
                    yaml::non_negative())
          .required("split_overhead", &G::split_overhead,
                    "Time to start adding the parts of a split k.", yaml::non_negative())
          .required("split_traffic", &G::split_traffic,
                    "Share of the parts' bytes that goes through memory.", yaml::non_negative())
          .required("floor", &G::floor, "Time of a kernel that does nothing.", yaml::non_negative())
          .optional("side_by_side", &G::side_by_side,
                    "Products launched one by one on several streams that run at the same time.",
                    yaml::at_least(1))
          .required("tiles", &G::tiles, "Tile shapes that the library has.", yaml::non_empty())
          .required("k_step", &G::k_step, "Elements of k that the inner loop takes at a time.",
                    yaml::at_least(1))
          .required("splits", &G::splits, "Parts into which k may be split, ascending from 1.")
          .required("smallest_part", &G::smallest_part, "Elements of k that a part must keep.",
                    yaml::at_least(1))
          .check("rate_of", fault_in_rate_types)
          .check("sustained_of", fault_in_sustained_types)
          .check("splits", fault_in_splits);
  return table;
}

const yaml::Table<AttentionRate>& yaml_table(const AttentionRate*) {
  static const auto table =
      yaml::Table<AttentionRate>("attention rate", "Share of the dense peak at one head size.")
          .required("head_dim", &AttentionRate::head_dim, "Elements of one head.",
                    yaml::at_least(1))
          .required("forward", &AttentionRate::forward,
                    "Share of the dense peak in the forward pass.", yaml::positive(),
                    yaml::at_most(1))
          .required("backward", &AttentionRate::backward,
                    "Share of the dense peak in the backward pass.", yaml::positive(),
                    yaml::at_most(1));
  return table;
}

const yaml::Table<AttentionEfficiency>& yaml_table(const AttentionEfficiency*) {
  using A = AttentionEfficiency;
  static const auto table =
      yaml::Table<A>("attention", "Efficiency of fused attention.")
          .required("fit", &A::fit, "Where these numbers come from.")
          .required("rates", &A::rates, "The rates by head size, ascending.", yaml::non_empty())
          .required("sustained", &A::sustained,
                    "Share of the rate that remains under the power limit in continuous use.",
                    yaml::positive(), yaml::at_most(1))
          .required("tile", &A::tile, "Queries (backward: keys) of a work unit.", yaml::at_least(1))
          .required("unit_overhead", &A::unit_overhead, "Time to start and end one work unit.",
                    yaml::non_negative())
          .required("floor", &A::floor, "Time of a kernel that does nothing.", yaml::non_negative())
          .check("rates", fault_in_rates);
  return table;
}

const yaml::Table<PassEfficiency>& yaml_table(const PassEfficiency*) {
  using P = PassEfficiency;
  static const auto table =
      yaml::Table<P>("passes", "Efficiency of memory-bound kernels.")
          .required("streaming", &P::streaming,
                    "Share of the memory bandwidth of plain element-wise kernels, and of every "
                    "pass that `of` does not name.",
                    yaml::positive(), yaml::at_most(1))
          .optional("of", &P::of, "The same share for the passes named here.", yaml::positive(),
                    yaml::at_most(1))
          .required("floor", &P::floor, "Time of a kernel that does nothing.",
                    yaml::non_negative());
  return table;
}

const yaml::Table<MeasuredKernel>& yaml_table(const MeasuredKernel*) {
  using M = MeasuredKernel;
  static const auto table =
      yaml::Table<M>("measured kernel", "A kernel whose time is known on this device.")
          .required("kernel", &M::kernel,
                    "The kernel as reports describe it: gemm 512x512x2048 fp32.", yaml::non_empty())
          .required("time", &M::time, "Median time.", yaml::positive())
          .optional("low", &M::low, "Lower end of the 95 % interval of the median.",
                    yaml::positive())
          .optional("high", &M::high, "Upper end of that interval.", yaml::positive())
          .optional("burst", &M::burst,
                    "Whether it was measured alone at full clocks, not in continuous use.")
          .required("source", &M::source, "Machine and date of the measurement.",
                    yaml::non_empty());
  return table;
}

const yaml::Table<DeviceEfficiency>& yaml_table(const DeviceEfficiency*) {
  using E = DeviceEfficiency;
  static const auto table =
      yaml::Table<E>("efficiency", "How close a device comes to its data sheet.")
          .folder("devices/efficiency")
          .optional("generation", &E::generation,
                    "By which forms of collectives know the device; where it is not given, the "
                    "name of the file.")
          .optional("measured_on", &E::measured_on,
                    "Devices of the measurements; on others the numbers are transferred.")
          .optional("own_kernels", &E::own_kernels,
                    "Whether attention and passes are those of foreshard-replay's own kernels, not "
                    "those that frameworks run.")
          .required("gemm", &E::gemm, "Matrix products.")
          .required("attention", &E::attention, "Fused attention, the usual kernel.")
          .optional("attention_of", &E::attention_of,
                    "The same of implementations that frameworks name: triton-flash-1, flash-2, "
                    "flash-3, cudnn; with -fp8 behind the name: in fp8.")
          .required("passes", &E::passes, "Memory-bound kernels.")
          .optional("clock_spread", &E::clock_spread,
                    "Standard deviation of the clocks that devices of this kind sustain, as a "
                    "share of their mean: a step waits for the slowest. Default: all alike.",
                    yaml::non_negative(), yaml::at_most(0.1))
          .optional("measured", &E::measured,
                    "Measured kernels, whose times take the place of the model's.")
          .optional("reach", &E::reach,
                    "Octaves over which measured kernels correct the model for similar ones. "
                    "Default: not at all.",
                    yaml::non_negative());
  return table;
}

const yaml::Table<DeviceType>& yaml_table(const DeviceType*) {
  using D = DeviceType;
  static const auto table =
      yaml::Table<D>("device", "A kind of device.")
          .folder("devices")
          .required("name", &D::name, "Name in the catalogue.", yaml::non_empty())
          .required("memory", &D::memory, "Memory capacity.", yaml::positive())
          .required("memory_bandwidth", &D::memory_bandwidth, "Memory bandwidth by the data sheet.",
                    yaml::positive())
          .optional("tensor_peak", &D::tensor_peak,
                    "Dense tensor-core rates by dtype: tf32, fp16, bf16, fp8, fp4, int8.",
                    yaml::positive())
          .required("vector_peak", &D::vector_peak, "fp32 rate outside the tensor cores.",
                    yaml::positive())
          .required("multiprocessors", &D::multiprocessors, "Streaming multiprocessors.",
                    yaml::at_least(1))
          .optional("compute_capability", &D::compute_capability,
                    "10 x major + minor version: 90 is sm_90.", yaml::at_least(10),
                    yaml::at_most(999))
          .optional("power", &D::power, "Limit of one device: what it draws when it works.",
                    yaml::positive())
          .optional("idle_power", &D::idle_power, "What it draws while it waits.",
                    yaml::non_negative())
          .optional("draw", &D::draw,
                    "What it draws between the two while it does what: a name in devices/draw, or "
                    "the shares. Default: power whenever it works.")
          .optional("rent", &D::rent, "Price of one device.", yaml::non_negative())
          .required("efficiency", &D::efficiency,
                    "How close it comes to the data sheet: a name in devices/efficiency, or the "
                    "numbers.")
          .check("tensor_peak", fault_in_peaks)
          .check("idle_power", fault_in_power);
  return table;
}

bool reads_fp8_either_way(const DeviceType& device) {
  const std::int64_t capability = *device.compute_capability;
  return (capability >= 100 && capability < 120) || capability >= 130;
}

std::string generation_of(const DeviceType& device) {
  if (!device.efficiency->generation.empty()) return device.efficiency->generation;
  return std::filesystem::path(device.efficiency.name).stem().string();
}

yaml::Evidence evidence_of(const DeviceType& device, const FitRecord& fit) {
  const auto& measured_on = device.efficiency->measured_on;
  const bool measured = std::ranges::find(measured_on, device.name) != measured_on.end();
  const bool stronger = fit.evidence < yaml::Evidence::kTransferred;
  return stronger && !measured ? yaml::Evidence::kTransferred : fit.evidence;
}

FlopsPerSecond peak_of(const DeviceType& device, const std::string& dtype) {
  const auto listed = [&](std::string_view name) {
    return device.tensor_peak.find(std::string(name));
  };
  if (const auto own = listed(dtype); own != device.tensor_peak.end()) return own->second.value;
  for (const StandIns& wider : kStandIns) {
    if (wider.dtype != dtype) continue;
    for (const std::string_view name : wider.stand_ins)
      if (const auto found = listed(name); found != device.tensor_peak.end())
        return found->second.value;
  }
  return device.vector_peak.value;
}

namespace {

FlopsPerSecond peak_of_16_bits(const DeviceType& device) {
  return peak_of(device, device.tensor_peak.contains("bf16") ? "bf16" : "fp16");
}

}  // namespace

double sustained_on(const DeviceType& device, double share) {
  const auto& other = device.efficiency->gemm.measured_at;
  if (!other || !device.power) return share;
  const double power = device.power->value / other->power;
  return std::min(1.0, share * std::cbrt(power / (peak_of_16_bits(device) / other->peak)));
}

BytesPerSecond operands_on(const DeviceType& device, BytesPerSecond rate) {
  const auto& other = device.efficiency->gemm.measured_at;
  if (!other) return rate;
  const double multiprocessors =
      static_cast<double>(*device.multiprocessors) / static_cast<double>(other->multiprocessors);
  return peak_of_16_bits(device) / other->peak / multiprocessors * rate;
}

void own_products(DeviceType& device) {
  DeviceEfficiency efficiency = *device.efficiency;
  GemmEfficiency& products = efficiency.gemm;
  products.sustained = sustained_on(device, products.sustained);
  for (auto& [dtype, sustained] : products.sustained_of)
    sustained = sustained_on(device, sustained);
  products.operand_rate = operands_on(device, products.operand_rate);
  if (products.adding_rate) products.adding_rate = operands_on(device, *products.adding_rate);
  products.measured_at.reset();
  if (device.power)
    products.measured_at = MeasuredAt{.power = device.power->value,
                                      .peak = peak_of_16_bits(device),
                                      .multiprocessors = *device.multiprocessors};
  device.efficiency = yaml::Ref<DeviceEfficiency>{std::move(efficiency), device.efficiency.name};
}

}  // namespace foreshard
