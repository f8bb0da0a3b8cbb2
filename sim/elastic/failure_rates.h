/// \file
/// How often the parts of a machine fail, in YAML (catalogue folder: failures):
///
///     name: llama3-h100
///     observed: {time: 54 d, devices: 16384, nodes: 2048}
///     causes:
///       - {name: faulty GPU, of: device, events: {value: 148, source: "...", evidence: measured}}
///       - {name: rack power, of: group, group: 4, takes: group}          # no rate: UNKNOWN
///       - {name: software, of: device, mtbf: 300 y, takes: nothing}
///
/// A rate is given as the mean time between failures of one unit, or as a number of observed
/// events:
///
///     mtbf = observed time x observed units / events
///
/// Failures of a cause are exponential and independent. A cause takes down its failure domain: a
/// node, or a group of adjacent nodes (a rack, or all nodes on a leaf switch), which works again
/// after the repair; or nothing, if processes end and can restart at once. A cause without a rate
/// is UNKNOWN, and so is everything that depends on it.
///
/// Not modelled: infant mortality and wear; failures that follow from other failures or from load.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/sourced.h"
#include "base/yaml/table.h"

namespace foreshard::elastic {

enum class Unit : std::uint8_t { kDevice, kNode, kGroup, kJob };
enum class Takes : std::uint8_t { kNothing, kNode, kGroup };

struct Cause {
  std::string name;
  Unit of = Unit::kDevice;
  /// Mean time between failures of one unit. At most one of `mtbf` and `events` is given.
  std::optional<yaml::Sourced<Seconds>> mtbf;
  std::optional<yaml::Sourced<double>> events;
  Takes takes = Takes::kNode;
  std::int64_t group = 1;                        ///< Number of nodes in a group.
  std::optional<yaml::Sourced<Seconds>> repair;  ///< Time until the failure domain works again.
};

/// The time in which this number of units had the `events` of the causes.
struct Observed {
  Seconds time;
  std::int64_t devices = 0;
  std::int64_t nodes = 0;
};

struct FailureRates {
  std::string name;
  std::string description;
  std::optional<Observed> observed;
  std::vector<Cause> causes;
};

const yaml::Names<Unit>& yaml_names(const Unit*);
const yaml::Names<Takes>& yaml_names(const Takes*);
const yaml::Table<Cause>& yaml_table(const Cause*);
const yaml::Table<Observed>& yaml_table(const Observed*);
/// Catalogue folder: failures.
const yaml::Table<FailureRates>& yaml_table(const FailureRates*);

/// Mean time between failures of one unit; nothing if it is unknown.
std::optional<Seconds> mtbf_of(const Cause& cause, const FailureRates& rates);

}  // namespace foreshard::elastic
