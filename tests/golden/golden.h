/// \file
/// Golden texts: what a program printed once and a person accepted. FORESHARD_UPDATE_GOLDENS=1 in
/// the environment accepts what it prints now.
#pragma once

#include "tests/test.h"

namespace foreshard {

/// Compares `actual` with tests/golden/<name>.
inline void expect_golden(const std::string& name, const std::string& actual) {
  const auto path = std::filesystem::path(FORESHARD_SOURCE_DIR) / "tests" / "golden" / name;
  if (std::getenv("FORESHARD_UPDATE_GOLDENS") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(actual, expected.str())
      << path << ": run again with FORESHARD_UPDATE_GOLDENS=1 to accept this";
}

}  // namespace foreshard
