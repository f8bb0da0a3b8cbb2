#include "tests/sim/compute/toy_device.h"

namespace foreshard::test {

DeviceType toy_device() {
  DeviceType device;
  device.name = "toy";
  device.memory.value = 1_GB;
  device.memory_bandwidth.value = 1_TB_s;
  device.tensor_peak["bf16"].value = 100_TFLOP_s;
  device.vector_peak.value = 10_TFLOP_s;
  device.multiprocessors.value = 10;
  device.compute_capability.value = 70;  // none that FlashAttention is for

  DeviceEfficiency& efficiency = device.efficiency.value;
  efficiency.gemm.rate = 1;
  efficiency.gemm.sustained = 0.5;
  efficiency.gemm.streaming = 1;
  efficiency.gemm.operand_rate = 1000_TB_s;
  efficiency.gemm.tile_overhead = 1_us;
  efficiency.gemm.floor = 2_us;
  efficiency.gemm.tiles = {{.m = 100, .n = 100}};
  efficiency.gemm.k_step = 100;
  efficiency.gemm.splits = {1};
  efficiency.gemm.smallest_part = 100;

  efficiency.attention.rates = {{.head_dim = 50, .forward = 0.5, .backward = 0.25},
                                {.head_dim = 100, .forward = 1.0, .backward = 0.5}};
  efficiency.attention.sustained = 1;
  efficiency.attention.tile = 100;
  efficiency.attention.unit_overhead = 1_us;
  efficiency.attention.floor = 3_us;

  efficiency.passes.streaming.value = 0.5;
  efficiency.passes.of["gelu_fwd"].value = 0.25;
  efficiency.passes.floor.value = 2_us;
  return device;
}

}  // namespace foreshard::test
