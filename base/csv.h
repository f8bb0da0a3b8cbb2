/// \file
/// CSV with a header line, as RFC 4180 defines it: fields separated by commas; a field in double
/// quotes may hold commas, line breaks and doubled quotes; lines end in LF or CRLF.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foreshard {

struct CsvTable {
  struct Row {
    std::size_t line = 0;             ///< Line where the row begins; the header is line 1.
    std::vector<std::string> fields;  ///< One per column of the header.
  };
  std::vector<std::string> header;
  std::vector<Row> rows;

  /// The index of a column, if the table has it.
  std::optional<std::size_t> column(std::string_view name) const;
};

/// Reads `text`; a byte-order mark and empty lines are skipped. `name` stands for the file in
/// messages.
/// \return kInvalidInput with "name:line:" where the text is empty, a row has another number of
///     fields than the header, a column name repeats or is empty, or quotes are unbalanced or
///     followed by text.
Result<CsvTable> read_csv(std::string_view text, std::string_view name);

/// The field as CSV text, in quotes where the RFC requires them.
std::string csv_field(std::string_view text);

}  // namespace foreshard
