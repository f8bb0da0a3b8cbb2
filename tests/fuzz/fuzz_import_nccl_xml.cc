// Any bytes as a topology that NCCL wrote.
#include "tests/fuzz/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foreshard::fuzz_import(data, size, "nccl-xml", "", "");
  return 0;
}
