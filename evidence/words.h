/// \file
/// What the words of a row of measured training say: numbers, CUDA graphs, recomputation,
/// offloading and adapters. setting.cc maps rows to models and strategies by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "evidence/row_format.h"

#include "strategies/graph/model.h"
#include "strategies/graph/part.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::accuracy {

/// The whole number that directly follows the first `word` in `text`; nothing if there is none.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view word);

/// Whether the row's devices are GB200 or GB300, which come in racks with Grace hosts.
bool is_rack(const TrainingRow& row);

/// The parts of the step that the row launches as CUDA graphs, without parts that the model lacks.
/// The row's notes say it as Megatron-LM's cuda_graph_scope ("attn", "mlp", "moe_router", "mamba",
/// "full_iteration") or as MLPerf's "CUDA graphs mcore" (each layer) and "full". Rows of
/// Megatron-Bridge that drop tokens on B200 or GB200 capture the whole step. If another row of
/// Megatron-Bridge on a rack says nothing and its model has experts, the graphs are the ones that
/// the recipes for racks set at that time, and "cuda_graphs" is added to `assumed`.
/// \param is_one  whether the recipes for racks captured the whole step in one graph when the row
///     was measured.
/// Source: NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs/qwen/
/// qwen3_workload_base_configs.py at 01b2977e (GB200, GB300: attn, moe_router, moe_preprocess), and
/// .../qwen3/workload_base_configs.py at 0fa501ac (recipes that drop tokens on B200 and GB200: the
/// whole step).
std::vector<Capture> graphs_of(const TrainingRow& row, const Model& model, bool is_one,
                               std::vector<std::string>& assumed);

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

/// The attention kernel that the row's notes name; nothing if they name none.
std::optional<AttentionImplementation> attention_named(const TrainingRow& row);

/// Sets what the strategy offloads to the host, from the row's notes: "CPU AdamW offload"
/// (DeepSpeed's offload_optimizer), "cpu_offloading_num_layers=40" (Megatron-LM: activations of the
/// first 40 layers).
void read_offloading(const std::string& notes, Strategy& strategy);

/// Sets the types of optimizer states, gradients and parameters from the row's notes in lower case:
/// "adamw in bf16" (states alone); "pure bf16", "bf16-true" (all three, without copies in fp32).
/// \param narrow  whether the row's framework keeps all three in the training precision anyway.
void read_state_types(const std::string& notes, bool narrow, Optimizer& optimizer,
                      Framework& framework);

/// The LoRA adapters that a row fine-tunes; nothing if it trains all parameters. Settings that the
/// row does not state come from the source's own recipe, and "adapters" is added to `assumed`.
/// "nf4" in the notes: the frozen weights are held in 4 bits (QLoRA).
std::optional<Adapters> adapters_of(const TrainingRow& row, std::vector<std::string>& assumed);

}  // namespace foreshard::accuracy
