// Lists of ranks to text and back, for the JSON of Programs, replay and `foreshard topology`.
#include "strategies/program/ir/rank_ranges.h"

#include <charconv>
#include <optional>

namespace foreshard::program {
namespace {

Error fault(std::string_view part, const std::string& why) {
  return {Error::Code::kInvalidInput, "'" + std::string(part.substr(0, 40)) + "' " + why};
}

// Takes an integer off the front of `text`.
std::optional<std::int32_t> take_number(std::string_view& text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

struct Range {
  std::int64_t first, last, step;
};

// "5", "0-7" or "0-56:8".
std::optional<Range> parse(std::string_view text) {
  const auto first = take_number(text);
  if (!first || *first < 0) return std::nullopt;
  if (text.empty()) return Range{*first, *first, 1};
  if (!take(text, '-')) return std::nullopt;
  const auto last = take_number(text);
  if (!last || *last < 0) return std::nullopt;
  if (text.empty()) return Range{*first, *last, 1};
  if (!take(text, ':')) return std::nullopt;
  const auto step = take_number(text);
  if (!step || !text.empty()) return std::nullopt;
  return Range{*first, *last, *step};
}

}  // namespace

std::string write_ranges(const std::vector<std::int32_t>& list) {
  std::string text;
  for (std::size_t i = 0; i < list.size();) {
    std::size_t end = i + 1;
    const std::int64_t step = end < list.size() ? std::int64_t{list[end]} - list[i] : 0;
    while (step != 0 && end < list.size() && std::int64_t{list[end]} - list[end - 1] == step) ++end;
    if (end - i < 3) end = i + 1;
    if (!text.empty()) text += ',';
    text += std::to_string(list[i]);
    if (end - i > 1) text += '-' + std::to_string(list[end - 1]);
    if (end - i > 1 && step != 1) text += ':' + std::to_string(step);
    i = end;
  }
  return text;
}

Result<std::vector<std::int32_t>> read_ranges(std::string_view text, std::size_t limit) {
  std::vector<std::int32_t> list;
  if (text.empty()) return list;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const auto range = parse(part);
    if (!range) return fault(part, "is not a range of ranks such as 7, 0-127 or 0-120:8");
    if (range->step == 0 || (range->last - range->first) % range->step != 0 ||
        (range->last - range->first) / range->step < 0)
      return fault(part, "does not reach its end in whole steps");
    const std::int64_t count = (range->last - range->first) / range->step + 1;
    if (static_cast<std::uint64_t>(count) > limit - list.size())
      return fault(part, "makes the list longer than " + std::to_string(limit));
    for (std::int64_t i = 0; i < count; ++i)
      list.push_back(static_cast<std::int32_t>(range->first + i * range->step));
    if (comma == std::string_view::npos) return list;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace foreshard::program
