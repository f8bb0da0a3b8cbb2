/// \file
/// Turns a plan into a Program for the simulator and the replayer.
///
/// Each step is a communication of all its groups side by side, with the copies that pack and
/// unpack around it (repack.h). A transfer is an exchange whose groups are the disjoint sets of
/// ranks that exchange messages. A rank runs its part of the steps one after another on one stream;
/// ranks wait for each other only where they communicate.
#pragma once

#include "base/result.h"

#include "strategies/program/ir/program.h"
#include "strategies/reshard/placement.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

/// Most messages of a transfer that are written out.
inline constexpr double kMostMoves = 250'000;

/// The Program's ranks are the ranks of all of the plan's meshes, numbered in ascending order;
/// `device_of_rank` gives their devices. The Program is valid. Host launches take no time: they are
/// hidden behind earlier work. Not modelled: memory of the buffers.
/// \pre ranks have devices (`fault_in`)
/// \return kUnsupported for a transfer of more than kMostMoves messages; kInvalidInput for a plan
///     without a step that runs.
Result<program::Program> program_of(const Plan& plan, const TensorSpec& tensor,
                                    const Placement& placement);

}  // namespace foreshard::reshard
