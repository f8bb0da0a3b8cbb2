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

#include "topology/device_draw.h"
#include "topology/device_efficiency.h"

namespace foreshard {

struct DeviceType {
  std::string name;
  yaml::Sourced<Bytes> memory;                     ///< Capacity.
  yaml::Sourced<BytesPerSecond> memory_bandwidth;  ///< By the data sheet.
  /// Dense tensor-core rates by the data sheet, by dtype name ("tf32", "fp16", "bf16", "fp8",
  /// "fp4").
  std::map<std::string, yaml::Sourced<FlopsPerSecond>> tensor_peak;
  yaml::Sourced<FlopsPerSecond> vector_peak;    ///< fp32, outside the tensor cores.
  yaml::Sourced<std::int64_t> multiprocessors;  ///< Streaming multiprocessors.
  /// 10 x major + minor version: 90 is sm_90. Libraries choose by it.
  yaml::Sourced<std::int64_t> compute_capability{80, "not given: taken as an A100's",
                                                 yaml::Evidence::kTransferred};
  std::optional<yaml::Sourced<Watts>> power;            ///< Limit of one device: when it works.
  std::optional<yaml::Sourced<Watts>> idle_power;       ///< Of one that waits. At most `power`.
  yaml::Ref<DeviceDraw> draw;                           ///< Between the two, by what it does.
  std::optional<yaml::Sourced<DollarsPerSecond>> rent;  ///< Of one device.
  yaml::Ref<DeviceEfficiency> efficiency;
  /// Not in YAML: kernels that were measured on this very device, whatever the efficiency's numbers
  /// rest on. They come before those that the efficiency lists.
  std::vector<MeasuredKernel> measured{};
};

const yaml::Table<DeviceType>& yaml_table(const DeviceType*);

/// Whether matrix units take fp8 operands, scaled by tensor, along either dimension: from
/// Blackwell's data-centre devices on. Others need a transposed copy.
/// Source: NVIDIA/TransformerEngine, transformer_engine/pytorch/utils.py,
/// is_non_tn_fp8_gemm_supported.
bool reads_fp8_either_way(const DeviceType& device);

/// By it, forms of collectives say which devices they are for ("Hopper"): what its efficiency says,
/// else the name of the efficiency's file. Empty if the efficiency is written in place and says
/// nothing.
std::string generation_of(const DeviceType& device);

/// How well a fit is known for this device: its own evidence where it was measured, else
/// kTransferred.
yaml::Evidence evidence_of(const DeviceType& device, const FitRecord& fit);

/// The peak at which products of `dtype` ("bf16") run: its own, else that of the nearest wider type
/// listed (fp4 -> fp8; fp8, int8 -> bf16 -> fp16 -> tf32; bf16, fp16 -> tf32), else the vector
/// units'. A device with fp16 tensor cores only (V100) thus runs bf16 on its vector units.
FlopsPerSecond peak_of(const DeviceType& device, const std::string& dtype);

/// What MeasuredAt makes of a share of the rate that products sustain, and of a rate at which one
/// multiprocessor moves operands. As they are where the device is the one that they are of.
double sustained_on(const DeviceType& device, double share);
BytesPerSecond operands_on(const DeviceType& device, BytesPerSecond rate);

/// Makes the numbers of products the device's own: they have what `measured_at` changes, and it is
/// the device from now on.
void own_products(DeviceType& device);

}  // namespace foreshard
