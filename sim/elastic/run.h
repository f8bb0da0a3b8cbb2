/// \file
/// From a timeline to the results of its policies: many histories of the same run, and their
/// statistics.
///
///     goodput   = run without failures and checkpoints / mean time of the run
///     interval  = Daly's or Young's, from the mean time between failures that hit the whole run
///     a checkpoint writes every element once, at the speed of the storage; if it is asynchronous,
///     the run stops only while the slices are copied to the hosts, from all devices at once
///
/// A cause without a rate is left out: goodput is then an upper bound. A cause with a rate but
/// without a repair time makes the results of every policy unknown (`unknown` says why), unless the
/// cause takes nothing down; so do histories that do not end, for their policy.
///
/// Not modelled: electricity while the run stands still (rent counts); the load of writing on the
/// network and the hosts; queues on a shared cluster.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"
#include "base/result.h"
#include "base/units.h"

#include "sim/elastic/history.h"
#include "sim/elastic/replan.h"
#include "sim/elastic/timeline.h"

namespace foreshard::elastic {

/// A cause on the machine of the run.
struct CauseFigures {
  std::string name;
  std::int64_t units = 0;          ///< Units in the run, without spares.
  std::optional<Seconds> mtbf;     ///< Mean time between failures of one unit; empty: UNKNOWN.
  std::optional<Seconds> between;  ///< Mean time between failures of all units together.
  std::optional<Seconds> repair;   ///< Empty: UNKNOWN, or the cause takes nothing down.
  bool takes = false;
};

struct CheckpointFigures {
  Bytes size;
  Seconds interval;
  std::string rule;  ///< "given", "daly", "young".
  Seconds blocked;
  Seconds written;
};

/// Statistics of the time of a run; percentiles are nearest ranks.
struct Spread {
  Seconds mean;
  Seconds p10;
  Seconds median;
  Seconds p90;
};

struct PolicyFigures {
  Policy policy = Policy::kWait;
  std::string unknown{};      ///< Reason why the results are unknown; empty: they are valid.
  std::int64_t finished = 0;  ///< Number of histories that finished.
  double goodput = 0;  ///< Counts causes with a rate only: an upper bound if others have none.
  Spread time{};       ///< Set only if all histories finished.
  /// Time of each history, ascending; empty unless all finished.
  std::vector<Seconds> times{};
  Parts parts{};  ///< Mean over the histories; so are the numbers below.
  double failures = 0;
  double interrupted = 0;
  double checkpoints = 0;
  double moves = 0;
  Bytes moved{};
  std::int64_t fewest_nodes = 0;  ///< Minimum over all histories.
  /// Rent of all nodes that are there, with spares of replace and added nodes.
  std::optional<Dollars> rent{};
  std::map<std::size_t, double> by_cause{};  ///< Number of interruptions, by index of `causes`.
};

struct ArrangementFigures {
  Arrangement arrangement;
  std::string strategy;  ///< Empty: no strategy fits.
  std::optional<Seconds> step;
  bool tight = false;            ///< Whether it leaves less than the study's memory margin.
  std::int64_t idle = 0;         ///< Devices of these nodes without a rank; 0 for reroute.
  std::optional<Seconds> low{};  ///< Interval of the step.
  std::optional<Seconds> high{};
};

struct ElasticResult {
  std::string name;
  std::string model;
  std::string cluster;
  std::string strategy;
  std::string train;
  double steps = 0;
  Seconds step;
  Seconds low{};  ///< Interval of the step.
  Seconds high{};
  std::int64_t nodes = 0;
  std::int64_t spares = 0;
  std::int64_t histories = 0;
  std::int64_t seed = 0;
  std::vector<CauseFigures> causes{};
  std::vector<std::string> without_rate{};  ///< Names of the causes without a rate.
  /// Mean time between failures of the run, from the causes with a known rate.
  std::optional<Seconds> between{};
  CheckpointFigures checkpoint{};
  std::vector<PolicyFigures> policies{};           ///< Same order as requested.
  std::vector<ArrangementFigures> arrangements{};  ///< Arrangements that occurred in the histories.
  /// Unmeasured parts of the steps of the arrangements, the study's own among them.
  std::vector<study::Unmeasured> unmeasured{};

  Seconds ideal() const { return steps * step; }
};

struct ElasticOptions {
  std::vector<std::filesystem::path> catalogue;
  std::int64_t threads = 2;        ///< Threads per search.
  std::function<void()> progress;  ///< Called after each history. May be empty.
};

/// \return kInvalidInput with its place in the timeline or the study; the errors of StudyPlans.
Result<ElasticResult> run_elastic(const LoadedTimeline& timeline, const ElasticOptions& options);

const record::Record<ElasticResult>& record_of(const ElasticResult*);
/// Schema foreshard.elastic/1.
std::string elastic_json(const ElasticResult& result);
std::string elastic_text(const ElasticResult& result, const Paper& paper = {});

}  // namespace foreshard::elastic
