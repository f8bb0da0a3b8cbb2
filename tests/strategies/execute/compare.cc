#include "tests/strategies/execute/compare.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>

namespace foreshard::execute {

Strategy serial_of(const Strategy& strategy) {
  Strategy serial = strategy;
  serial.tensor_parallel = 1;
  serial.pipeline_parallel = 1;
  serial.data_parallel = 1;
  serial.shard_replicas = 1;
  serial.expert_parallel = 1;
  serial.expert_tensor_parallel = 0;
  serial.sequence_parallel = false;
  serial.schedule = "1f1b";
  serial.schedule_actions.clear();
  serial.pass_times.clear();
  serial.virtual_stages = 1;
  serial.layers_per_stage.clear();
  serial.micro_batch = strategy.micro_batch * strategy.data_parallel;
  serial.recompute = Recompute::kNone;
  serial.framework.value.vocabulary_multiple *= strategy.tensor_parallel;
  return serial;
}

namespace {

constexpr std::size_t kMostFaults = 20;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
// Of the largest value of all tensors of a kind: what rounding leaves of sums that cancel (of the
// gradient of a shift of all keys, say, which softmax does not see).
constexpr double kRounding = 1e-15;

// ".gradient", ".first_moment", ...; nothing of parameters and losses.
std::string suffix_of(const std::string& tensor) {
  for (const char* suffix : {".gradient", ".first_moment", ".second_moment"})
    if (tensor.ends_with(suffix)) return suffix;
  return "";
}

}  // namespace

Comparison compare(const StepResult& serial, const StepResult& sharded, double tolerance) {
  struct Element {
    double value = 0;
    bool seen = false;  // on a rank
  };
  struct Reference {
    std::map<std::int64_t, Element> elements;
    double largest = 0;
    std::int64_t faults = 0;
    double worst = 0;
    std::string text;  // of the worst fault
  };
  Comparison result;
  std::map<std::string, Reference> references;
  std::map<std::string, double> largest;  // of the tensors with the same suffix
  for (const Held& held : serial.held) {
    Reference& reference = references[held.tensor];
    double& most = largest[suffix_of(held.tensor)];
    for (std::size_t i = 0; i < held.indices.size(); ++i) {
      reference.elements.insert_or_assign(reference.elements.end(), held.indices[i],
                                          Element{held.values[i]});
      reference.largest = std::max(reference.largest, std::abs(held.values[i]));
      most = std::max(most, std::abs(held.values[i]));
    }
  }
  for (const Held& held : sharded.held) {
    Reference& reference = references[held.tensor];
    const double scale = reference.largest > 0 ? reference.largest : 1;
    const double nothing = kRounding * largest[suffix_of(held.tensor)];
    for (std::size_t i = 0; i < held.indices.size(); ++i) {
      const std::int64_t index = held.indices[i];
      ++result.elements;
      const auto expected = reference.elements.find(index);
      const bool known = expected != reference.elements.end();
      if (known) expected->second.seen = true;
      const double value = known ? expected->second.value : kNoNumber;
      const double gap = std::abs(held.values[i] - value);
      const double difference = gap <= nothing ? 0 : gap / scale;
      if (difference <= tolerance) {
        result.worst = std::max(result.worst, difference);
        continue;
      }
      const bool worse = reference.faults++ == 0 || difference > reference.worst ||
                         (std::isnan(difference) && !std::isnan(reference.worst));
      if (!worse) continue;
      reference.worst = difference;
      reference.text = fmt::format(
          "on rank {}, element {}: {} where the serial run has {} (relative difference {:.3g})",
          held.rank, index, held.values[i], value, difference);
    }
  }
  for (const auto& [tensor, reference] : references) {
    ++result.tensors;
    if (reference.faults > 0) {
      result.worst = std::isnan(reference.worst) ? std::numeric_limits<double>::infinity()
                                                 : std::max(result.worst, reference.worst);
      result.faults.push_back(
          fmt::format("{} {}; {} such values", tensor, reference.text, reference.faults));
    }
    const auto missing = std::ranges::count_if(
        reference.elements, [](const auto& element) { return !element.second.seen; });
    if (missing > 0)
      result.faults.push_back(fmt::format("{}: {} of {} elements are on no rank", tensor, missing,
                                          reference.elements.size()));
  }
  // What went wrong first shows best in the losses, then in the gradients.
  std::ranges::stable_sort(result.faults, {}, [](const std::string& fault) {
    if (fault.starts_with("loss.")) return 0;
    return fault.find(".gradient") != std::string::npos ? 1 : 2;
  });
  if (result.faults.size() > kMostFaults) result.faults.resize(kMostFaults);
  return result;
}

}  // namespace foreshard::execute
