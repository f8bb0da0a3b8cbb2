/// \file
/// The purpose under which communication is booked: what it is for, whichever axes its ranks differ
/// along.
#pragma once

#include <vector>

#include "strategies/program/ir/program.h"
#include "strategies/reshard/within_mesh.h"

namespace foreshard::lower {

/// The purpose of communicating activations among ranks that differ along `axes`: what the
/// outermost axis is for.
program::Purpose purpose_of(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh);

/// The purpose of communicating parameters, gradients and the optimizer's results: data-parallel if
/// one of the axes has ranks that hold copies, whatever else these ranks do; else purpose_of().
program::Purpose purpose_of_states(const std::vector<Axis>& axes,
                                   const std::vector<MeshAxis>& mesh);

/// Whether the step is an exchange of tokens with experts: an all-to-all among ranks that hold
/// different experts, to or from the first dimension, which counts the experts.
bool exchanges_tokens(const reshard::MeshStep& step, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard::lower
