// Any bytes as a launch file: the YAML of accelerate.
#include "tests/fuzz/launch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foreshard::fuzz_launch(data, size, "accelerate");
  return 0;
}
