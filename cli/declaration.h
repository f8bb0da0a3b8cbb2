/// \file
/// What a command takes from the command line, without showing the parser (CLI11) behind it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace foreshard::cli {

/// Adds to one command. The variables must outlive the reading of the command line; their values
/// are the defaults.
class Declaration {
 public:
  explicit Declaration(CLI::App& app) : app_(&app) {}

  /// Words without a dash, in the order of declaration. `type` stands for one in the help.
  void argument(const std::string& type, std::string& value, const std::string& doc);
  void required_argument(const std::string& type, std::string& value, const std::string& doc);
  /// At least one.
  void arguments(const std::string& type, std::vector<std::string>& values, const std::string& doc);
  /// Any number, also none.
  void arguments_if_any(const std::string& type, std::vector<std::string>& values,
                        const std::string& doc);

  /// `flags` is "--name" or "-n,--name".
  void option(const std::string& flags, const std::string& type, std::string& value,
              const std::string& doc);
  /// May be given several times.
  void repeatable(const std::string& flags, const std::string& type,
                  std::vector<std::string>& values, const std::string& doc);
  /// Likewise, and with several values at a time: all that follow up to the next option.
  void list(const std::string& flags, const std::string& type, std::vector<std::string>& values,
            const std::string& doc);
  /// One of `words`; the first is the default. For a mistyped word the message suggests the nearest
  /// one.
  void choice(const std::string& flags, std::string& value, std::vector<std::string> words,
              const std::string& doc);
  /// A whole number from `lowest` on. The value of `value` is the default, unless it is less.
  void count(const std::string& flags, std::int64_t& value, std::int64_t lowest,
             const std::string& doc);
  void flag(const std::string& flags, bool& value, const std::string& doc);

  /// The options that the command line gave, once it is read: "--name", in the order declared.
  std::vector<std::string> given() const;

  /// A command of this command; `chosen` becomes true if it is given.
  Declaration subcommand(const std::string& name, bool& chosen, const std::string& doc,
                         std::string_view example);
  /// One of the subcommands must be given.
  void require_subcommand();

 private:
  CLI::App* app_;
};

/// The words that a `choice` is one of; none if `option` is none.
std::vector<std::string> words_of(CLI::Option& option);

/// The end of a command's help.
std::string example_footer(std::string_view lines);

}  // namespace foreshard::cli
