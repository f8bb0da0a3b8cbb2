// Any bytes as a launch file: options of Megatron-LM.
#include "tests/fuzz/launch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foreshard::fuzz_launch(data, size, "megatron");
  return 0;
}
