/// \file
/// From a point of a sweep to what comes out there.
///
/// A point is loaded as `simulate --set ...` loads a study. Without a search its strategy is
/// simulated; with one, the strategy that the search finds is set and simulated the same way, so
/// that a point is what `foreshard simulate` says of its settings. Engine and granularity are
/// `simulate`'s defaults.
///
/// The key of a point is the SHA-256 of all that decides its outcome: the version, the bytes of
/// every file that took part, the values set as the sweep writes them, the options of the search.
/// Where the files lie, and how their paths are spelled, is no part of it. Points of equal keys
/// have equal outcomes, whatever sweep they belong to. A point that cannot be loaded is known by
/// its values and message. Messages name the sweep's file, axis and value, and files as seen from
/// its folder.
///
/// Not modelled: nothing beyond a Prediction. A point whose step never ends (its disturbances kill
/// it) is infeasible.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/study/study.h"
#include "sim/sweep/outcome.h"
#include "sim/sweep/sweep.h"

namespace foreshard::sweep {

struct Setup {
  LoadedSweep sweep;
  std::vector<std::filesystem::path> catalogue;
  std::string version;              ///< Of the program: outcomes of another one are not reused.
  std::int64_t search_threads = 1;  ///< Of each search; outcomes do not depend on it.
  /// Most memory for the tasks of one simulation (sim/simulate/memory_limit.h); a point that needs
  /// more is invalid here, and is tried again by the next run.
  Bytes max_memory = Bytes::from_base(std::numeric_limits<double>::infinity());
};

struct Point {
  std::string key;
  std::variant<study::LoadedStudy, Outcome> state;  ///< An Outcome where it cannot be loaded.
};

/// \return kIo where a file cannot be read: a fault of the sweep rather than of the point.
Result<Point> load_point(const Setup& setup, std::int64_t index);

/// What processes that share a sweep, or a results file, must have alike: version, question, inputs
/// of the first point. \return kIo as above.
Result<std::string> common_work(const Setup& setup);

/// \return kIo as above.
Result<Outcome> outcome_at(const Setup& setup, std::int64_t index, const Point& point);

}  // namespace foreshard::sweep
