// Adam with 8-bit moments and an fp32 scale per block of elements of a moment. Blocks lie within a
// rank's own shard, so ranks neither share nor exchange scales.
//
// Source: Dettmers et al., "8-bit Optimizers via Block-wise Quantization", ICLR 2022 (blocks of
// 2048); bitsandbytes-foundation/bitsandbytes, bitsandbytes/optim/optimizer.py, and pytorch/ao,
// torchao/optim (blocks of 256; a DTensor has the moments of its local shard).
// Not modelled: tensors of fewer than 4096 elements, whose moments stay in fp32; the scales, which
// the kernel reads and writes too.
#include "strategies/parallelism/internal/optimizers.h"

namespace foreshard::optimizers {
namespace {

std::vector<Moment> adam_8bit_moments(const Optimizer& optimizer, bool) {
  const Bytes bytes =
      size_of(DType::kInt8) + size_of(DType::kFp32) / static_cast<double>(optimizer.block);
  return {{.dtype = DType::kInt8, .bytes = bytes},
          {.is_second = true, .dtype = DType::kInt8, .bytes = bytes}};
}

std::vector<UpdateStep> adam_8bit_update(const Update& update) {
  return adam_steps(update, update.elements(), 2);
}

}  // namespace

OptimizerRule adam_8bit() {
  return {.name = "adam-8bit",
          .doc = "Adam with moments of 8 bits, scaled block by block.",
          .chooses_master = true,
          .has_blocks = true,
          .moments = adam_8bit_moments,
          .steps = adam_8bit_update};
}

}  // namespace foreshard::optimizers
