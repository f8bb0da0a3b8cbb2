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
