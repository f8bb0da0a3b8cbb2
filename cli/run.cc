#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/suggestions.h"

#include "sim/study/catalogue.h"

namespace foreshard::cli {
namespace {

// A failed check has printed its line. The program ends with kInternalError instead of a signal.
void on_abort(int) {
  _exit(kInternalError);
}

void on_interrupt(int) {
  constexpr std::string_view kMessage = "\ninterrupted\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(kInterrupted);
}

// The innermost subcommand that was named.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* last = &app;
  while (!last->get_subcommands().empty()) last = last->get_subcommands().front();
  return *last;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    for (const std::string& name : option->get_snames()) flags.push_back("-" + name);
  }
  return flags;
}

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::string help_line(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent != nullptr; parent = parent->get_parent())
    name.insert(0, parent->get_name() + " ");
  return name + " --help";
}

// The first line of the example at the end of a command's help.
std::string first_example(const CLI::App& app) {
  const std::string footer = app.get_footer();
  const auto begin = footer.find("\n  ") + 3;
  const std::string line = footer.substr(begin, footer.find('\n', begin) - begin);
  return line.ends_with('\\') ? line.substr(0, line.size() - 1) + "..." : line;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The word that follows `argument` on the command line.
std::string word_after(const std::vector<std::string>& words, const std::string& argument) {
  const auto place = std::ranges::find(words, argument);
  return place == words.end() || place + 1 == words.end() ? "" : *(place + 1);
}

// Reports an argument that is not accepted: a wrong flag, a wrong command or one word too many.
ExitCode unexpected(const CLI::App& app, const std::string& argument,
                    const std::vector<std::string>& words) {
  if (argument.starts_with("-")) {
    std::vector<std::string> flags = flags_of(app);
    if (const auto usual = suggest_option(argument);
        usual && has(flags, usual->substr(0, usual->find(' '))))
      return fail(fmt::format("unknown option '{}'", argument),
                  fmt::format("did you mean '{}'?", *usual));
    if (has(flags, "--set") && has(flags, "--strategy")) {
      if (const auto setting = suggest_setting(argument, word_after(words, argument)))
        return fail(fmt::format("unknown option '{}'", argument),
                    fmt::format("did you mean '{}'?", *setting));
      if (const auto hint = suggest_devices(argument, word_after(words, argument)))
        return fail(fmt::format("unknown option '{}'", argument), *hint);
    }
    if (app.get_parent() != nullptr) {
      const auto outer = flags_of(*app.get_parent());
      flags.insert(flags.end(), outer.begin(), outer.end());
    }
    const auto near = nearest_name(argument.substr(0, argument.find('=')), flags);
    return fail(fmt::format("unknown option '{}'", argument),
                near ? fmt::format("did you mean '{}'?", *near) : "see " + help_line(app));
  }
  const auto names = subcommands_of(app);
  const auto near = nearest_name(argument, names);
  const auto meant = near                          ? near
                     : app.get_parent() == nullptr ? suggest_command(argument)
                                                   : suggest_argument(app.get_name(), argument);
  const std::string hint = meant           ? fmt::format("did you mean '{}'?", *meant)
                           : names.empty() ? "see " + help_line(app)
                                           : "use " + quoted_choice(names);
  return fail(
      fmt::format("{} '{}'", names.empty() ? "unexpected argument" : "unknown command", argument),
      hint);
}

// The word of the command line in the place of a command, if it is not a command.
std::optional<std::string> wrong_command(const CLI::App& app,
                                         const std::vector<std::string>& words) {
  const auto names = subcommands_of(app);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--configs" || words[i] == "--color") {
      ++i;
    } else if (!words[i].starts_with("-")) {
      return has(names, words[i]) ? std::nullopt : std::optional(words[i]);
    }
  }
  return std::nullopt;
}

// "help COMMAND" as "COMMAND --help".
std::vector<std::string> with_help_last(std::vector<std::string> words) {
  if (words.empty() || words.front() != "help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

Result<ExitCode> run_command(const std::vector<DeclaredCommand>& declared,
                             const CatalogueFolder& folder) {
  FORESHARD_ASSIGN(auto catalogue, study::find_catalogue(folder.given, folder.by, folder.last));
  for (const DeclaredCommand& one : declared)
    if (one.app->parsed()) {
      protect_inputs(outputs_of(*one.app));
      return one.command->run({.catalogue = std::move(catalogue)});
    }
  return kInternalError;
}

}  // namespace

int run(int argc, char** argv) {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGABRT, on_abort);
  return run(std::vector<std::string>(argv + std::min(argc, 1), argv + argc),
             {.last = FORESHARD_SOURCE_CONFIGS});
}

int run(const std::vector<std::string>& given, const CatalogueFolder& catalogue) {
  const std::vector<std::string> words = with_help_last(given);
  CLI::App app;
  GlobalOptions options;
  const auto declared = declare_all(app, options);

  if (const Status fault = limits::fault_in_factor(); !fault.ok()) return fail(fault.error());
  if (const auto word = wrong_command(app, words)) return unexpected(app, *word, words);
  try {
    app.parse(std::vector<std::string>(
        words.rbegin(), words.rend()));  // the parser takes the words in reverse order
  } catch (const CLI::Success& success) {
    std::ostringstream help;
    const int code = app.exit(success, help, help);
    const Status written = write_result({}, help_for_terminal(help.str()));
    return written.ok() ? code : fail(written.error());
  } catch (const CLI::ParseError& error) {
    const CLI::App& command = innermost(app);
    const auto extras = app.remaining(true);
    // A misspelt subcommand is reported as unknown, not as missing.
    const bool incomplete = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
                            !subcommands_of(command).empty();
    if (!extras.empty() && (incomplete || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr))
      return unexpected(command, extras.front(), words);
    if (incomplete)
      return fail("a command is missing", "use " + quoted_choice(subcommands_of(command)));
    return fail(error.what(),
                "for example: " + first_example(command) + "; see " + help_line(command));
  }
  set_colours(options.color);
  try {
    const Result<ExitCode> code = run_command(
        declared, options.configs.empty() ? catalogue : CatalogueFolder{.given = options.configs});
    return code ? *code : fail(code.error());
  } catch (const std::exception& error) {
    if (!missing_resource(std::current_exception()).empty()) throw;
    return fail_internally(error.what());
  }
}

}  // namespace foreshard::cli
