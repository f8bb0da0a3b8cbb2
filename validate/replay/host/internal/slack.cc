#include "validate/replay/host/internal/slack.h"

#include <algorithm>
#include <variant>

namespace foreshard::replay::host::internal {

std::vector<Seconds> slack_of(const RankPlan& plan, const StepTimes& times,
                              const std::vector<Seconds>& arrivals) {
  const auto& instances = plan.expansion.instances;
  const auto is_communication = [&](std::size_t i) {
    return std::holds_alternative<program::Communication>(plan.task(i).body);
  };
  std::vector<Seconds> need(instances.size(), times.total);
  // Goes backwards, because instances that wait for i come after i.
  for (std::size_t i = instances.size(); i-- > 0;) {
    const auto before = plan.expansion.predecessors(i);
    if (is_communication(i)) {
      for (const std::int32_t p : before) {
        auto& earlier = need[static_cast<std::size_t>(p)];
        earlier = std::min(earlier, need[i]);
      }
      continue;
    }
    for (const std::int32_t p : before) {
      if (!is_communication(static_cast<std::size_t>(p))) continue;
      // When everything else for which i waits had finished.
      Seconds others = 0_s;
      if (instances[i].host_sync >= 0)
        others = times.finish[static_cast<std::size_t>(instances[i].host_sync)];
      for (const std::int32_t other : before)
        if (other != p) others = std::max(others, times.finish[static_cast<std::size_t>(other)]);
      auto& earlier = need[static_cast<std::size_t>(p)];
      earlier = std::min(earlier, others);
    }
  }
  std::vector<Seconds> slack(instances.size());
  for (std::size_t i = 0; i < instances.size(); ++i)
    if (is_communication(i)) slack[i] = need[i] - arrivals[i];
  return slack;
}

}  // namespace foreshard::replay::host::internal
