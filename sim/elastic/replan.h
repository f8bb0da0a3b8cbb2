/// \file
/// One change of a cluster (R4.9, R1.1): what a run does that loses devices, or is given some. The
/// strategy is found anew by the search of `foreshard search`, the slices move as `foreshard
/// reshard` plans it, and what stands still meanwhile is added up.
///
///     stall = detection + restart + slices
///     slices = the exchange between devices, where somebody still has every element; else all that
///              the ranks hold, read from the last checkpoint: storage gives elements of one step
///              alone, so survivors go back to it too
///
/// Not modelled: work that is lost since the last checkpoint (`foreshard elastic` counts it);
/// replicas that read once from storage and send on; that some devices begin before others.
/// Requirement: R4.9, R1.1, R0.4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/elastic/move.h"
#include "sim/search/search.h"
#include "sim/study/evidence.h"
#include "sim/study/study.h"

namespace foreshard::elastic {

/// What nobody can tell from a study. Empty: not known.
struct RestartCosts {
  std::optional<Seconds> detection;       ///< From the failure until somebody acts.
  std::optional<Seconds> restart;         ///< Processes and communicators begin again.
  std::optional<BytesPerSecond> storage;  ///< Of all ranks that read a checkpoint, together.
};

struct ReplanOptions {
  search::SearchOptions search = {};
  bool keep = false;  ///< The old strategy, where it still fits.
  RestartCosts costs = {};
};

/// A strategy that runs on a cluster.
struct Running {
  Strategy strategy;
  std::vector<std::string> use;       ///< As of search::Simulated.
  std::vector<std::int32_t> devices;  ///< Of its ranks.
  std::int64_t idle = 0;              ///< Devices that work and carry no rank.
  Seconds step;
  Seconds low;  ///< Interval of the step.
  Seconds high;
  study::Unmeasured unmeasured;  ///< What of the step nobody measured.
  Bytes peak;
  Bytes capacity;
  bool tight = false;  ///< It leaves less than the study's memory margin.
};

struct Replan {
  std::string model;
  std::string cluster_before;
  std::string cluster_after;
  std::vector<std::int32_t> failed;  ///< Devices that worked before and are down afterwards.
  std::int64_t removed = 0;          ///< Devices that the cluster no longer has; they still send.
  std::int64_t added = 0;            ///< That it had not, or that were down.
  Running before;
  Running after;
  bool kept = false;
  std::string not_kept;    ///< Why the old strategy was not kept, where that was asked for.
  bool certified = false;  ///< As of search::SearchResult; false if kept.
  bool partial = false;    ///< The search's time was over, or somebody stopped it.
  /// The exchange between devices; nothing where something is lost.
  std::optional<conversion::Explanation> move;
  Bytes lost;        ///< Of which no device has a copy.
  Bytes checkpoint;  ///< Each element once.
  Bytes read;        ///< By all ranks, where something is lost.
  RestartCosts costs;

  /// Between devices, or from storage; what moves is known, how long it takes may not be.
  Bytes bytes() const;
  std::optional<Seconds> slices() const;
  /// The detection of a failure counts; a change without one is known beforehand.
  std::optional<Seconds> stall() const;
};

/// A search may have found nothing that fits: then the best that it found, or nothing at all.
/// \param after  the changed study; the parallel sizes of its strategy do not matter.
/// \return kUnsupported for a graph; kInvalidInput where models differ, or devices of the same
///     number; kInfeasible where nothing fits afterwards; else as run_search and run_study.
Result<Replan> replan(const study::LoadedStudy& before, study::LoadedStudy after,
                      const ReplanOptions& options);

/// Schema foreshard.replan/1.
std::string replan_json(const Replan& result);
std::string replan_text(const Replan& result);

}  // namespace foreshard::elastic
