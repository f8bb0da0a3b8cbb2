/// \file
/// What communication is booked under: by what it is for, whichever axes its ranks differ along.
#pragma once

#include <vector>

#include "strategies/program/ir/program.h"
#include "strategies/reshard/within_mesh.h"

namespace foreshard::lower {

/// Of activations among ranks that differ along `axes`: what the outermost one is for.
program::Purpose purpose_of(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh);

/// Of parameters, gradients and what the optimizer makes of them: along any axis whose ranks hold
/// copies it is data-parallel, whatever else these ranks do.
program::Purpose purpose_of_states(const std::vector<Axis>& axes,
                                   const std::vector<MeshAxis>& mesh);

/// Whether the step is an exchange of tokens with experts: an all-to-all among ranks that hold
/// other ones, to or from the first dimension, which is that of the experts.
bool exchanges_tokens(const reshard::MeshStep& step, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard::lower
