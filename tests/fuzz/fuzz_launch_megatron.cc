// Any bytes as a launch file: options of Megatron-LM.
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/launch.h"

FORESHARD_FUZZER(fuzz_launch_megatron) {
  foreshard::fuzz_launch(data, size, "megatron");
  return 0;
}
