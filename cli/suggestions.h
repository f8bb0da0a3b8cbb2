/// \file
/// Guesses what a user meant by an option, a word or a file in the wrong place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::cli {

/// The `--set` option for a key of a strategy, model or cluster that was given as an option: "--tp"
/// and "8" -> "--set strategy.tensor_parallel=8". It knows the keys, with dashes for underscores,
/// and usual abbreviations.
/// \param value  the word after the option; empty, or the next option, if the option is a flag.
std::optional<std::string> suggest_setting(std::string_view option, std::string_view value);

/// The option of foreshard for an option of other programs: "-v" -> "--version", "--json" ->
/// "--format json".
std::optional<std::string> suggest_option(std::string_view option);

/// The path of `--set` that was meant by a path that no study has: "tensor_parallel" or
/// "strategy.tp" -> "strategy.tensor_parallel". Nothing if `path` may be right.
std::optional<std::string> suggest_path(std::string_view path);

/// What to set instead of an option that gives the number of devices ("--gpus", "64").
std::optional<std::string> suggest_devices(std::string_view option, std::string_view value);

/// The command line to type if a file was given in place of a command: "foreshard simulate
/// study.yaml".
std::optional<std::string> suggest_command(const std::string& file);

/// The command line to type if `command` does not accept `word`: "foreshard catalog show H100" for
/// "catalog" and "H100".
std::optional<std::string> suggest_argument(std::string_view command, const std::string& word);

/// Checks a file or directory that was given as a study.
/// \return if it is something else, an error that says what it is and how to give it; success if it
///     may be a study or cannot be read.
Status check_may_be_study(const std::string& path);

}  // namespace foreshard::cli
