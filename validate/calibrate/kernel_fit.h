/// \file
/// Fits a device's efficiency (topology/device_type.h) to measured kernels. It minimises
///
///     sum over kernels    loss(log(predicted / measured) / 0.05)
///   + sum over numbers    loss(log(number / start) / spread)
///
/// with Cauchy's loss, by Levenberg-Marquardt (Ceres), over the logarithms of the numbers, within
/// their bounds; `predicted` is model_time_of in continuous use. The start value weighs according
/// to its evidence (see KernelFamily); numbers that the measured kernels do not determine keep
/// it (log_fit.h). `sustained` is never changed: replays run in continuous use, so the rates
/// already include the power limit. Matrix products, attention and passes are fitted separately,
/// as they share no number.
///
/// The time of foreshard's own kernels (measure::kOwnKernels) describes a replay, not a framework
/// on the device. They take part in the fit only if the device's numbers describe them
/// (DeviceEfficiency::own_kernels) or if the options ask for it; otherwise they are left out.
///
/// Source: Agarwal, Mierle et al., Ceres Solver 2.1; Barron, "A general and adaptive robust loss
/// function", CVPR 2019 (Cauchy's).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "topology/device_type.h"
#include "validate/calibrate/log_fit.h"
#include "validate/calibrate/samples.h"

namespace foreshard::calibrate {

/// Quantiles of |predicted / measured - 1|.
struct FitError {
  std::int64_t rows = 0;
  double median = 0;
  double p90 = 0;
};

/// Errors of two-fold cross-validation: fitted to one half of the kernels, predicting the other.
struct HeldOut {
  FitError model;  ///< The model alone.
  std::array<FitError, 3>
      of_family;             ///< The model alone, per KernelFamily: products, attention, passes.
  FitError with_neighbours;  ///< Corrected by measured kernels nearby (sim/compute/measured.h).
  double reach = 0;          ///< Reach of `with_neighbours`: the best of the reaches tried.
};

struct KernelFit {
  DeviceType device;  ///< The device with the fitted efficiency, marked as measured on it.
  std::vector<FittedValue> values;
  FitError before;  ///< All kernels that are not left out, with the start values.
  FitError after;   ///< The same kernels, with the fitted values.
  HeldOut held_out;
  std::vector<std::string> outliers;  ///< Kernels more than 30 % off after the fit.
  std::int64_t foreign = 0;           ///< Kernels left out because they are foreshard's own.
};

struct KernelFitOptions {
  std::string source;          ///< Machine and date: the `source` of the fitted numbers.
  std::string source_of_each;  ///< Short form, for each kernel listed. Invariant: not empty.
  bool keep_measured = true;   ///< List the measured kernels in the efficiency file.
  bool own_kernels = false;    ///< Fit to foreshard's own kernels on any device.
};

/// Numbers of matrix products that were measured on another device are first converted to this one
/// (own_products).
/// \return kInvalidInput if there is no kernel to fit to.
Result<KernelFit> fit_kernels(const DeviceType& given, const std::vector<KernelSample>& kernels,
                              const KernelFitOptions& options);

/// The numbers of a device's efficiency file that a fit may change, and how certain each is before
/// any data. The spread (log_fit.h) follows from the evidence for this very device:
///
/// | evidence | spread of shares of a peak | spread of times and byte rates |
/// | --- | ---: | ---: |
/// | measured or fitted | 0.15 | 0.4 |
/// | transferred from a related device | 0.3 | 0.8 |
/// | data sheet, or given by the user | 1.5 | 2.5 |
///
/// Assumed. The first row is the error of good fits on single kernels (`p90_error` of products in
/// configs/devices/efficiency); overheads, which are only a part of most times, are known less
/// well. The last row stands for orders of magnitude.
///
/// The values of KernelFamily are the indices of the alternatives of Kernel.
enum class KernelFamily : std::uint8_t { kGemm, kAttention, kPass };
KernelFamily family_of(const Kernel& kernel);

/// Prefix of the names of a kernel's numbers, equal to the file's keys: "gemm.", "attention.",
/// "attention_of.flash-3.", "passes.".
std::string prefix_of(const Kernel& kernel, const DeviceEfficiency& efficiency);

/// The numbers that `kernels` depend on. A dtype, head size or kind of pass without an entry in the
/// file gets one, with the value that applies without it.
/// \param kernels  all of `family`.
/// \pre `device` outlives the result.
std::vector<LogNumber> numbers_of(DeviceType& device, KernelFamily family,
                                  const std::vector<Kernel>& kernels);

}  // namespace foreshard::calibrate
