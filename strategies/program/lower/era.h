/// \file
/// What the libraries and settings of a framework's era do to the tasks of a step.
#pragma once

#include "strategies/program/ir/program.h"

namespace foreshard::lower {

/// Takes the batched products of 16-bit types off the matrix units whose rows are no multiple of
/// 16 bytes: cuBLAS had no such kernel for them before CUDA 11.6.
/// Not modelled: operands that start between two multiples, as views of a larger tensor do.
void leave_matrix_units(program::Block& block);

/// Lets the host work for each product that is launched by itself (Gemm::apart), and each kernel of
/// a pass that has several (Pass::launches), behind the first: the device computes meanwhile.
void launch_experts(program::Block& block, Seconds product, Seconds pass);

/// Lets the host wait for each kernel and collective (CUDA_LAUNCH_BLOCKING=1).
/// Not modelled: waiting for transfers between pipeline stages, which end when the other stage
/// comes to them.
void block_launches(program::Program& program);

}  // namespace foreshard::lower
