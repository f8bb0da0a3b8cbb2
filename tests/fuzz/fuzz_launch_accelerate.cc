// Any bytes as a launch file: the YAML of accelerate.
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/launch.h"

FORESHARD_FUZZER(fuzz_launch_accelerate) {
  foreshard::fuzz_launch(data, size, "accelerate");
  return 0;
}
