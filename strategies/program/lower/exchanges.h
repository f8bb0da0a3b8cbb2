/// \file
/// The exchange of tokens with experts: which operation carries it out, and how a pass is cut where
/// it waits for one. Cut passes of two micro-batches can take turns: each computes while the tokens
/// of the other are under way.
///
///     attention, router, [dispatch] | experts, [combine] | sum, residual
///
/// Source: DeepSeek-AI, "DeepSeek-V3 technical report" (arXiv 2412.19437), section 3.2.1 and figure
/// 4; NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/combined_1f1b.py.
/// Not modelled: gradients of weights that are moved behind the exchange of the same pass
/// (Megatron-LM's delay_wgrad_compute).
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/graph/attribute.h"
#include "strategies/graph/model.h"
#include "strategies/program/ir/program.h"

namespace foreshard::lower {

/// Turns all-to-alls of tokens into token_exchanges.
void exchange_once_per_node(program::Block& block, const program::TokenRouting& routing,
                            const std::vector<MeshAxis>& mesh);

/// A task of an earlier part of the same block.
struct EarlierTask {
  std::int32_t part = 0;
  std::int32_t task = 0;  ///< Index into the tasks of that part.
  auto operator<=>(const EarlierTask&) const = default;
};

/// Consecutive tasks of a block, as a block.
struct BlockPart {
  program::Block block{};
  std::vector<EarlierTask> after{};  ///< Earlier tasks that its first task waits for; ascending.
};

/// The tasks of `block`, in order, cut before each kernel that waits for an exchange with experts,
/// or for communication that itself waits for one (a gather over the ranks that share an expert).
/// If a task waits for a task of an earlier part, its whole part waits for that task.
std::vector<BlockPart> cut_at_exchanges(const program::Block& block);

/// How the tokens of a model with experts choose them.
program::TokenRouting routing_of(const Model& model);

}  // namespace foreshard::lower
