/// \file
/// Small matrix products that tell a device's numbers apart. The products of training steps are
/// large: nearly all of their time is arithmetic, and the times of a tile, a split, an operand or a
/// launch cannot be seen in them.
///
/// The products are chosen greedily. Each time, the number that is known least relative to its
/// prior (log_fit.h) is looked at, and the product that reduces its variance most is taken. It ends
/// when every number is known twice as well as it must be to count as told, or no product helps.
/// The true numbers are unknown, so a number's influence on a product's time is the lesser of the
/// influences that the model shows for one spread (at most a factor of 1.6) above and below its
/// present value.
///
/// Source: Fedorov, "Theory of optimal experiments", 1972 (choosing designs by the covariance that
/// they leave).
#pragma once

#include <functional>
#include <vector>

#include "strategies/program/ir/kernel.h"
#include "topology/device_type.h"

namespace foreshard::calibrate {

/// Extents are powers of two from 16 to 8192.
/// \param known  products that are measured anyway; the result has their dtypes.
/// \param fits  whether a product may be chosen.
/// \return products in the order in which they were chosen, none of them in `known`; empty if
///     `known` is.
std::vector<Gemm> telling_products(const DeviceType& device, const std::vector<Gemm>& known,
                                   const std::function<bool(const Gemm&)>& fits);

}  // namespace foreshard::calibrate
