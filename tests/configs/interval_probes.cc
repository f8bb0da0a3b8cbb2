// What the errors behind intervals change (probes.h).
#include <fmt/format.h>

#include "tests/configs/probes.h"

#include "sim/study/interval.h"
#include "validate/tables/outcome.h"

namespace foreshard {
namespace {

// Fifty steps of a kind, with ratios from `first` on.
study::MeasuredStepGroup fifty_steps(const study::StepKind& kind, double first) {
  study::MeasuredStepGroup group{.source = "a", .kind = kind, .steps = 50, .ratios = {}};
  for (int i = 0; i < 50; ++i) group.ratios.push_back(first + i / 100.0);
  return group;
}

// For each property: the percentiles of steps half of which differ in it.
std::string weighted(const study::StepWeights& weights) {
  std::string text;
  study::StepKind kind;
  for (const study::StepProperty& property : study::step_properties())
    kind.*property.value = "same";
  for (const study::StepProperty& property : study::step_properties()) {
    study::StepKind other = kind;
    other.*property.value = "other";
    const std::vector groups{fifty_steps(kind, 1), fifty_steps(other, 2)};
    const auto errors = study::errors_of(kind, groups, weights);
    text += fmt::format(" {} {}", errors.low, errors.high);
  }
  return text;
}

}  // namespace

Probes<study::ParameterErrors> probes_of(const study::ParameterErrors*, const std::string&) {
  return {[](const study::ParameterErrors& errors) {
    std::string text = weighted(errors.step_weights);
    const std::vector same{
        study::MeasuredStepGroup{.source = "a", .kind = {}, .steps = 1, .ratios = {1}}};
    for (std::size_t group = 0; group < kParameterGroups; ++group)
      for (int evidence = 0; evidence <= static_cast<int>(yaml::Evidence::kUser); ++evidence) {
        sim::Prediction prediction;
        prediction.step = 1_s;
        prediction.critical_uses = {{.group = static_cast<ParameterGroup>(group),
                                     .device = "",
                                     .evidence = static_cast<yaml::Evidence>(evidence),
                                     .time = 1_s}};
        study::set_interval(prediction, {}, same, errors);
        text += fmt::format(" {} {};", prediction.low.in_base(), prediction.high.in_base());
      }
    sim::Prediction nothing_used;
    nothing_used.step = 1_s;
    study::set_interval(nothing_used, {}, same, errors);
    text += fmt::format("{} {}", nothing_used.low.in_base(), nothing_used.high.in_base());
    const auto add = [&](const study::ErrorRange& range) {
      accuracy::Outcome memory;
      memory.predicted = 1;
      set_range(memory, range);
      text += fmt::format(" {} {}", memory.low.value_or(0), memory.high.value_or(0));
    };
    add(errors.memory);
    for (const auto& [framework, range] : errors.memory_of) {
      text += " " + framework;
      add(range);
    }
    return text;
  }};
}

}  // namespace foreshard
