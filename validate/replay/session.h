/// \file
/// A replay from its preparation to its measurement: warm-up, repeats until they are enough,
/// medians, and the records of all ranks brought together at rank 0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "validate/measurement/measurement.h"
#include "validate/replay/executor.h"
#include "validate/replay/plan.h"
#include "validate/replay/store.h"
#include "validate/replay/watch.h"
#include "validate/replay/watchdog.h"

namespace foreshard::replay {

struct SessionOptions {
  std::int32_t rank = 0;   ///< Of the processes, not of the Program (as_rank).
  std::int32_t ranks = 1;  ///< Processes.
  bool verify = false;     ///< Check the numbers that communication delivers, first.
  bool measure = true;
  std::int64_t warmup = 2;
  std::int64_t repeats = 10;         ///< At least so many.
  std::optional<double> until{};     ///< Go on until medians are known to this (statistics.h)...
  std::int64_t most_repeats = 200;   ///< ... or so many are measured.
  std::optional<Seconds> lasting{};  ///< Go on for so long, however many steps these are.
  Seconds patience = 60_s;           ///< With the other ranks, between steps.
  measure::Mode mode = measure::Mode::kWhole;
  bool shared = false;
  std::string backend{};
  std::string version{};
  std::string date{};
};

struct RankVerification {
  std::int32_t rank = 0;
  Verification result{};
};

/// What a process knows at the end. Verdicts are known to all, the rest to rank 0.
struct SessionResult {
  bool verified = true;                               ///< No rank found a fault.
  std::vector<RankVerification> verifications{};      ///< Rank 0's, if asked for.
  std::optional<measure::Measurement> measurement{};  ///< Rank 0's, if asked for.
  std::map<std::int32_t, Bytes> expected_peaks{};     ///< By rank: statistics.h; rank 0's.
};

/// All processes of a job call it, with the same options but `rank`.
/// \param plan  of this process.
/// \return the executor's error, or the store's.
Result<SessionResult> run_session(const RankPlan& plan, Executor& executor, Store& store,
                                  Watch& watch, Watchdog& watchdog, const SessionOptions& options);

/// "2026-05-04T12:30:00Z": now.
std::string date_of_now();

/// For people: the step, each rank's memory, what was verified.
std::string summary(const SessionResult& result);

}  // namespace foreshard::replay
