/// \file
/// The texts that were read, and places in them.
#pragma once

#include <compare>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::yaml::internal {

/// A stretch of one line of one source.
struct Mark {
  int source = -1;
  int line = 0;    ///< Counted from 0.
  int column = 0;  ///< Byte of the line, from 0.
  int length = 1;  ///< Bytes; the part beyond the line's end is not underlined.
  auto operator<=>(const Mark&) const = default;
};

struct Source {
  std::string name;            ///< Name in messages.
  std::filesystem::path file;  ///< Empty for a text that is not a file.
  std::string text;
  bool is_override = false;  ///< `--set`: its name shows all, there is no line to show.
};

class Sources {
 public:
  int add(Source source);
  const Source& operator[](int index) const { return sources_[static_cast<std::size_t>(index)]; }

  /// "file:line:column", both from 1, the column in characters.
  std::string place(const Mark& mark) const;

  /// The line with carets below the mark, clipped to `width` columns (at least 20 and the margin)
  /// around it; empty for an override.
  std::string excerpt(const Mark& mark, std::size_t width) const;

 private:
  std::string_view line_of(const Mark& mark) const;

  std::vector<Source> sources_;
  std::vector<std::vector<std::size_t>> line_starts_;
};

}  // namespace foreshard::yaml::internal
