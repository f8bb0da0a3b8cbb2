#include "strategies/reshard/explain.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "base/quantity.h"
#include "base/record/csv.h"
#include "base/record/record.h"
#include "base/text.h"

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

using record::Record;

constexpr std::int64_t kMostLinksInText = 8;
constexpr std::size_t kMostRejectedInText = 8;

std::string groups_text(const Explanation::StepNumbers& numbers) {
  if (numbers.groups == 0) return "-";
  return fmt::format("{} x {}", numbers.groups, numbers.ranks_per_group);
}

void write_steps(Page& page, const Explanation& e) {
  if (e.steps.empty()) page.line("  nothing moves");
  TextTable table({"<step", ">groups", ">per rank", ">on links", ">R2.5 total", ">time"});
  for (std::size_t s = 0; s < e.steps.size(); ++s) {
    const auto& step = e.steps[s];
    table.row(fmt::format("{} {}{}", s + 1, step.primitive,
                          step.axes.empty() ? "" : " over " + join(step.axes, "+")),
              groups_text(step), format(step.bytes_per_rank), format(step.volume.exact_total),
              format(step.volume.patent_total), format(step.time));
    table.note("-> " + step.to);
  }
  page.table(table);
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

void write_alternatives(Page& page, const Explanation& e) {
  TextTable table({">", ">closed form", ">simulated", "<alternatives"});
  for (std::size_t i = 0; i < e.choice.alternatives.size(); ++i) {
    const Alternative& one = e.choice.alternatives[i];
    table.row(i + 1, format(one.plan.estimate), one.simulated ? format(*one.simulated) : "-",
              one.plan.name + (i == e.choice.chosen ? " (chosen)" : "") +
                  (one.remark.empty() ? "" : "; " + one.remark));
  }
  const auto& rejected = e.choice.rejected;
  const std::size_t shown = std::min(rejected.size(), kMostRejectedInText);
  for (std::size_t i = 0; i < shown; ++i)
    table.row("-", "", "", rejected[i].name + "; " + rejected[i].reason);
  page.table(table);
  page.more(static_cast<std::int64_t>(rejected.size() - shown),
            "rejected (--format json lists them)");
}

void write_links(Page& page, const Explanation& e) {
  if (!e.links_known) page.line("\n  links: not followed, the plan has too many messages");
  if (!e.links_known || e.links.empty()) return;
  TextTable table({fmt::format("<busiest of {} links", e.links.size()), ">bytes", ">busy"});
  for (const auto& link : e.links)
    table.row(link.from + " -> " + link.to, format(link.bytes), format(link.time));
  page.table(std::move(table), kMostLinksInText, "(--format json lists them)");
}

}  // namespace

const Record<Explanation::StepNumbers>& record_of(const Explanation::StepNumbers*) {
  using Of = Explanation::StepNumbers;
  static const auto record =
      Record<Of>("step")
          .field("primitive", &Of::primitive)
          .field("axes", &Of::axes)
          .field("from", &Of::from)
          .field("to", &Of::to)
          .field("groups", &Of::groups)
          .field("ranks_per_group", &Of::ranks_per_group)
          .field("messages", &Of::messages)
          .field("bytes_per_rank", &Of::bytes_per_rank)
          .field("exact_total_bytes", record::at<&Of::volume, &Volume::exact_total>)
          .field("patent_total_bytes", record::at<&Of::volume, &Volume::patent_total>)
          .field("closed_form_s", &Of::time);
  return record;
}

const Record<Alternative>& record_of(const Alternative*) {
  static const auto record =
      Record<Alternative>("alternative")
          .field("name", record::at<&Alternative::plan, &Plan::name>)
          .field("closed_form_s", record::at<&Alternative::plan, &Plan::estimate>)
          .field("simulated_s", &Alternative::simulated)
          .field("remark", &Alternative::remark, "Why it was not chosen, or not simulated.");
  return record;
}

const Record<Candidates::Rejected>& record_of(const Candidates::Rejected*) {
  static const auto record = Record<Candidates::Rejected>("rejected")
                                 .field("name", &Candidates::Rejected::name)
                                 .field("reason", &Candidates::Rejected::reason);
  return record;
}

const Record<Explanation::LinkUse>& record_of(const Explanation::LinkUse*) {
  static const auto record =
      Record<Explanation::LinkUse>("link")
          .field("from", &Explanation::LinkUse::from)
          .field("to", &Explanation::LinkUse::to)
          .field("bytes", &Explanation::LinkUse::bytes)
          .field("busy_s", &Explanation::LinkUse::time, "Time of the bytes at its bandwidth.");
  return record;
}

namespace {

Record<Layout> layout_group() {
  return Record<Layout>()
      .field("layout", [](const Layout& layout) { return describe(layout); })
      .field("ranks", [](const Layout& layout) { return describe_ranks(layout.mesh.ranks); });
}

template <auto kBytes>
Bytes volume_in_all(const Explanation& e) {
  return volume_of(e.choice.best().plan, e.tensor).*kBytes;
}

Record<Explanation> plan_group() {
  const auto best = [](auto value) {
    return [value](const Explanation& e) { return std::invoke(value, e.choice.best()); };
  };
  return Record<Explanation>()
      .field("name", best(record::at<&Alternative::plan, &Plan::name>))
      .field("time_s", best(&Alternative::time))
      .field("simulated", best([](const Alternative& one) { return one.simulated.has_value(); }))
      .field("closed_form_s", best(record::at<&Alternative::plan, &Plan::estimate>))
      .field("exact_total_bytes", volume_in_all<&Volume::exact_total>, "Bytes that cross links.")
      .field("patent_total_bytes", volume_in_all<&Volume::patent_total>,
             "Bytes as the patent counts them.")
      .field("steps", &Explanation::steps);
}

struct Baseline {
  std::size_t alternative;
  Seconds time;
};

const Record<Baseline>& record_of(const Baseline*) {
  static const auto record =
      Record<Baseline>("baseline", "Gather the whole tensor, then cut it: no planner is needed.")
          .field("alternative", &Baseline::alternative)
          .field("time_s", &Baseline::time);
  return record;
}

std::optional<Baseline> baseline_of(const Explanation& e) {
  const auto& index = e.choice.baseline;
  return index ? std::optional(Baseline{*index, e.choice.alternatives[*index].time()})
               : std::nullopt;
}

}  // namespace

const Record<Explanation>& record_of(const Explanation*) {
  using E = Explanation;
  using record::at;
  static const auto record =
      Record<E>::result("foreshard.reshard/1",
                        "How a tensor moves from one layout to another, as `reshard --tensor` "
                        "plans it (docs/reshard.md).")
          .group(
              "tensor", &E::tensor,
              Record<TensorSpec>()
                  .field("dtype", [](const TensorSpec& t) { return foreshard::name_of(t.dtype); })
                  .field("shape", &TensorSpec::shape)
                  .field("bytes", [](const TensorSpec& tensor) { return bytes_of(tensor); }))
          .field("cluster", &E::cluster)
          .group("from", &E::from, layout_group())
          .group("to", &E::to, layout_group())
          .group("plan", plan_group())
          .field("baseline", baseline_of)
          .group("lower_bound", at<&E::choice, &Choice::bound>,
                 Record<LowerBound>()
                     .field("time_s", &LowerBound::time)
                     .field("meaning", &LowerBound::meaning))
          .field("chosen", at<&E::choice, &Choice::chosen>, "Index of the plan in alternatives.")
          .field("alternatives", at<&E::choice, &Choice::alternatives>)
          .field("rejected", at<&E::choice, &Choice::rejected>)
          .field(
              "links",
              [](const E& e) { return e.links_known ? std::optional(e.links) : std::nullopt; },
              "Links that the plan uses; null if it has too many messages to follow.");
  return record;
}

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

std::string to_text(const Explanation& e, const Paper& paper) {
  Page page(paper);
  page.line(fmt::format("{}, {}, on {}\n  from {}\n  to   {}\n", describe(e.tensor),
                        format(bytes_of(e.tensor)), e.cluster, describe(e.from), describe(e.to)));
  write_steps(page, e);
  page.add(total_text(e));
  write_alternatives(page, e);
  write_links(page, e);
  return std::move(page).take();
}

std::string to_json(const Explanation& e) {
  return record::text_of(record::write(e), 2);
}

std::string to_csv(const Explanation& e) {
  std::vector<record::Json> rows;
  for (const auto& step : e.steps) {
    rows.push_back(record::write(step));
    rows.back()["step"] = rows.size();
  }
  return record::csv({{"step"},
                      {"primitive"},
                      {"axes", "", "+"},
                      {"groups"},
                      {"ranks_per_group"},
                      {"bytes_per_rank"},
                      {"exact_total_bytes"},
                      {"patent_total_bytes"},
                      {"closed_form_s"},
                      {"to"}},
                     rows);
}

}  // namespace foreshard::reshard
