/// \file
/// Small tables for tests.
#pragma once

#include "evidence/accuracy.h"
#include "tests/test.h"

namespace foreshard::accuracy {

/// A folder of files that is gone with the test.
class Tables {
 public:
  Tables() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("accuracy-") + test->test_suite_name() + "-" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Tables() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

 private:
  std::filesystem::path folder_;
};

inline Options options(int threads = 1) {
  return {.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .threads = threads};
}

inline const std::string kTrainingHeader =
    "id,source,source_url_or_repo_path,framework,gpu,gpu_mem_gb,num_gpus,gpus_per_node,"
    "internode_gbps_per_gpu,model_name,params_b,layers,hidden,heads,kv_heads,ffn,vocab,seq,experts,"
    "topk,tp,pp,vpp,cp,dp,ep,zero_stage,mbs,gbs,recompute,seq_parallel,precision,metric,value,unit,"
    "notes\n";

/// A training step of a small GPT on one node, with the id, the step time (ms) and the experts.
inline std::string training_line(const std::string& id, const std::string& value,
                                 const std::string& experts = "",
                                 const std::string& metric = "step_time",
                                 const std::string& unit = "ms") {
  return id + ",SC21,,Megatron-LM,A100,80,8,8,,GPT,,4,1024,16,16,4096,50257,1024," + experts +
         ",,2,1,1,1,4,1,0,2,16,none,False,fp16," + metric + "," + value + "," + unit + ",\n";
}

}  // namespace foreshard::accuracy
