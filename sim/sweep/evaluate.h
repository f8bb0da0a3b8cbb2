/// \file
/// From a point of a sweep to its outcome.
///
/// A point is loaded as `simulate --set ...` loads a study. Without a search its strategy is
/// simulated; with a search, the strategy that the search finds is set and simulated in the same
/// way. So a point has the result of `foreshard simulate` for its settings. Engine and granularity
/// are `simulate`'s defaults.
///
/// The key of a point is the SHA-256 of everything that decides its outcome: the version, the bytes
/// of every file that took part, the set values as the sweep writes them, the search options. The
/// location of the files and the spelling of their paths do not enter the key. Points with equal
/// keys have equal outcomes, whatever sweep they belong to. The key of a point that cannot be
/// loaded comes from its values and the error message. Messages name the sweep's file, axis and
/// value, and files relative to its folder.
///
/// Not modelled: nothing beyond a Prediction. A point whose step never ends (because of its
/// disturbances) is infeasible.
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
  std::string version;  ///< Version of the program: outcomes of other versions are not reused.
  std::int64_t search_threads = 1;  ///< Threads per search; outcomes do not depend on it.
  /// Maximum memory for the tasks of one simulation (sim/simulate/memory_limit.h). A point that
  /// needs more is invalid here, and the next run tries it again.
  Bytes max_memory = Bytes::from_base(std::numeric_limits<double>::infinity());
};

struct Point {
  std::string key;
  std::variant<study::LoadedStudy, Outcome> state;  ///< An Outcome if it cannot be loaded.
};

/// \return kIo if a file cannot be read: a fault of the sweep, not of the point.
Result<Point> load_point(const Setup& setup, std::int64_t index);

/// Text that must be equal for processes that share a sweep or a results file: version, question,
/// inputs of the first point.
/// \return kIo as in load_point.
Result<std::string> common_work(const Setup& setup);

/// \return kIo as in load_point.
Result<Outcome> outcome_at(const Setup& setup, std::int64_t index, const Point& point);

}  // namespace foreshard::sweep
