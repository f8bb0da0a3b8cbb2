/// \file
/// Changes to the tasks of a step that follow from the libraries and settings of a framework's era.
#pragma once

#include "strategies/program/ir/program.h"

namespace foreshard::lower {

/// Takes batched products of 16-bit types off the matrix units if their rows are no multiple of
/// 16 bytes: before CUDA 11.6, cuBLAS had no kernel for them that uses the matrix units.
/// Not modelled: operands that start between two multiples, as views of a larger tensor do.
void leave_matrix_units(program::Block& block);

/// Adds host work for each product that is launched by itself (Gemm::apart) and for each kernel of
/// a pass that has several (Pass::launches). It follows the first launch, so that the device
/// computes meanwhile.
void launch_experts(program::Block& block, Seconds product, Seconds pass);

/// Makes the host wait for each kernel and collective (CUDA_LAUNCH_BLOCKING=1).
/// Not modelled: waiting for transfers between pipeline stages, which end when the other stage
/// reaches them.
void block_launches(program::Program& program);

}  // namespace foreshard::lower
