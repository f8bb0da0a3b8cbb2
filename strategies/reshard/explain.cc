#include "strategies/reshard/explain.h"

#include <algorithm>
#include <map>

#include "strategies/reshard/price.h"
#include "strategies/reshard/program.h"

namespace foreshard::reshard {
namespace {

// Counts the groups of a transfer: the sets of ranks that exchange messages, as its exchange lists
// them.
void count_groups(const program::Program& program, const std::string& task,
                  Explanation::StepNumbers& numbers) {
  for (const program::Block& block : program.blocks) {
    if (block.name != task) continue;
    const auto& what = std::get<program::Communication>(block.tasks.front().body);
    const auto& groups = std::get<program::RankGroups>(what.group).groups;
    numbers.groups = std::ssize(groups);
    for (const auto& group : groups)
      numbers.ranks_per_group = std::max(numbers.ranks_per_group, std::ssize(group));
  }
}

Result<Explanation::StepNumbers> numbers_of(const Step& step, const TensorSpec& tensor,
                                            StepPricer& price) {
  Explanation::StepNumbers numbers{.primitive = std::string(name_of(step.primitive)),
                                   .from = describe(step.from),
                                   .to = describe(step.to)};
  for (const Axis axis : step.axes)
    numbers.axes.push_back(step.to.mesh.axes[static_cast<std::size_t>(axis)].name);
  const auto ranks = step.to.mesh.size();
  numbers.volume = volume_of(step, tensor);
  numbers.bytes_per_rank = numbers.volume.exact_total / static_cast<double>(ranks);
  if (step.primitive == Primitive::kTransfer) {
    numbers.messages = count_moves(step, tensor);
  } else {
    numbers.ranks_per_group = is_local(step.primitive) ? 1 : ways(step.axes, step.to.mesh.axes);
    numbers.groups = ranks / numbers.ranks_per_group;
  }
  FORESHARD_ASSIGN(numbers.time, price(step));
  return numbers;
}

std::vector<Explanation::LinkUse> uses_of(const std::vector<LinkBytes>& loads,
                                          const ClusterView& cluster) {
  std::vector<Explanation::LinkUse> uses;
  for (const LinkBytes& load : loads) {
    const Link& link = cluster.links()[load.link.index()];
    uses.push_back({.from = cluster.vertices()[link.from.index()].name,
                    .to = cluster.vertices()[link.to.index()].name,
                    .bytes = load.bytes,
                    .time = load.bytes / link.bandwidth});
  }
  std::ranges::stable_sort(uses, std::greater{}, &Explanation::LinkUse::time);
  return uses;
}

}  // namespace

Result<Explanation> explain(const TensorSpec& tensor, const Layout& from, const Layout& to,
                            const CostModel& cost, const Placement& placement,
                            const ChooseOptions& options) {
  FORESHARD_ASSIGN(auto choice, choose(tensor, from, to, cost, placement, options));
  Explanation result{.tensor = tensor,
                     .from = from,
                     .to = to,
                     .cluster = placement.cluster->name(),
                     .choice = std::move(choice)};
  StepPricer price(tensor, cost, placement);
  const Plan& plan = result.choice.best().plan;
  for (const Step& step : plan.steps) {
    FORESHARD_ASSIGN(auto numbers, numbers_of(step, tensor, price));
    result.steps.push_back(std::move(numbers));
  }
  if (!(plan.estimate > 0_s)) return result;
  result.links_known = result.choice.best().simulated.has_value() || options.simulate == 0;
  if (!result.links_known) return result;
  const auto program = program_of(plan, tensor, placement);
  if (!program) {
    result.links_known = false;
    return result;
  }
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].primitive == Primitive::kTransfer)
      count_groups(*program, std::to_string(s + 1) + " transfer", result.steps[s]);
  }
  FORESHARD_ASSIGN(const auto loads, cost.link_bytes(*program));
  result.links = uses_of(loads, *placement.cluster);
  return result;
}

}  // namespace foreshard::reshard
