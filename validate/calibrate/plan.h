/// \file
/// A Program of microbenchmarks: it measures every distinct kernel and every distinct collective of
/// other Programs, each alone, in many short runs. `foreshard-replay` runs it like any Program.
///
///     const auto plan = microbenchmarks({tp2, dp2}, options);   // then to_json, then replay
///
/// - Kernels: all kernels of the Programs. A kind with few sizes gets neighbours at half and double
///   extents, so that a fit has enough points. If the device is known, small products that tell its
///   numbers apart are added (informative_products).
/// - Collectives: all collectives of the Programs, on the same members, at the Programs' sizes and
///   on a ladder of sizes below the largest. Nothing else runs during a collective.
/// - Each kernel and collective appears once per *round*. Every round is shuffled anew (by a fixed
///   seed), so that drifts of clocks and temperature affect all equally and no kernel finds its
///   operands in a cache more often than in a step. All ranks run the same kernel at the same
///   time, as in a step, so they contend for the same resources.
/// - The number of rounds is what fits into `step` by the device's forecast, from 2 to 32.
///
/// Not modelled: operands that the previous kernel of a step leaves in a cache.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/program/ir/kernel.h"
#include "strategies/program/ir/program.h"
#include "topology/device_type.h"

namespace foreshard::calibrate {

struct PlanOptions {
  Seconds step = 4_s;            ///< Approximate time of one run of the Program.
  Seconds longest = 0.5_s;       ///< Longest forecast time of a neighbour.
  Bytes largest = 1_GiB;         ///< Most operand bytes of a neighbour or an informative product.
  std::int64_t fewest = 6;       ///< Sizes that a kind needs; kinds with fewer get neighbours.
  Seconds small = 5_ms;          ///< Longest forecast time of an informative product.
  std::int64_t ladder = 4;       ///< Factor between the ladder's sizes.
  std::int64_t most_pairs = 32;  ///< Most pairs of ranks whose transfers are measured.
  /// The device of the Programs, for the forecast of each kernel's time. Empty: 1 ms per kernel.
  std::optional<DeviceType> device{};
};

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
///
/// Extents are powers of two from 16 to 8192.
/// \param known  products that are measured anyway; the result has their dtypes.
/// \param fits  whether a product may be chosen.
/// \return products in the order in which they were chosen, none of them in `known`; empty if
///     `known` is.
std::vector<Gemm> informative_products(const DeviceType& device, const std::vector<Gemm>& known,
                                       const std::function<bool(const Gemm&)>& fits);

/// The Program of microbenchmarks, verified.
/// \return kInvalidInput if `programs` is empty, if the Programs differ in their ranks or devices,
///     or if they have neither kernels nor collectives.
Result<program::Program> microbenchmarks(const std::vector<program::Program>& programs,
                                         const PlanOptions& options);

}  // namespace foreshard::calibrate
