// Writes the result of the search of a graph (output.h), for `foreshard search`.
#include "sim/search/graph/output.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "base/grouped.h"
#include "base/quantity.h"
#include "base/record/csv.h"
#include "base/record/record.h"
#include "base/text.h"

#include "sim/search/graph/annotations.h"
#include "sim/search/output.h"
#include "sim/study/records.h"

namespace foreshard::program {

const record::Record<MeshAxis>& record_of(const MeshAxis*) {
  static const auto record = record::Record<MeshAxis>("mesh_axis")
                                 .field("name", &MeshAxis::name)
                                 .field("size", &MeshAxis::size);
  return record;
}

}  // namespace foreshard::program

namespace foreshard {

const record::Record<Annotation>& record_of(const Annotation*) {
  const auto of_operator = [](auto member, bool is_of_operator) {
    return [=](const Annotation& of) {
      return of.op.empty() != is_of_operator ? std::optional(of.*member) : std::nullopt;
    };
  };
  static const auto record =
      record::Record<Annotation>("annotation", "As a study's graph.annotations has it.")
          .sometimes("operator", of_operator(&Annotation::op, true))
          .sometimes("splits", of_operator(&Annotation::splits, true),
                     "Axes, by factor of the operator's rule.")
          .sometimes("tensor", of_operator(&Annotation::tensor, false))
          .sometimes("dims", of_operator(&Annotation::dims, false))
          .sometimes("partial", [](const Annotation& of) {
            return of.op.empty() && !of.partial.empty() ? std::optional(of.partial) : std::nullopt;
          });
  return record;
}

}  // namespace foreshard

namespace foreshard::search {
namespace {

using Json = nlohmann::ordered_json;
using record::Record;

std::optional<double> ratio_of(const GraphCandidate& one) {
  if (!one.estimate) return std::nullopt;
  return *one.estimate / one.step;
}

// "data 4, tensor 2".
std::string sizes_of(const GraphCandidate& one) {
  std::vector<std::string> sizes;
  for (const MeshAxis& axis : one.grouping.mesh())
    if (axis.size > 1) sizes.push_back(fmt::format("{} {}", axis.name, axis.size));
  std::string text = sizes.empty() ? "one device" : join(sizes);
  const Strategy& strategy = one.grouping.strategy;
  if (strategy.pipeline_parallel > 1) text += fmt::format(", micro-batch {}", strategy.micro_batch);
  if (!strategy.granularity.empty())
    text += fmt::format(", {} of them a pass", fmt::join(strategy.granularity, ":"));
  return text;
}

// ", use: [node0]".
std::string use_of(const GraphCandidate& one) {
  constexpr std::size_t kMostNodes = 4;
  const std::vector<std::string>& use = one.grouping.place.use;
  if (use.empty()) return "";
  if (use.size() <= kMostNodes) return ", use: [" + join(use) + "]";
  return fmt::format(", use: {} nodes, {} to {}", use.size(), use.front(), use.back());
}

std::string solver_of(const GraphCandidate& one) {
  if (one.by != "operators")
    return "rule '" + one.by + "'" + (one.doc.empty() ? "" : " (" + one.doc + ")");
  std::string text = "each operator for itself, by " + one.solver;
  if (one.gap > 0)
    text += fmt::format(" (at most {:.2g} % above the least estimate)", 100 * one.gap);
  if (one.timed_out) text += ", which ran out of time";
  return text;
}

// A remark that some plans may be as fast as the first, if their intervals overlap.
std::string overlap_text(const GraphSearchResult& result) {
  const GraphCandidate& first = result.simulated.front();
  const auto overlapping = std::ranges::count_if(result.simulated, [&](const GraphCandidate& one) {
    return &one != &first && one.fits && one.low <= first.high;
  });
  if (overlapping == 0) return "";
  return fmt::format(
      "\nThe intervals of {} other {} overlap that of the first, {}: a machine may order them "
      "otherwise.\n",
      grouped(overlapping), plural(overlapping, "plan"), interval_text(first));
}

std::string idle_of(const GraphCandidate& one) {
  return one.idle == 0 ? ""
                       : fmt::format("; {} {} idle", grouped(one.idle), plural(one.idle, "device"));
}

void write_counts(Page& page, const GraphSearchResult& result) {
  TextTable table({">", "<"});
  const auto add = [&](std::int64_t count, const std::string& what) {
    table.row(grouped(count), what);
  };
  add(result.groupings, plural(result.groupings, "grouping") + " of the devices tried");
  for (const auto& [why, count] : result.refused) add(count, "impossible: " + why);
  if (result.without_answer > 0)
    add(result.without_answer, "on which no choice of operators fits, by estimate");
  add(result.plans, plural(result.plans, "plan") + " ranked by estimate");
  add(std::ssize(result.simulated), "simulated");
  for (const auto& [why, count] : result.failed) add(count, "cannot run: " + why);
  page.table(table);
}

std::string ratios_text(const GraphSearchResult& result) {
  double low = 0;
  double high = 0;
  std::int64_t count = 0;
  for (const GraphCandidate& one : result.simulated) {
    const auto ratio = ratio_of(one);
    if (!ratio) continue;
    low = count == 0 ? *ratio : std::min(low, *ratio);
    high = count == 0 ? *ratio : std::max(high, *ratio);
    ++count;
  }
  if (count == 0) return "";
  return fmt::format(
      "\nThe estimate, a sum over operators and conversions, was {:.2f} to {:.2f} times the "
      "simulated step over those {} that have one.\n",
      low, high, count);
}

std::string words_of(const GraphCandidate& one) {
  return sizes_of(one) + use_of(one) + "; " + solver_of(one) + idle_of(one);
}

}  // namespace

std::string study_keys_of(const GraphCandidate& candidate, const Graph& graph) {
  std::string text = "graph:\n";
  if (!candidate.grouping.axes.empty()) {
    std::vector<std::string> axes;
    for (const MeshAxis& axis : candidate.grouping.axes)
      axes.push_back(fmt::format("{}: {}", axis.name, axis.size));
    text += "  axes: {" + join(axes) + "}\n";
  }
  text += candidate.annotations.empty()
              ? "  annotations: []\n"
              : "  annotations:\n" + yaml_of(candidate.annotations, 4, &graph);
  const Strategy& strategy = candidate.grouping.strategy;
  text += fmt::format("strategy:\n  tensor_parallel: {}\n  data_parallel: {}\n  micro_batch: {}\n",
                      strategy.tensor_parallel, strategy.data_parallel, strategy.micro_batch);
  if (!strategy.granularity.empty())
    text += fmt::format("  granularity: [{}]\n", fmt::join(strategy.granularity, ", "));
  const std::vector<std::string>& use = candidate.grouping.place.use;
  return use.empty() ? text : text + "use: [" + join(use) + "]\n";
}

std::string graph_search_text(const study::LoadedStudy& study, const GraphSearchResult& result,
                              std::int64_t top, const Paper& paper) {
  Page page(paper);
  page.line(fmt::format("{} on {}, batch of {}, {}\n", study.graph->graph.name, study.cluster.name,
                        grouped(study.strategy.global_batch), study.strategy.framework->name));
  write_counts(page, result);
  const auto best = top_of(result.simulated, top);
  if (best.empty()) page.line("\nNothing can run.");
  if (best.empty()) return std::move(page).take();
  page.add(evidence_lines(best, "plan") + "\n");
  TextTable table(
      {">", ">step", ">8 of 10 within", ">estimate", ">ratio", ">headroom", "<devices; how"});
  for (std::size_t i = 0; i < best.size(); ++i) {
    const GraphCandidate& one = best[i];
    const auto ratio = ratio_of(one);
    table.row(i + 1, format(one.step), interval_text(one),
              one.estimate ? format(*one.estimate) : "-",
              ratio ? fmt::format("{:.2f}", *ratio) : "-", format(one.headroom()),
              words_of(one) + (one.fits ? "" : "; DOES NOT FIT"));
  }
  page.table(table);
  page.add(ratios_text(result));
  if (!best.front().fits) {
    const auto nearest = std::ranges::max_element(
        result.simulated, {}, [](const GraphCandidate& one) { return one.headroom(); });
    page.line(fmt::format(
        "\nNothing fits. The plan that misses least needs {} a device, {} more than there is for "
        "it.",
        format(nearest->peak), format(nearest->peak - nearest->capacity)));
    return std::move(page).take();
  }
  page.add(overlap_text(result) + "\nOf the first one, for the study:\n\n");
  const std::string keys = study_keys_of(best.front(), study.graph->graph);
  page.verbatim(std::string_view(keys).substr(0, keys.size() - 1));
  return std::move(page).take();
}

const Record<GraphCandidate>& record_of(const GraphCandidate*) {
  using One = GraphCandidate;
  static const auto record =
      Record<One>("plan")
          .field("words", words_of, "For people.")
          .field("by", &One::by, "operators, or the name of a rule.")
          .field("doc", &One::doc, "Description of a rule of --rules.")
          .field("mesh", record::at<&One::grouping, &Grouping::mesh>)
          .field("micro_batch",
                 record::at<&One::grouping, &Grouping::strategy, &Strategy::micro_batch>)
          .field("granularity",
                 record::at<&One::grouping, &Grouping::strategy, &Strategy::granularity>,
                 "Micro-batches that each stage takes in a pass; empty: one.")
          .field("use", record::at<&One::grouping, &Grouping::place, &DeviceSubset::use>,
                 "Nodes; empty: same as the study's.")
          .field("time_s", &One::step, "Simulated.")
          .field("low_s", &One::low)
          .field("high_s", &One::high)
          .field("evidence", &One::unmeasured)
          .field("estimate_s", &One::estimate, "The sum over operators and conversions.")
          .field("estimate_over_simulated", ratio_of)
          .field("gap", &One::gap, "How much less the least estimate may be, as a part of it.")
          .field("solver", &One::solver)
          .field("timed_out", &One::timed_out, "Whether the answer depends on the machine.")
          .field("operators_split", &One::operators_split, "Over axes other than data.")
          .field("model_tflops_per_gpu", &One::tflops_per_device)
          .field("fits", &One::fits)
          .field("idle_devices", &One::idle)
          .field("usd_per_step", record::at<&One::expense, &sim::Expense::usd>)
          .field("joules_per_step", record::at<&One::expense, &sim::Expense::energy>)
          .field("peak_bytes", &One::peak)
          .field("headroom_bytes", &One::headroom)
          .field("breakdown_s", &One::breakdown)
          .field("annotations", &One::annotations);
  return record;
}

template <auto... kMembers>
constexpr auto in_answer = record::at<&GraphSearchReport::result, kMembers...>;

const Record<GraphSearchReport>& record_of(const GraphSearchReport*) {
  using Report = GraphSearchReport;
  using Of = GraphSearchResult;
  using study::LoadedStudy;
  static const auto record =
      Record<Report>::result(
          "foreshard.graph_search/1",
          "The plans that `search` found for a study with a graph, the fastest first.")
          .field("graph", [](const Report& of) { return of.study->graph->graph.name; })
          .field("cluster", record::at<&Report::study, &LoadedStudy::cluster, &ClusterConfig::name>)
          .field("global_batch",
                 record::at<&Report::study, &LoadedStudy::strategy, &Strategy::global_batch>)
          .field("framework", [](const Report& of) { return of.study->strategy.framework->name; })
          .field("groupings", in_answer<&Of::groupings>, "Ways to group devices that were tried.")
          .field("refused", in_answer<&Of::refused>, "Groupings that the study forbids, by reason.")
          .field("without_answer", in_answer<&Of::without_answer>, "No choice of operators fits.")
          .field("plans", in_answer<&Of::plans>, "Plans that were ranked by estimate.")
          .field("failed", in_answer<&Of::failed>, "Plans that cannot run, by reason.")
          .field("remarks", in_answer<&Of::remarks>, "Rules of --rules that match nothing.")
          .field("best",
                 [](const Report& of) {
                   const auto best = top_of(of.result->simulated, of.top);
                   return std::vector(best.begin(), best.end());
                 })
          .field("asked", &Report::asked);
  return record;
}

std::string graph_search_json(const study::LoadedStudy& study, const GraphSearchResult& result,
                              std::int64_t top, Asked asked) {
  asked.digests = digests_of(study);
  const GraphSearchReport report{&study, &result, top, std::move(asked)};
  return record::text_of(record::write(report), 1);
}

std::string graph_search_csv(const GraphSearchResult& result, std::int64_t top) {
  std::vector<Json> rows;
  for (const GraphCandidate& one : top_of(result.simulated, top)) {
    std::vector<std::string> mesh;
    for (const MeshAxis& axis : one.grouping.mesh())
      mesh.push_back(fmt::format("{}={}", axis.name, axis.size));
    rows.push_back(record::write(one));
    rows.back()["rank"] = rows.size();
    rows.back()["mesh"] = join(mesh, " ");
  }
  std::vector<record::Column> columns;
  for (const char* name : {"rank", "by", "time_s", "low_s", "high_s", "estimate_s", "gap",
                           "peak_bytes", "headroom_bytes", "fits", "mesh", "idle_devices"})
    columns.push_back({name});
  columns.push_back({"unmeasured_share", "evidence/unmeasured_share"});
  columns.push_back({"evidence", "evidence/remarks"});
  return record::csv(columns, rows);
}

}  // namespace foreshard::search
