/// \file
/// Turns a plan into a Program for the simulator and the replayer.
///
/// Each step is a communication of all its groups side by side, with the copies that pack and
/// unpack around it (repack()). A transfer is an exchange whose groups are the disjoint sets of
/// ranks that exchange messages. A rank runs its part of the steps one after another on one stream;
/// ranks wait for each other only where they communicate.
#pragma once

#include <cstdint>

#include "base/result.h"

#include "strategies/program/ir/program.h"
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

// Copies within a rank that a step needs. Communication sends and receives whole buffers, so data
// that are not contiguous in the rank's slice are packed before it and unpacked after it.

/// Elements that a rank copies before and after the communication; the largest of any rank.
struct Repack {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

/// Copies of a step. Along the first dimension of which the rank has more than one index, a slice
/// of a row-major tensor is cut or joined without a copy. Along any other dimension it is copied:
/// the result of an all-gather, the operand of a reduce-scatter, both the cut and the joined slice
/// of an all-to-all or transfer. A local slice is a copy unless it is contiguous; a pad writes its
/// whole summand.
/// Not modelled: padding of uneven slices; packs that overlap earlier messages.
Repack repack_of(const Step& step, const TensorSpec& tensor);

}  // namespace foreshard::reshard
