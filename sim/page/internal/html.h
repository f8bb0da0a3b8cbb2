/// \file
/// HTML, written piece by piece: whatever comes from outside is escaped here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foreshard::page {

/// A cell of a table: text, or a number in words (to the right).
struct Cell {
  std::string text;
  bool number = false;
};

class Html {
 public:
  /// A chapter of the page, with its heading.
  void heading(std::string_view text);
  void paragraph(std::string_view text, std::string_view style = {});
  /// A paragraph that begins with strong words.
  void verdict(std::string_view strong, std::string_view rest);
  /// SVG pictures beside each other, each with its marks in a table that opens.
  void charts(const std::vector<std::string>& svgs);
  /// A table. Beyond the first `most` rows it says how many are left out.
  void table(const std::vector<Cell>& header, const std::vector<std::vector<Cell>>& rows,
             std::size_t most = 100);
  void list(const std::vector<std::string>& items);
  /// HTML that is known to be safe.
  void raw(std::string_view html) { text_ += html; }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace foreshard::page
