#include "cli/percentage.h"

#include <charconv>
#include <fmt/format.h>

namespace foreshard::cli {

Result<double> percentage(std::string text) {
  const std::string whole = text;
  if (text.ends_with('%')) text.pop_back();
  while (text.ends_with(' ')) text.pop_back();
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return Error{Error::Code::kInvalidInput,
               fmt::format("'{}' is not a percentage like '10%'", whole)};
}

}  // namespace foreshard::cli
