/// \file
/// The files of cli/results/, within the program.
#pragma once

#include <span>
#include <string_view>

namespace foreshard::cli {

struct ResultForm {
  std::string_view name;  ///< "prediction".
  std::string_view text;  ///< JSON, as results.h describes it.
};

/// Sorted by name. Its source is made by cli/CMakeLists.txt.
std::span<const ResultForm> result_forms();

}  // namespace foreshard::cli
