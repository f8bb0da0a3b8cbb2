/// \file
/// Kernels that were measured on this device: the measured times replace the model's:
///
///     efficiency:
///       measured:
///         - {kernel: "gemm 512x512x2048 fp32", time: 11.2 ms, low: 11.1 ms, high: 11.5 ms,
///            source: "..."}
///       reach: 1
///
/// A listed kernel takes the measured time. If it was measured at other clocks than the caller asks
/// for, the measured time is multiplied by the ratio of the model's times at the two clocks. With a
/// `reach` of h octaves, a kernel near measured ones takes the model's time, multiplied by how far
/// the model is off for those measured kernels:
///
///     factor = exp(sum w_i log(measured_i / model_i) / (1/4 + sum w_i))
///     w_i    = exp(-d_i^2 / (2 h^2))      d_i = distance of the extents' binary logarithms
///
/// The sums run over the measured kernels of the same kind, dtype and clocks. The 1/4 is the weight
/// of the model itself: it acts as one more kernel, for which the model is right. Far from all
/// measured kernels the factor is therefore 1.
/// Source: Nadaraya, "On estimating regression", 1964, and Watson, "Smooth regression analysis",
/// 1964, shrunk towards the model.
///
/// Devices that the efficiency file does not name in DeviceEfficiency::measured_on ignore its
/// measured kernels. What a device lists itself (DeviceType::measured) takes precedence.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.h"

#include "sim/compute/operator_time.h"

namespace foreshard {

class MeasuredKernels {
 public:
  /// \pre fault_in(*device.efficiency) finds nothing; otherwise kernels that cannot be parsed are
  ///     skipped. The device must outlive the object.
  explicit MeasuredKernels(const DeviceType& device);

  bool empty() const { return exact_.empty(); }
  /// Whether exactly this kernel was measured.
  bool holds(const Kernel& kernel) const { return exact_.contains(kernel); }
  /// `model` is the model's time of `kernel` on the device at `duty`. All parts of the result are
  /// scaled by the same factor, and `basis` records why.
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

/// Whether the device or its efficiency file lists measured kernels. The file's may be of another
/// device.
inline bool lists_measured(const DeviceType& device) {
  return !device.measured.empty() || !device.efficiency->measured.empty();
}

/// What is wrong with the names in an efficiency file: an unknown attention implementation, a
/// measured kernel whose text is not a kernel (the message quotes it), or a kernel listed twice.
/// Empty if nothing is wrong.
std::string fault_in(const DeviceEfficiency& efficiency);

}  // namespace foreshard
