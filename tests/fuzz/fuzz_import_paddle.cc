// Any bytes as PaddlePaddle's cluster JSON.
#include "tests/fuzz/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foreshard::fuzz_import(data, size, "paddle", "", "");
  return 0;
}
