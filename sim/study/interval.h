/// \file
/// Between which times a step is expected, and why: what steps measured with the same framework
/// would lead to expect, widened where the step rests on parameters that nobody measured on its
/// devices.
///
/// With r = measured / predicted of the framework's steps (`residual` of its file), and for each
/// group of parameters that the critical path used the same ratio of single kernels and collectives
/// whose parameters are as sure (configs/intervals/parameter-errors.yaml),
///
///     low  = step exp(-sqrt(ln(r10)^2 + w_low^2))     w = sum over groups of
///     high = step exp( sqrt(ln(r90)^2 + w_high^2))        share sqrt(q(evidence)^2 - q(fitted)^2)
///
/// where q is the logarithm of a 10 % or 90 % quantile and `share` the group's part of the step:
/// the steps that the residuals come from rest on fitted parameters, errors of a device's group go
/// together, and both kinds of error are independent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

#include "sim/simulate/prediction.h"
#include "sim/simulate/simulate.h"
#include "strategies/parallelism/framework.h"
#include "topology/cluster_config.h"

namespace foreshard::study {

/// The 10th and the 90th percentile of measured / predicted.
struct ErrorRange {
  double low = 1;
  double high = 1;
  std::int64_t measurements = 0;
  std::string source;
};

/// By the evidence of the parameters. What was measured itself counts as fitted.
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
  /// Of the same step, measured again by somebody else: no interval is narrower.
  ErrorRange repetition;
  ErrorRange memory;  ///< Of the peak of allocated memory.
  /// The same by framework, on NVIDIA's devices, where enough peaks of its steps were measured.
  std::map<std::string, ErrorRange> memory_of;

  const ErrorsByEvidence& of(ParameterGroup group) const;
};

const yaml::Table<ErrorRange>& yaml_table(const ErrorRange*);
const yaml::Table<ErrorsByEvidence>& yaml_table(const ErrorsByEvidence*);
/// Catalogue folder: intervals.
const yaml::Table<ParameterErrors>& yaml_table(const ParameterErrors*);
/// The catalogue's.
Result<ParameterErrors> read_parameter_errors(yaml::Loader& loader);

/// How sure the links of each kind of device are, for SimulateOptions::links: a nominal rate of the
/// user, or a share of it that long transfers reach, is the user's word; a share that was measured
/// on another kind of machine is transferred. A nominal rate of a data sheet takes nothing away, as
/// with kernels: what was fitted was fitted to it. Not modelled: the cables between switches.
std::map<std::string, sim::LinkEvidence> links_of(const std::vector<NodeGroup>& groups);

/// The code of warnings on what an interval, or the step itself, rests on.
inline constexpr const char* kIntervalWarning = "interval";
/// Whether parameters of that evidence come from elsewhere than measurements on the device.
bool is_unmeasured(yaml::Evidence evidence);
/// "from data sheets".
std::string_view words_of(yaml::Evidence evidence);

/// Sets low, high and where they come from. Warns where the framework has no record of measurements
/// (the interval is then that of the parameters alone), and where most of the step rests on
/// parameters that were not measured on its devices.
void set_interval(sim::Prediction& prediction, const Framework& framework,
                  const ParameterErrors& errors);

}  // namespace foreshard::study
