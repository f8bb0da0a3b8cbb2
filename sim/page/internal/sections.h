/// \file
/// What a document says of each kind of result. A further kind is a function and a line of the
/// table.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "sim/page/internal/document.h"

namespace foreshard::page {

using Json = nlohmann::ordered_json;

struct Section {
  std::string_view schema;  ///< "foreshard.prediction/1"
  /// Faults of the result are thrown, as the JSON library does.
  void (*add)(Document& to, const Json& result);
};

/// In the order in which a page has them: verdicts, money, advice, the step, the fabric. A kind of
/// result may have several.
std::span<const Section> sections();

}  // namespace foreshard::page
