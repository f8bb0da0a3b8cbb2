/// \file
/// Factories of the commands; commands.cc lists them.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"

namespace foreshard::cli {

std::unique_ptr<Command> make_accuracy();
std::unique_ptr<Command> make_calibrate();
std::unique_ptr<Command> make_catalog();
std::unique_ptr<Command> make_check();
std::unique_ptr<Command> make_compare();
std::unique_ptr<Command> make_completion();
std::unique_ptr<Command> make_elastic();
std::unique_ptr<Command> make_explain();
std::unique_ptr<Command> make_export();
std::unique_ptr<Command> make_import();
std::unique_ptr<Command> make_replan();
std::unique_ptr<Command> make_replay();
std::unique_ptr<Command> make_reshard();
std::unique_ptr<Command> make_schema();
std::unique_ptr<Command> make_search();
std::unique_ptr<Command> make_simulate();
std::unique_ptr<Command> make_study();
std::unique_ptr<Command> make_topology();
std::unique_ptr<Command> make_validate();
std::unique_ptr<Command> make_version();

/// "foreshard 1.0.0 (commit, build type, compiler)"
std::string version_line();

}  // namespace foreshard::cli
