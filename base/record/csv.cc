#include "base/record/csv.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/csv.h"

namespace foreshard::record {
namespace {

// \return null if the row has no such place.
Json value_at(const Json& row, std::string_view place) {
  const Json* value = &row;
  while (!place.empty()) {
    const auto slash = place.find('/');
    const std::string key(place.substr(0, slash));
    if (!value->is_object() || !value->contains(key)) return nullptr;
    value = &(*value)[key];
    place = slash == std::string_view::npos ? "" : place.substr(slash + 1);
  }
  return *value;
}

std::string text_of_cell(const Json& value, std::string_view join) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& one : value) {
    if (!text.empty()) text += join;
    text += text_of_cell(one, join);
  }
  return text;
}

}  // namespace

std::string csv(const std::vector<Column>& columns, std::span<const Json> rows) {
  std::string text;
  const auto end_cell = [&](std::size_t column) {
    text += column + 1 < columns.size() ? ',' : '\n';
  };
  for (std::size_t i = 0; i < columns.size(); ++i) {
    text += csv_field(columns[i].name);
    end_cell(i);
  }
  for (const Json& row : rows)
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Column& column = columns[i];
      const Json value = value_at(row, column.place.empty() ? column.name : column.place);
      text += csv_field(text_of_cell(value, column.join));
      end_cell(i);
    }
  return text;
}

}  // namespace foreshard::record
