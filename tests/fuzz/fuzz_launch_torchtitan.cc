// Any bytes as a launch file: the TOML of torchtitan.
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/launch.h"

FORESHARD_FUZZER(fuzz_launch_torchtitan) {
  foreshard::fuzz_launch(data, size, "torchtitan");
  return 0;
}
