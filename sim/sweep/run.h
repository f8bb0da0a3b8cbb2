/// \file
/// The points of a sweep, done by several threads, kept as they are done, and given up where time
/// is over. Results do not depend on who did what when.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"

#include "sim/sweep/evaluate.h"
#include "sim/sweep/results.h"
#include "sim/sweep/store.h"
#include "sim/sweep/team.h"

namespace foreshard::sweep {

/// Part `part` of `parts` of a sweep: every `parts`-th point, from point `part` - 1 on.
struct Shard {
  std::int64_t part = 1;
  std::int64_t parts = 1;
};
/// "2/8". \return kInvalidInput for anything else than 1 <= part <= parts.
Result<Shard> parse_shard(std::string_view text);

struct RunOptions {
  std::int64_t threads = 1;
  Shard shard = {};
  Store* store = nullptr;  ///< May be null: nothing is kept.
  /// Asked before a point is begun, from any thread: whether no more shall be. May be empty. Points
  /// that are being done are finished.
  std::function<bool()> out_of_time = {};
  /// Called as points are done, one call at a time. May be empty.
  std::function<void()> progress = {};
  const Team* team = nullptr;  ///< As rank 0 of several; may be null: alone.
};

struct RunResult {
  Results results;  ///< Also what the store has of points that this run did not come to.
  std::int64_t computed = 0;
  std::int64_t known = 0;     ///< Were in the store before.
  std::int64_t repeated = 0;  ///< Are the same as another one that was computed.
  bool partial = false;       ///< Points of the shard are left.
};

/// \return kIo where a file of the sweep cannot be read, or the store cannot be written to: what is
///     in it stays there; kInvalidInput where no point makes a study, with the first one's fault.
Result<RunResult> run_sweep(const Setup& setup, const RunOptions& options);

}  // namespace foreshard::sweep
