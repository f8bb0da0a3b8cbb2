// Any bytes as what nvidia-smi topo -m printed.
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/import.h"

FORESHARD_FUZZER(fuzz_import_nvidia_smi) {
  foreshard::fuzz_import(data, size, "nvidia-smi", "V100-SXM-16GB", "");
  return 0;
}
