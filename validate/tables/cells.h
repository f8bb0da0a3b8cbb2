/// \file
/// The cells of one row by the names of their columns; the first fault is kept. Scoring counts a
/// row with a fault as one that cannot be predicted; fitting refuses its table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/result.h"

namespace foreshard::accuracy {

/// All columns that a kind of table must have.
/// \return kInvalidInput with those that are missing.
Status missing_columns(const CsvTable& table, std::string_view name,
                       const std::vector<std::string_view>& columns);

class Cells {
 public:
  Cells(const CsvTable& table, const CsvTable::Row& row, std::string_view name)
      : table_(&table), row_(&row), name_(name) {}

  /// "" where the table has no such column.
  const std::string& text(std::string_view column) const;
  /// Empty where the cell is. Positive.
  std::optional<std::int64_t> integer(std::string_view column);
  std::optional<double> number(std::string_view column);
  /// A fault where the cell is empty; then 0.
  double required(std::string_view column);
  std::int64_t required_integer(std::string_view column);
  /// The first one stays.
  void fault(std::string_view what);
  /// "line 3: column 'value' is empty"; empty without a fault.
  std::string fault_text() const;
  /// The same as "name:line: ...".
  Status error() const;
  /// The column `id`, else "table.csv:3".
  std::string id() const;

 private:
  const CsvTable* table_;
  const CsvTable::Row* row_;
  std::string_view name_;
  std::string fault_;
};

}  // namespace foreshard::accuracy
