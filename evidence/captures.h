/// \file
/// Reads from a row of measured training which parts of a layer run as CUDA graphs: the row says it
/// in the words of its framework. Called by setting.cc when it maps a row to a strategy.
#pragma once

#include <string>
#include <vector>

#include "evidence/training_row.h"

#include "strategies/graph/model.h"
#include "strategies/graph/part.h"

namespace foreshard::accuracy {

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

}  // namespace foreshard::accuracy
