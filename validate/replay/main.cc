#include "validate/replay/executor.h"
#include "validate/replay/run.h"

int main(int argc, char** argv) {
  return foreshard::replay::run(
      argc, argv,
      {.host = foreshard::replay::make_host_executor, .gpu = foreshard::replay::make_gpu_executor});
}
