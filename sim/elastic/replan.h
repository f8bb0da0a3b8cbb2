/// \file
/// One change of a cluster: what a run does when it loses or gains devices. The search of
/// `foreshard search` finds the new strategy, the slices move as planned by `foreshard reshard`,
/// and the time for which the run stands still is added up:
///
///     stall = detection + restart + slices
///     slices = the exchange between devices, if some device still holds every element; otherwise
///              all ranks read all that they hold from the last checkpoint: a checkpoint holds the
///              elements of one step, so surviving devices go back to that step too
///
/// Not modelled: work lost since the last checkpoint (`foreshard elastic` counts it); replicas that
/// read from storage once and send on; some devices that begin earlier than others.
/// Requirements (README.md): R4.9, a new strategy when devices come or go; R1.1, conversion of
/// sharded parameters; R0.4, slices assembled from the intersecting ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"
#include "base/result.h"
#include "base/units.h"

#include "sim/elastic/move.h"
#include "sim/search/search.h"
#include "sim/simulate/prediction.h"
#include "sim/study/evidence.h"
#include "sim/study/study.h"

namespace foreshard::elastic {

/// Costs that a study does not tell. Empty: unknown.
struct RestartCosts {
  std::optional<Seconds> detection;       ///< Time from the failure until somebody acts.
  std::optional<Seconds> restart;         ///< Time to start processes and communicators again.
  std::optional<BytesPerSecond> storage;  ///< Rate at which all ranks together read a checkpoint.
};

struct ReplanOptions {
  search::SearchOptions search = {};
  bool keep = false;  ///< Whether to keep the old strategy if it still fits.
  RestartCosts costs = {};
};

/// A strategy that runs on a cluster.
struct Running {
  Strategy strategy;
  std::vector<std::string> use;       ///< Selectors as in search::Simulated.
  std::vector<std::int32_t> devices;  ///< Devices of its ranks.
  std::int64_t idle = 0;              ///< Working devices without a rank.
  Seconds step;
  Seconds low;  ///< Interval of the step.
  Seconds high;
  study::Unmeasured unmeasured;  ///< Unmeasured part of the step.
  Bytes peak;
  Bytes capacity;
  bool tight = false;  ///< Whether it leaves less than the study's memory margin.
};

struct Replan {
  std::string model;
  std::string cluster_before;
  std::string cluster_after;
  std::vector<std::int32_t> failed;  ///< Devices that worked before and are down afterwards.
  std::int64_t removed = 0;          ///< Devices that the cluster no longer has; they still send.
  std::int64_t added = 0;  ///< Devices that the cluster did not have before, or that were down.
  Running before;
  Running after;
  bool kept = false;
  std::string not_kept;    ///< Reason why the old strategy was not kept, if that was requested.
  bool certified = false;  ///< See search::SearchResult; false if kept.
  bool partial = false;    ///< Whether the search ran out of time or was stopped.
  /// The exchange between devices; nothing if something is lost.
  std::optional<conversion::Explanation> move;
  Bytes lost;        ///< Bytes of which no device has a copy.
  Bytes checkpoint;  ///< Size of a checkpoint, each element once.
  Bytes read;        ///< Bytes that all ranks read, if something is lost.
  RestartCosts costs;

  /// Bytes that move between devices or from storage. They are known even if their time is not.
  Bytes bytes() const;
  std::optional<Seconds> slices() const;
  /// The detection counts only after a failure; any other change is known beforehand.
  std::optional<Seconds> stall() const;
};

/// Plans the change. If the search finds nothing that fits, the error says what its best strategy
/// lacks.
/// \param after  the changed study; the parallel sizes of its strategy do not matter.
/// \return kUnsupported for a graph; kInvalidInput if the models differ, or devices with the same
///     number; kInfeasible if nothing fits afterwards; otherwise the errors of run_search and
///     run_study.
Result<Replan> replan(const study::LoadedStudy& before, study::LoadedStudy after,
                      const ReplanOptions& options);

const record::Record<Replan>& record_of(const Replan*);
/// Schema foreshard.replan/1.
std::string replan_json(const Replan& result);
std::string replan_text(const Replan& result, const Paper& paper = {});

}  // namespace foreshard::elastic

namespace foreshard::elastic::internal {

/// The study's own strategy. `prediction` is the one of its step.
Running running_of(const study::LoadedStudy& study, const sim::Prediction& prediction);
Running running_of(const search::Simulated& found);

/// The simulated time, or the time on idle links if the exchange is too large for that; zero if
/// nothing moves.
Seconds time_of(const conversion::Explanation& move);

}  // namespace foreshard::elastic::internal
