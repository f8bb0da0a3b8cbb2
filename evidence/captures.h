/// \file
/// What rows of measured training say of CUDA graphs, in the words of the frameworks.
#pragma once

#include <string>
#include <vector>

#include "evidence/training_row.h"

#include "strategies/graph/capture.h"
#include "strategies/graph/model.h"

namespace foreshard::accuracy {

/// Whether the devices are those of a rack with Grace hosts.
bool is_rack(const TrainingRow& row);

/// What CUDA graphs launch in the row, of what the model has: as Megatron-LM's cuda_graph_scope
/// ("attn", "mlp", "moe_router", "mamba", "full_iteration") or MLPerf's "CUDA graphs mcore" (each
/// layer) and "full" say. Where a row of Megatron-Bridge on racks says nothing, it is what the
/// recipes of that time for racks set, and "cuda_graphs" is added to `assumed`.
/// \param is_one  the recipes of that time had one graph for the whole step.
/// Source: NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs/qwen/
/// qwen3_workload_base_configs.py at 01b2977e (GB200, GB300: attn, moe_router, moe_preprocess), and
/// .../qwen3/workload_base_configs.py at 0fa501ac (recipes that drop tokens on B200 and GB200: the
/// whole step).
std::vector<Capture> graphs_of(const TrainingRow& row, const Model& model, bool is_one,
                               std::vector<std::string>& assumed);

}  // namespace foreshard::accuracy
