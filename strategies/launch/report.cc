// Writes what an import has found, for people and as YAML (launch.h): `foreshard import` prints it,
// and commands that take a launch file load it as a study.
#include <algorithm>
#include <fmt/format.h>

#include "base/text.h"
#include "base/yaml/quoted.h"

#include "strategies/launch/launch.h"

namespace foreshard::launch {
namespace {

constexpr std::size_t kMostShown = 12;

// The lines of the mapping that begins at `begin`: lines whose keys share the first line's first
// part, without that part. Empty if the first line's key has no dot.
std::vector<Line> group_of(const std::vector<Line>& lines, std::size_t begin) {
  const std::string& first = lines[begin].key;
  const std::size_t dot = first.find('.');
  if (dot == std::string::npos) return {};
  const std::string prefix = first.substr(0, dot + 1);
  std::vector<Line> group;
  for (std::size_t i = begin; i < lines.size() && lines[i].key.starts_with(prefix); ++i)
    group.push_back({lines[i].key.substr(dot + 1), lines[i].value, lines[i].from});
  return group;
}

// Whether the group can be written in short: for `framework: {extends: megatron-lm}` that is
// `framework: megatron-lm`.
bool is_reference(const std::vector<Line>& group) {
  return group.size() == 1 && group.front().key == "extends";
}

std::string list(std::string_view what, const std::vector<std::string>& words) {
  std::vector<std::string> shown(
      words.begin(),
      words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), kMostShown)));
  if (words.size() > kMostShown)
    shown.push_back(fmt::format("and {} more", words.size() - kMostShown));
  return fmt::format("{}: {}", what, join(shown));
}

}  // namespace

std::string in_braces(const std::vector<Line>& lines) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < lines.size();) {
    const auto group = group_of(lines, i);
    const std::string key = lines[i].key.substr(0, lines[i].key.find('.'));
    if (group.empty() || is_reference(group)) {
      parts.push_back(key + ": " + lines[i].value);
    } else {
      parts.push_back(key + ": " + in_braces(group));
    }
    i += std::max<std::size_t>(group.size(), 1);
  }
  return "{" + join(parts) + "}";
}

std::string as_block(const std::vector<Line>& lines, std::size_t indent) {
  std::string text;
  for (std::size_t i = 0; i < lines.size();) {
    const auto group = group_of(lines, i);
    const std::string key =
        std::string(indent, ' ') + lines[i].key.substr(0, lines[i].key.find('.')) + ":";
    if (group.empty() || is_reference(group)) {
      text += key + " " + lines[i].value;
      text += lines[i].from.empty() ? "\n" : "  " + yaml::comment(lines[i].from);
    } else {
      text += key + "\n" + as_block(group, indent + 2);
    }
    i += std::max<std::size_t>(group.size(), 1);
  }
  return text;
}

std::vector<std::string> report(const Imported& imported) {
  std::vector<std::string> taken;
  for (const auto* lines : {&imported.strategy, &imported.model})
    for (const Line& line : *lines) taken.push_back(line.key + " " + line.value);
  std::vector<std::string> remarks{
      list(fmt::format("{} ({}) gives", imported.name, imported.format), taken)};
  if (!imported.idle.empty()) remarks.push_back(list("without meaning for a step", imported.idle));
  for (const Unmodelled& each : imported.unmodelled)
    remarks.push_back(fmt::format("not in the prediction: {}: {}", each.setting, each.why));
  return remarks;
}

}  // namespace foreshard::launch
