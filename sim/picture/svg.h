/// \file
/// SVG, written element by element. It has no scripts and fetches nothing, so that it shows
/// wherever an image does; its colours follow a dark page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::picture {

/// A place in pixels, from the top left corner.
struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

/// What a mark stands for. Readers see it as a tooltip; programs find the attributes data-name and
/// data-value.
struct Meaning {
  std::string name;
  double value = 0;      ///< The number of the result, in the result's unit.
  std::string in_words;  ///< "tensor communication: 3.73 s, 11.4 %".
};

enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };

/// A drawing. A `style` is a name of the palette (svg.cc): a part of the step such as "compute", a
/// kind of memory such as "parameters", or "line", "limit", "hollow".
class Svg {
 public:
  /// \param width, height  in pixels.
  /// \param title  shown on top, and read by screen readers with `description`.
  Svg(double width, double height, std::string_view title, std::string_view description);

  void box(const Box& box, std::string_view style, const Meaning& meaning);
  /// Many boxes that stand for one thing together.
  void boxes(const std::vector<Box>& boxes, std::string_view style, const Meaning& meaning);
  void dot(Point at, std::string_view style, const Meaning& meaning);
  void line(Point from, Point to, std::string_view style);
  void path(const std::vector<Point>& points, std::string_view style);
  /// What a closed path encloses.
  void area(const std::vector<Point>& points, std::string_view style, const Meaning& meaning);
  void text(Point at, std::string_view text, Anchor anchor = Anchor::kStart,
            std::string_view style = "text");

  /// The document.
  std::string take() &&;

 private:
  std::string text_;
};

/// The width of every chart, in pixels.
inline constexpr double kWidth = 760;

/// `text` for the content or a quoted attribute of an element, of SVG as of HTML. Line breaks
/// become blanks, and bytes that do not print are written out.
std::string xml_escaped(std::string_view text);

/// Pixels that a text takes, estimated: no font is measured.
double width_of(std::string_view text);

}  // namespace foreshard::picture
