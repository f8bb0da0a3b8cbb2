/// \file
/// Kernels that were measured on the same device: their times take the place of the model's:
///
///     efficiency:
///       measured:
///         - {kernel: "gemm 512x512x2048 fp32", time: 11.2 ms, low: 11.1 ms, high: 11.5 ms,
///            source: "..."}
///       reach: 1
///
/// A listed kernel takes the measured time; if it was measured at other clocks than are asked for,
/// times the model's ratio of the two. With a `reach` of h octaves, kernels near measured ones take
/// the model's time, scaled by what the model gets wrong for those:
///
///     factor = exp(sum w_i log(measured_i / model_i) / (1/4 + sum w_i))
///     w_i    = exp(-d_i^2 / (2 h^2))      d_i = distance of the extents' binary logarithms
///
/// over the measured kernels of the same kind, dtype and clocks. The 1/4 is a kernel at distance 0
/// that the model gets right a quarter of the way: far from all measured ones the factor is 1.
/// Source: Nadaraya, "On estimating regression", 1964, and Watson, "Smooth regression analysis",
/// 1964, shrunk towards the model.
///
/// Other devices of the same efficiency file (DeviceEfficiency::measured_on) take nothing of it.
/// What a device lists itself (DeviceType::measured) comes first.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.h"

#include "sim/compute/operator_time.h"

namespace foreshard {

class MeasuredKernels {
 public:
  /// \pre fault_in(*device.efficiency) finds nothing: what cannot be read is left out. The device
  ///     must outlive the object.
  explicit MeasuredKernels(const DeviceType& device);

  bool empty() const { return exact_.empty(); }
  /// Whether this very kernel was measured.
  bool holds(const Kernel& kernel) const { return exact_.contains(kernel); }
  /// `model` is the model's time of `kernel` on the device at `duty`; the result's parts are scaled
  /// alike, and its `basis` records why.
  OperatorTime corrected(const Kernel& kernel, const OperatorTime& model, Duty duty) const;

 private:
  struct Known {
    Kernel kernel;
    Seconds time;
    Duty duty;
    double residual;  // log(measured / model), at its own duty
  };
  void add(const MeasuredKernel& one);
  double factor_near(const Kernel& kernel, Duty duty) const;

  const DeviceType* device_;
  double reach_ = 0;
  std::vector<Known> known_;
  std::unordered_map<Kernel, std::size_t, KernelHash> exact_;  // into known_; looked up only
};

/// Whether anything was measured on the device, or may have been.
inline bool lists_measured(const DeviceType& device) {
  return !device.measured.empty() || !device.efficiency->measured.empty();
}

/// What is wrong with the names in an efficiency file: an unknown implementation of attention, a
/// measured kernel whose text is not a kernel (the message names it), a kernel twice. Empty if
/// nothing is.
std::string fault_in(const DeviceEfficiency& efficiency);

}  // namespace foreshard
