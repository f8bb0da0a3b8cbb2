/// \file
/// Factories of the commands (commands.cc lists them), their declaration to the parser for reading
/// a command line and for shell completion, and the program that runs one of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace CLI {
class App;
}  // namespace CLI

namespace foreshard::cli {

std::unique_ptr<Command> make_accuracy();
std::unique_ptr<Command> make_advise();
std::unique_ptr<Command> make_calibrate();
std::unique_ptr<Command> make_catalog();
std::unique_ptr<Command> make_check();
std::unique_ptr<Command> make_compare();
std::unique_ptr<Command> make_completion();
std::unique_ptr<Command> make_elastic();
std::unique_ptr<Command> make_explain();
std::unique_ptr<Command> make_export();
std::unique_ptr<Command> make_import();
std::unique_ptr<Command> make_init();
std::unique_ptr<Command> make_plot();
std::unique_ptr<Command> make_replan();
std::unique_ptr<Command> make_replay();
std::unique_ptr<Command> make_report();
std::unique_ptr<Command> make_reshard();
std::unique_ptr<Command> make_schema();
std::unique_ptr<Command> make_search();
std::unique_ptr<Command> make_serve();
std::unique_ptr<Command> make_simulate();
std::unique_ptr<Command> make_study();
std::unique_ptr<Command> make_topology();
std::unique_ptr<Command> make_validate();
std::unique_ptr<Command> make_version();

/// "foreshard 1.0.0 (commit, build type, compiler)"
std::string version_line();

struct DeclaredCommand {
  CLI::App* app;
  std::unique_ptr<Command> command;
};

/// Options of the program itself, which stand before or after a command.
struct GlobalOptions {
  std::string configs{};  ///< Folder of the catalogue.
  std::string color{};    ///< "auto", "always" or "never".
};

/// Declares the program's options and all commands.
/// \param options  receives what the command line says of them when it is read.
std::vector<DeclaredCommand> declare_all(CLI::App& app, GlobalOptions& options);

/// The program: reads the command line, runs one command, and returns the exit code.
int run(int argc, char** argv);

/// Where the catalogue is, as arguments of study::find_catalogue().
struct CatalogueFolder {
  std::string given{};
  std::string_view by = "--configs";
  std::string last{};
};
/// Runs the command that `words` are, without the name of the program, and installs no signal
/// handlers. Output goes where cli/output.h says.
int run(const std::vector<std::string>& words, const CatalogueFolder& catalogue);

}  // namespace foreshard::cli
