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
  /// One entry of a box. Its text is wrapped; below `label`, as many columns as it takes stay
  /// empty.
  struct Entry {
    std::string label;
    std::string text;
  };
  void box(std::string_view title, const std::vector<Entry>& entries);
  /// Wrapped text that begins with `mark`; further lines are indented by its width.
  void remark(std::string_view mark, std::string_view text, Tone tone);

  std::string toned(std::string_view text, Tone tone) const;
  std::string take() && { return std::move(text_); }

 private:
  bool colour_;
  std::string text_;
};

/// `text` broken at spaces into lines of at most `width` columns; longer words are left whole.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// The part of a bar of `width` columns between `from` and `to` (fractions of the bar), with spaces
/// before it. A part that is not empty shows at least a sliver.
std::string stretch(double from, double to, std::size_t width);

}  // namespace foreshard::report
