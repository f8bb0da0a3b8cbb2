#include "validate/calibrate/internal/log_lines.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <functional>

namespace foreshard::calibrate::internal {
namespace {

constexpr std::size_t kLongestTag = 64;
constexpr std::string_view kStderr = "<stderr>:";

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// Length of `pattern` if the text begins with it, else 0; "d" in the pattern stands for a digit.
std::size_t like(std::string_view text, std::string_view pattern) {
  if (text.size() < pattern.size()) return 0;
  for (std::size_t i = 0; i < pattern.size(); ++i)
    if (pattern[i] == 'd' ? !is_digit(text[i]) : text[i] != pattern[i]) return 0;
  return pattern.size();
}

std::size_t blanks(std::string_view text) {
  return std::min(text.find_first_not_of(" \t"), text.size());
}
std::size_t digits(std::string_view text) {
  return static_cast<std::size_t>(
      std::distance(text.begin(), std::ranges::find_if_not(text, is_digit)));
}

/// "21:33:25", optionally with a fraction of a second and a time zone.
std::size_t time_of_day(std::string_view text) {
  std::size_t end = like(text, "dd:dd:dd");
  if (end == 0) return 0;
  if (end < text.size() && (text[end] == '.' || text[end] == ','))
    end += 1 + digits(text.substr(end + 1));
  if (end < text.size() && text[end] == 'Z') return end + 1;
  for (const std::string_view zone : {"+dd:dd", "-dd:dd", "+dddd", "-dddd"})
    if (const std::size_t length = like(text.substr(end), zone)) return end + length;
  return end;
}

/// "2026-11-28T21:33:25", "2026/11/28 21:33:25".
std::size_t date_and_time(std::string_view text) {
  std::size_t end = std::max(like(text, "dddd-dd-dd"), like(text, "dddd/dd/dd"));
  if (end == 0 || end >= text.size()) return 0;
  const std::size_t time = time_of_day(text.substr(end + 1));
  return time == 0 ? 0 : end + 1 + time;
}

/// "Nov 28 21:33:25", "Sat Nov 28 21:33:25 2026".
std::size_t month_and_time(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  constexpr std::string_view kDays = "MonTueWedThuFriSatSun";
  const auto is_one_of = [&](std::size_t at, std::string_view names) {
    const std::string_view word = text.substr(std::min(at, text.size()), 3);
    const std::size_t found = word.size() == 3 ? names.find(word) : std::string_view::npos;
    return found != std::string_view::npos && found % 3 == 0;
  };
  const bool has_day = is_one_of(0, kDays);
  std::size_t at = has_day ? 4 : 0;
  if (!is_one_of(at, kMonths)) return 0;
  at += 3;
  at += blanks(text.substr(std::min(at, text.size())));
  const std::size_t day = digits(text.substr(std::min(at, text.size())));
  if (day == 0 || day > 2) return 0;
  at += day;
  at += blanks(text.substr(at));
  const std::size_t time = time_of_day(text.substr(at));
  if (time == 0) return 0;
  at += time;
  return has_day ? at + like(text.substr(at), " dddd") : at;
}

/// Seconds since 1970, with a fraction.
std::size_t epoch(std::string_view text) {
  const std::size_t whole = like(text, "dddddddddd.");
  return whole == 0 ? 0 : whole + digits(text.substr(whole));
}

/// "[...]", optionally followed by a colon.
std::size_t in_brackets(std::string_view text) {
  if (!text.starts_with('[')) return 0;
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos || end > kLongestTag) return 0;
  return end + 1 < text.size() && text[end + 1] == ':' ? end + 2 : end + 1;
}

/// "12: "
std::size_t task(std::string_view text) {
  const std::size_t end = digits(text);
  const bool is = end > 0 && end < text.size() && text[end] == ':' &&
                  (end + 1 == text.size() || text[end + 1] == ' ');
  return is ? end + 1 : 0;
}

std::size_t stream(std::string_view text) {
  for (const std::string_view name : {std::string_view("<stdout>:"), kStderr,
                                      std::string_view("stdout F "), std::string_view("stderr F ")})
    if (text.starts_with(name)) return name.size();
  return 0;
}

constexpr std::array kPrefixes{time_of_day, date_and_time, month_and_time, epoch,
                               in_brackets, task,          stream};

}  // namespace

std::string_view LogLines::plain(std::string_view line) {
  for (bool found = true; found;) {
    found = false;
    const std::string_view text = line.substr(blanks(line));
    for (const auto prefix : kPrefixes) {
      const std::size_t length = prefix(text);
      if (length == 0) continue;
      if (text.substr(0, length) == kStderr) return {};
      line = text.substr(length);
      found = true;
      break;
    }
  }
  const std::size_t mark = line.find('#');
  if (mark != std::string_view::npos && mark > 0 && mark <= kLongestTag) {
    const std::string_view before = line.substr(0, mark);
    const std::string_view word = before.substr(0, before.find_last_not_of(" \t") + 1);
    const bool is_tag = (word.ends_with(':') || word.ends_with('|') || word.ends_with('>')) &&
                        word.find_first_of(" \t") >= word.find_last_not_of(":|> \t");
    if (is_tag) seen_.emplace(word);
  }
  for (const std::string& tag : seen_)
    if (line.starts_with(tag)) return line.substr(tag.size());
  return line;
}

}  // namespace foreshard::calibrate::internal
