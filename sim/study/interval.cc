// Gives a prediction its interval (interval.h), for run.cc. Ratios are measured over predicted
// time.
#include "sim/study/interval.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "base/text.h"

#include "sim/study/evidence.h"

namespace foreshard::study {
namespace {

using yaml::Evidence;

double square(double x) {
  return x * x;
}

// How far the interval reaches below and above the prediction, as logarithms; both >= 0.
struct IntervalWidth {
  double below = 0;
  double above = 0;
};
IntervalWidth width_of(double low, double high) {
  return {std::max(0.0, -std::log(low)), std::max(0.0, std::log(high))};
}
IntervalWidth width_of(const ErrorRange& range) {
  return width_of(range.low, range.high);
}

// Additional error of less certain parameters, beyond the error of fitted ones, on which the
// measured steps rest.
IntervalWidth beyond_fitted(const ErrorsByEvidence& errors, Evidence evidence) {
  const IntervalWidth own = width_of(errors.at(evidence));
  const IntervalWidth fitted = width_of(errors.fitted);
  return {std::sqrt(std::max(0.0, square(own.below) - square(fitted.below))),
          std::sqrt(std::max(0.0, square(own.above) - square(fitted.above)))};
}

Evidence weakest(const yaml::Sourced<BytesPerSecond>& nominal,
                 const yaml::Sourced<double>& efficiency) {
  return nominal.evidence == Evidence::kUser ? Evidence::kUser : efficiency.evidence;
}

// "MI300X: matrix products, attention (from data sheets, 61 % of the step)".
std::string words_of(const std::vector<sim::CriticalUse>& uses, Seconds step) {
  std::map<std::pair<std::string, Evidence>, std::pair<std::vector<std::string>, Seconds>> devices;
  for (const sim::CriticalUse& use : uses) {
    auto& [groups, time] = devices[{use.device, use.evidence}];
    groups.emplace_back(name_of(use.group));
    time += use.time;
  }
  std::vector<std::string> parts;
  // Less than half a percent would be shown as zero.
  constexpr double kLeast = 0.005;
  for (const auto& [key, value] : devices)
    if (value.second >= kLeast * step)
      parts.push_back(fmt::format("{} of {} ({}, {:.0f} % of the step)", join(value.first),
                                  key.first, study::words_of(key.second),
                                  100 * (value.second / step)));
  return join(parts, "; ");
}

}  // namespace

bool is_unmeasured(Evidence evidence) {
  return evidence >= Evidence::kTransferred;
}

std::string_view words_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::kMeasured:
    case Evidence::kFitted:
      return "measured on it";
    case Evidence::kTransferred:
      return "a relative's";
    case Evidence::kDatasheet:
      return "from data sheets";
    case Evidence::kUser:
      return "the user's word";
  }
  return "";
}

const ErrorRange& ErrorsByEvidence::at(Evidence evidence) const {
  switch (evidence) {
    case Evidence::kMeasured:
    case Evidence::kFitted:
      return fitted;
    case Evidence::kTransferred:
      return transferred;
    case Evidence::kDatasheet:
      return datasheet;
    case Evidence::kUser:
      break;
  }
  return user;
}

const ErrorsByEvidence& ParameterErrors::of(ParameterGroup group) const {
  switch (group) {
    case ParameterGroup::kProducts:
      return products;
    case ParameterGroup::kAttention:
      return attention;
    case ParameterGroup::kPasses:
      return passes;
    case ParameterGroup::kCommunication:
      break;
  }
  return communication;
}

const yaml::Table<ErrorRange>& yaml_table(const ErrorRange*) {
  using E = ErrorRange;
  static const auto table =
      yaml::Table<E>("error range", "How far measurements lie from predictions.")
          .required("low", &E::low, "10th percentile of measured / predicted.", yaml::positive(),
                    yaml::at_most(1))
          .required("high", &E::high, "90th percentile of measured / predicted.", yaml::at_least(1))
          .required("measurements", &E::measurements, "How many.", yaml::at_least(1))
          .required("source", &E::source, "Which ones.", yaml::non_empty());
  return table;
}

const yaml::Table<ErrorsByEvidence>& yaml_table(const ErrorsByEvidence*) {
  using E = ErrorsByEvidence;
  static const auto table =
      yaml::Table<E>("errors by evidence", "How far off times are, by how sure parameters are.")
          .required("fitted", &E::fitted, "Parameters of the very devices.")
          .required("transferred", &E::transferred, "Parameters of a relative.")
          .required("datasheet", &E::datasheet, "Parameters of another architecture.")
          .required("user", &E::user, "The user's word, which nobody can check.");
  return table;
}

const yaml::Table<ParameterErrors>& yaml_table(const ParameterErrors*) {
  using P = ParameterErrors;
  static const auto table =
      yaml::Table<P>("parameter errors", "How far off predictions are, for their intervals.")
          .folder("intervals")
          .required("products", &P::products, "Matrix products.")
          .required("attention", &P::attention, "Fused attention.")
          .required("passes", &P::passes, "Memory-bound kernels.")
          .required("communication", &P::communication, "Collectives and transfers.")
          .required("repetition", &P::repetition, "A step, measured again by somebody else.")
          .required("memory", &P::memory, "The peak of allocated memory.")
          .optional(
              "memory_of", &P::memory_of,
              "The same on NVIDIA's devices, by the name of the framework, where enough peaks "
              "of its steps were measured.");
  return table;
}

Result<ParameterErrors> read_parameter_errors(yaml::Loader& loader) {
  return loader.read_ref<ParameterErrors>("parameter-errors", "interval");
}

std::map<std::string, sim::LinkEvidence> links_of(const std::vector<NodeGroup>& groups) {
  std::map<std::string, sim::LinkEvidence> links;
  for (const NodeGroup& group : groups) {
    const NodeConfig& node = *group.node;
    sim::LinkEvidence& known = links[node.device->name];
    if (node.wiring) {
      known.inside = std::max(known.inside, node.wiring->nvlink_efficiency.evidence);
      known.network = std::max(known.network, node.wiring->nic_efficiency.evidence);
      continue;
    }
    known.inside = std::max(known.inside,
                            node.nvlink ? weakest(node.nvlink->bandwidth, node.nvlink->efficiency)
                                        : node.pcie.efficiency.evidence);
    if (node.nics)
      known.network = std::max(known.network, weakest(node.nics->bandwidth, node.nics->efficiency));
  }
  return links;
}

void set_interval(sim::Prediction& prediction, const Framework& framework,
                  const ParameterErrors& errors) {
  const Seconds step = prediction.step;
  sim::IntervalSource source{.framework = framework.name};
  const IntervalWidth repeated = width_of(errors.repetition);
  IntervalWidth own = repeated;
  if (const auto& residual = framework.residual) {
    own = width_of(residual->low, residual->high);
    own = {std::max(own.below, repeated.below), std::max(own.above, repeated.above)};
    source.measurements = residual->measurements;
  }
  IntervalWidth wider;
  std::vector<sim::CriticalUse> weak;
  for (const sim::CriticalUse& use : prediction.critical_uses) {
    if (!(step > 0_s)) break;
    const ErrorsByEvidence& by_evidence = errors.of(use.group);
    const IntervalWidth reach = framework.residual ? beyond_fitted(by_evidence, use.evidence)
                                                   : width_of(by_evidence.at(use.evidence));
    const double share = use.time / step;
    wider.below += share * reach.below;
    wider.above += share * reach.above;
    if (is_unmeasured(use.evidence)) weak.push_back(use);
  }
  source.low = std::exp(-own.below);
  source.high = std::exp(own.above);
  source.widened_low = std::exp(-wider.below);
  source.widened_high = std::exp(wider.above);
  prediction.low = step * std::exp(-std::hypot(own.below, wider.below));
  prediction.high = step * std::exp(std::hypot(own.above, wider.above));

  const std::string name = framework.name.empty() ? "this framework" : framework.name;
  if (framework.residual) {
    const std::string& others = framework.residual->steps_of;
    source.text = fmt::format("8 of 10 of {} measured steps with {}", source.measurements,
                              others.empty() ? name : others);
  } else {
    source.text = "kernels and collectives alone: no step was measured with " + name;
  }
  if (const std::string words = words_of(weak, step); !words.empty())
    source.text += "; widened for " + words;
  prediction.interval_source = std::move(source);

  if (const Unmeasured unmeasured = unmeasured_in(prediction); unmeasured.is_most())
    prediction.warnings.push_back(
        {.code = kIntervalWarning,
         .message = share_remark(unmeasured.share, words_of(weak, step))});
  if (!framework.residual)
    prediction.warnings.push_back(
        {.code = kIntervalWarning,
         .message = "framework '" + framework.name +
                    "' has no record of measurements, so the interval is that of kernels and "
                    "collectives alone; give its file a residual, or use one of the catalogue's"});
}

}  // namespace foreshard::study
