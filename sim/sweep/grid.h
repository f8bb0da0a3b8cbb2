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

/// An axis, for people: what it and its values are called.
struct AxisNames {
  std::string name;
  std::vector<std::string> values;

  bool operator==(const AxisNames&) const = default;
};
std::vector<AxisNames> names_of(const Sweep& sweep);

std::int64_t size_of(const std::vector<AxisNames>& axes);

/// Which value of each axis point `index` has.
/// \pre 0 <= index < size_of(axes)
std::vector<std::size_t> position_of(std::int64_t index, const std::vector<AxisNames>& axes);

/// "nodes 16, adapters 400G".
std::string label_of(std::int64_t index, const std::vector<AxisNames>& axes);

/// What makes the base study this point's: what all points set, then the axes in their order. Where
/// one value sets several keys, outer ones come first ("cluster" before "cluster.nodes").
std::vector<yaml::Override> overrides_of(const LoadedSweep& sweep, std::int64_t index);

/// The same, as the sweep's file writes it, and where it does.
struct PointSetting {
  std::string path;
  yaml::Written value;
  std::string place;  ///< "set", "train", or the axis and the value: "nodes 16".
};
std::vector<PointSetting> settings_of(const LoadedSweep& sweep, std::int64_t index);

/// With every path of a file in it (sweep.h) as seen from here; other values, and names, stay.
std::string seen_from_here(const yaml::Written& value, const std::filesystem::path& folder);

}  // namespace foreshard::sweep
