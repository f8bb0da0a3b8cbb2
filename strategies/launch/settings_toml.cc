// Cuts TOML into settings and prints settings as TOML (internal/formats.h), for the format
// torchtitan. Only this file includes toml++; a syntax error is reported with its line and column.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <sstream>
#include <toml++/toml.h>

#include "base/limits.h"

#include "strategies/launch/internal/formats.h"

namespace foreshard::launch::internal {
namespace {

std::string place_of(const std::string& name, const toml::source_region& region) {
  return fmt::format("{}:{}:{}", name, region.begin.line, region.begin.column);
}

// A scalar as a word; nothing for other nodes.
std::optional<std::string> word_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (node.is_table() || node.is_array()) return std::nullopt;
  std::ostringstream text;  // dates and times
  toml::node_view<const toml::node>(node).visit([&](const auto& value) { text << value; });
  return text.str();
}

void collect(const toml::node& node, const std::string& path, const std::string& name, int depth,
             std::vector<Setting>& found) {
  if (depth > limits::kDepth) return;
  if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table)
      collect(value, path.empty() ? std::string(key.str()) : path + "." + std::string(key.str()),
              name, depth + 1, found);
    return;
  }
  Setting setting{.key = path, .list = node.is_array(), .place = place_of(name, node.source())};
  if (const auto* list = node.as_array()) {
    for (const toml::node& item : *list) setting.words.push_back(word_of(item).value_or("[...]"));
  } else {
    setting.words.push_back(word_of(node).value_or(""));
  }
  found.push_back(std::move(setting));
}

void put(toml::table& table, const OutputSetting& setting) {
  const auto value_of = [&](const std::string& word, auto&& insert) {
    if (setting.kind == Kind::kSwitch) return insert(word == "true");
    if (setting.kind == Kind::kCount || setting.kind == Kind::kNumber) {
      double number = 0;
      std::from_chars(word.data(), word.data() + word.size(), number);
      if (setting.kind == Kind::kCount) return insert(static_cast<std::int64_t>(number));
      return insert(number);
    }
    return insert(word);
  };
  const std::size_t dot = setting.key.rfind('.');
  toml::table* section = &table;
  std::string_view rest = std::string_view(setting.key).substr(0, dot);
  while (!rest.empty()) {
    const std::size_t end = rest.find('.');
    section = section->insert(rest.substr(0, end), toml::table()).first->second.as_table();
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  const std::string key = setting.key.substr(dot + 1);
  if (setting.list) {
    toml::array list;
    for (const std::string& word : setting.words)
      value_of(word, [&](const auto& value) { list.push_back(value); });
    section->insert_or_assign(key, std::move(list));
  } else {
    value_of(setting.words.front(),
             [&](const auto& value) { section->insert_or_assign(key, value); });
  }
}

}  // namespace

Result<std::vector<Setting>> cut_toml(std::string_view text, const std::string& name) {
  try {
    const toml::table table = toml::parse(text, name);
    std::vector<Setting> settings;
    collect(table, "", name, 0, settings);
    return settings;
  } catch (const toml::parse_error& error) {
    return Error{Error::Code::kInvalidInput,
                 place_of(name, error.source()) + ": error: " + std::string(error.description())};
  }
}

std::string print_toml(const std::vector<OutputSetting>& settings) {
  toml::table table;
  for (const OutputSetting& setting : settings) put(table, setting);
  std::ostringstream text;
  text << table << "\n";
  return text.str();
}

}  // namespace foreshard::launch::internal
