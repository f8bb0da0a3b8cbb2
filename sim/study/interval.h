/// \file
/// The interval in which a step is expected, and why: it comes from measured steps, those that have
/// most in common with it weighing most (measured_steps.h), and is widened if the step rests on
/// parameters that were not measured on its devices.
///
/// Let r10 and r90 be the percentiles of measured / predicted steps. For each group of parameters
/// that the critical path used, take the same ratio for single kernels and collectives whose
/// parameters have the same evidence (configs/intervals/parameter-errors.yaml). Then
///
///     low  = step exp(-sqrt(ln(r10)^2 + w_low^2))     w = sum over groups of
///     high = step exp( sqrt(ln(r90)^2 + w_high^2))        share sqrt(q(evidence)^2 - q(fitted)^2)
///
/// where q is the logarithm of a 10 % or 90 % quantile and `share` is the group's part of the step.
/// Assumptions: the measured steps rest on fitted parameters, the errors of one device's group go
/// together, and the two kinds of error are independent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

#include "sim/simulate/prediction.h"
#include "sim/simulate/simulate.h"
#include "sim/study/measured_steps.h"
#include "topology/cluster_config.h"

namespace foreshard::study {

/// The 10th and the 90th percentile of measured / predicted.
struct ErrorRange {
  double low = 1;
  double high = 1;
  std::int64_t measurements = 0;
  std::string source;
};

/// Error ranges by the evidence of the parameters. Measured ones count as fitted.
struct ErrorsByEvidence {
  ErrorRange fitted;
  ErrorRange transferred;
  ErrorRange datasheet;
  ErrorRange user;

  const ErrorRange& at(yaml::Evidence evidence) const;
};

struct ParameterErrors {
  ErrorsByEvidence products;
  ErrorsByEvidence attention;
  ErrorsByEvidence passes;
  ErrorsByEvidence communication;
  /// Ratio of repeated measurements of the same step by different people: no interval is narrower.
  ErrorRange repetition;
  ErrorRange memory;  ///< Error of the peak of allocated memory.
  /// The same by framework, on NVIDIA's devices, for frameworks with enough measured peaks.
  std::map<std::string, ErrorRange> memory_of;
  StepWeights step_weights{};  ///< How much measured steps tell of a step that differs from them.

  const ErrorsByEvidence& of(ParameterGroup group) const;
};

const yaml::Table<ErrorRange>& yaml_table(const ErrorRange*);
const yaml::Table<ErrorsByEvidence>& yaml_table(const ErrorsByEvidence*);
/// Catalogue folder: intervals.
const yaml::Table<ParameterErrors>& yaml_table(const ParameterErrors*);
/// Reads the catalogue's parameter errors.
Result<ParameterErrors> read_parameter_errors(yaml::Loader& loader);

/// Evidence of the links of each kind of device, for SimulateOptions::links. A nominal rate that
/// the user stated, or the user's share of it that long transfers reach, is kUser; a share that was
/// measured on another kind of machine is kTransferred. A nominal rate from a data sheet weakens
/// nothing, as with kernels: the fitted shares are relative to it.
/// Not modelled: the cables between switches.
std::map<std::string, sim::LinkEvidence> links_of(const std::vector<NodeGroup>& groups);

/// The code of warnings about the basis of an interval or of the step itself.
inline constexpr const char* kIntervalWarning = "interval";
/// Whether parameters of that evidence come from elsewhere than from measurements on the device.
bool is_unmeasured(yaml::Evidence evidence);
/// "from data sheets".
std::string_view words_of(yaml::Evidence evidence);

/// Ends of an interval, as factors on the step.
struct IntervalEnds {
  double low = 1;
  double high = 1;
};
/// The interval that measured steps give, widened by what parameters do to it on their own.
IntervalEnds ends_of(const StepErrors& steps, const IntervalEnds& widening,
                     const ParameterErrors& errors);

/// Sets low, high and their source. Warns if no step of the framework was measured, and if most of
/// the step rests on parameters that were not measured on its devices.
/// \pre `measured` has groups
void set_interval(sim::Prediction& prediction, const StepKind& kind,
                  std::span<const MeasuredStepGroup> measured, const ParameterErrors& errors);

}  // namespace foreshard::study
