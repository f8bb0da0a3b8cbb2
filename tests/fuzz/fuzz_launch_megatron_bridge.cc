// Any bytes as a launch file: the YAML of Megatron-Bridge.
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/launch.h"

FORESHARD_FUZZER(fuzz_launch_megatron_bridge) {
  foreshard::fuzz_launch(data, size, "megatron-bridge");
  return 0;
}
