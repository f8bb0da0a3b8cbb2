/// \file
/// Whether files have changed since the last commit that CI passed, for tests that take long and
/// depend on a part of the sources. FORESHARD_CHANGED names a list of the files that have; without
/// it any may have.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
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

/// How many of a test's many cases have to run.
enum class Cases : std::uint8_t { kNone, kSample, kAll };
/// \param own   files that the cases are made of: where one has changed, all cases run.
/// \param code  what the cases go through: where some of that alone has changed, a sample does.
inline Cases cases_to_run(const std::vector<std::string_view>& own,
                          const std::vector<std::string_view>& code) {
  if (has_changed(own)) return Cases::kAll;
  return has_changed(code) ? Cases::kSample : Cases::kNone;
}
/// Whether a case is one of the sample: every fifth, another one where other files have changed.
inline bool is_in_sample(const std::string& name) {
  const char* const list = std::getenv("FORESHARD_CHANGED");
  std::ifstream lines(list == nullptr ? "" : list);
  const std::string changed{std::istreambuf_iterator<char>(lines), {}};
  return std::hash<std::string>()(name + changed) % 5 == 0;
}

}  // namespace foreshard
