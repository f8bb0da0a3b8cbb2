/// \file
/// The points of a sweep: the product of its axes, the last axis fastest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/yaml/loader.h"

#include "sim/sweep/sweep.h"

namespace foreshard::sweep {

/// The names, for people, of an axis and its values.
struct AxisNames {
  std::string name;
  std::vector<std::string> values;

  bool operator==(const AxisNames&) const = default;
};
std::vector<AxisNames> names_of(const Sweep& sweep);

/// Number of points.
std::int64_t size_of(const std::vector<AxisNames>& axes);

/// For each axis, the index of the value that point `index` has.
/// \pre 0 <= index < size_of(axes)
std::vector<std::size_t> position_of(std::int64_t index, const std::vector<AxisNames>& axes);

/// "nodes 16, adapters 400G".
std::string label_of(std::int64_t index, const std::vector<AxisNames>& axes);

/// The overrides that turn the base study into this point: first what all points set, then the axes
/// in their order. If one value sets several keys, outer keys come first ("cluster" before
/// "cluster.nodes").
std::vector<yaml::Override> overrides_of(const LoadedSweep& sweep, std::int64_t index);

/// A setting of a point as the sweep's file writes it: paths of files are not adapted.
struct PointSetting {
  std::string path;
  yaml::Written value;
  std::string place;  ///< The part of the sweep that sets it: "set", "train", or the axis and the
                      ///< value: "nodes 16".
};
/// The settings of overrides_of, in the same order.
std::vector<PointSetting> settings_of(const LoadedSweep& sweep, std::int64_t index);

/// The text of a YAML scalar without its double quotes. A scalar that is not quoted, or whose
/// quotes have escapes inside, is returned unchanged.
std::string unquoted(const std::string& text);

/// `value` with the paths of files in it (sweep.h), which are relative to the sweep's `folder`,
/// made valid from the working directory. Other values, and names, do not change.
std::string seen_from_here(const yaml::Written& value, const std::filesystem::path& folder);

}  // namespace foreshard::sweep
