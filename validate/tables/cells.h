/// \file
/// Reads the cells of one row of a table by the names of their columns, and keeps the first fault.
/// All readers of rows of measurements use it (training_row.cc, collective_rows.cc, kernel_rows.h).
/// Scoring counts a row with a fault as one that cannot be predicted; fitting refuses its table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/result.h"

namespace foreshard::accuracy {

/// Checks that a table has the columns that its kind must have.
/// \return kInvalidInput, with "name:1:", that lists the missing columns.
Status missing_columns(const CsvTable& table, std::string_view name,
                       const std::vector<std::string_view>& columns);

/// One row of a table.
class Cells {
 public:
  Cells(const CsvTable& table, const CsvTable::Row& row, std::string_view name)
      : table_(&table), row_(&row), name_(name) {}

  /// The text of a cell; "" if the table has no such column.
  const std::string& text(std::string_view column) const;
  /// A number above 0; nothing if the cell is empty. Any other text is a fault and gives nothing.
  std::optional<std::int64_t> integer(std::string_view column);
  std::optional<double> number(std::string_view column);
  /// A number above 0. An empty cell or any other text is a fault and gives 0.
  double required(std::string_view column);
  std::int64_t required_integer(std::string_view column);
  /// Records a fault of the row, unless it already has one.
  void fault(std::string_view what);
  /// The fault as "line 3: column 'value' is empty"; empty if there is none.
  std::string fault_text() const;
  /// The fault as kInvalidInput with "name:line: ..."; ok if there is none.
  Status error() const;
  /// The cell of column `id`; if it is empty, "table.csv:3" (file name and line).
  std::string id() const;

 private:
  const CsvTable* table_;
  const CsvTable::Row* row_;
  std::string_view name_;
  std::string fault_;
};

}  // namespace foreshard::accuracy
