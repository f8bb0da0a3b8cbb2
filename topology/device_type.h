/// \file
/// A kind of device: its capabilities and the efficiency parameters of the operator-time model
/// (sim/compute/operator_time.h), as the catalogue (configs/devices/*.yaml) gives them.
///
///     name: H100-SXM
///     memory: {value: 80 GB, source: "NVIDIA H100 data sheet", evidence: datasheet}
///     ...
///     efficiency: Hopper        # configs/devices/efficiency/Hopper.yaml, or written out here
///
/// Efficiency parameters were measured on particular devices; on any other one they are an
/// assumption, which `evidence_of` reports.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/ref.h"
#include "base/yaml/sourced.h"
#include "base/yaml/table.h"

namespace foreshard {

// How close a device comes to its data sheet, kernel class by kernel class: the parameters of the
// operator-time model, fitted to measured kernels. This header says what they mean,
// sim/compute/operator_time.h how they combine. All are times or ratios to the data sheet, so that
// a device without measurements can borrow the numbers of a related device.

/// Where a group of parameters comes from and how well they fit.
struct FitRecord {
  std::string source;
  yaml::Evidence evidence = yaml::Evidence::kUser;
  std::int64_t rows = 0;    ///< Measurements that were fitted or checked.
  double median_error = 0;  ///< Median of |predicted / measured - 1| on rows kept out of the fit.
  double p90_error = 0;
};

/// The device on which the numbers of matrix products were measured. A device that takes them from
/// another device has
///
///     operand_rate, adding_rate  in proportion to the peak of one multiprocessor
///     sustained                  in proportion to (power limit / peak)^(1/3), at most 1
///
/// since dynamic power grows with the cube of the clock. By this rule an H100 has 2.59 times the
/// operand rate of an A100, which agrees with their separate fits, and a B200 with an H100's
/// numbers sustains 0.75 of its rate, where 0.71 was measured. Without a power limit, clocks do not
/// change. Not modelled: the power that a later process saves, the power of an idle device, and
/// that attention slows with the clocks, too.
struct MeasuredAt {
  Watts power;
  FlopsPerSecond peak;  ///< bf16 peak, or fp16 where the device has no bf16.
  std::int64_t multiprocessors = 1;
};

/// The part of a result matrix that one multiprocessor computes at a time.
struct GemmTile {
  std::int64_t m = 0;
  std::int64_t n = 0;
};

struct GemmEfficiency {
  FitRecord fit;
  /// Share of the dense peak that the inner loop of a large tile reaches at full clocks.
  double rate = 0;
  std::map<std::string, double> rate_of;  ///< dtype name -> rate, where it differs from `rate`.
  /// Share of `rate` that is left where rows of an operand or of the result are no multiple of 16
  /// bytes, the alignment that the tensor cores' loads need (cuBLAS documentation, tensor core
  /// usage).
  double unaligned = 1;
  /// Share of the vector units' fp32 rate that products reach if they run on the vector units
  /// (kernel.h, `matrix_units`). Nothing: such products count as unaligned.
  std::optional<double> vector{};
  /// Shares of `rate` that are left where scales change along k (kernel.h, `Scales::kBlocks` and
  /// `kVectors`): unless the matrix units apply the scales themselves, applying them to partial
  /// sums takes extra time.
  double block_scales = 1;
  double vector_scales = 1;
  /// Share of `rate` that is left at the clocks which the power limit allows in continuous use.
  double sustained = 0;
  std::map<std::string, double> sustained_of;  ///< dtype name -> share, where it differs.
  /// Share of the memory bandwidth that a memory-bound product reaches.
  double streaming = 0;
  /// How well arithmetic and memory accesses overlap: the time of a product is the norm, with this
  /// exponent, of their two times. 1: the sum of both; nothing: the longer one alone.
  std::optional<double> overlap{};
  /// `overlap` where scales change along k; nothing: same.
  std::optional<double> scaled_overlap{};
  /// Rate at which one multiprocessor is fed with operands from the L2 cache.
  BytesPerSecond operand_rate;
  /// Rate at which one multiprocessor reads and writes the fp32 numbers that a product adds to, as
  /// far as its inner loop does not hide this. Nothing: `operand_rate`.
  std::optional<BytesPerSecond> adding_rate{};
  std::optional<MeasuredAt> measured_at{};  ///< Nothing: all devices take the numbers unchanged.
  Seconds tile_overhead;                    ///< Filling the pipeline of a tile and writing it out.
  Seconds split_overhead;  ///< Time to start adding the parts when k is split over multiprocessors.
  double split_traffic = 0;  ///< Share of the parts' bytes that goes through memory.
  Seconds floor;             ///< Time of a kernel that does nothing.
  /// How many products run at the same time if they are launched one by one on several streams
  /// (kernel.h, `apart`).
  /// Source: NVIDIA/TransformerEngine, transformer_engine/common/util/multi_stream.cpp: four.
  std::int64_t side_by_side = 4;
  std::vector<GemmTile> tiles;
  std::int64_t k_step = 1;           ///< Elements of k that the inner loop takes at a time.
  std::vector<std::int64_t> splits;  ///< Parts into which k may be split; ascending from 1.
  std::int64_t smallest_part = 1;    ///< Elements of k that a part must keep.
};

/// Rates of attention at one head dimension.
struct AttentionRate {
  std::int64_t head_dim = 0;
  double forward = 0;  ///< Share of the dense peak.
  double backward = 0;
};

struct AttentionEfficiency {
  FitRecord fit;
  /// Ascending head_dim; linear in between, constant beyond both ends.
  std::vector<AttentionRate> rates;
  double sustained = 0;   ///< See GemmEfficiency::sustained.
  std::int64_t tile = 0;  ///< Queries (backward: keys) of a work unit.
  Seconds unit_overhead;  ///< Time to start and end one work unit.
  Seconds floor;
};

struct PassEfficiency {
  /// Share of the memory bandwidth that plain element-wise kernels reach, and all passes that `of`
  /// does not name.
  yaml::Sourced<double> streaming;
  std::map<std::string, yaml::Sourced<double>> of;  ///< Pass name (kernel.h `find_pass`) -> share.
  yaml::Sourced<Seconds> floor;                     ///< Time of a kernel that does nothing.
};

/// A kernel that was measured on the devices of `measured_on` (sim/compute/measured.h).
struct MeasuredKernel {
  std::string kernel;           ///< Name in reports: "gemm 512x512x2048 fp32".
  Seconds time;                 ///< Median. Invariant: > 0.
  std::optional<Seconds> low;   ///< Lower end of the 95 % interval of the median.
  std::optional<Seconds> high;  ///< Upper end.
  bool burst = false;           ///< Measured alone at full clocks, not in continuous use.
  std::string source;
};

struct DeviceEfficiency {
  /// Name ("Hopper") by which forms of collectives (algorithm and protocol) state the devices they
  /// are for. Empty: the name of the file that holds the numbers.
  std::string generation;
  std::vector<std::string> measured_on;  ///< Device names. Elsewhere the numbers are transferred.
  /// Whether `attention` and `passes` describe foreshard-replay's own kernels, not the kernels that
  /// frameworks run on the device; calibrate keeps the two apart.
  bool own_kernels = false;
  GemmEfficiency gemm;
  AttentionEfficiency attention;  ///< The fused kernel that is usual on the device.
  /// Implementation name (kernel.h `find_attention`) -> numbers, for the device's other
  /// implementations.
  std::map<std::string, AttentionEfficiency> attention_of;
  PassEfficiency passes;
  std::vector<MeasuredKernel> measured{};
  /// Standard deviation of the sustained clock between devices of this kind, as a share of its mean
  /// (clock_spread.h).
  yaml::Sourced<double> clock_spread{0, "not given: all alike", yaml::Evidence::kTransferred};
  /// Octaves over which measured kernels correct the model for similar ones; 0: not at all.
  double reach = 0;
};

const yaml::Table<FitRecord>& yaml_table(const FitRecord*);
const yaml::Table<MeasuredAt>& yaml_table(const MeasuredAt*);
const yaml::Table<GemmTile>& yaml_table(const GemmTile*);
const yaml::Table<GemmEfficiency>& yaml_table(const GemmEfficiency*);
const yaml::Table<AttentionRate>& yaml_table(const AttentionRate*);
const yaml::Table<AttentionEfficiency>& yaml_table(const AttentionEfficiency*);
const yaml::Table<PassEfficiency>& yaml_table(const PassEfficiency*);
const yaml::Table<MeasuredKernel>& yaml_table(const MeasuredKernel*);
const yaml::Table<DeviceEfficiency>& yaml_table(const DeviceEfficiency*);

// Power that a device draws, by kind of work, between its idle power and its limit:
//
//     draw = idle power + share x (power - idle power)
//
// Only matrix products reach the limit; memory-bound kernels, communication, and waiting with a
// program loaded draw less. Shares that were not measured treat a device as either busy or idle: 1
// for kernels and communication, 0 for waiting.
//
//     draw: Hopper      # configs/devices/draw/Hopper.yaml, or written out in the device

struct DeviceDraw {
  /// A share that was not measured.
  static yaml::Sourced<double> assumed(double share) {
    return {share, "not measured: taken as busy or idle", yaml::Evidence::kTransferred};
  }

  yaml::Sourced<double> products = assumed(1);
  yaml::Sourced<double> attention = assumed(1);
  yaml::Sourced<double> passes = assumed(1);         ///< Memory-bound kernels, the optimizer's too.
  yaml::Sourced<double> communication = assumed(1);  ///< Communication while no kernel runs.
  yaml::Sourced<double> waiting = assumed(0);        ///< Waiting for the host or other devices.

  bool operator==(const DeviceDraw&) const = default;
};

const yaml::Table<DeviceDraw>& yaml_table(const DeviceDraw*);

struct DeviceType {
  std::string name;
  yaml::Sourced<Bytes> memory;                     ///< Capacity.
  yaml::Sourced<BytesPerSecond> memory_bandwidth;  ///< Data-sheet value.
  /// Dense tensor-core rates by the data sheet: dtype name ("tf32", "fp16", "bf16", "fp8", "fp4",
  /// "int8") -> rate.
  std::map<std::string, yaml::Sourced<FlopsPerSecond>> tensor_peak;
  yaml::Sourced<FlopsPerSecond> vector_peak;    ///< fp32, outside the tensor cores.
  yaml::Sourced<std::int64_t> multiprocessors;  ///< Streaming multiprocessors.
  /// 10 x major + minor version: 90 is sm_90. Libraries choose by it.
  yaml::Sourced<std::int64_t> compute_capability{80, "not given: taken as an A100's",
                                                 yaml::Evidence::kTransferred};
  std::optional<yaml::Sourced<Watts>> power;  ///< Limit of one device: its draw when it works.
  /// Draw of a device that waits. At most `power`.
  std::optional<yaml::Sourced<Watts>> idle_power;
  yaml::Ref<DeviceDraw> draw;                           ///< Draw between the two, by kind of work.
  std::optional<yaml::Sourced<DollarsPerSecond>> rent;  ///< Rent of one device.
  yaml::Ref<DeviceEfficiency> efficiency;
  /// Not in YAML: kernels that were measured on this very device, wherever the efficiency's numbers
  /// come from. They take precedence over the kernels that the efficiency lists.
  std::vector<MeasuredKernel> measured{};
};

const yaml::Table<DeviceType>& yaml_table(const DeviceType*);

/// Whether matrix units take fp8 operands, scaled by tensor, along either dimension: from
/// Blackwell's data-centre devices on. Others need a transposed copy.
/// Source: NVIDIA/TransformerEngine, transformer_engine/pytorch/utils.py,
/// is_non_tn_fp8_gemm_supported.
bool reads_fp8_either_way(const DeviceType& device);

/// Name by which forms of collectives state the devices they are for ("Hopper"): the efficiency's
/// `generation`, else the name of its file. Empty if the efficiency is written in place and has no
/// `generation`.
std::string generation_of(const DeviceType& device);

/// How well a fit is known for this device: the fit's own evidence if it was measured on this
/// device, else kTransferred at best.
yaml::Evidence evidence_of(const DeviceType& device, const FitRecord& fit);

/// The peak rate of products of `dtype` ("bf16"): the rate listed for it, else for the first listed
/// wider type (fp4: fp8, bf16, fp16; fp8 and int8: bf16, fp16, tf32; bf16 and fp16: tf32), else the
/// rate of the vector units. A device with fp16 tensor cores only (V100) thus runs bf16 on its
/// vector units.
FlopsPerSecond peak_of(const DeviceType& device, const std::string& dtype);

/// The sustained share of products, and the rate at which one multiprocessor moves operands,
/// converted to `device` by the rule of MeasuredAt. Unchanged if they were measured on `device`.
double sustained_on(const DeviceType& device, double share);
BytesPerSecond operands_on(const DeviceType& device, BytesPerSecond rate);

/// Converts the numbers of products to this device by the rule of MeasuredAt; `measured_at` is the
/// device itself from then on (nothing if its power is not known).
void own_products(DeviceType& device);

}  // namespace foreshard
