// A step on nodes of unequal numbers of GPUs is between those on equal ones.
#include <cstdio>

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/run.h"

namespace foreshard::study {
namespace {

/// Tokens per second of Llama 3 8B, fully sharded, one sequence of 1,024 tokens a GPU, on a node of
/// `a` H100 and one of `b`, with 450 GB/s of NVLink and a NIC of 400 Gbit/s each.
double tokens_per_second(int a, int b) {
  const auto node = [](int gpus) {
    const std::string count = std::to_string(gpus);
    return "{nodes: 1, node: {device: H100-SXM, gpus: " + count +
           ", nvlink: {bandwidth: 450 GB/s}, nics: {count: " + count + ", bandwidth: 400 Gbit/s}}}";
  };
  const std::string ranks = std::to_string(a + b);
  const TemporaryFolder folder;
  const auto file = folder.write(
      "study.yaml", "cluster:\n  groups: [" + node(a) + ", " + node(b) +
                        "]\n  fabric: {kind: single-switch}\n"
                        "model: {extends: llama3-8b, sequence: 1024}\n"
                        "strategy: {framework: pytorch-fsdp, zero_stage: 3, micro_batch: 1, "
                        "data_parallel: " +
                        ranks + ", global_batch: " + ranks + "}\n");
  const auto study = value_of(load_study({.study = file}, shipped_options()));
  const auto run = value_of(run_study(study, {}));
  EXPECT_TRUE(run.prediction.fits);
  std::printf("%d + %d GPUs: %s\n", a, b, format(run.prediction.step).c_str());
  return run.prediction.tokens / (run.prediction.step / 1_s);
}

// 15 GPUs of 16 do 15 sequences instead of 16, on 7 adapters a node instead of 8: no more is lost
// than the GPU that is missing.
TEST(UnequalNodes, LoseNoMoreThanTheGpuThatIsMissing) {
  const double whole = tokens_per_second(8, 8);
  const double unequal = tokens_per_second(8, 7);
  const double equal = tokens_per_second(7, 7);
  EXPECT_GE(unequal, 14.0 / 15 * whole);
  EXPECT_GE(unequal, equal);
  EXPECT_LE(unequal, whole);
}

}  // namespace
}  // namespace foreshard::study
