/// \file
/// A row of measured training steps for tests, and what it is read as.
#pragma once

#include "base/csv.h"
#include "evidence/setting.h"
#include "tests/evidence/tables.h"
#include "tests/test.h"

namespace foreshard::accuracy {

/// A row that states everything but for `changes`: "dp=2 | mbs=" has two replicas and does not
/// state the micro-batch.
inline TrainingRow full_row(const std::string& changes = "") {
  static const RowFormat format =
      value_of(yaml::Loader(shipped_options()).read_ref<RowFormat>("training-steps"));
  CsvTable table = value_of(read_csv(kTrainingHeader, "rows"));
  table.rows.push_back({2, std::vector<std::string>(table.header.size())});
  std::istringstream cells(
      "id=A-1 | source=SC21 | framework=Megatron-LM | gpu=A100 | gpu_mem_gb=80 | num_gpus=64 | "
      "gpus_per_node=8 | internode_gbps_per_gpu=200 | model_name=GPT-3.6B | layers=30 | "
      "hidden=3072 | heads=32 | kv_heads=32 | ffn=12288 | vocab=51200 | seq=2048 | tp=2 | pp=2 | "
      "vpp=1 | dp=16 | zero_stage=1 | mbs=4 | gbs=512 | recompute=full | seq_parallel=False | "
      "precision=fp16 | metric=step_time | unit=s | value=3 | " +
      changes);
  for (std::string cell; std::getline(cells, cell, '|');) {
    const std::size_t begin = std::min(cell.find_first_not_of(' '), cell.size());
    const std::size_t equals = cell.find('=');
    if (equals == std::string::npos) continue;
    const auto column = value_of(table.column(cell.substr(begin, equals - begin)));
    table.rows[0].fields[column] = cell.substr(equals + 1, cell.find_last_not_of(' ') - equals);
  }
  TrainingRow row = value_of(read_training(table, format, "rows")).front();
  EXPECT_EQ(row.fault, "");
  return row;
}

class SettingOf : public testing::Test {
 protected:
  Setting of(const TrainingRow& row) { return value_of(setting_of(row, format_, loader_)); }
  std::string refusal(const TrainingRow& row) {
    const auto setting = setting_of(row, format_, loader_);
    if (setting) return "supported";
    EXPECT_EQ(setting.error().code, Error::Code::kUnsupported);
    return setting.error().message;
  }
  yaml::Loader loader_{shipped_options()};
  RowFormat format_ = *loader_.read_ref<RowFormat>("training-steps");
};

}  // namespace foreshard::accuracy
