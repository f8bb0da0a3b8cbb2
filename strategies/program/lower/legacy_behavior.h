/// \file
/// Changes of lowered tasks by old libraries and by settings of a framework (Framework in
/// strategies/parallelism/framework.h has a member for each). unit_block.cc applies the first one
/// to each block, block.cc the second, and calls.cc the last one to the finished Program.
#pragma once

#include "strategies/program/ir/program.h"

namespace foreshard::lower {

/// Takes batched products of 16-bit types off the matrix units if their rows are no multiple of
/// 16 bytes: before CUDA 11.6, cuBLAS had no kernel for them that uses the matrix units.
/// Not modelled: operands that start between two multiples, as views of a larger tensor do.
void avoid_unaligned_matrix_units(program::Block& block);

/// Adds host work for experts whose kernels are launched one by one. A product that is launched by
/// itself for each member of its batch (Gemm::apart) takes batch x `product_time`; a pass of
/// several kernels (Pass::launches) takes launches x `pass_time`. The work follows the first
/// launch, so that the device computes meanwhile. Times of 0 add nothing.
void launch_experts(program::Block& block, Seconds product_time, Seconds pass_time);

/// Makes the host wait for each kernel and collective (CUDA_LAUNCH_BLOCKING=1): a Sync follows
/// each. Dependencies between calls are changed to the tasks' new indices. Not modelled: waiting
/// for transfers between pipeline stages, which end when the other stage reaches them.
void make_launches_blocking(program::Program& program);

}  // namespace foreshard::lower
