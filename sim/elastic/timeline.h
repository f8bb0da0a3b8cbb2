/// \file
/// A run on a machine that fails, in YAML (`foreshard elastic`, catalogue folder: elastic):
///
///     study: llama2-70b-h100-128     # a catalogue name or a path
///     train: 2T tokens               # default: the study's
///     failures: llama3-h100          # drawn; configs/failures/, or written out
///     repair: 12 h                   # of causes that do not say it themselves
///     events:                        # given
///       - {at: 2 d, fails: node3, repaired: 3 d}
///       - {at: 9 d, adds: 2}
///     spares: 1
///     detection: 3 min
///     restart: 5 min
///     regroup: 30 s                  # of reroute; default: restart
///     recovery: replicas             # or checkpoint, the default
///     checkpoint: {storage: 100 GB/s, optimum: daly, asynchronous: true}
///     search: {space: {level: 1}, simulate: 4, certify: 0}
///     policies: [replace, shrink, wait, reroute]
///     histories: 200
///     seed: 1
///
/// Times of events count from the beginning of the run. Nodes are named node0, node1, ...: first
/// the study's nodes, then the spares, then the added ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/loader.h"
#include "base/yaml/ref.h"
#include "base/yaml/sourced.h"
#include "base/yaml/table.h"

#include "sim/elastic/history.h"
#include "sim/sweep/sweep.h"

namespace foreshard::elastic {

// How often the parts of a machine fail, in YAML (catalogue folder: failures):
//
//     name: llama3-h100
//     observed: {time: 54 d, devices: 16384, nodes: 2048}
//     causes:
//       - {name: faulty GPU, of: device, events: {value: 148, source: "...", evidence: measured}}
//       - {name: rack power, of: group, group: 4, takes: group}          # no rate: UNKNOWN
//       - {name: software, of: device, mtbf: 300 y, takes: nothing}
//
// A rate is given as the mean time between failures of one unit, or as a number of observed
// events:
//
//     mtbf = observed time x observed units / events
//
// Failures of a cause are exponential and independent. A cause takes down its failure domain: a
// node, or a group of adjacent nodes (a rack, or all nodes on a leaf switch), which works again
// after the repair; or nothing, if processes end and can restart at once. A cause without a rate
// is UNKNOWN, and so is everything that depends on it.
//
// Not modelled: infant mortality and wear; failures that follow from other failures or from load.

enum class Unit : std::uint8_t { kDevice, kNode, kGroup, kJob };
enum class FailureDomain : std::uint8_t { kNothing, kNode, kGroup };

struct Cause {
  std::string name;
  Unit of = Unit::kDevice;
  /// Mean time between failures of one unit. At most one of `mtbf` and `events` is given.
  std::optional<yaml::Sourced<Seconds>> mtbf;
  std::optional<yaml::Sourced<double>> events;
  FailureDomain takes = FailureDomain::kNode;
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
const yaml::Names<FailureDomain>& yaml_names(const FailureDomain*);
const yaml::Table<Cause>& yaml_table(const Cause*);
const yaml::Table<Observed>& yaml_table(const Observed*);
/// Catalogue folder: failures.
const yaml::Table<FailureRates>& yaml_table(const FailureRates*);

/// Mean time between failures of one unit; nothing if it is unknown.
std::optional<Seconds> mtbf_of(const Cause& cause, const FailureRates& rates);

struct Event {
  Seconds at;
  /// Name of the node: "node3". Exactly one of `fails` and `adds`.
  std::optional<std::string> fails;
  std::optional<std::int64_t> adds;  ///< Number of nodes.
  std::optional<Seconds> repaired;  ///< Time of the repair of the failed node; never, if not given.
};

enum class Optimum : std::uint8_t { kDaly, kYoung };

struct CheckpointRule {
  BytesPerSecond storage;  ///< Rate of all ranks together, for writing and reading.
  /// Time computed between two checkpoints; default: by `optimum`.
  std::optional<Seconds> interval;
  std::optional<Optimum> optimum;  ///< Default: kDaly.
  /// Whether the run continues once the slices are copied to the hosts.
  bool asynchronous = false;
  std::optional<Seconds> blocks;  ///< Time of that copy; default: computed for the study's cluster.
};

struct Timeline {
  std::string description;
  std::string study;
  sweep::Settings set;
  std::optional<std::string> train;
  std::optional<yaml::Ref<FailureRates>> failures;
  std::optional<Seconds> repair;
  std::vector<Event> events;
  std::int64_t spares = 0;
  Seconds detection;
  Seconds restart;
  std::optional<Seconds> regroup;
  Recovery recovery = Recovery::kCheckpoint;
  CheckpointRule checkpoint;
  sweep::PointSearch search;
  std::vector<Policy> policies{Policy::kReplace, Policy::kShrink, Policy::kWait, Policy::kReroute};
  std::int64_t histories = 200;
  std::int64_t seed = 1;
};

const yaml::Names<Optimum>& yaml_names(const Optimum*);
const yaml::Names<Policy>& yaml_names(const Policy*);
const yaml::Names<Recovery>& yaml_names(const Recovery*);
const yaml::Table<Event>& yaml_table(const Event*);
const yaml::Table<CheckpointRule>& yaml_table(const CheckpointRule*);
/// Catalogue folder: elastic.
const yaml::Table<Timeline>& yaml_table(const Timeline*);

struct LoadedTimeline {
  std::string name;  ///< The file without its suffix.
  std::filesystem::path folder;
  Timeline timeline;
  yaml::Loader loader;  ///< The loader of the file, for errors that show a place in it.
};

/// \param name  a file, "-", or a catalogue name.
/// \return kInvalidInput with its place: nothing happens, a policy is named twice, an event fails
///     no node; kIo if the file cannot be read.
Result<LoadedTimeline> load_timeline(const std::string& name, const yaml::Options& options);

/// The number in "node3"; nothing for other words.
std::optional<std::int64_t> node_number(const std::string& name);

}  // namespace foreshard::elastic
