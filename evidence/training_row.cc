#include "evidence/training_row.h"

#include "validate/tables/cells.h"

namespace foreshard::accuracy {

Result<std::vector<TrainingRow>> read_training(const CsvTable& table, const RowFormat& format,
                                               std::string_view name) {
  std::vector<std::string> required;
  for (const std::string& ours : format.required) required.push_back(format.column(ours));
  FORESHARD_TRY(missing_columns(table, name, {required.begin(), required.end()}));
  std::vector<TrainingRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    const auto text = [&](const char* ours) { return cells.text(format.column(ours)); };
    const auto integer = [&](const char* ours) { return cells.integer(format.column(ours)); };
    const auto number = [&](const char* ours) { return cells.number(format.column(ours)); };
    TrainingRow row{.line = line.line,
                    .id = cells.id(),
                    .source = text("source"),
                    .framework = text("framework"),
                    .gpu = text("gpu"),
                    .model_name = text("model"),
                    .gpu_mem_gb = number("gpu_memory"),
                    .internode_gbps_per_gpu = number("network"),
                    .parameters = number("parameters"),
                    .num_gpus = integer("gpus"),
                    .gpus_per_node = integer("gpus_per_node"),
                    .layers = integer("layers"),
                    .hidden = integer("hidden"),
                    .heads = integer("heads"),
                    .kv_heads = integer("kv_heads"),
                    .ffn = integer("ffn"),
                    .vocab = integer("vocabulary"),
                    .seq = integer("sequence"),
                    .experts = integer("experts"),
                    .topk = integer("experts_per_token"),
                    .tp = integer("tensor_parallel"),
                    .pp = integer("pipeline_parallel"),
                    .vpp = integer("virtual_stages"),
                    .dp = integer("data_parallel"),
                    .ep = integer("expert_parallel"),
                    .mbs = integer("micro_batch"),
                    .gbs = integer("global_batch"),
                    .cp = text("context_parallel"),
                    .zero_stage = text("zero_stage"),
                    .recompute = text("recompute"),
                    .seq_parallel = text("sequence_parallel"),
                    .precision = text("precision"),
                    .metric = text("metric"),
                    .unit = text("unit"),
                    .notes = text("notes"),
                    .value = cells.required(format.column("value"))};
    if (text("id").empty()) cells.fault("column '" + format.column("id") + "' is empty");
    if (row.metric.empty()) cells.fault("column '" + format.column("metric") + "' is empty");
    row.fault = cells.fault_text();
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foreshard::accuracy
