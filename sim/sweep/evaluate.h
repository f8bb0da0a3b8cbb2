/// \file
/// From a point of a sweep to what comes out there.
///
/// A point is loaded as `simulate --set ...` loads a study. Without a search its strategy is
/// simulated; with one, the strategy that the search finds is set and simulated the same way, so
/// that a point is what `foreshard simulate` says of its settings. Engine and granularity are
/// `simulate`'s defaults.
///
/// The key of a point is the SHA-256 of all that decides its outcome: the version, every file that
/// took part, the values set, the options of the search. Points of equal keys have equal outcomes,
/// whatever sweep they belong to. A point that cannot be loaded is known by its values and message.
///
/// Not modelled: nothing beyond a Prediction. A point whose step never ends (its disturbances kill
/// it) is infeasible.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

#include "sim/study/study.h"
#include "sim/sweep/outcome.h"
#include "sim/sweep/sweep.h"

namespace foreshard::sweep {

struct Setup {
  LoadedSweep sweep;
  std::vector<std::filesystem::path> catalogue;
  std::string version;              ///< Of the program: outcomes of another one are not reused.
  std::int64_t search_threads = 1;  ///< Of each search; outcomes do not depend on it.
};

struct Point {
  std::string key;
  std::variant<study::LoadedStudy, Outcome> state;  ///< An Outcome where it cannot be loaded.
};

/// \return kIo where a file cannot be read: a fault of the sweep rather than of the point.
Result<Point> load_point(const Setup& setup, std::int64_t index);

/// \return kIo as above.
Result<Outcome> outcome_at(const Setup& setup, std::int64_t index, const Point& point);

}  // namespace foreshard::sweep
