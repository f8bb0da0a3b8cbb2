#include "cli/heap.h"
#include "cli/run.h"

int main(int argc, char** argv) {
  foreshard::cli::use_large_pages();
  return foreshard::cli::run(argc, argv);
}
