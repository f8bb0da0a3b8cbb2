/// \file
/// The arithmetic of one operator on one rank, in double precision: what its kernel would compute
/// from the slices that the rank holds. It sees local slices only, so whatever a sharded graph
/// forgot to communicate is missing here too.
///
///     Operand x{.whole = {8, 16}, .box = {{0, 8}, {8, 16}}, .values = ...};   // the right half
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/graph/graph.h"
#include "strategies/graph/layout.h"

namespace foreshard::execute {

/// A slice of a logical tensor: row-major over `box`.
struct Operand {
  Shape whole{};
  Box box{};
  std::vector<double> values{};
};

/// Values that were never written: reading one shows in the result.
Operand unwritten(const Shape& whole, const Box& box);

/// Index in the logical tensor, row-major, of every value of the slice in turn.
std::vector<std::int64_t> logical_indices(const Shape& whole, const Box& box);

/// What a kernel knows besides its operands.
struct KernelContext {
  std::uint64_t key = 0;      ///< Of the random numbers of this layer and micro-batch.
  double loss_scale = 1;      ///< Weight of one token in the loss: 1 / tokens of the step.
  bool first_summand = true;  ///< The rank adds a product's bias: see `compute`.
};

/// Whether the operator has arithmetic here: all but loops, conditions and optimizer_update.
bool can_compute(const Operator& op);

/// Runs `op` on one rank; `outputs` have shape and box, and are written in full.
///
/// A product's bias belongs to the product, not to each of its summands: of the ranks whose results
/// are added up later only one adds it (`first_summand`). Dropped elements are drawn by their index
/// in the logical tensor. Softmax, norms and attention along a dimension need it whole.
/// Conventions: GELU with a bias by tanh, as in Megatron-LM's fused bias_gelu; epsilon of norms
/// 1e-5; rotary positions of base 10,000, pairs (i, i + d/2) (Su et al., "RoFormer", 2021, in the
/// order of GPT-NeoX); scores are scaled by 1/sqrt(head_dim); what is kept by a dropout is scaled
/// by 1/(1-p). Packed projections: see transformer.h.
/// \pre slices line up: a factor of the rule has one range in all operands. Else the sharded
///     graph is wrong, and the process ends.
void compute(const Operator& op, std::span<const Operand> inputs, std::span<Operand> outputs,
             const KernelContext& context);

}  // namespace foreshard::execute
