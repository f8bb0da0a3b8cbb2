// Shell completion: the words that a shell offers after `foreshard`, from the declarations to the
// parser. Both shells get the same case statements; zsh also shows a description of each word.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
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

std::string script(const Shell& shell) {
  CLI::App app;
  std::string ignored;
  const auto declared = declare_all(app, ignored);
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

class Completion final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.required_argument("SHELL", shell_, "The shell: bash or zsh.");
    add_output(declaration, output_);
  }

  Result<ExitCode> run(const Environment&) override {
    for (const Shell& shell : {kBash, kZsh}) {
      if (shell_ != shell.name) continue;
      FORESHARD_TRY(write_result(output_, script(shell)));
      return kDone;
    }
    return fail(fmt::format("there is no completion for '{}'", shell_), "use 'bash' or 'zsh'");
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
