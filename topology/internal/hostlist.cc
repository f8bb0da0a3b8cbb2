#include "topology/internal/hostlist.h"

#include <algorithm>

#include "topology/internal/words.h"

namespace foreshard::internal {
namespace {

constexpr std::size_t kMostDigits = 9;

/// Parts of `text` between commas that stand outside of brackets. False if brackets do not match.
bool split(std::string_view text, std::vector<std::string_view>& parts) {
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') {
      if (inside) return false;
      inside = true;
    } else if (text[i] == ']') {
      if (!inside) return false;
      inside = false;
    } else if (text[i] == ',' && !inside) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return !inside;
}

std::string padded(std::int64_t number, std::size_t width) {
  std::string digits = std::to_string(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return digits;
}

/// "0-3,12" -> its numbers as text; what is wrong otherwise.
std::variant<std::vector<std::string>, std::string> numbers(std::string_view text,
                                                            std::size_t most) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view range = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t dash = std::min(range.find('-'), range.size());
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash < range.size() ? range.substr(dash + 1) : low;
    const auto first = whole_number(low);
    const auto last = whole_number(high);
    if (!first || !last || low.size() > kMostDigits || high.size() > kMostDigits || *first < 0 ||
        *last < *first)
      return "'[" + shown(text) + "]' is not a list of ranges";
    if (static_cast<std::size_t>(*last - *first) >= most - result.size())
      return "more than " + std::to_string(most) + " names";
    for (std::int64_t i = *first; i <= *last; ++i) result.push_back(padded(i, low.size()));
  }
  return result;
}

}  // namespace

bool is_host_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
}

std::variant<std::vector<std::string>, std::string> expand_hostlist(std::string_view text,
                                                                    std::size_t most) {
  std::vector<std::string_view> parts;
  if (!split(text, parts)) return "brackets of '" + shown(text) + "' do not match";
  std::vector<std::string> names;
  for (std::string_view part : parts) {
    std::vector<std::string> found{""};
    while (!part.empty()) {
      const std::size_t open = std::min(part.find('['), part.size());
      for (auto& name : found) name += part.substr(0, open);
      if (open == part.size()) break;
      const std::size_t close = part.find(']', open);
      const auto inside = numbers(part.substr(open + 1, close - open - 1), most);
      if (const auto* fault = std::get_if<std::string>(&inside)) return *fault;
      const auto& list = std::get<std::vector<std::string>>(inside);
      if (found.size() * list.size() + names.size() > most)
        return "more than " + std::to_string(most) + " names";
      std::vector<std::string> longer;
      for (const auto& name : found)
        for (const auto& number : list) longer.push_back(name + number);
      found = std::move(longer);
      part.remove_prefix(close + 1);
    }
    for (auto& name : found) {
      if (name.empty()) return "'" + shown(text) + "' has an empty name";
      names.push_back(std::move(name));
    }
    if (names.size() > most) return "more than " + std::to_string(most) + " names";
  }
  return names;
}

}  // namespace foreshard::internal
