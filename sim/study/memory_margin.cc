#include "sim/study/memory_margin.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>

namespace foreshard::study {

bool MemoryMargin::is_tight(const sim::Prediction& prediction) const {
  const auto worst = static_cast<std::size_t>(prediction.worst_memory);
  return is_tight(prediction.classes[worst].memory.peak,
                  prediction.memory_capacity - prediction.memory_reserve,
                  prediction.memory_capacity);
}

MemoryMargin memory_margin_of(const LoadedStudy& study) {
  if (study.memory_margin) return {.part = *study.memory_margin, .source = "memory_margin"};
  const auto groups = study.cluster.node_groups();
  const bool is_of_nvidia = std::ranges::all_of(groups, [](const NodeGroup& group) {
    return group.node->device->compute_capability.evidence != yaml::Evidence::kTransferred;
  });
  const auto own = study.errors.memory_of.find(study.strategy.framework.name);
  const bool is_own = is_of_nvidia && own != study.errors.memory_of.end();
  const ErrorRange& of = is_own ? own->second : study.errors.memory;
  return {
      .part = 1 - 1 / of.high,
      .source = fmt::format("9 of 10 of {} measured peaks{} are at most {:.3g} % above the "
                            "predicted ones",
                            of.measurements, is_own ? " with " + own->first + " or its like" : "",
                            100 * (of.high - 1))};
}

}  // namespace foreshard::study
