#include <algorithm>
#include <fmt/format.h>

#include "base/quantity.h"
#include "base/record/csv.h"
#include "base/record/record.h"
#include "base/text.h"

#include "strategies/reshard/explain.h"
#include "strategies/reshard/tensor_text.h"

namespace foreshard::reshard {
namespace {

using record::Record;

constexpr std::size_t kMostLinksInText = 8;
constexpr std::size_t kMostRejectedInText = 8;

std::string groups_text(const Explanation::StepNumbers& numbers) {
  if (numbers.groups == 0) return "-";
  return fmt::format("{} x {}", numbers.groups, numbers.ranks_per_group);
}

std::string steps_text(const Explanation& e) {
  if (e.steps.empty()) return "  nothing moves\n";
  std::string text = fmt::format("  {:<24} {:>10} {:>10} {:>11} {:>11} {:>9}\n", "step", "groups",
                                 "per rank", "on links", "R2.5 total", "time");
  for (std::size_t s = 0; s < e.steps.size(); ++s) {
    const auto& step = e.steps[s];
    text +=
        fmt::format("  {:<24} {:>10} {:>10} {:>11} {:>11} {:>9}\n",
                    fmt::format("{} {}{}", s + 1, step.primitive,
                                step.axes.empty() ? "" : " over " + join(step.axes, "+")),
                    groups_text(step), format(step.bytes_per_rank), format(step.volume.exact_total),
                    format(step.volume.patent_total), format(step.time));
    text += fmt::format("    -> {}\n", step.to);
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

std::string to_text(const Explanation& e) {
  std::string text =
      fmt::format("{}, {}, on {}\n  from {}\n  to   {}\n\n", describe(e.tensor),
                  format(bytes_of(e.tensor)), e.cluster, describe(e.from), describe(e.to));
  return text + steps_text(e) + total_text(e) + alternatives_text(e) + links_text(e);
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
