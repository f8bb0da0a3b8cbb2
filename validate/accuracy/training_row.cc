#include "validate/accuracy/training_row.h"

#include "validate/accuracy/cells.h"

namespace foreshard::accuracy {

Result<std::vector<TrainingRow>> read_training(const CsvTable& table, std::string_view name) {
  FORESHARD_TRY(missing_columns(
      table, name,
      {"id",     "source", "framework", "gpu",  "num_gpus",  "model_name", "layers",
       "hidden", "heads",  "kv_heads",  "ffn",  "vocab",     "seq",        "experts",
       "tp",     "pp",     "vpp",       "cp",   "dp",        "zero_stage", "mbs",
       "gbs",    "metric", "value",     "unit", "recompute", "precision",  "seq_parallel"}));
  std::vector<TrainingRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    TrainingRow row{.line = line.line,
                    .id = cells.id(),
                    .source = cells.text("source"),
                    .framework = cells.text("framework"),
                    .gpu = cells.text("gpu"),
                    .model_name = cells.text("model_name"),
                    .gpu_mem_gb = cells.number("gpu_mem_gb"),
                    .internode_gbps_per_gpu = cells.number("internode_gbps_per_gpu"),
                    .num_gpus = cells.integer("num_gpus"),
                    .gpus_per_node = cells.integer("gpus_per_node"),
                    .layers = cells.integer("layers"),
                    .hidden = cells.integer("hidden"),
                    .heads = cells.integer("heads"),
                    .kv_heads = cells.integer("kv_heads"),
                    .ffn = cells.integer("ffn"),
                    .vocab = cells.integer("vocab"),
                    .seq = cells.integer("seq"),
                    .experts = cells.integer("experts"),
                    .topk = cells.integer("topk"),
                    .tp = cells.integer("tp"),
                    .pp = cells.integer("pp"),
                    .vpp = cells.integer("vpp"),
                    .dp = cells.integer("dp"),
                    .ep = cells.integer("ep"),
                    .mbs = cells.integer("mbs"),
                    .gbs = cells.integer("gbs"),
                    .cp = cells.text("cp"),
                    .zero_stage = cells.text("zero_stage"),
                    .recompute = cells.text("recompute"),
                    .seq_parallel = cells.text("seq_parallel"),
                    .precision = cells.text("precision"),
                    .metric = cells.text("metric"),
                    .unit = cells.text("unit"),
                    .notes = cells.text("notes"),
                    .value = cells.required("value")};
    if (cells.text("id").empty()) cells.fault("column 'id' is empty");
    if (row.metric.empty()) cells.fault("column 'metric' is empty");
    row.fault = cells.fault_text();
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foreshard::accuracy
