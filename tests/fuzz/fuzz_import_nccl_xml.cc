// Any bytes as a topology that NCCL wrote.
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/import.h"

FORESHARD_FUZZER(fuzz_import_nccl_xml) {
  foreshard::fuzz_import(data, size, "nccl-xml", "", "");
  return 0;
}
