/// \file
/// Of the repeats of a step: medians, spread, and whether they are known well enough.
#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"

#include "validate/measurement/measurement.h"
#include "validate/replay/executor.h"
#include "validate/replay/plan.h"

namespace foreshard::replay {

class Samples {
 public:
  explicit Samples(std::size_t instances) : start_(instances), finish_(instances) {}

  /// \pre the step has as many instances.
  void add(const StepTimes& step);

  const std::vector<Seconds>& steps() const { return steps_; }
  /// By repeat.
  const std::vector<Seconds>& starts_of(std::size_t instance) const { return start_[instance]; }
  const std::vector<Seconds>& finishes_of(std::size_t instance) const { return finish_[instance]; }
  std::vector<measure::TaskTimes> tasks() const;

  /// Whether the medians of the step and of each kernel that takes 1 % of it or more are known to
  /// +-`width` of themselves, at a confidence of 95 %. Communication is left out: its time is the
  /// others' lateness as well.
  /// \pre two steps or more.
  bool narrow(double width, const RankPlan& plan) const;

 private:
  std::vector<Seconds> steps_;
  std::vector<std::vector<Seconds>> start_;   // By instance, then repeat.
  std::vector<std::vector<Seconds>> finish_;  // Likewise.
  std::vector<std::vector<Seconds>> slack_;   // Likewise, or empty.
};

/// finish - start, each of its own place.
/// \pre as many of both.
std::vector<Seconds> differences(const std::vector<Seconds>& finish,
                                 const std::vector<Seconds>& start);

/// Half the width of the 95 % confidence interval of the median, relative to it: from the order
/// statistics n/2 -+ 1.96 sqrt(n)/2, whatever the distribution.
/// Source: W. J. Conover, "Practical Nonparametric Statistics", 3rd ed. 1999, section 3.2.
/// \return infinity for fewer than 6 values, which bound nothing at 95 %.
/// \pre values are > 0.
double median_uncertainty(std::vector<Seconds> values);

/// The most that the Program's buffers take at once when its tasks run at these times: what the
/// allocator's peak should be.
Bytes expected_peak(const RankPlan& plan, const std::vector<measure::TaskTimes>& times);

}  // namespace foreshard::replay
