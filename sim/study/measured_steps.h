/// \file
/// Training steps that somebody measured, and the interval that they give a prediction.
///
/// Let r = measured / predicted of a measured step. The interval of a step reaches from the 10th
/// to the 90th percentile of r, where a measured step weighs the more, the more it has in common
/// with the step (StepWeights). Each source weighs as much as another one, however many rows it
/// has; sources of few rows weigh less, and so do rows that leave settings open. A kind of step
/// that nobody measured thus has the interval of everything that was measured, which is wide.
/// Quantiles of a few sources are too narrow for the next one: the distance to their middle is
/// multiplied with StepWeights::widening.
///
/// Not modelled: r depends on what is not part of StepKind (the network's make, host processors,
/// which settings were assumed); evidence/tools/residuals prints how many rows of each source lie
/// in intervals that were made from the other sources.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml/table.h"

namespace foreshard::study {

struct LoadedStudy;

/// Properties of a step with which the errors of predictions go together.
struct StepKind {
  std::string framework{};
  std::string family{};      ///< Framework::family; the framework's name where that is empty.
  std::string device{};      ///< "H100-SXM"; where devices differ, the one that can compute most.
  std::string generation{};  ///< "Hopper"; empty for a device of no known generation.
  std::string precision{};   ///< Type of the matrix products: "bf16", "fp8", "fp4".
  std::string model{};       ///< "dense", "experts", "state-space", "encoder" or "graph".
  std::string trained{};     ///< "all parameters" or "adapters".
  std::string devices{};     ///< "up to 8", "up to 128" or "more than 128".
  bool operator==(const StepKind&) const = default;
};
StepKind kind_of(const LoadedStudy& study);

/// What a measured step's weight is multiplied with for each property in which it differs.
struct StepWeights {
  double framework = 1;
  double family = 1;
  double device = 1;
  double generation = 1;
  double precision = 1;
  double model = 1;
  double trained = 1;
  double devices = 1;
  double widening = 1;  ///< Factor on the half width, in logarithms.
};

/// A property of steps.
struct StepProperty {
  std::string_view key;
  std::string_view doc;
  std::string StepKind::*value;
  double StepWeights::*weight;
};
/// Every member of StepKind; those in which steps differ most come first.
std::span<const StepProperty> step_properties();

/// Steps of one kind from one source.
struct MeasuredStepGroup {
  std::string source;  ///< "nvidia_megatron_bridge.csv".
  StepKind kind;
  std::int64_t steps = 0;
  /// measured / predicted of each step; of many steps, equally spaced quantiles.
  std::vector<double> ratios;
  double weight = 1;  ///< Less for steps whose settings are partly assumed.
};

struct MeasuredSteps {
  std::vector<MeasuredStepGroup> groups;
};

const yaml::Table<StepKind>& yaml_table(const StepKind*);
const yaml::Table<MeasuredStepGroup>& yaml_table(const MeasuredStepGroup*);
/// Catalogue folder: steps.
const yaml::Table<MeasuredSteps>& yaml_table(const MeasuredSteps*);
const yaml::Table<StepWeights>& yaml_table(const StepWeights*);

/// The catalogue's file of measured steps.
inline constexpr std::string_view kPublicSteps = "public";

/// The percentiles of measured / predicted for steps of a kind.
struct StepErrors {
  double low = 1;
  double high = 1;
  std::int64_t alike = 0;         ///< Measured steps of this very kind.
  std::int64_t of_framework = 0;  ///< Measured steps of its framework.
  StepKind nearest{};             ///< The measured kind that has most in common with it.
  /// Keys of the properties whose value no measured step of its framework has; where its framework
  /// was not measured, no measured step.
  std::vector<std::string> unlike{};
};

/// \param without  a source to leave out; empty: none.
/// \pre some group of another source than `without`
StepErrors errors_of(const StepKind& kind, std::span<const MeasuredStepGroup> groups,
                     const StepWeights& weights, std::string_view without = {});

/// The least ratio of a measured step to its prediction; the largest is its inverse.
inline constexpr double kLeastRatio = 0.01;

/// Groups of measured steps by kind and source, with at most kRatios ratios each.
class MeasuredStepCollector {
 public:
  static constexpr std::size_t kRatios = 10;
  void add(const std::string& source, const StepKind& kind, double ratio, double weight = 1);
  MeasuredSteps collected() const;

 private:
  MeasuredSteps every_;  ///< All ratios of each group, unsorted.
};

}  // namespace foreshard::study
