/// \file
/// `compare A B` of two results files of `foreshard study`: SQLite files that --results named, or
/// JSON that --format json wrote.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace foreshard::cli {

/// Whether a file is one of these by its content, be it sound or not.
bool holds_sweep(const std::string& path);

struct SweepsGiven {
  std::string a;
  std::string b;
  std::vector<std::string> options;  ///< That were given, by name: "--set"; others are arguments.
  std::string format;                ///< "text" or "json"
};

/// The comparison as text. \pre holds_sweep of one of them
/// \return kInvalidInput where the other one is something else, an option has no effect, or as
///     sweep::compare and the readers of results files; kIo as they.
Result<std::string> compared_sweeps(const SweepsGiven& given);

}  // namespace foreshard::cli
