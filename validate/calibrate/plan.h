/// \file
/// A Program that measures what other Programs need: every distinct kernel and every distinct
/// collective of theirs, alone, in many short runs. `foreshard-replay` runs it like any other.
///
///     const auto plan = microbenchmarks({tp2, dp2}, options);   // then to_json, then replay
///
/// - Kernels: those of the Programs, and where a kind has few sizes, neighbours at half and double
///   extents, so that a fit has something to lean on. Where the device is known, also small
///   products that tell its numbers apart (telling.h).
/// - Collectives: those of the Programs, on the same members, at the Programs' sizes and on a
///   ladder of sizes between them, each with nothing beside it.
/// - Each appears once in every *round*, in an order of its own (shuffled by a fixed seed), so that
///   drifts of clocks and temperature fall on all alike, and no kernel finds the operands of its
///   last run in a cache more often than in a step. All ranks run the same kernel at the same time,
///   as they do in a step: they share what they share there.
/// - Rounds are as many as fit into `step`, by the forecast of the device, 2 to 32.
///
/// Not modelled: operands that the kernel before has left in a cache in the step, but not here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/program/ir/program.h"
#include "topology/device_type.h"

namespace foreshard::calibrate {

struct PlanOptions {
  Seconds step = 4_s;            ///< What one run of the Program is to take, about.
  Seconds longest = 0.5_s;       ///< A neighbour that is forecast to take longer is left out.
  Bytes largest = 1_GiB;         ///< Likewise of a neighbour's operands.
  std::int64_t fewest = 6;       ///< Sizes of a kind; fewer get neighbours.
  Seconds small = 5_ms;          ///< A product that tells numbers apart takes at most so long.
  std::int64_t ladder = 4;       ///< Factor between the ladder's sizes.
  std::int64_t most_pairs = 32;  ///< Transfers between that many pairs of ranks at most.
  /// What the Programs run on, for the forecast of each kernel's time. Empty: 1 ms each.
  std::optional<DeviceType> device{};
};

/// The Program, verified.
/// \return kInvalidInput if there is no Program, they differ in their ranks or devices, or they
///     have neither kernels nor collectives.
Result<program::Program> microbenchmarks(const std::vector<program::Program>& programs,
                                         const PlanOptions& options);

}  // namespace foreshard::calibrate
