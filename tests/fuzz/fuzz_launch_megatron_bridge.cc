// Any bytes as a launch file: the YAML of Megatron-Bridge.
#include "tests/fuzz/launch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foreshard::fuzz_launch(data, size, "megatron-bridge");
  return 0;
}
