#include "strategies/reshard/choose.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/quantity.h"

#include "strategies/reshard/price.h"
#include "strategies/reshard/program.h"

namespace foreshard::reshard {
namespace {

Status fault_in(const char* what, const Layout& layout, const TensorSpec& tensor,
                const Placement& placement) {
  const auto fault = [&](const std::string& why) {
    return Error{Error::Code::kInvalidInput, std::string(what) + ": " + why};
  };
  if (const auto why = foreshard::fault_in(layout, tensor.shape)) return fault(*why);
  if (const auto why = fault_in(placement, layout.mesh)) return fault(*why);
  return {};
}

double messages_of(const Plan& plan, const TensorSpec& tensor) {
  double messages = 0;
  for (const Step& step : plan.steps) {
    const auto ranks = static_cast<double>(step.to.mesh.size());
    if (step.primitive == Primitive::kTransfer)
      messages += count_moves(step, tensor);
    else if (step.primitive == Primitive::kAllToAll)
      messages += ranks * static_cast<double>(ways(step.axes, step.to.mesh.axes) - 1);
  }
  return messages;
}

// Sets the simulated time, or a remark that says why there is none.
Status simulate(Alternative& alternative, const TensorSpec& tensor, const CostModel& cost,
                const Placement& placement) {
  if (!(alternative.plan.estimate > 0_s)) {
    alternative.simulated = 0_s;
    return {};
  }
  const double messages = messages_of(alternative.plan, tensor);
  if (messages > kMostSimulatedMessages) {
    alternative.remark =
        fmt::format("{:.3g} messages are too many to simulate: closed form only", messages);
    return {};
  }
  FORESHARD_ASSIGN(const auto program, program_of(alternative.plan, tensor, placement));
  FORESHARD_ASSIGN(alternative.simulated, cost.program_time(program));
  return {};
}

std::string slower_text(Seconds time, Seconds best) {
  if (time <= best) return "as fast, simulated; ranked later";
  if (best <= 0_s) return "slower, simulated";
  return fmt::format("{:.1f} % slower, simulated", 100 * (time / best - 1));
}

// Number of alternatives, in the order of closed forms, that are simulated: `least`, and more if
// they are near ties.
std::size_t simulated_count(const std::vector<Alternative>& alternatives, std::size_t least) {
  const Seconds near = kNearTie * alternatives.front().plan.estimate;
  std::size_t count = std::min(least, alternatives.size());
  while (count < std::min(kMostNearTies * least, alternatives.size()) &&
         alternatives[count].plan.estimate <= near)
    ++count;
  return count;
}

void say_why_not(Choice& choice, std::size_t simulated) {
  const Alternative& best = choice.best();
  for (std::size_t i = 0; i < choice.alternatives.size(); ++i) {
    Alternative& other = choice.alternatives[i];
    if (i == choice.chosen) continue;
    const std::string already = other.remark.empty() ? "" : other.remark + "; ";
    if (other.simulated)
      other.remark = already + slower_text(other.time(), best.time());
    else if (!already.empty())
      other.remark = already + "not the fastest";
    else
      other.remark = fmt::format("closed form {}: number {}, only the best {} are simulated",
                                 format(other.plan.estimate), i + 1, simulated);
  }
}

}  // namespace

Plan gather_and_slice(const Layout& from, const Layout& to, std::size_t dimensions) {
  Plan plan;
  Layout at = from;
  const auto add = [&](Primitive primitive, Layout next, std::vector<Axis> axes) {
    if (next == at) return;
    plan.name += (plan.name.empty() ? "" : " + ") + std::string(name_of(primitive));
    for (std::size_t i = 0; i < axes.size(); ++i)
      plan.name += (i == 0 ? "(" : ",") + at.mesh.axes[static_cast<std::size_t>(axes[i])].name;
    if (!axes.empty()) plan.name += ")";
    plan.steps.push_back({.primitive = primitive, .from = at, .to = next, .axes = std::move(axes)});
    at = std::move(next);
  };
  const auto split_axes = [](const Attribute& attribute) {
    std::vector<Axis> axes;
    for (const auto& dim : attribute.dims) axes.insert(axes.end(), dim.begin(), dim.end());
    std::ranges::sort(axes);
    return axes;
  };
  Layout summed = from;
  summed.attribute.partial.clear();
  add(Primitive::kAllReduce, summed, axes_of(from.attribute.partial));
  add(Primitive::kAllGather, replicated_on(from.mesh, dimensions), split_axes(from.attribute));
  const std::set<std::int32_t> sources(from.mesh.ranks.begin(), from.mesh.ranks.end());
  if (!std::ranges::all_of(to.mesh.ranks, [&](std::int32_t r) { return sources.contains(r); }))
    add(Primitive::kTransfer, replicated_on(to.mesh, dimensions), {});
  Layout cut = to;
  cut.attribute.partial.clear();
  add(Primitive::kSlice, cut, at.mesh == to.mesh ? split_axes(to.attribute) : std::vector<Axis>{});
  add(Primitive::kPad, to, axes_of(to.attribute.partial));
  if (plan.name.empty()) plan.name = "nothing";
  return plan;
}

Result<Choice> choose(const TensorSpec& tensor, const Layout& from, const Layout& to,
                      const CostModel& cost, const Placement& placement,
                      const ChooseOptions& options) {
  if (options.keep < 1 || options.simulate < 0)
    return Error{Error::Code::kInvalidInput, "at least 1 plan must be kept, 0 simulated"};
  FORESHARD_TRY(fault_in("from", from, tensor, placement));
  FORESHARD_TRY(fault_in("to", to, tensor, placement));

  StepPricer price(tensor, cost, placement);
  FORESHARD_ASSIGN(Candidates found,
                   candidates(tensor, from, to, [&](const Step& step) { return price(step); },
                              {.keep = options.keep, .node_of_rank = nodes_of_ranks(placement)}));

  Choice choice;
  choice.rejected = std::move(found.rejected);
  Plan gather = gather_and_slice(from, to, tensor.shape.size());
  auto& plans = found.plans;
  if (std::ranges::find(plans, gather.steps, &Plan::steps) == plans.end()) {
    std::erase_if(choice.rejected, [&](const auto& other) { return other.name == gather.name; });
    plans.push_back(gather);
    if (std::ranges::count(plans, gather.name, &Plan::name) > 1) plans.back().name += " #2";
  }
  for (Plan& plan : plans) {
    plan.estimate = {};
    for (const Step& step : plan.steps) {
      FORESHARD_ASSIGN(const auto time, price(step));
      plan.estimate += time;
    }
    choice.alternatives.push_back({.plan = std::move(plan)});
  }
  std::ranges::stable_sort(choice.alternatives, {},
                           [](const Alternative& a) { return a.plan.estimate; });
  const std::size_t simulated =
      simulated_count(choice.alternatives, static_cast<std::size_t>(options.simulate));
  for (std::size_t i = 0; i < choice.alternatives.size(); ++i) {
    Alternative& alternative = choice.alternatives[i];
    if (alternative.plan.steps == gather.steps) choice.baseline = i;
    const bool is_transfer = alternative.plan.steps.size() == 1 &&
                             alternative.plan.steps.front().primitive == Primitive::kTransfer;
    const bool wanted = i < simulated || (simulated > 0 && (choice.baseline == i || is_transfer));
    if (!wanted) continue;
    FORESHARD_TRY(simulate(alternative, tensor, cost, placement));
    if (alternative.time() < choice.best().time()) choice.chosen = i;
  }
  choice.bound = lower_bound(tensor, from, to, placement);
  say_why_not(choice, simulated);
  return choice;
}

}  // namespace foreshard::reshard
