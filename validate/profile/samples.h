/// \file
/// From matched traces to what `foreshard calibrate` fits to: one sample per distinct kernel and
/// collective, and what the host took.
///
/// A collective's time in the trace of one rank holds what it waited for the others. Its sample is
/// therefore what the fastest quarter of its instances took at most; of several ranks' traces, of
/// each instance first the shortest over the ranks (the last to come waits for nobody).
/// Not modelled: that neighbours on other streams slow a kernel down, and that a profiler slows the
/// host down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/measured_times.h"
#include "strategies/program/ir/program.h"
#include "validate/calibrate/samples.h"
#include "validate/profile/inspector.h"
#include "validate/profile/kineto.h"
#include "validate/profile/match.h"

namespace foreshard::profile {

/// A trace and what was matched of it.
struct ProfiledRank {
  std::int32_t rank = 0;
  Trace trace;
  Match match;
};

/// What all traces tell. \pre the matches are of `program`.
calibrate::Samples samples_of(const program::Program& program,
                              const std::vector<ProfiledRank>& ranks);

/// Adds what was measured of collectives alone, each on the Program's group of as many ranks that
/// does the same, else on any group of so many.
/// \return what no group of the Program has as many ranks for, in words: it is left out.
std::vector<std::string> add_collectives(calibrate::Samples& samples,
                                         const program::Program& program,
                                         const std::vector<InspectedCollective>& collectives);

/// The samples as the table that --measured reads.
study::MeasuredTimes measured_times(const calibrate::Samples& samples, const std::string& source);

struct HostNumbers {
  std::int64_t launches = 0;
  calibrate::Spread call;      ///< Of one call that launches.
  calibrate::Spread interval;  ///< From one launch to the next, without waiting between.
  /// Of the same. Most of a step's host time is in few long ones: hooks of modules, guards.
  Seconds mean_interval;
  /// What a task of the Program takes the host: launches per task, times `mean_interval`.
  Seconds per_task;
};
/// Nothing where launches were not recorded.
std::optional<HostNumbers> host_numbers(const std::vector<ProfiledRank>& ranks);

/// The GPU time of half of the layers, from the tasks of the other half: each kernel and collective
/// takes what the same one took there, in the middle. \pre as samples_of.
struct HeldOutLayers {
  std::int64_t layers = 0;  ///< 0: there are not two.
  Seconds measured[2]{};    ///< Of even and odd layers.
  Seconds predicted[2]{};   ///< Of them, from the others.
};
HeldOutLayers held_out_layers(const program::Program& program,
                              const std::vector<ProfiledRank>& ranks);

/// A kernel or collective that was measured, beside what the model expects of it.
struct Compared {
  std::string what;  ///< "gemm 4096x1536x7168 fp8 scaled blocks", "token_exchange of 412 MiB ...".
  std::int64_t count = 0;
  Seconds measured;  ///< In the middle.
  Seconds expected;
};
/// Most time first.
std::vector<Compared> compared(const program::Program& program,
                               const std::vector<ProfiledRank>& ranks);

}  // namespace foreshard::profile
