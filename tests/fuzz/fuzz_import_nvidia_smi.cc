// Any bytes as what nvidia-smi topo -m printed.
#include "tests/fuzz/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foreshard::fuzz_import(data, size, "nvidia-smi", "V100-SXM-16GB", "");
  return 0;
}
