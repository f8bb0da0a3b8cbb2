#include "strategies/reshard/explain.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "base/quantity.h"

#include "strategies/reshard/plan.h"
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
  Explanation::StepNumbers numbers;
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

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLinksInText = 8;
constexpr std::size_t kMostRejectedInText = 8;

std::string axes_text(const Step& step) {
  std::string text;
  for (const Axis axis : step.axes)
    text += (text.empty() ? "" : "+") + step.to.mesh.axes[static_cast<std::size_t>(axis)].name;
  return text;
}

std::string groups_text(const Explanation::StepNumbers& numbers) {
  if (numbers.groups == 0) return "-";
  return fmt::format("{} x {}", numbers.groups, numbers.ranks_per_group);
}

std::string steps_text(const Explanation& e) {
  const auto& steps = e.choice.best().plan.steps;
  if (steps.empty()) return "  nothing moves\n";
  std::string text = fmt::format("  {:<24} {:>10} {:>10} {:>11} {:>11} {:>9}\n", "step", "groups",
                                 "per rank", "on links", "R2.5 total", "time");
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto& numbers = e.steps[s];
    const std::string axes = axes_text(steps[s]);
    text += fmt::format("  {:<24} {:>10} {:>10} {:>11} {:>11} {:>9}\n",
                        fmt::format("{} {}{}", s + 1, name_of(steps[s].primitive),
                                    axes.empty() ? "" : " over " + axes),
                        groups_text(numbers), format(numbers.bytes_per_rank),
                        format(numbers.volume.exact_total), format(numbers.volume.patent_total),
                        format(numbers.time));
    text += fmt::format("    -> {}\n", describe(steps[s].to));
  }
  return text;
}

std::string total_text(const Explanation& e) {
  const Alternative& best = e.choice.best();
  const Volume volume = volume_of(best.plan, e.tensor);
  std::string text = fmt::format("\n  {} {} ({}; closed form {}), {} on links, {} by R2.5\n",
                                 best.simulated ? "simulated" : "closed form", format(best.time()),
                                 best.plan.name, format(best.plan.estimate),
                                 format(volume.exact_total), format(volume.patent_total));
  if (e.choice.bound.time > 0_s)
    text += fmt::format("  no way is faster than {}: {}\n", format(e.choice.bound.time),
                        e.choice.bound.meaning);
  else
    text += "  no lower bound: it is not certain that anything must move\n";
  if (e.choice.baseline && best.time() > 0_s) {
    const Alternative& other = e.choice.alternatives[*e.choice.baseline];
    text += fmt::format("  gather and slice would take {}, {:.2f} times as long\n",
                        format(other.time()), other.time() / best.time());
  }
  return text;
}

std::string alternatives_text(const Explanation& e) {
  std::string text =
      fmt::format("\n  {:>2} {:>11} {:>10}  {}\n", "", "closed form", "simulated", "alternatives");
  for (std::size_t i = 0; i < e.choice.alternatives.size(); ++i) {
    const Alternative& one = e.choice.alternatives[i];
    text += fmt::format(
        "  {:>2} {:>11} {:>10}  {}{}\n", i + 1, format(one.plan.estimate),
        one.simulated ? format(*one.simulated) : "-", one.plan.name,
        (i == e.choice.chosen ? " (chosen)" : "") + (one.remark.empty() ? "" : "; " + one.remark));
  }
  const auto& rejected = e.choice.rejected;
  for (std::size_t i = 0; i < std::min(rejected.size(), kMostRejectedInText); ++i)
    text += fmt::format("  {:>2} {:>11} {:>10}  {}; {}\n", "-", "", "", rejected[i].name,
                        rejected[i].reason);
  if (rejected.size() > kMostRejectedInText)
    text += fmt::format("     and {} more rejected (--format json lists them)\n",
                        rejected.size() - kMostRejectedInText);
  return text;
}

std::string links_text(const Explanation& e) {
  if (!e.links_known) return "\n  links: not followed, the plan has too many messages\n";
  if (e.links.empty()) return "";
  std::string text =
      fmt::format("\n  busiest of {} links {:>33} {:>10}\n", e.links.size(), "bytes", "busy");
  for (std::size_t i = 0; i < std::min(e.links.size(), kMostLinksInText); ++i) {
    const auto& link = e.links[i];
    text += fmt::format("  {:<42} {:>10} {:>10}\n", link.from + " -> " + link.to,
                        format(link.bytes), format(link.time));
  }
  return text;
}

// A field of CSV (RFC 4180) that may hold commas. Layouts have no quotes.
std::string quoted(const std::string& text) {
  return '"' + text + '"';
}

std::int64_t whole(Bytes bytes) {
  return std::llround(bytes.in_base());
}

Json layout_json(const Layout& layout) {
  return {{"layout", describe(layout)}, {"ranks", describe_ranks(layout.mesh.ranks)}};
}

Json plan_json(const Explanation& e) {
  const Alternative& best = e.choice.best();
  const Volume volume = volume_of(best.plan, e.tensor);
  Json steps = Json::array();
  for (std::size_t s = 0; s < best.plan.steps.size(); ++s) {
    const Step& step = best.plan.steps[s];
    const auto& numbers = e.steps[s];
    Json axes = Json::array();
    for (const Axis axis : step.axes)
      axes.push_back(step.to.mesh.axes[static_cast<std::size_t>(axis)].name);
    steps.push_back({{"primitive", name_of(step.primitive)},
                     {"axes", std::move(axes)},
                     {"from", describe(step.from)},
                     {"to", describe(step.to)},
                     {"groups", numbers.groups},
                     {"ranks_per_group", numbers.ranks_per_group},
                     {"messages", numbers.messages},
                     {"bytes_per_rank", whole(numbers.bytes_per_rank)},
                     {"exact_total_bytes", whole(numbers.volume.exact_total)},
                     {"patent_total_bytes", whole(numbers.volume.patent_total)},
                     {"closed_form_s", numbers.time.in_base()}});
  }
  return {{"name", best.plan.name},
          {"time_s", best.time().in_base()},
          {"simulated", best.simulated.has_value()},
          {"closed_form_s", best.plan.estimate.in_base()},
          {"exact_total_bytes", whole(volume.exact_total)},
          {"patent_total_bytes", whole(volume.patent_total)},
          {"steps", std::move(steps)}};
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
    result.steps.push_back(numbers);
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

std::string to_text(const Explanation& e) {
  std::string text =
      fmt::format("{}, {}, on {}\n  from {}\n  to   {}\n\n", describe(e.tensor),
                  format(bytes_of(e.tensor)), e.cluster, describe(e.from), describe(e.to));
  return text + steps_text(e) + total_text(e) + alternatives_text(e) + links_text(e);
}

std::string to_json(const Explanation& e) {
  Json alternatives = Json::array();
  for (const Alternative& one : e.choice.alternatives) {
    alternatives.push_back({{"name", one.plan.name},
                            {"closed_form_s", one.plan.estimate.in_base()},
                            {"simulated_s", nullptr},
                            {"remark", one.remark}});
    if (one.simulated) alternatives.back()["simulated_s"] = one.simulated->in_base();
  }
  Json rejected = Json::array();
  for (const auto& one : e.choice.rejected)
    rejected.push_back({{"name", one.name}, {"reason", one.reason}});
  Json links = nullptr;
  if (e.links_known) {
    links = Json::array();
    for (const auto& link : e.links)
      links.push_back({{"from", link.from},
                       {"to", link.to},
                       {"bytes", whole(link.bytes)},
                       {"busy_s", link.time.in_base()}});
  }
  Json json{{"schema", kReshardSchema},
            {"tensor",
             {{"dtype", foreshard::name_of(e.tensor.dtype)},
              {"shape", e.tensor.shape},
              {"bytes", whole(bytes_of(e.tensor))}}},
            {"cluster", e.cluster},
            {"from", layout_json(e.from)},
            {"to", layout_json(e.to)},
            {"plan", plan_json(e)},
            {"baseline", nullptr},
            {"lower_bound",
             {{"time_s", e.choice.bound.time.in_base()}, {"meaning", e.choice.bound.meaning}}},
            {"chosen", e.choice.chosen},
            {"alternatives", std::move(alternatives)},
            {"rejected", std::move(rejected)},
            {"links", std::move(links)}};
  if (e.choice.baseline) {
    const Alternative& other = e.choice.alternatives[*e.choice.baseline];
    json["baseline"] = {{"alternative", *e.choice.baseline}, {"time_s", other.time().in_base()}};
  }
  return json.dump(2) + "\n";
}

std::string to_csv(const Explanation& e) {
  std::string text =
      "step,primitive,axes,groups,ranks_per_group,bytes_per_rank,exact_total_bytes,"
      "patent_total_bytes,closed_form_s,to\n";
  const auto& steps = e.choice.best().plan.steps;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto& numbers = e.steps[s];
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", s + 1, name_of(steps[s].primitive),
                        axes_text(steps[s]), numbers.groups, numbers.ranks_per_group,
                        whole(numbers.bytes_per_rank), whole(numbers.volume.exact_total),
                        whole(numbers.volume.patent_total), numbers.time.in_base(),
                        quoted(describe(steps[s].to)));
  }
  return text;
}

}  // namespace foreshard::reshard
