#include "base/csv.h"

#include <algorithm>
#include <set>
#include <variant>

#include "base/limits.h"

namespace foreshard {
namespace {

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  bool done() const { return at_ >= text_.size(); }

  Error fault(std::size_t line, const std::string& what) const {
    return Error{Error::Code::kInvalidInput,
                 std::string(name_) + ":" + std::to_string(line) + ": " + what};
  }

  Result<CsvTable::Row> row() {
    CsvTable::Row row{.line = line_, .fields = {}};
    for (;;) {
      FORESHARD_ASSIGN(auto field, at('"') ? quoted() : Result<std::string>(plain()));
      row.fields.push_back(std::move(field));
      if (++fields_ > most_fields_)
        return fault(line_,
                     "more than " + std::to_string(most_fields_) + " fields; " + limits::kRemedy);
      if (at(',')) {
        ++at_;
        continue;
      }
      if (end_of_line()) return row;
      return fault(line_, "text after a closing quote in field " +
                              std::to_string(row.fields.size()) +
                              "; expected ',' or the line's end");
    }
  }

 private:
  bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }

  bool end_of_line() {
    if (done()) return true;
    if (at('\r') && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    if (!at('\n')) return false;
    ++at_;
    ++line_;
    return true;
  }

  std::string plain() {
    const std::size_t first = at_;
    while (!done() && !at(',') && !at('\n')) ++at_;
    std::size_t last = at_;
    if (last > first && at('\n') && text_[last - 1] == '\r') at_ = --last;
    return std::string(text_.substr(first, last - first));
  }

  Result<std::string> quoted() {
    const std::size_t opened = line_;
    std::string field;
    for (++at_; !done(); ++at_) {
      if (at('"')) {
        ++at_;
        if (!at('"')) return field;
      }
      if (at('\n')) ++line_;
      field += text_[at_];
    }
    return fault(opened, "a quoted field is not closed");
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t fields_ = 0;
  std::size_t most_fields_ = limits::raised(limits::kCsvFields);
};

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

Result<CsvTable> read_csv(std::string_view text, std::string_view name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());

  Reader reader(text, name);
  CsvTable table;
  while (!reader.done()) {
    FORESHARD_ASSIGN(auto row, reader.row());
    if (row.fields.size() == 1 && row.fields[0].empty()) continue;
    if (table.header.empty()) {
      std::set<std::string> seen;
      for (const std::string& column : row.fields) {
        if (column.empty()) return reader.fault(row.line, "a column has no name");
        if (!seen.insert(column).second)
          return reader.fault(row.line, "column '" + column + "' appears twice");
      }
      table.header = row.fields;
      continue;
    }
    if (row.fields.size() != table.header.size())
      return reader.fault(row.line, "has " + std::to_string(row.fields.size()) +
                                        " fields, but the header has " +
                                        std::to_string(table.header.size()));
    table.rows.push_back(std::move(row));
  }
  if (table.header.empty()) return reader.fault(1, "the table is empty: it needs a header line");
  return table;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace foreshard
