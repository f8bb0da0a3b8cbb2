// Any bytes as PaddlePaddle's cluster JSON.
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/import.h"

FORESHARD_FUZZER(fuzz_import_paddle) {
  foreshard::fuzz_import(data, size, "paddle", "", "");
  return 0;
}
