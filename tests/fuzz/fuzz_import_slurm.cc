// Any bytes as SLURM's topology.conf.
#include "tests/fuzz/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foreshard::fuzz_import(data, size, "slurm", "", "dgx-h100");
  return 0;
}
