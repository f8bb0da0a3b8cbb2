// Runs the tables of formats (internal/formats.h): take() makes a draft of settings for import.cc,
// put() makes settings of a draft for export.cc. A setting without a row is left out with a remark,
// unless a rule refuses it.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "base/glob.h"
#include "base/text.h"

#include "strategies/launch/internal/formats.h"

namespace foreshard::launch::internal {

std::string Draft::word(std::string_view key, std::string_view otherwise) const {
  const auto found = values_.find(key);
  return found == values_.end() || found->second.words.empty() ? std::string(otherwise)
                                                               : found->second.words.front();
}

std::int64_t Draft::count(std::string_view key, std::int64_t otherwise) const {
  const std::string text = word(key);
  std::int64_t count = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

void Draft::set_list(std::string_view key, const std::vector<std::int64_t>& counts,
                     std::string from) {
  Value value{.list = true, .from = std::move(from)};
  for (const std::int64_t count : counts) value.words.push_back(std::to_string(count));
  set(key, std::move(value));
}

void Draft::drop(std::string_view key) {
  if (const auto found = values_.find(key); found != values_.end()) values_.erase(found);
}

void Draft::forbid(std::string_view key, std::string why) {
  if (const auto found = values_.find(key); found != values_.end())
    found->second.forbidden = std::move(why);
}

namespace {

constexpr std::string_view kSwitchWords = "true=true false=false";
constexpr double kMostCount = 9e15;  // whole numbers are exact up to there

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t blank = text.find(' ');
    if (blank != 0) words.emplace_back(text.substr(0, blank));
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  }
  return words;
}

bool is_any(std::string_view key, std::string_view globs) {
  return std::ranges::any_of(split(globs), [&](const std::string& glob) {
    return matches_glob(glob, key, [](auto p, auto t) { return letter_step(p, t); });
  });
}

// "key words", on one line and not too long.
std::string shown(const Setting& setting) {
  constexpr std::size_t kMost = 100;
  const bool is_flag = setting.key.starts_with("--") && join(setting.words) == "true";
  std::string text = setting.key + (is_flag ? "" : " " + join(setting.words, " "));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

// (their word, our word) of the row.
std::vector<std::pair<std::string, std::string>> pairs_of(const Row& row) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const bool plain = row.kind == Kind::kSwitch && row.words.empty();
  for (const std::string& pair : split(plain ? kSwitchWords : row.words)) {
    const std::size_t sign = pair.find('=');
    pairs.emplace_back(pair.substr(0, sign), pair.substr(sign + 1));
  }
  return pairs;
}

std::optional<double> number_in(const std::string& word) {
  double number = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool whole = status == std::errc() && end == word.data() + word.size();
  return whole && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<std::string> as_switch(const std::string& word) {
  const std::string small = lower_case(word);
  for (const auto& [words, value] :
       {std::pair("true yes on 1", "true"), std::pair("false no off 0", "false")})
    for (const std::string& each : split(words))
      if (each == small) return value;
  return std::nullopt;
}

bool is_neutral(const Setting& setting, std::string_view unless) {
  if (setting.words.empty()) return true;
  return std::ranges::all_of(setting.words, [&](const std::string& word) {
    const std::string small = lower_case(word);
    const auto number = number_in(word);
    return (number && *number == 0) || small == "false" || small == "no" || small == "none" ||
           small == "off" || small.empty() || small == "null" ||
           std::ranges::count(split(unless), word) > 0;
  });
}

Error fault_in_word(const Setting& setting, const Row& row, const std::string& word) {
  if (contains(word, "$"))
    return fault(
        setting.place, setting.key,
        fmt::format("'{}' is a variable, whose value the file does not plainly give", word),
        "write its value");
  if (row.kind == Kind::kCount || row.kind == Kind::kNumber)
    return fault(setting.place, setting.key,
                 fmt::format("expected a {}, found '{}'",
                             row.kind == Kind::kCount ? "whole number" : "number", word));
  std::vector<std::string> words;
  for (const auto& [theirs, ours] : pairs_of(row)) words.push_back(theirs);
  const auto near = nearest_name(word, words);
  return fault(setting.place, setting.key, fmt::format("'{}' is not understood", word),
               near ? fmt::format("did you mean '{}'? ", *near) + "Known: " + quoted_choice(words)
                    : "use " + quoted_choice(words));
}

// Our word for theirs; an empty text leaves our default.
Result<std::string> read(const Row& row, const Setting& setting, const std::string& word) {
  if (row.kind == Kind::kText) return word;
  if (row.kind == Kind::kCount || row.kind == Kind::kNumber) {
    const auto number = number_in(word);
    const bool fits = number && (row.kind == Kind::kNumber || (std::abs(*number) < kMostCount &&
                                                               std::trunc(*number) == *number));
    if (!fits) return fault_in_word(setting, row, word);
    return row.kind == Kind::kCount ? fmt::format("{}", static_cast<std::int64_t>(*number)) : word;
  }
  const std::string meant = row.kind == Kind::kSwitch ? as_switch(word).value_or(word) : word;
  for (const auto& [theirs, ours] : pairs_of(row))
    if (lower_case(theirs) == lower_case(meant)) return ours;
  return fault_in_word(setting, row, word);
}

Status take_row(const Row& row, const Setting& setting, Draft& draft) {
  if (setting.words.empty()) return {};  // null: as if it were not there
  if (setting.words.size() > 1 && row.kind != Kind::kText)
    return fault(setting.place, setting.key,
                 fmt::format("expected one value, found {}", setting.words.size()));
  Value value{.list = setting.list && row.kind == Kind::kText,
              .from = shown(setting),
              .place = setting.place};
  for (const std::string& word : setting.words) {
    FORESHARD_ASSIGN(auto ours, read(row, setting, word));
    if (ours.empty() && row.kind != Kind::kText) return {};
    value.words.push_back(std::move(ours));
  }
  draft.set(row.ours, std::move(value));
  return {};
}

const Row* row_of(std::string_view key, std::span<const Row> rows) {
  const auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.theirs == key; });
  return found == rows.end() ? nullptr : &*found;
}

// Handles a setting that no row has: an error, unmodelled, idle, or not known.
Status pass(const Format& format, const Setting& setting, Imported& imported) {
  for (const Rule& rule : format.rules()) {
    if (!is_any(setting.key, rule.keys)) continue;
    if (is_neutral(setting, rule.unless)) {
      imported.idle.push_back(setting.key);
    } else if (rule.refused) {
      return fault(setting.place, setting.key, std::string(rule.why), "",
                   Error::Code::kUnsupported);
    } else {
      imported.unmodelled.push_back({shown(setting), std::string(rule.why)});
    }
    return {};
  }
  // A switch that is off has no effect, whether it is known or not.
  if (is_any(setting.key, format.idle) || is_neutral(setting, "")) {
    imported.idle.push_back(setting.key);
    return {};
  }
  std::vector<std::string> known;
  for (const Row& row : format.rows()) known.emplace_back(row.theirs);
  const auto near = nearest_name(setting.key, known);
  imported.unmodelled.push_back(
      {shown(setting), near ? fmt::format("not known; did you mean '{}'?", *near) : "not known"});
  return {};
}

// Their word for ours; nothing if the row has none.
std::optional<std::string> write(const Row& row, const std::string& word) {
  if (row.kind == Kind::kCount || row.kind == Kind::kNumber || row.kind == Kind::kText) return word;
  for (const auto& [theirs, ours] : pairs_of(row))
    if (ours == word) return theirs;
  return std::nullopt;
}

// Whether the row would write the value that the key has anyway if it is not set.
bool goes_without_saying(const Row& row, const Draft& defaults, const std::string& written) {
  if (!row.otherwise.empty()) return written == row.otherwise;
  if (!defaults.has(row.ours)) return false;
  return write(row, defaults.word(row.ours)) == written;
}

}  // namespace

Error fault(std::string_view place, std::string_view key, std::string_view why,
            std::string_view help, Error::Code code) {
  return {code, fmt::format("{}: error: {}: {}{}{}", place, key, why,
                            help.empty() ? "" : "\n   help: ", help)};
}

Result<Draft> take(const Format& format, const std::vector<Setting>& settings, Imported& imported) {
  Draft draft;
  for (const Row& row : format.rows()) {
    if (row.otherwise.empty() || row.otherwise == kAlways) continue;
    const Setting silent{.key = std::string(row.theirs),
                         .words = {std::string(row.otherwise)},
                         .place = imported.name};
    FORESHARD_TRY(take_row(row, silent, draft));
    if (!draft.has(row.ours)) continue;
    Value value = draft.at(row.ours);
    value.from = fmt::format("{} is {} by default", row.theirs, row.otherwise);
    draft.set(row.ours, std::move(value));
  }
  for (const Setting& setting : settings) {
    if (const Row* row = row_of(setting.key, format.rows())) {
      FORESHARD_TRY(take_row(*row, setting, draft));
    } else {
      FORESHARD_TRY(pass(format, setting, imported));
    }
  }
  return draft;
}

std::vector<OutputSetting> put(const Format& format, Draft& draft, const Draft& defaults) {
  std::vector<OutputSetting> settings;
  for (const Row& row : format.rows()) {
    if (!draft.has(row.ours)) continue;
    const Value& value = draft.at(row.ours);
    if (!value.forbidden.empty() || value.words.empty() || (value.list && row.kind != Kind::kText))
      continue;
    const auto first = write(row, value.words.front());
    if (!first) continue;
    if (value.list || !goes_without_saying(row, defaults, *first))
      settings.push_back({std::string(row.theirs), row.kind,
                          value.list ? value.words : std::vector<std::string>{*first}, value.list});
    draft.drop(row.ours);
  }
  for (const Row& row : format.rows())
    if (!row.otherwise.empty() && draft.has(row.ours) && draft.at(row.ours).forbidden.empty())
      draft.forbid(row.ours, "silent, it means another");
  return settings;
}

}  // namespace foreshard::launch::internal
