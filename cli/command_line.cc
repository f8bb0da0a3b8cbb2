#include "cli/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <utility>

#include "cli/commands.h"
#include "cli/declaration.h"

namespace foreshard::cli {

std::vector<Declared> declare_all(CLI::App& app, std::string& configs) {
  app.name("foreshard");
  app.description(
      "foreshard forecasts the time and memory of sharding strategies on GPU clusters.");
  app.require_subcommand(1);
  app.footer("\n`foreshard help COMMAND` explains a command." +
             example_footer("foreshard simulate configs/studies/gpt3-175b-a100-1024.yaml"));
  app.add_option("--configs", configs, "Folder of the catalogue.")->type_name("DIR");
  app.set_version_flag("--version", version_line(), "Print the version and exit.");
  std::vector<Declared> declared;
  for (const CommandInfo& info : commands()) {
    CLI::App* sub = app.add_subcommand(std::string(info.name), std::string(info.summary));
    sub->footer(example_footer(info.example));
    sub->fallthrough();
    auto command = info.make();
    Declaration declaration(*sub);
    command->declare(declaration);
    declared.push_back({sub, std::move(command)});
  }
  return declared;
}

}  // namespace foreshard::cli
