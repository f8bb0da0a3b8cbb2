/// \file
/// The program: reads the command line, runs one command, and returns the exit code.
#pragma once

namespace foreshard::cli {

int run(int argc, char** argv);

}  // namespace foreshard::cli
