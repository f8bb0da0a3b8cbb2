/// \file
/// Documents, written piece by piece: as HTML for a page, as Markdown for an issue or a wiki.
/// Whatever comes from outside is escaped here.
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
using Row = std::vector<Cell>;

class Document {
 public:
  Document() = default;
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  virtual ~Document() = default;

  /// A chapter, with its heading.
  virtual void heading(std::string_view text) = 0;
  virtual void paragraph(std::string_view text) = 0;
  /// A paragraph of less weight.
  virtual void note(std::string_view text) = 0;
  /// A paragraph that nobody should miss.
  virtual void warning(std::string_view text) = 0;
  /// A paragraph that begins with strong words.
  virtual void verdict(std::string_view strong, std::string_view rest) = 0;
  /// SVG pictures, each with its marks in a list that opens.
  virtual void charts(const std::vector<std::string>& svgs) = 0;
  /// A table. Beyond the first `most` rows it says how many are left out.
  virtual void table(const Row& header, const std::vector<Row>& rows, std::size_t most = 100) = 0;
  virtual void list(const std::vector<std::string>& items) = 0;
  /// The time line of a bundle, as data for the script of a page. \return false if the document has
  /// one already.
  virtual bool time_line(std::string_view json) = 0;
  /// Says why there is no time line, where a reader would look for one.
  virtual void without_time_line(std::string_view why) = 0;

  const std::string& text() const { return text_; }

 protected:
  std::string text_;
};

class Html : public Document {
 public:
  void heading(std::string_view text) override;
  void paragraph(std::string_view text) override;
  void note(std::string_view text) override;
  void warning(std::string_view text) override;
  void verdict(std::string_view strong, std::string_view rest) override;
  void charts(const std::vector<std::string>& svgs) override;
  void table(const Row& header, const std::vector<Row>& rows, std::size_t most = 100) override;
  void list(const std::vector<std::string>& items) override;
  bool time_line(std::string_view json) override;
  void without_time_line(std::string_view why) override { note(why); }

  bool is_scripted() const { return scripted_; }

 private:
  bool scripted_ = false;
};

/// Markdown as GitHub and GitLab show it. Pictures are told by their numbers, in lists that open;
/// there is no time line.
class Markdown final : public Document {
 public:
  void heading(std::string_view text) override;
  void paragraph(std::string_view text) override;
  void note(std::string_view text) override;
  void warning(std::string_view text) override;
  void verdict(std::string_view strong, std::string_view rest) override;
  void charts(const std::vector<std::string>& svgs) override;
  void table(const Row& header, const std::vector<Row>& rows, std::size_t most = 100) override;
  void list(const std::vector<std::string>& items) override;
  bool time_line(std::string_view json) override;
  void without_time_line(std::string_view why) override;
};

/// A mark of a picture in words, and the picture's title: as the SVG has them, escaped for XML.
struct ToldPicture {
  std::string_view title;
  std::vector<std::string_view> marks;
};
/// \param svg  what sim/picture drew; the views are into it.
ToldPicture told(std::string_view svg);

}  // namespace foreshard::page
