/// \file
/// CSV of results: columns are places in the JSON of a row.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/record/forward.h"

namespace foreshard::record {

struct Column {
  std::string name;              ///< In the header line.
  std::string place{};           ///< In the row's JSON: "step/devices"; empty: same as the name.
  std::string_view join = "; ";  ///< Between the texts of a list.
};

/// A header line, and a line per row. A place that a row does not have, and null, are empty fields.
/// Numbers have all their digits; whole ones no decimals.
std::string csv(const std::vector<Column>& columns, std::span<const Json> rows);

}  // namespace foreshard::record
