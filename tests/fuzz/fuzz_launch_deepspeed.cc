// Any bytes as a launch file: the JSON of DeepSpeed.
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/launch.h"

FORESHARD_FUZZER(fuzz_launch_deepspeed) {
  foreshard::fuzz_launch(data, size, "deepspeed");
  return 0;
}
