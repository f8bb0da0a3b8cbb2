/// \file
/// A row of measured training steps for tests, and what it is read as.
#pragma once

#include "evidence/setting.h"
#include "tests/test.h"

namespace foreshard::accuracy {

// A row that states everything.
inline TrainingRow full_row() {
  TrainingRow row;
  row.id = "A-1";
  row.source = "SC21";
  row.framework = "Megatron-LM";
  row.gpu = "A100";
  row.gpu_mem_gb = 80;
  row.num_gpus = 64;
  row.gpus_per_node = 8;
  row.internode_gbps_per_gpu = 200;
  row.model_name = "GPT-3.6B";
  row.layers = 30;
  row.hidden = 3072;
  row.heads = 32;
  row.kv_heads = 32;
  row.ffn = 12288;
  row.vocab = 51200;
  row.seq = 2048;
  row.tp = 2;
  row.pp = 2;
  row.vpp = 1;
  row.dp = 16;
  row.zero_stage = "1";
  row.mbs = 4;
  row.gbs = 512;
  row.recompute = "full";
  row.seq_parallel = "False";
  row.precision = "fp16";
  row.metric = "step_time";
  row.unit = "s";
  row.value = 3;
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
  yaml::Loader loader_{{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}}};
  RowFormat format_ = *loader_.read_ref<RowFormat>("training-steps");
};

}  // namespace foreshard::accuracy
