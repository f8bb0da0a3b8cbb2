// Shell completion: the words that a shell offers after `foreshard`, from the declarations to the
// parser. Bash and zsh get the same case statements; zsh also shows a description of each word.
// Fish gets a line for each word, with the command that it belongs to.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

struct Word {
  std::string text;
  std::string doc;
};

// The parts of a script that differ between shells.
struct Shell {
  std::string_view name;
  std::string_view begin;  // Sets `current`, `previous`; begins the loop over the words before.
  std::string_view file;   // Completes a file name, and ends.
  std::string_view end;    // Offers `found` that begins with `current`.
  bool with_doc;           // Whether a word is "text:doc".
};

constexpr Shell kBash{"bash",
                      R"(_foreshard() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' word
  local -a found=()
  if [[ $current == = ]]; then  # --option=
    current=''
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
)",
                      "return",
                      R"(  local IFS=$'\n'
  COMPREPLY=($(compgen -W "${found[*]}" -- "$current"))
}
complete -o bashdefault -o default -F _foreshard foreshard
)",
                      false};

constexpr Shell kZsh{"zsh",
                     R"(local current=${words[CURRENT]} previous=${words[CURRENT-1]} command='' word
local -a found=()
if [[ $current == --*=* ]]; then
  previous=${current%%=*} current=${current#*=}
  compset -P 1 '*='
fi
for word in "${(@)words[2,CURRENT-1]}"; do
)",
                     "_files; return",
                     R"(if (( ! $#found )); then
  _files
elif [[ $current == -* ]]; then
  _describe -o option found
else
  _describe word found
fi
)",
                     true};

// Path of a command: "/topology/show"; empty for the program itself.
std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? "" : path_of(*app.get_parent()) + "/" + app.get_name();
}

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

// The command and all commands below it; each command comes before its subcommands.
std::vector<CLI::App*> all_commands(CLI::App& app) {
  std::vector<CLI::App*> all{&app};
  for (CLI::App* command : commands_of(app)) {
    const auto below = all_commands(*command);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

// The options of a command and of the commands above it, which it accepts, too.
std::vector<CLI::Option*> options_of(CLI::App& app) {
  std::vector<CLI::Option*> options;
  for (CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (CLI::Option* option : at->get_options()) {
      const bool known = std::ranges::any_of(
          options, [&](CLI::Option* one) { return one->get_name() == option->get_name(); });
      if (!known && !option->get_positional() && (at == &app || option->get_items_expected() > 0))
        options.push_back(option);
    }
  }
  return options;
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  return flags;
}

// The word in single quotes, escaped for the shell.
std::string quoted(const Word& word, const Shell& shell) {
  std::string text = word.text;
  if (shell.with_doc && !word.doc.empty()) {
    text += ':';
    for (const char c : word.doc) text += c == ':' ? std::string("\\:") : std::string(1, c);
  }
  std::string safe;
  for (const char c : text) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + safe + "'";
}

// One branch of a case statement, which offers `words` where the line matches `pattern`.
std::string branch(const std::string& pattern, const std::vector<Word>& words, const Shell& shell) {
  std::vector<std::string> list;
  list.reserve(words.size());
  for (const Word& word : words) list.push_back(quoted(word, shell));
  return fmt::format("    {}) found=({}) ;;\n", pattern, join(list, " "));
}

// Branches for the value of an option: its words, or a file name.
std::string values(CLI::App& app, const Shell& shell) {
  std::string text;
  std::vector<std::string> of_files;
  for (CLI::Option* option : options_of(app)) {
    if (option->get_items_expected() == 0) continue;
    std::vector<std::string> patterns;
    for (const std::string& flag : flags_of(*option)) patterns.push_back(path_of(app) + ":" + flag);
    std::vector<Word> words;
    for (const std::string& word : words_of(*option)) words.push_back({word, ""});
    if (words.empty())
      of_files.insert(of_files.end(), patterns.begin(), patterns.end());
    else
      text += branch(join(patterns, " | "), words, shell);
  }
  return text + fmt::format("    {}) {} ;;\n", join(of_files, " | "), shell.file);
}

// Branches elsewhere: the options if a dash is typed, else the commands.
std::string names(CLI::App& app, const Shell& shell) {
  std::vector<Word> options;
  for (const CLI::Option* option : options_of(app))
    for (const std::string& flag : flags_of(*option))
      options.push_back({flag, option->get_description()});
  std::vector<Word> below;
  for (const CLI::App* command : commands_of(app))
    below.push_back({command->get_name(), command->get_description()});
  std::string text = branch(path_of(app) + ":-*", options, shell);
  if (!below.empty()) text += branch(path_of(app) + ":*", below, shell);
  return text;
}

// The script of a shell with case statements.
std::string cases(CLI::App& app, const Shell& shell) {
  std::vector<std::string> paths;
  std::string all_values;
  std::string all_names;
  for (CLI::App* command : all_commands(app)) {
    if (command != &app) paths.push_back(path_of(*command));
    all_values += values(*command, shell);
    all_names += names(*command, shell);
  }
  return fmt::format(
      "{}# Completion of foreshard for {}, written by `foreshard completion {}`.\n{}"
      "    case \"$command/$word\" in\n    {}) command+=/$word ;;\n    esac\n  done\n"
      "  case \"$command:$previous\" in\n{}    *)\n"
      "  case \"$command:$current\" in\n{}  esac ;;\n  esac\n{}",
      shell.with_doc ? "#compdef foreshard\n" : "", shell.name, shell.name, shell.begin,
      join(paths, " | "), all_values, all_names, shell.end);
}

// The word in single quotes, escaped for fish.
std::string fish_quoted(std::string_view word) {
  std::string safe;
  for (const char c : word) {
    if (c == '\'' || c == '\\') safe += '\\';
    safe += c;
  }
  return "'" + safe + "'";
}

// The beginning of a line of fish that holds where `app` is the command.
std::string fish_line(const CLI::App& app) {
  return fmt::format("complete -c foreshard -n \"__foreshard_at '{}'\"", path_of(app));
}

std::string fish_option(const CLI::App& app, CLI::Option& option) {
  std::string line = fish_line(app);
  for (const std::string& name : option.get_lnames()) line += " -l " + name;
  for (const std::string& name : option.get_snames()) line += " -s " + name;
  const auto words = words_of(option);
  if (!words.empty())
    line += " -x -a " + fish_quoted(join(words, " "));
  else if (option.get_items_expected() > 0)
    line += " -r -F";
  return line + " -d " + fish_quoted(option.get_description()) + "\n";
}

std::string fish(CLI::App& app) {
  std::vector<std::string> paths;
  std::string lines;
  for (CLI::App* command : all_commands(app)) {
    if (command != &app) paths.push_back(path_of(*command));
    for (CLI::Option* option : options_of(*command)) lines += fish_option(*command, *option);
    for (const CLI::App* below : commands_of(*command))
      lines += fmt::format("{} -f -a {} -d {}\n", fish_line(*command), below->get_name(),
                           fish_quoted(below->get_description()));
  }
  return fmt::format(R"(# Completion of foreshard for fish, written by `foreshard completion fish`.
function __foreshard_at
    set -l command ''
    for word in (commandline -opc)[2..-1]
        switch "$command/$word"
            case {}
                set command "$command/$word"
        end
    end
    test "$command" = "$argv[1]"
end
{})",
                     join(paths, " "), lines);
}

struct Script {
  std::string_view shell;
  std::string (*written)(CLI::App& app);
};

constexpr std::array<Script, 3> kScripts{{{"bash", [](CLI::App& app) { return cases(app, kBash); }},
                                          {"zsh", [](CLI::App& app) { return cases(app, kZsh); }},
                                          {"fish", fish}}};

class Completion final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.required_argument("SHELL", shell_, "The shell: bash, zsh or fish.");
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment&) override {
    std::vector<std::string> names;
    for (const Script& one : kScripts) {
      names.emplace_back(one.shell);
      if (shell_ != one.shell) continue;
      CLI::App app;
      GlobalOptions ignored;
      const auto declared = declare_all(app, ignored);
      FORESHARD_TRY(write_result(output_, one.written(app)));
      return kDone;
    }
    return fail(fmt::format("there is no completion for '{}'", shell_),
                "use " + quoted_choice(names));
  }

 private:
  std::string shell_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_completion() {
  return std::make_unique<Completion>();
}

}  // namespace foreshard::cli
