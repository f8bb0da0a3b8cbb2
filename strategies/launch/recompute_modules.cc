#include "strategies/launch/recompute_modules.h"

#include <algorithm>

namespace foreshard::launch {
namespace {

bool has(std::span<const Part> parts, Part part) {
  return std::ranges::find(parts, part) != parts.end();
}

bool contains_all(std::span<const Part> parts, std::span<const Part> others) {
  return std::ranges::all_of(others, [&](Part part) { return has(parts, part); });
}

}  // namespace

std::span<const RecomputeModule> recompute_modules() {
  static const std::vector<RecomputeModule> modules{
      {"core_attn", {Part::kCoreAttention}},
      {"layernorm", {Part::kNorm}},
      {"mlp", {Part::kMlpUp, Part::kActivation, Part::kMlpDown}},
      {"moe", {Part::kRouting, Part::kExpertsUp, Part::kExpertActivation, Part::kExpertsDown}},
      {"moe_act", {Part::kExpertActivation}},
      {"shared_experts", {Part::kSharedExperts}},
  };
  return modules;
}

std::optional<std::vector<Part>> parts_of_modules(std::span<const std::string> names) {
  std::vector<Part> parts;
  for (const std::string& name : names) {
    const auto known = std::ranges::find(recompute_modules(), name, &RecomputeModule::name);
    if (known == recompute_modules().end()) return std::nullopt;
    for (const Part part : known->parts)
      if (!has(parts, part)) parts.push_back(part);
  }
  std::ranges::sort(parts);
  return parts;
}

std::optional<std::vector<std::string>> modules_of_parts(std::span<const Part> parts) {
  std::vector<const RecomputeModule*> chosen;
  for (const RecomputeModule& module : recompute_modules())
    if (contains_all(parts, module.parts)) chosen.push_back(&module);
  // Drops modules whose parts a larger chosen module has.
  std::erase_if(chosen, [&](const RecomputeModule* one) {
    return std::ranges::any_of(chosen, [&](const RecomputeModule* other) {
      return other->parts.size() > one->parts.size() && contains_all(other->parts, one->parts);
    });
  });
  std::vector<std::string> names;
  for (const RecomputeModule* module : chosen) names.emplace_back(module->name);
  const auto covered = parts_of_modules(names);
  if (names.empty() || !covered || !contains_all(*covered, parts)) return std::nullopt;
  return names;
}

}  // namespace foreshard::launch
