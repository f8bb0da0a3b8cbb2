/// \file
/// A replay from preparation to measurement: warm-up, repeats until they suffice, medians, and the
/// collection of all ranks' records at rank 0.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
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
  std::int32_t rank = 0;   ///< Index of the process in the job; as_rank may replay another rank.
  std::int32_t ranks = 1;  ///< Number of processes.
  bool verify = false;     ///< First check the numbers that communication delivers.
  bool measure = true;
  std::int64_t warmup = 2;
  std::int64_t repeats = 10;         ///< Least number of repeats.
  std::optional<double> until{};     ///< Repeat until medians are this certain (statistics.h).
  std::int64_t most_repeats = 200;   ///< Most repeats with `until`.
  std::optional<Seconds> lasting{};  ///< Repeat for this time, whatever the number of steps.
  Seconds patience = 60_s;           ///< How long to wait for other ranks between steps.
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

/// What a process knows at the end. All processes know `verified`; only rank 0 has the rest.
struct SessionResult {
  bool verified = true;                               ///< No rank found a fault.
  std::vector<RankVerification> verifications{};      ///< Filled if SessionOptions::verify.
  std::optional<measure::Measurement> measurement{};  ///< Filled if SessionOptions::measure.
  std::map<std::int32_t, Bytes> expected_peaks{};     ///< Rank -> expected_peak (statistics.h).
};

/// Runs a session. All processes of a job call it, with the same options except `rank`.
/// \param plan  the plan of this process.
/// \return errors of the executor or the store.
Result<SessionResult> run_session(const RankPlan& plan, Executor& executor, Store& store,
                                  Watch& watch, Watchdog& watchdog, const SessionOptions& options);

/// The present time: "2026-05-04T12:30:00Z".
std::string date_of_now();

/// Text for people: the step, each rank's memory, what was verified.
std::string summary(const SessionResult& result);

/// Takes readings of a device during its steps, from a separate thread, for as long as it lives.
/// The first one is taken one period after the beginning, when steps are under way. A reading asks
/// the driver, not the device, and delays no stream.
class Sampler {
 public:
  /// \param read  is called from another thread; what it uses must outlive this object.
  explicit Sampler(std::function<measure::Reading()> read, Seconds period = 100_ms);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Stops. \return the readings.
  std::vector<measure::Reading> stop();

 private:
  void run();

  std::function<measure::Reading()> read_;
  Seconds period_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::vector<measure::Reading> readings_;
  std::thread thread_;
};

}  // namespace foreshard::replay
