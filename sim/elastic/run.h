/// \file
/// From a time line to what its policies come to: many histories of the same run, and what they
/// have in common.
///
///     goodput   = run without failures and checkpoints / mean time of the run
///     interval  = Daly's or Young's, of the mean time between failures that hit the whole run
///     a checkpoint writes every element once, at the speed of the storage; asynchronous: the run
///     stops until the slices are copied to the hosts, all devices at once
///
/// Where a rate or a repair has no source, what depends on it is UNKNOWN: goodput without the
/// causes that nobody has counted is a bound, and is called so.
///
/// Not modelled: electricity while the run stands still (rent counts); the load that writing puts
/// on the network and the hosts; queues for a cluster that is shared.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/elastic/history.h"
#include "sim/elastic/replan.h"
#include "sim/elastic/timeline.h"

namespace foreshard::elastic {

/// A cause on the machine of the run.
struct CauseFigures {
  std::string name;
  std::int64_t units = 0;          ///< Of the run, spares left out.
  std::optional<Seconds> mtbf;     ///< Of one of them; empty: UNKNOWN.
  std::optional<Seconds> between;  ///< Of all of them.
  std::optional<Seconds> repair;   ///< Empty: UNKNOWN, or nothing is taken.
  bool takes = false;
};

struct CheckpointFigures {
  Bytes size;
  Seconds interval;
  std::string rule;  ///< "given", "daly", "young".
  Seconds blocked;
  Seconds written;
};

/// Of the days that a run takes; nearest ranks.
struct Spread {
  Seconds mean;
  Seconds p10;
  Seconds median;
  Seconds p90;
};

struct PolicyFigures {
  Policy policy = Policy::kWait;
  std::string unknown{};      ///< Why nothing is known of it; empty: the rest holds.
  std::int64_t finished = 0;  ///< Histories that came to their end.
  double goodput = 0;         ///< By the causes that are known.
  Spread time{};              ///< Of those that finished.
  Parts parts{};              ///< Means, like all below.
  double failures = 0;
  double interrupted = 0;
  double checkpoints = 0;
  double moves = 0;
  Bytes moved{};
  std::int64_t fewest_nodes = 0;  ///< Of all histories.
  std::optional<Dollars> rent{};  ///< Of all nodes that are there: spares of replace, added ones.
  std::map<std::size_t, double> by_cause{};  ///< Interruptions, by index of `causes`.
};

struct ArrangementFigures {
  Arrangement arrangement;
  std::string strategy;  ///< Empty: none fits.
  std::optional<Seconds> step;
  bool tight = false;            ///< It leaves less than the study's memory margin.
  std::int64_t idle = 0;         ///< Devices of these nodes without a rank; 0 of reroute.
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
  std::vector<std::string> without_rate{};  ///< Names of causes.
  std::optional<Seconds> between{};  ///< Mean time between failures of the run, by what is known.
  CheckpointFigures checkpoint{};
  std::vector<PolicyFigures> policies{};           ///< In the order asked for.
  std::vector<ArrangementFigures> arrangements{};  ///< That the histories came to.
  /// What nobody measured of the study's own step, and of those of the arrangements.
  std::vector<study::Unmeasured> unmeasured{};

  Seconds ideal() const { return steps * step; }
};

struct ElasticOptions {
  std::vector<std::filesystem::path> catalogue;
  std::int64_t threads = 2;        ///< Of each search.
  std::function<void()> progress;  ///< After each history. May be empty.
};

/// \return kInvalidInput with its place in the time line or the study; as StudyPlans.
Result<ElasticResult> run_elastic(const LoadedTimeline& timeline, const ElasticOptions& options);

/// Schema foreshard.elastic/1.
std::string elastic_json(const ElasticResult& result);
std::string elastic_text(const ElasticResult& result);

}  // namespace foreshard::elastic
