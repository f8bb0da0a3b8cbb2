// Any bytes as a launch file: the JSON of DeepSpeed.
#include "tests/fuzz/launch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foreshard::fuzz_launch(data, size, "deepspeed");
  return 0;
}
