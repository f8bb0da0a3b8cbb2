#include "base/shell_words.h"

#include "strategies/launch/internal/formats.h"

namespace foreshard::launch::internal {

// A script keeps its options in arrays: ARGS=( --num-layers 32 ). What stands outside of options,
// and what the shell would run, is passed over.
Result<std::vector<Setting>> cut_words(std::string_view text, const std::string& name) {
  const auto words = shell_words(text);
  if (!words) return Error{words.error().code, name + ": " + words.error().message};
  std::vector<Setting> settings;
  bool inside = false;
  for (const std::string& word : *words) {
    if (word.starts_with("--") && word.size() > 2) {
      const std::size_t equals = word.find('=');
      settings.push_back({.key = word.substr(0, equals), .place = name});
      if (equals != std::string::npos) settings.back().words.push_back(word.substr(equals + 1));
      inside = equals == std::string::npos;
    } else if (word == ")" || word.ends_with("=(") || word.ends_with(".py") || word == "&&" ||
               word == ";" || word == "|") {
      inside = false;
    } else if (inside) {
      settings.back().words.push_back(word);
    }
  }
  for (Setting& setting : settings) {
    setting.list = setting.words.size() > 1;
    if (setting.words.empty()) setting.words.emplace_back("true");
  }
  return settings;
}

namespace {

// As a shell reads it back.
std::string as_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,+-";
  return text.find_first_not_of(kPlain) == std::string::npos ? text : "'" + text + "'";
}

}  // namespace

std::string print_words(const std::vector<Written>& settings) {
  std::string text;
  for (const Written& setting : settings) {
    if (setting.kind == Kind::kSwitch && setting.words.front() == "false") continue;
    if (!text.empty()) text += " \\\n";
    text += setting.key;
    if (setting.kind == Kind::kSwitch) continue;
    for (const std::string& word : setting.words) text += " " + as_word(word);
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace foreshard::launch::internal
