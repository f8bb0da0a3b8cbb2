// The points of a sweep: their number, names and settings. Sweeps are run (evaluate.cc) and their
// results shown by these.
#include "sim/sweep/grid.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "base/yaml/quoted.h"

namespace foreshard::sweep {
namespace {

// Whether a value names a file, by its suffix; the disk is not looked at.
bool is_file(const std::string& text) {
  constexpr std::array<std::string_view, 5> kSuffixes{".yaml", ".yml", ".json", ".onnx", ".csv"};
  return std::ranges::any_of(kSuffixes, [&](auto suffix) { return text.ends_with(suffix); });
}

// The end of the scalar that begins at `at` in the text of a flow collection. It relies on
// yaml::Written, which puts scalars that contain a separator into double quotes.
std::size_t end_of_scalar(const std::string& text, std::size_t at) {
  if (text[at] != '"') return std::min(text.find_first_of(",:]}", at), text.size());
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
  }
  return text.size();
}

}  // namespace

std::string unquoted(const std::string& text) {
  const bool simple = text.size() >= 2 && text.front() == '"' && text.back() == '"' &&
                      text.find_first_of("\"\\", 1) == text.size() - 1;
  return simple ? text.substr(1, text.size() - 2) : text;
}

std::vector<AxisNames> names_of(const Sweep& sweep) {
  std::vector<AxisNames> axes;
  for (const Axis& axis : sweep.axes) {
    AxisNames names{.name = axis.name, .values = {}};
    for (const yaml::Written& value : axis.values) names.values.push_back(unquoted(value.text));
    for (const Choice& choice : axis.choices) names.values.push_back(choice.name);
    axes.push_back(std::move(names));
  }
  return axes;
}

std::int64_t size_of(const std::vector<AxisNames>& axes) {
  std::int64_t size = 1;
  for (const AxisNames& axis : axes) size *= std::ssize(axis.values);
  return size;
}

std::vector<std::size_t> position_of(std::int64_t index, const std::vector<AxisNames>& axes) {
  std::vector<std::size_t> position(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    const std::int64_t size = std::ssize(axes[i].values);
    position[i] = static_cast<std::size_t>(index % size);
    index /= size;
  }
  FORESHARD_CHECK(index == 0);
  return position;
}

std::string label_of(std::int64_t index, const std::vector<AxisNames>& axes) {
  const std::vector<std::size_t> position = position_of(index, axes);
  std::string label;
  for (std::size_t i = 0; i < axes.size(); ++i)
    label += (i == 0 ? "" : ", ") + axes[i].name + " " + axes[i].values[position[i]];
  return label;
}

std::string seen_from_here(const yaml::Written& value, const std::filesystem::path& folder) {
  if (!value.text.starts_with('{') && !value.text.starts_with('[')) {
    const std::string text = unquoted(value.text);
    return is_file(text) ? (folder / text).string() : value.text;
  }
  constexpr std::string_view kSeparators = "{}[],: ";
  std::string result;
  for (std::size_t at = 0; at < value.text.size();) {
    const char c = value.text[at];
    if (kSeparators.find(c) != std::string_view::npos) {
      result += c;
      ++at;
      continue;
    }
    const std::size_t end = end_of_scalar(value.text, at);
    const std::string scalar = value.text.substr(at, end - at);
    const std::string text = unquoted(scalar);
    result += is_file(text) ? yaml::quoted((folder / text).string()) : scalar;
    at = end;
  }
  return result;
}

std::vector<PointSetting> settings_of(const LoadedSweep& sweep, std::int64_t index) {
  std::vector<PointSetting> settings;
  for (const auto& [path, value] : sweep.sweep.set) settings.push_back({path, value, "set"});
  const std::vector<AxisNames> names = names_of(sweep.sweep);
  const std::vector<std::size_t> position = position_of(index, names);
  for (std::size_t i = 0; i < position.size(); ++i) {
    const Axis& axis = sweep.sweep.axes[i];
    const std::string place = names[i].name + " " + names[i].values[position[i]];
    if (axis.choices.empty()) {
      settings.push_back({axis.key, axis.values[position[i]], place});
    } else {
      for (const auto& [path, value] : axis.choices[position[i]].set)
        settings.push_back({path, value, place});
    }
  }
  if (sweep.sweep.train) settings.push_back({"train", {*sweep.sweep.train}, "train"});
  return settings;
}

std::vector<yaml::Override> overrides_of(const LoadedSweep& sweep, std::int64_t index) {
  std::vector<yaml::Override> overrides;
  for (const PointSetting& each : settings_of(sweep, index))
    overrides.push_back({each.path, seen_from_here(each.value, sweep.folder)});
  return overrides;
}

}  // namespace foreshard::sweep
