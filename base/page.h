/// \file
/// Texts for people: a page of lines, headings, boxes and tables that keeps within its columns.
///
///     Page page({.width = 80});
///     TextTable table({"<step", ">time"});
///     table.row("all_gather over x", format(time));
///     page.table(table);
///
/// Lines are broken at spaces. In a table that is too wide, columns of words are wrapped; where
/// that is not enough, the last columns of each row stand on a line of their own, below the others.
/// Nothing is ever cut.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foreshard {

/// What a page is written on.
struct Paper {
  std::size_t width = 100;  ///< Columns of a terminal.
  bool colour = false;
};

enum class Tone : std::uint8_t { kPlain, kStrong, kFaint, kGood, kWarn, kBad, kBar };

/// Columns that a text takes on a terminal: wide characters take two, combining ones and changes of
/// colour none.
std::size_t columns(std::string_view text);

/// `text` broken at spaces into lines of at most `width` columns. Longer words are broken, too, if
/// possible behind a sign such as '/'.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// The part of a bar of `width` columns between `from` and `to` (fractions of the bar), with spaces
/// around it. A part that is not empty shows at least a sliver.
std::string stretch(double from, double to, std::size_t width);

/// The signs that pages draw (boxes, bars, marks) in ASCII, each as one column; other text stays.
std::string in_ascii(std::string_view text);

class TextTable {
 public:
  /// Each head begins with the side that its column is aligned to: '<' for words, which may be
  /// wrapped, and '>' for numbers, which never are.
  explicit TextTable(std::vector<std::string> heads) : heads_(std::move(heads)) {}

  /// Adds a row. A cell is a text or an integer; an end of line in it is kept.
  template <class... Cells>
  void row(const Cells&... cells) {
    add({text_of(cells)...});
  }
  /// Adds a row; cells that are missing at its end are empty.
  void add(std::vector<std::string> cells) { rows_.push_back({std::move(cells), {}}); }
  /// Adds text below the last row, across all columns.
  void note(std::string text) { rows_.back().notes.push_back(std::move(text)); }

  std::size_t size() const { return rows_.size(); }

 private:
  friend class Page;
  friend class TableLayout;

  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> notes;
  };

  static std::string text_of(std::string_view text) { return std::string(text); }
  static std::string text_of(std::integral auto number) { return std::to_string(number); }

  std::vector<std::string> heads_;
  std::vector<Row> rows_;
};

class Page {
 public:
  explicit Page(const Paper& paper) : paper_(paper) {}

  std::size_t width() const { return paper_.width; }

  /// Adds lines; each is wrapped, and its further lines are indented a little more if it is.
  void line(std::string_view text = {});
  /// Adds lines as line() does; each has its end. Empty: nothing.
  void add(std::string_view text);
  /// Adds lines that are never wrapped: what a reader copies.
  void verbatim(std::string_view text);
  void heading(std::string_view text, std::string_view remark = {});
  /// One entry of a box. Its text is wrapped; below `label`, as many columns as it takes stay
  /// empty.
  struct Entry {
    std::string label;
    std::string text;
  };
  void box(std::string_view title, const std::vector<Entry>& entries);
  /// Wrapped text that begins with `mark`; further lines are indented by its width.
  void remark(std::string_view mark, std::string_view text, Tone tone);
  /// A table with heads stands apart from lines above it. One without rows leaves no trace.
  void table(const TextTable& table);
  /// The first `most` rows, and how to see the others: "... and 12 more (--top)".
  void table(TextTable table, std::int64_t most, std::string_view where);
  /// "... and 12 more (--top)" for what a list leaves out, if it leaves out anything.
  void more(std::int64_t count, std::string_view where);

  std::string toned(std::string_view text, Tone tone) const;
  std::string take() && { return std::move(text_); }

 private:
  void put(std::string_view line);

  Paper paper_;
  std::string text_;
  bool is_below_line_ = false;  // which is neither empty nor a heading
};

}  // namespace foreshard
