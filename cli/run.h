/// \file
/// The program: reads the command line, runs one command, gives the exit code.
#pragma once

namespace foreshard::cli {

int run(int argc, char** argv);

}  // namespace foreshard::cli
