// Intervals from measured steps (measured_steps.h), for interval.cc and evidence/.
#include "sim/study/measured_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"

#include "sim/study/study.h"
#include "strategies/graph/quantization.h"

namespace foreshard::study {
namespace {

// Rows with which a source has its full weight.
constexpr std::int64_t kFullSource = 8;

std::string model_of(const LoadedStudy& study) {
  if (study.graph) return "graph";
  const Model& model = study.model;
  if (model.has_mixer(Mixer::kMamba)) return "state-space";
  if (model.experts > 0) return "experts";
  return model.encoder || model.image ? "encoder" : "dense";
}

std::string words_of_devices(std::int64_t devices) {
  return devices <= 8 ? "up to 8" : devices <= 128 ? "up to 128" : "more than 128";
}

// The device whose ranks together can compute most; of equal ones, the first.
DeviceType main_device(const LoadedStudy& study) {
  const std::string precision(name_of(study.strategy.precision));
  std::map<std::string, FlopsPerSecond> rates;
  DeviceType device;
  std::int64_t first = 0;
  FlopsPerSecond most;
  for (const NodeGroup& group : study.cluster.node_groups()) {
    const std::int64_t end = first + group.nodes * group.node->gpus;
    const auto ranks = std::ranges::count_if(
        study.used(), [&](std::int64_t rank) { return rank >= first && rank < end; });
    FlopsPerSecond& rate = rates[group.node->device->name];
    rate += static_cast<double>(ranks) * peak_of(*group.node->device, precision);
    if (rate > most) {
      most = rate;
      device = *group.node->device;
    }
    first = end;
  }
  return device;
}

struct WeightedRatio {
  double ratio = 1;
  double weight = 0;
};

// The least ratio with at least `share` of the weight at or below it.
double quantile(const std::vector<WeightedRatio>& sorted, double share) {
  double total = 0;
  for (const WeightedRatio& one : sorted) total += one.weight;
  double below = 0;
  for (const WeightedRatio& one : sorted)
    if ((below += one.weight) >= share * total * (1 - 1e-12)) return one.ratio;
  return sorted.back().ratio;
}

// What is unknown of both is not the same.
bool is_same(const StepKind& a, const StepKind& b, const StepProperty& property) {
  return a.*property.value == b.*property.value && !(a.*property.value).empty();
}

double weight_of(const StepKind& kind, const StepKind& measured, const StepWeights& weights) {
  double weight = 1;
  for (const StepProperty& property : step_properties())
    if (!is_same(kind, measured, property)) weight *= weights.*property.weight;
  return weight;
}

}  // namespace

StepKind kind_of(const LoadedStudy& study) {
  const Strategy& strategy = study.strategy;
  const DeviceType device = main_device(study);
  const std::string& framework = strategy.framework->name;
  const std::string& family = strategy.framework->family;
  return {.framework = framework,
          .family = family.empty() ? framework : family,
          .device = device.name,
          .generation = generation_of(device),
          .precision = std::string(name_of(strategy.quantization == Quantization::kNone
                                               ? strategy.precision
                                               : dtype_of(strategy.quantization))),
          .model = model_of(study),
          .trained = !study.graph && study.model.adapters ? "adapters" : "all parameters",
          .devices = words_of_devices(strategy.devices())};
}

std::span<const StepProperty> step_properties() {
  using K = StepKind;
  using W = StepWeights;
  static constexpr std::array<StepProperty, 8> kProperties{{
      {"framework", "Name of the framework.", &K::framework, &W::framework},
      {"device", "Name of the device.", &K::device, &W::device},
      {"family", "Frameworks that share most of their kernels.", &K::family, &W::family},
      {"generation", "Generation of the device.", &K::generation, &W::generation},
      {"model", "dense, experts, state-space, encoder or graph.", &K::model, &W::model},
      {"trained", "all parameters or adapters.", &K::trained, &W::trained},
      {"precision", "Type of the matrix products.", &K::precision, &W::precision},
      {"devices", "up to 8, up to 128 or more than 128.", &K::devices, &W::devices},
  }};
  return kProperties;
}

namespace {

// A property with few values, which kind_of() gives.
struct ClosedProperty {
  std::string_view key;
  std::array<const char*, 5> values;  // unused ones are null

  std::vector<std::string> words() const {
    std::vector<std::string> result;
    for (const char* value : values)
      if (value != nullptr) result.emplace_back(value);
    return result;
  }
};
constexpr std::array<ClosedProperty, 3> kClosed{{
    {"model", {"dense", "experts", "state-space", "encoder", "graph"}},
    {"trained", {"all parameters", "adapters"}},
    {"devices", {"up to 8", "up to 128", "more than 128"}},
}};

}  // namespace

const yaml::Table<StepKind>& yaml_table(const StepKind*) {
  static const auto table = [] {
    yaml::Table<StepKind> made("kind of step", "What errors of predictions go together with.");
    const auto add = [&made](const StepProperty& one) {
      const auto words = std::ranges::find(kClosed, one.key, &ClosedProperty::key);
      std::move(made).required(
          std::string(one.key), one.value, std::string(one.doc),
          yaml::one_of(words == kClosed.end() ? std::vector<std::string>{} : words->words()));
    };
    std::ranges::for_each(step_properties(), add);
    return made;
  }();
  return table;
}

const yaml::Table<StepWeights>& yaml_table(const StepWeights*) {
  static const auto table = [] {
    yaml::Table<StepWeights> made("weights of steps",
                                  "What a measured step's weight is multiplied with where it "
                                  "differs from the predicted step.");
    const auto add = [&made](std::string key, double StepWeights::*weight, std::string doc,
                             auto... constraints) {
      std::move(made).required(std::move(key), weight, std::move(doc), constraints...);
    };
    for (const StepProperty& one : step_properties())
      add(std::string(one.key), one.weight, std::string(one.doc), yaml::positive(),
          yaml::at_most(1));
    add("widening", &StepWeights::widening, "Factor on the half width of the interval.",
        yaml::at_least(1));
    return made;
  }();
  return table;
}

const yaml::Table<MeasuredStepGroup>& yaml_table(const MeasuredStepGroup*) {
  using G = MeasuredStepGroup;
  static const auto table =
      yaml::Table<G>("measured steps of a kind", "Measured steps of one kind from one source.")
          .required("source", &G::source, "Who measured them.", yaml::non_empty())
          .required("kind", &G::kind, "What they have in common.")
          .required("steps", &G::steps, "How many there are.", yaml::between(1, 1'000'000))
          .required("ratios", &G::ratios,
                    "measured / predicted of each; of many, equally spaced quantiles.",
                    yaml::between(kLeastRatio, 1 / kLeastRatio), yaml::non_empty())
          .optional("weight", &G::weight, "Less than 1 where settings of theirs are assumed.",
                    yaml::positive(), yaml::at_most(1))
          .check("ratios", [](const G& of) {
            return std::ssize(of.ratios) <= of.steps ? "" : "there are more ratios than steps";
          });
  return table;
}

const yaml::Table<MeasuredSteps>& yaml_table(const MeasuredSteps*) {
  static const auto table =
      yaml::Table<MeasuredSteps>("measured steps",
                                 "Measured training steps, which make intervals of predictions.")
          .folder("steps")
          .required("measured_steps", &MeasuredSteps::groups, "The steps, by kind and source.",
                    yaml::non_empty());
  return table;
}

StepErrors errors_of(const StepKind& kind, std::span<const MeasuredStepGroup> groups,
                     const StepWeights& weights, std::string_view without) {
  std::map<std::string_view, std::int64_t> steps_of;
  for (const MeasuredStepGroup& group : groups) steps_of[group.source] += group.steps;
  StepErrors errors;
  std::vector<WeightedRatio> ratios;
  const MeasuredStepGroup* nearest = nullptr;
  double most = 0;
  for (const MeasuredStepGroup& group : groups) {
    if (group.source == without) continue;
    const double alike = weight_of(kind, group.kind, weights);
    const double each = alike * group.weight * static_cast<double>(group.steps) /
                        static_cast<double>(std::max(steps_of[group.source], kFullSource)) /
                        static_cast<double>(group.ratios.size());
    for (const double ratio : group.ratios) ratios.push_back({ratio, each});
    if (group.kind == kind) errors.alike += group.steps;
    if (group.kind.framework == kind.framework) errors.of_framework += group.steps;
    if (alike > most) {
      most = alike;
      nearest = &group;
    }
  }
  FORESHARD_CHECK(nearest != nullptr);
  std::ranges::sort(ratios, {}, &WeightedRatio::ratio);
  const double low = std::log(quantile(ratios, 0.1));
  const double high = std::log(quantile(ratios, 0.9));
  const double half = weights.widening * (high - low) / 2;
  errors.low = std::exp((low + high) / 2 - half);
  errors.high = std::exp((low + high) / 2 + half);
  errors.nearest = nearest->kind;
  const auto has_not = [&](const StepProperty& property) {
    return std::ranges::none_of(groups, [&](const MeasuredStepGroup& group) {
      const bool counts = errors.of_framework == 0 || group.kind.framework == kind.framework;
      return group.source != without && counts && is_same(group.kind, kind, property);
    });
  };
  for (const StepProperty& property : step_properties())
    if (has_not(property)) errors.unlike.emplace_back(property.key);
  return errors;
}

void MeasuredStepCollector::add(const std::string& source, const StepKind& kind, double ratio,
                                double weight) {
  const auto is_same = [&](const MeasuredStepGroup& group) {
    return group.source == source && group.kind == kind && group.weight == weight;
  };
  auto group = std::ranges::find_if(every_.groups, is_same);
  if (group == every_.groups.end())
    group = every_.groups.insert(group,
                                 {.source = source, .kind = kind, .ratios = {}, .weight = weight});
  group->ratios.push_back(ratio);
}

MeasuredSteps MeasuredStepCollector::collected() const {
  MeasuredSteps result = every_;
  for (MeasuredStepGroup& group : result.groups) {
    std::vector<double>& ratios = group.ratios;
    std::ranges::sort(ratios);
    group.steps = std::ssize(ratios);
    if (ratios.size() <= kRatios) continue;
    // The middles of kRatios parts of equal size.
    for (std::size_t i = 0; i < kRatios; ++i)
      ratios[i] = ratios[(2 * i + 1) * static_cast<std::size_t>(group.steps) / (2 * kRatios)];
    ratios.resize(kRatios);
  }
  return result;
}

}  // namespace foreshard::study
