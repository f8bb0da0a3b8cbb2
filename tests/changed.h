/// \file
/// Whether files have changed since the last commit that CI passed, for tests that take long and
/// depend on a part of the sources. FORESHARD_CHANGED names a list of the files that have; without
/// it any may have.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard {

/// Whether the path of a changed file begins with one of `beginnings`.
inline bool has_changed(const std::vector<std::string_view>& beginnings) {
  const char* const list = std::getenv("FORESHARD_CHANGED");
  std::ifstream lines(list == nullptr ? "" : list);
  if (!lines) return true;
  for (std::string file; std::getline(lines, file);)
    for (const std::string_view beginning : beginnings)
      if (file.starts_with(beginning)) return true;
  return false;
}

}  // namespace foreshard
