#include "sim/study/attention.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

#include "sim/compute/attention_kernels.h"

namespace foreshard::study {

Status take_attention(Strategy& strategy, const std::vector<NodeGroup>& groups,
                      const yaml::Loader& loader, bool by_default,
                      std::vector<std::string>& remarks) {
  constexpr std::string_view kPlace = "strategy.framework.attention";
  Framework& framework = strategy.framework.value;
  const AttentionImplementation wanted = framework.attention;
  const auto lacks = [&](const NodeGroup& group) {
    return !has_attention(wanted, *group.node->device);
  };
  const auto first = std::ranges::find_if(groups, lacks);
  if (first == groups.end()) return {};
  const std::string lack = fmt::format("device '{}' has no {} attention, which needs {}",
                                       first->node->device->name, name_of(wanted), need_of(wanted));
  const AttentionImplementation other = attention_instead_of(wanted);
  if (!by_default)
    return loader.error_at(
        kPlace, lack,
        fmt::format("set attention: {} (what runs there instead), or take another device",
                    name_of(other)));
  if (!std::ranges::all_of(groups, lacks)) {
    remarks.push_back(lack + "; its times are those of a device that had it, as the others do");
    return {};
  }
  framework.attention = other;
  remarks.push_back(fmt::format("{}: '{}' runs {} there", lack, framework.name,
                                other == AttentionImplementation::kUnfused
                                    ? "products with a softmax between them (unfused)"
                                    : "the device's usual fused kernel"));
  return {};
}

}  // namespace foreshard::study
