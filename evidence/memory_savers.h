/// \file
/// What rows of measured training say of recomputation, offloading and adapters, in the words of
/// the frameworks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/training_row.h"

#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::accuracy {

/// Sets `recompute`, `recompute_parts` and `recompute_layers` from column 'recompute', for example:
///
///     "none"  "full"  "full (block, 21 layers)"  "selective"  "selective:layernorm+moe_act"
///
/// "selective (op-level SAC)" is torchtitan's: attention's result, sums that are scattered, and of
/// a layer's products (q, k, v, output, gate, up, down) every second one are kept, all else is
/// computed again. Not modelled: that of its queries, keys and values the keys are not kept; that
/// what is gathered again for a product serves the gradients too.
/// Source: pytorch/torchtitan, torchtitan/distributed/activation_checkpoint.py.
/// Modules are those of Megatron-LM's --recompute-modules. "SAVE_DOT_ONLY" is Paxml's: products of
/// weights are kept, all else is not (not modelled: that attention's result is not, either).
/// \pre the column is not empty.
/// \return kUnsupported for other words.
Status read_recomputation(const std::string& column, const Model& model, Strategy& strategy);

/// What notes say of offloading to the host: "CPU AdamW offload" (DeepSpeed's offload_optimizer),
/// "cpu_offloading_num_layers=40" (Megatron-LM: activations of the first 40 layers).
void read_offloading(const std::string& notes, Strategy& strategy);

/// The adapters that a row fine-tunes; nothing where it trains all parameters. What the row does
/// not print is what the source's own recipe says, and is added to `assumed`.
std::optional<Adapters> adapters_of(const TrainingRow& row, std::vector<std::string>& assumed);

/// What Megatron-LM's module "moe" computes again.
const std::vector<Part>& parts_of_experts();

}  // namespace foreshard::accuracy
