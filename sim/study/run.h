/// \file
/// From a loaded study to its prediction: cluster, Program, simulation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/simulate/prediction.h"
#include "sim/simulate/simulate.h"
#include "sim/study/study.h"
#include "strategies/plan/step_plan.h"

namespace foreshard::study {

/// The study's cluster. Its devices run at the clocks of the slowest device that the job runs on
/// (clock_spread.h).
/// \param used  the devices of the job's ranks; in a search, those that its strategies may use.
/// \return kInvalidInput, with a place, if the parts of the cluster do not fit together.
Result<ClusterView> cluster_of(const LoadedStudy& study, std::span<const std::int32_t> used);
/// The same for the ranks of the study's own strategy.
Result<ClusterView> cluster_of(const LoadedStudy& study);

/// `program` with the launch time of each rank on the host that holds its device (Host::launching).
/// The Program's own launch time is its framework's on a host of speed 1.
/// \pre The devices exist.
program::Program with_launch_times(program::Program program, const ClusterView& cluster);

/// The verified Program of the study's strategy on a cluster.
/// \param remarks  if not null, receives the decisions about a general graph, as text for people.
/// \return kInvalidInput where lowering or verification fails.
Result<program::Program> program_of(const LoadedStudy& study, const ClusterView& cluster,
                                    std::vector<std::string>* remarks = nullptr);

/// A step of the study with one of its strategies. Every simulation of a study comes here, so that
/// each knows what the strategy keeps free of a device's memory and how sure its links are.
/// \param used      devices of the ranks
/// \param options   `reserve` and `links` are set here.
/// \return what sim::simulate returns.
Result<sim::Prediction> simulated(const LoadedStudy& study, const Strategy& strategy,
                                  std::span<const std::int32_t> used, const ClusterView& cluster,
                                  const program::Program& program, sim::SimulateOptions options);
/// The same with the study's own strategy, on its devices.
Result<sim::Prediction> simulated(const LoadedStudy& study, const ClusterView& cluster,
                                  const program::Program& program, sim::SimulateOptions options);

/// The step plan that the Program follows. It returns the errors of program_of.
Result<plan::StepPlan> plan_of(const LoadedStudy& study);

/// Sets the cost of a step on the study's cluster and, if the study describes a training, its
/// number of steps.
void set_expense(sim::Prediction& prediction, const LoadedStudy& study, const ClusterView& cluster);

/// Sets the interval of a step of the study (interval.h), and warns if it rests on unmeasured
/// parameters or features (evidence.h).
void set_evidence(sim::Prediction& prediction, const LoadedStudy& study);

struct StudyRun {
  ClusterView cluster;
  program::Program program;
  sim::Prediction prediction;
};

/// \return The errors of cluster_of, program_of and simulate.
Result<StudyRun> run_study(const LoadedStudy& study, const sim::SimulateOptions& options);

// The part of a device's memory that a strategy should leave free, because a predicted peak can be
// too low. With h = the 90th percentile of measured / predicted peak (ParameterErrors::memory),
//
//     margin = 1 - 1 / h
//
// is the part of the memory to keep free: a strategy that keeps it fits in nine cases of ten even
// if it uses all the rest. The percentile is the framework's own (on NVIDIA's devices) if enough
// of its peaks were measured (configs/intervals/parameter-errors.yaml), otherwise the percentile
// of all frameworks.
// Not modelled: the part of the driver and the communication library (the reserve) is as
// uncertain.

struct MemoryMargin {
  double part = 0;  ///< Margin as a part of each device's memory.
  /// Source of the margin: "memory_margin", "9 of 10 of 45 measured peaks are at most ...".
  std::string source;

  /// Whether a peak leaves less than the margin on a device with `memory` bytes, `capacity` of
  /// which are available for tensors.
  bool is_tight(Bytes peak, Bytes capacity, Bytes memory) const {
    return peak > capacity - part * memory;
  }
  /// Whether the device with the least room is tight.
  bool is_tight(const sim::Prediction& prediction) const;
};

/// The margin that the study states, or the one from measured peaks of its framework.
MemoryMargin memory_margin_of(const LoadedStudy& study);

}  // namespace foreshard::study
