#include "cli/meant.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "cli/kinds.h"

namespace foreshard::cli {
namespace {

// As launchers of Megatron-LM, DeepSpeed and others abbreviate them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kAbbreviations{{
    {"tp", "strategy.tensor_parallel"},
    {"tp_size", "strategy.tensor_parallel"},
    {"tensor_parallel_size", "strategy.tensor_parallel"},
    {"tensor_model_parallel_size", "strategy.tensor_parallel"},
    {"pp", "strategy.pipeline_parallel"},
    {"pp_size", "strategy.pipeline_parallel"},
    {"pipeline_parallel_size", "strategy.pipeline_parallel"},
    {"pipeline_model_parallel_size", "strategy.pipeline_parallel"},
    {"dp", "strategy.data_parallel"},
    {"dp_size", "strategy.data_parallel"},
    {"data_parallel_size", "strategy.data_parallel"},
    {"vpp", "strategy.virtual_stages"},
    {"mbs", "strategy.micro_batch"},
    {"micro_batch_size", "strategy.micro_batch"},
    {"gbs", "strategy.global_batch"},
    {"global_batch_size", "strategy.global_batch"},
    {"batch", "strategy.global_batch"},
    {"zero", "strategy.zero_stage"},
    {"sp", "strategy.sequence_parallel"},
    {"seq_length", "model.sequence"},
}};

std::optional<std::string> path_of(const std::string& key) {
  for (const auto& [abbreviation, path] : kAbbreviations)
    if (key == abbreviation) return std::string(path);
  for (const std::string_view part : {"strategy", "model", "cluster"}) {
    const auto keys = find_kind(part)->keys();
    if (std::ranges::find(keys, key) != keys.end()) return fmt::format("{}.{}", part, key);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> setting_meant(std::string_view option, std::string_view value) {
  std::string key(option.substr(std::min(option.find_first_not_of('-'), option.size())));
  const auto equals = key.find('=');
  std::string given(value);
  if (equals != std::string::npos) {
    given = key.substr(equals + 1);
    key.resize(equals);
  } else if (value.empty() || value.starts_with("-")) {
    given = "true";
  }
  std::ranges::replace(key, '-', '_');
  const auto path = path_of(key);
  if (!path) return std::nullopt;
  return fmt::format("--set {}={}", *path, given);
}

}  // namespace foreshard::cli
