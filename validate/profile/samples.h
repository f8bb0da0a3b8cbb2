/// \file
/// Turns matched traces into the samples that `foreshard calibrate` fits to: one per distinct
/// kernel and collective, and the host's times. Times are durations in seconds; a Spread is a
/// median with its 95 % interval (validate/calibrate/samples.h). Without traces there are no
/// samples.
///
/// In the trace of one rank, a collective's time includes waiting for the other ranks. Its sample
/// is therefore the first quartile over its instances. With traces of several ranks, an instance's
/// time is first reduced to the shortest over the ranks, because the last rank to arrive waits for
/// nobody.
/// Not modelled: that concurrent kernels on other streams slow a kernel down, and that the profiler
/// slows the host down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/page.h"

#include "sim/study/measured_times.h"
#include "strategies/program/ir/program.h"
#include "validate/calibrate/samples.h"
#include "validate/profile/inspector.h"
#include "validate/profile/kineto.h"
#include "validate/profile/match.h"

namespace foreshard::profile {

/// A trace and its match.
struct ProfiledRank {
  std::int32_t rank = 0;
  Trace trace;
  Match match;
};

/// The samples of all traces. \pre the matches are of `program`.
calibrate::Samples samples_of(const program::Program& program,
                              const std::vector<ProfiledRank>& ranks);

/// Adds collectives that were measured separately. Each is assigned to a group of the Program that
/// has as many ranks and runs the same kind, else to any group with as many ranks.
/// \return the collectives that were left out because no group has as many ranks, in words.
std::vector<std::string> add_collectives(calibrate::Samples& samples,
                                         const program::Program& program,
                                         const std::vector<InspectedCollective>& collectives);

/// The samples as the table that --measured reads.
study::MeasuredTimes measured_times(const calibrate::Samples& samples, const std::string& source);

/// Times of the hosts in all traces.
struct HostNumbers {
  std::int64_t launches = 0;
  calibrate::Spread call;  ///< Duration of a call that launches.
  /// Time from one launch to the next. It counts if no call between them waits for the GPU.
  calibrate::Spread interval;
  /// Mean of the intervals. It exceeds the median, because most of a step's host time is in a few
  /// long intervals (PyTorch's module hooks, the compiler's guards).
  Seconds mean_interval;
  /// Host time per task of the Program: launches per task, times `mean_interval`.
  Seconds per_task;
};
/// \return nothing if launches were not recorded.
std::optional<HostNumbers> host_numbers(const std::vector<ProfiledRank>& ranks);

/// The GPU time of half of the layers, predicted from the other half: each kernel and collective is
/// predicted to take the median time of the same one there or, if it does not run there, the cost
/// model's time. \pre as samples_of.
struct HeldOutLayers {
  std::int64_t layers = 0;  ///< Number of layers; 0: the model has fewer than two.
  Seconds measured[2]{};    ///< Measured time, [0] of the even layers, [1] of the odd ones.
  Seconds predicted[2]{};   ///< The same times, each predicted from the other half.
};
HeldOutLayers held_out_layers(const program::Program& program,
                              const std::vector<ProfiledRank>& ranks);

/// Measured time of a kernel or collective against the cost model's.
struct Compared {
  std::string what;  ///< "gemm 4096x1536x7168 fp8 scaled blocks", "token_exchange of 412 MiB ...".
  std::int64_t count = 0;
  Seconds measured;  ///< Median.
  Seconds expected;  ///< Time by the cost model.
};
/// Ordered by count times measured time, descending.
std::vector<Compared> compared(const program::Program& program,
                               const std::vector<ProfiledRank>& ranks);

/// Text for people about one trace: the share of its GPU time that was matched, and the kernels and
/// tasks that could not be matched.
std::string to_text(const program::Program& program, const Trace& trace, const Match& match,
                    const Paper& paper = {});

/// Text for people about all traces: measured times against the model's, the host's times, and the
/// held-out layers.
std::string to_text(const program::Program& program, const std::vector<ProfiledRank>& ranks,
                    const Paper& paper = {});

}  // namespace foreshard::profile
