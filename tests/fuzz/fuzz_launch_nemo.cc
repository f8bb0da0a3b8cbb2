// Any bytes as a launch file: the YAML of NeMo 1.
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/launch.h"

FORESHARD_FUZZER(fuzz_launch_nemo) {
  foreshard::fuzz_launch(data, size, "nemo");
  return 0;
}
