// Any bytes as a launch file: the YAML of NeMo 1.
#include "tests/fuzz/launch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foreshard::fuzz_launch(data, size, "nemo");
  return 0;
}
