#include "sim/sweep/grid.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"

namespace foreshard::sweep {
namespace {

// A text in double quotes as YAML writes it, without them, where it needs no other treatment.
std::string plain(const std::string& text) {
  const bool simple = text.size() >= 2 && text.front() == '"' && text.back() == '"' &&
                      text.find_first_of("\"\\", 1) == text.size() - 1;
  return simple ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::vector<AxisNames> names_of(const Sweep& sweep) {
  std::vector<AxisNames> axes;
  for (const Axis& axis : sweep.axes) {
    AxisNames names{.name = axis.name, .values = {}};
    for (const yaml::Written& value : axis.values) names.values.push_back(plain(value.text));
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
  constexpr std::array<std::string_view, 4> kFiles{".yaml", ".yml", ".json", ".onnx"};
  const std::string text = plain(value.text);
  const bool is_file = !text.starts_with('{') && !text.starts_with('[') &&
                       std::ranges::any_of(kFiles, [&](auto end) { return text.ends_with(end); });
  return is_file ? (folder / text).string() : value.text;
}

std::vector<yaml::Override> overrides_of(const LoadedSweep& sweep, std::int64_t index) {
  std::vector<yaml::Override> overrides;
  const auto add = [&](const std::string& path, const yaml::Written& value) {
    overrides.push_back({path, seen_from_here(value, sweep.folder)});
  };
  for (const auto& [path, value] : sweep.sweep.set) add(path, value);
  const std::vector<std::size_t> position = position_of(index, names_of(sweep.sweep));
  for (std::size_t i = 0; i < position.size(); ++i) {
    const Axis& axis = sweep.sweep.axes[i];
    if (axis.choices.empty()) {
      add(axis.key, axis.values[position[i]]);
    } else {
      for (const auto& [path, value] : axis.choices[position[i]].set) add(path, value);
    }
  }
  if (sweep.sweep.train) overrides.push_back({"train", *sweep.sweep.train});
  return overrides;
}

}  // namespace foreshard::sweep
