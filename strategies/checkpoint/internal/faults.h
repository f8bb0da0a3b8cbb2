/// \file
/// Errors that say what is wrong with a checkpoint.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace foreshard::checkpoint {

inline Error fault(std::string why) {
  return {Error::Code::kInvalidInput, std::move(why)};
}
inline Error fault(const std::filesystem::path& path, const std::string& why) {
  return fault(path.string() + ": " + why);
}

}  // namespace foreshard::checkpoint
