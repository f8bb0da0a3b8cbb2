// Any bytes as SLURM's topology.conf.
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/import.h"

FORESHARD_FUZZER(fuzz_import_slurm) {
  foreshard::fuzz_import(data, size, "slurm", "", "dgx-h100");
  return 0;
}
