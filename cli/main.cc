#include "cli/run.h"

int main(int argc, char** argv) {
  return foreshard::cli::run(argc, argv);
}
