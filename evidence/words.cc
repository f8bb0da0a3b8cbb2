#include "evidence/words.h"

#include <charconv>

namespace foreshard::accuracy {

std::optional<std::int64_t> number_after(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, status] =
      std::from_chars(text.data() + at + word.size(), text.data() + text.size(), value);
  if (status != std::errc()) return std::nullopt;
  return value;
}

}  // namespace foreshard::accuracy
