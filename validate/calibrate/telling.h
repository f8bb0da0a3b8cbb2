/// \file
/// Small products that tell a device's numbers apart. The products of training steps are large:
/// nearly all of their time is the rate of the arithmetic, and what a tile, a split, an operand or
/// a launch takes cannot be seen in them.
///
/// Product by product, that one is taken which most narrows the number known least beside what was
/// known before (log_fit.h), until all are known to half of what counts as told or no product
/// narrows them. What a number decides of a product's time is what the model says it decides for
/// sure, at its present value and up to a spread (at most a factor of 1.6) above and below: the
/// true numbers are others.
///
/// Source: Fedorov, "Theory of optimal experiments", 1972 (designs by the covariance that they
/// leave).
#pragma once

#include <functional>
#include <vector>

#include "strategies/program/ir/kernel.h"
#include "topology/device_type.h"

namespace foreshard::calibrate {

/// Extents are powers of two from 16 to 8192.
/// \param known  products that are measured anyway; the result is of their dtypes.
/// \param fits  which products may be taken.
/// \return in the order in which they were taken; empty if `known` is. None is of `known`.
std::vector<Gemm> telling_products(const DeviceType& device, const std::vector<Gemm>& known,
                                   const std::function<bool(const Gemm&)>& fits);

}  // namespace foreshard::calibrate
