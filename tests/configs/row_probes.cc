// Probes of the formats of tables of measured steps.
#include <fmt/format.h>

#include "base/csv.h"
#include "base/yaml/describe.h"
#include "evidence/training_row.h"
#include "tests/configs/probes.h"

namespace foreshard {
namespace {

constexpr const char* kShippedFolder = FORESHARD_SOURCE_DIR "/configs";

std::string understood(const accuracy::RowFormat& format, const accuracy::RowFormat& shipped) {
  std::string text;
  for (const auto& each : shipped.frameworks) {
    const auto& found = format.framework_named(each.framework, each.source, each.notes);
    text += fmt::format("{} {} {} {} {} {} {};", found.take.name, found.zero_stage,
                        found.vocabulary.value_or(0), yaml::name_of(found.stages),
                        found.one_sequence_with_experts, found.is_assumed, found.only_gpt);
  }
  for (const auto& each : shipped.families) {
    const auto* found = format.family_named(each.word);
    text += found == nullptr ? "-;" : yaml::echo(*found);
  }
  for (const std::string& word : {format.gated_family, format.plain_family})
    text += yaml::echo(format.family_called(word));
  for (const auto& each : shipped.hybrids) {
    const auto* found = format.hybrid_named(each.name);
    text += found == nullptr ? "-;" : found->take.name + ";";
  }
  for (const auto& each : shipped.schedules) {
    const auto* found = format.schedule_named(each.word);
    text += found == nullptr ? "-;" : yaml::echo(*found);
  }
  return text;
}

// What rows say in a table with the shipped columns, each of another value, and in tables that
// lack one of them.
std::string read_columns(const accuracy::RowFormat& format, const accuracy::RowFormat& shipped) {
  std::string text;
  for (const auto& [missing, ignored] : shipped.columns) {
    std::string header;
    std::string values;
    int value = 1;
    for (const auto& [ours, theirs] : shipped.columns) {
      ++value;
      if (ours == missing && ours != "notes") continue;
      header += theirs + ",";
      values += std::to_string(value) + ",";
    }
    const auto table = read_csv(header + "end\n" + values + "0\n", "table");
    const auto rows = accuracy::read_training(*table, format, "table");
    if (!rows) {
      text += rows.error().message;
      continue;
    }
    const accuracy::TrainingRow& row = rows->front();
    for (const auto& each : {row.num_gpus, row.gpus_per_node, row.layers, row.hidden, row.heads,
                             row.kv_heads, row.ffn, row.vocab, row.seq, row.experts, row.topk,
                             row.tp, row.pp, row.vpp, row.dp, row.ep, row.mbs, row.gbs})
      text += std::to_string(each.value_or(0)) + ",";
    for (const auto& each :
         {row.id, row.source, row.framework, row.gpu, row.model_name, row.cp, row.zero_stage,
          row.recompute, row.seq_parallel, row.precision, row.metric, row.unit, row.notes})
      text += each + ",";
    text +=
        fmt::format("{},{},{},{};", row.gpu_mem_gb.value_or(0),
                    row.internode_gbps_per_gpu.value_or(0), row.parameters.value_or(0), row.value);
  }
  return text;
}

}  // namespace

Probes<accuracy::RowFormat> probes_of(const accuracy::RowFormat*, const std::string& name) {
  const auto shipped = *yaml::Loader({.catalogue = {kShippedFolder}})
                            .read_file<accuracy::RowFormat>(std::string(kShippedFolder) +
                                                            "/tables/" + name + ".yaml");
  return {[shipped](const accuracy::RowFormat& format) { return understood(format, shipped); },
          [shipped](const accuracy::RowFormat& format) { return read_columns(format, shipped); }};
}

}  // namespace foreshard
