/// \file
/// A page of text in 80 columns: a box, headings, bars and wrapped lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foreshard::report {

inline constexpr std::size_t kPageWidth = 80;

enum class Tone { kPlain, kStrong, kFaint, kGood, kWarn, kBad, kBar };

class Page {
 public:
  explicit Page(bool colour) : colour_(colour) {}

  void line(std::string_view text = {});
  void heading(std::string_view text, std::string_view remark = {});
  /// A frame around lines; each is wrapped, with the columns of `label` left free below it.
  struct Entry {
    std::string label;
    std::string text;
  };
  void box(std::string_view title, const std::vector<Entry>& entries);
  /// Lines that begin with `mark` and are indented below it.
  void remark(std::string_view mark, std::string_view text, Tone tone);

  std::string toned(std::string_view text, Tone tone) const;
  std::string take() && { return std::move(text_); }

 private:
  bool colour_;
  std::string text_;
};

/// `text` broken at spaces into lines of at most `width` columns; longer words are left whole.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// The stretch from `from` to `to` (ratios of the whole) of a bar of `width` columns, with spaces
/// before it. What is not empty shows at least a sliver.
std::string stretch(double from, double to, std::size_t width);

}  // namespace foreshard::report
