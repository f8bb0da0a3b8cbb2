/// \file
/// CSV of results, for all commands that write tables: each column is a path into the JSON of a
/// row. It has no units of its own: numbers are written as the JSON has them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/record/forward.h"

namespace foreshard::record {

struct Column {
  std::string name;              ///< Name in the header line.
  std::string place{};           ///< Path in the row's JSON, e.g. "step/devices"; empty: `name`.
  std::string_view join = "; ";  ///< Text between the elements of a list.
};

/// A header line, and a line per row. A path that the row does not have, and null, give an empty
/// field; a list gives its elements, joined; an object its JSON. Numbers are written with all their
/// digits, whole ones without decimals. Fields with commas, quotes or line breaks are quoted.
/// Without rows there is the header line alone.
std::string csv(const std::vector<Column>& columns, std::span<const Json> rows);

}  // namespace foreshard::record
