/// \file
/// What a person meant by an option, a word or a file that stands where none such should.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::cli {

/// A key of a strategy, model or cluster that was given as an option, as `--set` takes it:
/// "--tp" and "8" -> "--set strategy.tensor_parallel=8". Knows the keys, with dashes for
/// underscores, and usual abbreviations.
/// \param value  the word after the option; empty, or the next option, where it is a flag.
std::optional<std::string> setting_meant(std::string_view option, std::string_view value);

/// An option that other programs have, as foreshard calls it: "-v" -> "--version", "--json" ->
/// "--format json".
std::optional<std::string> option_meant(std::string_view option);

/// The path of `--set` that was meant by one that no study has: "tensor_parallel" and "strategy.tp"
/// -> "strategy.tensor_parallel". Nothing if `path` may be right.
std::optional<std::string> path_meant(std::string_view path);

/// How many devices there are, given as an option ("--gpus", "64"): what to set instead.
std::optional<std::string> devices_meant(std::string_view option, std::string_view value);

/// The line to type where a file stands in place of a command: "foreshard simulate study.yaml".
std::optional<std::string> command_meant(const std::string& file);

/// The line to type where `command` has no place for `word`: of "catalog" and "H100" it is
/// "foreshard catalog show H100".
std::optional<std::string> argument_meant(std::string_view command, const std::string& word);

/// For the file or directory at `path`, given as a study, that is something else: an error that
/// says what it is and how to give it. Nothing if it may be a study, or cannot be read.
Status no_study(const std::string& path);

}  // namespace foreshard::cli
