// Gives a prediction its interval (interval.h), for run.cc. Ratios are measured over predicted
// time.
#include "sim/study/interval.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>

#include "base/grouped.h"
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
              "of its steps were measured.")
          .required("step_weights", &P::step_weights,
                    "How much measured steps tell of a step that differs from them.");
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

namespace {

// The widening for parameters that are less certain than those behind measured steps.
IntervalWidth widening_of(const sim::Prediction& prediction, const ParameterErrors& errors) {
  IntervalWidth wider;
  for (const sim::CriticalUse& use : prediction.critical_uses) {
    const IntervalWidth reach = beyond_fitted(errors.of(use.group), use.evidence);
    const double share = use.time / prediction.step;
    wider.below += share * reach.below;
    wider.above += share * reach.above;
  }
  return wider;
}

// No narrower than a repetition of the same step.
IntervalWidth width_of(const StepErrors& steps, const ParameterErrors& errors) {
  const IntervalWidth repeated = width_of(errors.repetition);
  const IntervalWidth own = width_of(steps.low, steps.high);
  return {std::max(own.below, repeated.below), std::max(own.above, repeated.above)};
}

IntervalWidth both(const IntervalWidth& a, const IntervalWidth& b) {
  return {std::hypot(a.below, b.below), std::hypot(a.above, b.above)};
}

// "device GH200-96GB, model state-space".
std::string words_of(const StepKind& kind, const std::vector<std::string>& properties) {
  std::vector<std::string> words;
  for (const StepProperty& one : step_properties())
    if (std::ranges::find(properties, one.key) != properties.end())
      words.push_back((kind.*one.value).empty() ? fmt::format("{} unknown", one.key)
                                                : fmt::format("{} {}", one.key, kind.*one.value));
  return join(words);
}

std::string words_of(const StepErrors& steps, const StepKind& kind) {
  if (steps.alike > 0)
    return fmt::format("8 of 10 measured steps, above all {} of its kind", grouped(steps.alike));
  std::string text = fmt::format("8 of 10 measured steps, above all those of {} on {}",
                                 steps.nearest.framework, steps.nearest.device);
  if (!steps.unlike.empty())
    text +=
        fmt::format("; not measured{}: {}", steps.of_framework > 0 ? " with " + kind.framework : "",
                    words_of(kind, steps.unlike));
  return text;
}

// What would narrow the interval most: kernels and collectives measured on these devices, or steps
// of this kind, which are then taken to be as far off as those with most in common. Empty if
// neither takes away a tenth of its width.
std::string narrowed_by(const IntervalWidth& own, const IntervalWidth& wider,
                        const IntervalWidth& own_if_measured) {
  const auto size = [](const IntervalWidth& width) { return width.below + width.above; };
  const IntervalWidth with_kernels = own;
  const IntervalWidth with_steps = both(own_if_measured, wider);
  const bool kernels_first = size(with_kernels) <= size(with_steps);
  const IntervalWidth& best = kernels_first ? with_kernels : with_steps;
  if (size(best) > 0.9 * size(both(own, wider))) return "";
  return fmt::format("{} would narrow it to {:.0f} to +{:.0f} %",
                     kernels_first ? "kernels and collectives measured on its devices"
                                   : "measured steps of its kind",
                     100 * std::expm1(-best.below), 100 * std::expm1(best.above));
}

}  // namespace

IntervalEnds ends_of(const StepErrors& steps, const IntervalEnds& widening,
                     const ParameterErrors& errors) {
  const IntervalWidth whole = both(width_of(steps, errors), width_of(widening.low, widening.high));
  return {std::exp(-whole.below), std::exp(whole.above)};
}

void set_interval(sim::Prediction& prediction, const StepKind& kind,
                  std::span<const MeasuredStepGroup> measured, const ParameterErrors& errors) {
  const Seconds step = prediction.step;
  const StepErrors steps = errors_of(kind, measured, errors.step_weights);
  const IntervalWidth own = width_of(steps, errors);
  const IntervalWidth wider = step > 0_s ? widening_of(prediction, errors) : IntervalWidth{};
  const IntervalWidth whole = both(own, wider);
  prediction.low = step * std::exp(-whole.below);
  prediction.high = step * std::exp(whole.above);

  std::vector<sim::CriticalUse> weak;
  std::ranges::copy_if(prediction.critical_uses, std::back_inserter(weak),
                       [](const sim::CriticalUse& use) { return is_unmeasured(use.evidence); });
  sim::IntervalSource source{.text = words_of(steps, kind),
                             .framework = kind.framework,
                             .measurements = steps.alike,
                             .low = std::exp(-own.below),
                             .high = std::exp(own.above),
                             .widened_low = std::exp(-wider.below),
                             .widened_high = std::exp(wider.above)};
  if (const std::string words = words_of(weak, step); !words.empty())
    source.text += "; widened for " + words;
  source.unlike = steps.unlike;
  const IntervalWidth if_measured =
      width_of(errors_of(steps.nearest, measured, errors.step_weights), errors);
  source.narrowed_by = narrowed_by(own, wider, if_measured);
  prediction.interval_source = std::move(source);

  if (const Unmeasured unmeasured = unmeasured_in(prediction); unmeasured.is_most())
    prediction.warnings.push_back(
        {.code = kIntervalWarning,
         .message = share_remark(unmeasured.share, words_of(weak, step))});
  if (steps.of_framework == 0)
    prediction.warnings.push_back(
        {.code = kIntervalWarning,
         .message = fmt::format(
             "no step of framework '{}' was measured: the interval is that of other frameworks' "
             "steps; name the framework that it is like, or give steps of your own "
             "(measured_steps)",
             kind.framework)});
}

}  // namespace foreshard::study
