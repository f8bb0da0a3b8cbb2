/// \file
/// Fits a device's efficiency (topology/device_efficiency.h) to measured kernels. Minimised is
///
///     sum over kernels    loss(log(predicted / measured) / 0.05)
///   + sum over numbers    loss(log(number / start) / spread)
///
/// with Cauchy's loss, by Levenberg and Marquardt's method (Ceres), over the logarithms of the
/// numbers, within their bounds; `predicted` is model_time_of in continuous use. The start weighs
/// by its evidence (efficiency_numbers.h); numbers that the measured kernels do not tell stay there
/// (log_fit.h). `sustained` stays: replays run in continuous use, so what the power limit takes is
/// in the rates. Products, attention and passes are fitted apart: they share no number.
///
/// Foreshard's own kernels (measure::kOwnKernels) say what a replay takes, not what a framework
/// takes on the device: they are fitted to where the device's numbers are theirs
/// (DeviceEfficiency::own_kernels) or where that is asked for, else left out.
///
/// Source: Agarwal, Mierle et al., Ceres Solver 2.1; Barron, "A general and adaptive robust loss
/// function", CVPR 2019 (Cauchy's).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "topology/device_type.h"
#include "validate/calibrate/samples.h"

namespace foreshard::calibrate {

/// A number of a file, as fitted.
struct FittedValue {
  std::string name;  ///< For example "gemm.rate_of.fp32".
  double before = 0;
  double value = 0;
  double low = 0;  ///< 95 % interval, from the curvature at the end. Of a kept one: 0.
  double high = 0;
  bool at_bound = false;  ///< The data ask for more than is legal.
  std::string kept{};     ///< Why it is as before, if it was not fitted.
};

/// Of |predicted / measured - 1|.
struct FitError {
  std::int64_t rows = 0;
  double median = 0;
  double p90 = 0;
};

/// Half of the kernels fitted, the other half predicted, and the other way round.
struct HeldOut {
  FitError model;  ///< The model alone.
  std::array<FitError, 3>
      of_family;             ///< Likewise; by place in Kernel: products, attention, passes.
  FitError with_neighbours;  ///< Corrected by measured kernels nearby (sim/compute/measured.h).
  double reach = 0;          ///< Of `with_neighbours`: the best of those tried.
};

struct KernelFit {
  DeviceType device;  ///< With the fitted efficiency, which is measured on it.
  std::vector<FittedValue> values;
  FitError before;  ///< All kernels that are not left out, with the numbers of the start.
  FitError after;   ///< Likewise with the fitted ones.
  HeldOut held_out;
  std::vector<std::string> outliers;  ///< Kernels more than 30 % off after the fit.
  std::int64_t foreign = 0;           ///< Kernels left out: foreshard's own, not the device's.
};

struct KernelFitOptions {
  std::string source;          ///< Machine and date: becomes `source` of what was fitted.
  std::string source_of_each;  ///< Of the kernels listed: the same in short. Invariant: not empty.
  bool keep_measured = true;   ///< List the kernels themselves.
  bool own_kernels = false;    ///< Fit to foreshard's own, wherever they run.
};

/// The numbers of products are made the device's own before they are fitted (own_products).
/// \return kInvalidInput if there is no kernel to fit to.
Result<KernelFit> fit_kernels(const DeviceType& given, const std::vector<KernelSample>& kernels,
                              const KernelFitOptions& options);

}  // namespace foreshard::calibrate
