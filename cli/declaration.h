/// \file
/// Declares the arguments and options of a command, hiding the parser (CLI11).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace foreshard::cli {

/// Adds arguments and options to one command. The variables must outlive the reading of the command
/// line; their values are the defaults.
class Declaration {
 public:
  explicit Declaration(CLI::App& app) : app_(&app) {}

  /// Positional arguments, in the order of declaration. `type` is the placeholder in the help.
  void argument(const std::string& type, std::string& value, const std::string& doc);
  void required_argument(const std::string& type, std::string& value, const std::string& doc);
  /// One or more arguments.
  void arguments(const std::string& type, std::vector<std::string>& values, const std::string& doc);
  /// Any number of arguments, including none.
  void arguments_if_any(const std::string& type, std::vector<std::string>& values,
                        const std::string& doc);

  /// An option with a value. `flags` is "--name" or "-n,--name".
  void option(const std::string& flags, const std::string& type, std::string& value,
              const std::string& doc);
  /// An option that may be given several times.
  void repeatable(const std::string& flags, const std::string& type,
                  std::vector<std::string>& values, const std::string& doc);
  /// An option that may be given several times, each time with several values: all words up to the
  /// next option.
  void list(const std::string& flags, const std::string& type, std::vector<std::string>& values,
            const std::string& doc);
  /// An option whose value is one of `words`; the first is the default. If a word is mistyped, the
  /// message suggests the nearest one.
  void choice(const std::string& flags, std::string& value, std::vector<std::string> words,
              const std::string& doc);
  /// An option whose value is a whole number, at least `lowest`. `value` is the default, unless it
  /// is less.
  void count(const std::string& flags, std::int64_t& value, std::int64_t lowest,
             const std::string& doc);
  void flag(const std::string& flags, bool& value, const std::string& doc);

  /// The options that were given on the command line, after it was read: "--name", in the order of
  /// declaration.
  std::vector<std::string> given() const;

  /// Adds a subcommand; `chosen` becomes true if it is given.
  Declaration subcommand(const std::string& name, bool& chosen, const std::string& doc,
                         std::string_view example);
  /// Makes a subcommand mandatory.
  void require_subcommand();

 private:
  CLI::App* app_;
};

/// The allowed words of a `choice`; empty if `option` is not a choice.
std::vector<std::string> words_of(CLI::Option& option);

/// The end of a command's help.
std::string example_footer(std::string_view lines);

/// "12%" or "12" -> 12.
/// \return kInvalidInput for any other text, or a negative number.
Result<double> percentage(std::string text);

/// "60s", "10 min".
/// \return kInvalidInput, with what to write instead, for a number without a unit, for any other
///     text, and for a time that is not positive.
Result<Seconds> parse_time_limit(const std::string& text);

}  // namespace foreshard::cli
