/// \file
/// Reads recomputation, offloading and adapters from a row of measured training, which states them
/// in the words of its framework. Called by setting.cc when it maps a row to a model and strategy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/training_row.h"

#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::accuracy {

/// Sets the strategy's `recompute`, `recompute_parts` and `recompute_layers` from the column
/// 'recompute', which is case-insensitive. Words after "selective:" are modules of Megatron-LM's
/// --recompute-modules. Examples:
///
///     "none"  "full"  "full (block, 21 layers)"  "selective"  "selective:layernorm+moe_act"
///
/// "selective (op-level SAC)" is torchtitan's policy: it keeps attention's output, the results of
/// reduce-scatters, and every second product of a layer (among q, k, v, output, gate, up, down),
/// and recomputes everything else. Not modelled: of queries, keys and values, the keys are
/// recomputed; a tensor that is gathered again for a product also serves the gradients.
/// Source: pytorch/torchtitan, torchtitan/distributed/activation_checkpoint.py.
///
/// "SAVE_DOT_ONLY" is Paxml's policy: it keeps the products with weights and recomputes everything
/// else. Not modelled: attention's output is recomputed too.
/// \pre The column is not empty.
/// \return kUnsupported for any other text.
Status read_recomputation(const std::string& column, const Model& model, Strategy& strategy);

/// Sets what the strategy offloads to the host, from the row's notes: "CPU AdamW offload"
/// (DeepSpeed's offload_optimizer), "cpu_offloading_num_layers=40" (Megatron-LM: activations of the
/// first 40 layers).
void read_offloading(const std::string& notes, Strategy& strategy);

/// The LoRA adapters that a row fine-tunes; nothing if it trains all parameters. Settings that the
/// row does not state come from the source's own recipe, and "adapters" is added to `assumed`.
std::optional<Adapters> adapters_of(const TrainingRow& row, std::vector<std::string>& assumed);

}  // namespace foreshard::accuracy
