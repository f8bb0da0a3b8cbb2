/// \file
/// `compare A B` of two results files of `foreshard study`: SQLite files written with --results, or
/// JSON written with --format json.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace foreshard::cli {

/// Whether a file is a results file of `foreshard study`, by its content; it may be damaged.
bool holds_sweep(const std::string& path);

struct SweepsGiven {
  std::string a;
  std::string b;
  std::vector<std::string> options;  ///< Names of the options that were given: "--set".
  std::string format;                ///< "text" or "json"
};

/// The comparison as text or JSON.
/// \pre holds_sweep(a) or holds_sweep(b).
/// \return kInvalidInput if the other file is something else or an option has no effect; errors of
///     sweep::compare and the readers of results files (kInvalidInput, kIo).
Result<std::string> compared_sweeps(const SweepsGiven& given);

}  // namespace foreshard::cli
