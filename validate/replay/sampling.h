/// \file
/// Readings of a device from beside its steps, by a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/units.h"

#include "validate/measurement/measurement.h"

namespace foreshard::replay {

/// As long as it lives. The first reading is one period after the beginning, when steps are under
/// way. A reading asks the driver, not the device: it takes no time of a stream.
class Sampler {
 public:
  /// \param read  is called from another thread; outlives this object.
  explicit Sampler(std::function<measure::Reading()> read, Seconds period = 100_ms);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Ends it. \return what was read.
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
