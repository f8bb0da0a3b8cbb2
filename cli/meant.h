/// \file
/// What a person meant by an option that no command has.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace foreshard::cli {

/// A key of a strategy, model or cluster that was given as an option, as `--set` takes it:
/// "--tp" and "8" -> "--set strategy.tensor_parallel=8". Knows the keys, with dashes for
/// underscores, and usual abbreviations.
/// \param value  the word after the option; empty, or the next option, where it is a flag.
std::optional<std::string> setting_meant(std::string_view option, std::string_view value);

}  // namespace foreshard::cli
