/// \file
/// Takes readings of a device during its steps, from a separate thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/units.h"

#include "validate/measurement/measurement.h"

namespace foreshard::replay {

/// Takes readings for as long as it lives. The first one is taken one period after the beginning,
/// when steps are under way. A reading asks the driver, not the device, and delays no stream.
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
