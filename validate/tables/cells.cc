#include "validate/tables/cells.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include "base/text.h"

namespace foreshard::accuracy {
namespace {

// Rows of kernels count elements; the sizes of models and strategies have limits of their own.
constexpr std::int64_t kMost = std::int64_t{1} << 40;

template <class Number>
std::optional<Number> parsed(const std::string& text) {
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Status missing_columns(const CsvTable& table, std::string_view name,
                       const std::vector<std::string_view>& columns) {
  std::vector<std::string> missing;
  for (const std::string_view column : columns)
    if (!table.column(column)) missing.emplace_back(column);
  if (missing.empty()) return {};
  return Error{Error::Code::kInvalidInput,
               fmt::format("{}:1: the header lacks {}", name, quoted_choice(missing))};
}

const std::string& Cells::text(std::string_view column) const {
  static const std::string none;
  const auto index = table_->column(column);
  return index ? row_->fields[*index] : none;
}

std::optional<std::int64_t> Cells::integer(std::string_view column) {
  const std::string& cell = text(column);
  if (cell.empty()) return std::nullopt;
  const auto value = parsed<std::int64_t>(cell);
  if (value && *value > 0 && *value <= kMost) return value;
  fault(fmt::format("'{}' in column '{}' is {}", cell, column,
                    value && *value > 0 ? "above 2^40" : "not a whole number above 0"));
  return std::nullopt;
}

std::optional<double> Cells::number(std::string_view column) {
  const std::string& cell = text(column);
  if (cell.empty()) return std::nullopt;
  const auto value = parsed<double>(cell);
  if (value && std::isfinite(*value) && *value > 0) return value;
  fault(fmt::format("'{}' in column '{}' is not a number above 0", cell, column));
  return std::nullopt;
}

double Cells::required(std::string_view column) {
  if (text(column).empty()) fault(fmt::format("column '{}' is empty", column));
  return number(column).value_or(0);
}

std::int64_t Cells::required_integer(std::string_view column) {
  if (text(column).empty()) fault(fmt::format("column '{}' is empty", column));
  return integer(column).value_or(0);
}

void Cells::fault(std::string_view what) {
  if (fault_.empty()) fault_ = what;
}

std::string Cells::fault_text() const {
  return fault_.empty() ? "" : fmt::format("line {}: {}", row_->line, fault_);
}

Status Cells::error() const {
  if (fault_.empty()) return {};
  return Error{Error::Code::kInvalidInput, fmt::format("{}:{}: {}", name_, row_->line, fault_)};
}

std::string Cells::id() const {
  const std::string& id = text("id");
  return id.empty() ? fmt::format("{}:{}", name_.substr(name_.rfind('/') + 1), row_->line) : id;
}

}  // namespace foreshard::accuracy
