#include "sim/search/graph/output.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/csv.h"
#include "base/grouped.h"
#include "base/quantity.h"
#include "base/record/record.h"
#include "base/text.h"

#include "sim/search/graph/annotations.h"
#include "sim/study/records.h"

namespace foreshard::search {
namespace {

using Json = nlohmann::ordered_json;

std::span<const GraphCandidate> top_of(const GraphSearchResult& result, std::int64_t top) {
  return std::span(result.simulated)
      .first(std::min(result.simulated.size(),
                      static_cast<std::size_t>(std::max<std::int64_t>(top, 0))));
}

std::int64_t whole(Bytes bytes) {
  return std::llround(bytes.in_base());
}

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

std::vector<const study::Unmeasured*> unmeasured_of(std::span<const GraphCandidate> best) {
  std::vector<const study::Unmeasured*> all;
  for (const GraphCandidate& one : best) all.push_back(&one.unmeasured);
  return all;
}

// A remark that some plans may be as fast as the first, if their intervals overlap.
std::string overlap_text(const GraphSearchResult& result) {
  const GraphCandidate& first = result.simulated.front();
  const auto overlapping = std::ranges::count_if(result.simulated, [&](const GraphCandidate& one) {
    return &one != &first && one.fits && one.low <= first.high;
  });
  if (overlapping == 0) return "";
  return fmt::format(
      "\nThe intervals of {} other {} overlap that of the first, {} to {}: a machine may order "
      "them "
      "otherwise.\n",
      grouped(overlapping), plural(overlapping, "plan"), format(first.low), format(first.high));
}

std::string idle_of(const GraphCandidate& one) {
  return one.idle == 0 ? ""
                       : fmt::format("; {} {} idle", grouped(one.idle), plural(one.idle, "device"));
}

std::string counts_text(const GraphSearchResult& result) {
  std::string text;
  const auto line = [&](std::int64_t count, const std::string& what) {
    text += fmt::format("  {:>9}  {}\n", grouped(count), what);
  };
  line(result.groupings, plural(result.groupings, "grouping") + " of the devices tried");
  for (const auto& [why, count] : result.refused) line(count, "impossible: " + why);
  if (result.without_answer > 0)
    line(result.without_answer, "on which no choice of operators fits, by estimate");
  line(result.plans, plural(result.plans, "plan") + " ranked by estimate");
  line(std::ssize(result.simulated), "simulated");
  for (const auto& [why, count] : result.failed) line(count, "cannot run: " + why);
  return text;
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
      "simulated "
      "step\nover those {} that have one.\n",
      low, high, count);
}

Json annotation_json(const Annotation& one) {
  if (!one.op.empty()) return {{"operator", one.op}, {"splits", Json(one.splits)}};
  Json json = {{"tensor", one.tensor}, {"dims", one.dims}};
  if (!one.partial.empty()) json["partial"] = one.partial;
  return json;
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
                              std::int64_t top) {
  std::string text =
      fmt::format("{} on {}, batch of {}, {}\n\n", study.graph->graph.name, study.cluster.name,
                  grouped(study.strategy.global_batch), study.strategy.framework->name);
  text += counts_text(result);
  const auto best = top_of(result, top);
  if (best.empty()) return text + "\nNothing can run.\n";
  const std::string evidence = study::evidence_text(unmeasured_of(best), "plan");
  if (!evidence.empty()) text += "\n" + evidence;
  text += fmt::format("\n  {:>2}  {:>9} {:>20} {:>9} {:>6} {:>9}  {}\n", "", "step",
                      "8 of 10 within", "estimate", "ratio", "headroom", "devices; how");
  for (std::size_t i = 0; i < best.size(); ++i) {
    const GraphCandidate& one = best[i];
    const auto ratio = ratio_of(one);
    text += fmt::format(
        "  {:>2}  {:>9} {:>20} {:>9} {:>6} {:>9}  {}; {}{}{}\n", i + 1, format(one.step),
        fmt::format("{} to {}", format(one.low), format(one.high)),
        one.estimate ? format(*one.estimate) : "-", ratio ? fmt::format("{:.2f}", *ratio) : "-",
        format(one.headroom()), sizes_of(one) + use_of(one), solver_of(one), idle_of(one),
        one.fits ? "" : "; DOES NOT FIT");
  }
  text += ratios_text(result);
  if (!best.front().fits) {
    const auto nearest = std::ranges::max_element(
        result.simulated, {}, [](const GraphCandidate& one) { return one.headroom(); });
    return text + fmt::format(
                      "\nNothing fits. The plan that misses least needs {} a device, {} more "
                      "than there is for it.\n",
                      format(nearest->peak), format(nearest->peak - nearest->capacity));
  }
  text += overlap_text(result);
  return text + "\nOf the first one, for the study:\n\n" +
         study_keys_of(best.front(), study.graph->graph);
}

std::string graph_search_json(const study::LoadedStudy& study, const GraphSearchResult& result,
                              std::int64_t top, const Asked& asked) {
  Json json = {{"schema", "foreshard.graph_search/1"},
               {"graph", study.graph->graph.name},
               {"cluster", study.cluster.name},
               {"global_batch", study.strategy.global_batch},
               {"framework", study.strategy.framework->name},
               {"groupings", result.groupings},
               {"refused", Json::object()},
               {"without_answer", result.without_answer},
               {"plans", result.plans},
               {"failed", Json::object()},
               {"remarks", result.remarks},
               {"best", Json::array()},
               {"asked", asked_json(asked, study, nullptr)}};
  for (const auto& [why, count] : result.refused) json["refused"][why] = count;
  for (const auto& [why, count] : result.failed) json["failed"][why] = count;
  for (const GraphCandidate& one : top_of(result, top)) {
    Json mesh = Json::array();
    for (const MeshAxis& axis : one.grouping.mesh())
      mesh.push_back({{"name", axis.name}, {"size", axis.size}});
    Json annotations = Json::array();
    for (const Annotation& annotation : one.annotations)
      annotations.push_back(annotation_json(annotation));
    const auto ratio = ratio_of(one);
    const auto usd = one.expense.usd();
    json["best"].push_back(
        {{"words", sizes_of(one) + use_of(one) + "; " + solver_of(one) + idle_of(one)},
         {"by", one.by},
         {"doc", one.doc},
         {"mesh", std::move(mesh)},
         {"micro_batch", one.grouping.strategy.micro_batch},
         {"granularity", one.grouping.strategy.granularity},
         {"use", one.grouping.place.use},
         {"time_s", one.step.in_base()},
         {"low_s", one.low.in_base()},
         {"high_s", one.high.in_base()},
         {"evidence", study::evidence_json(one.unmeasured)},
         {"estimate_s", one.estimate ? Json(one.estimate->in_base()) : Json(nullptr)},
         {"estimate_over_simulated", ratio ? Json(*ratio) : Json(nullptr)},
         {"gap", one.gap},
         {"solver", one.solver},
         {"timed_out", one.timed_out},
         {"operators_split", one.operators_split},
         {"model_tflops_per_gpu", one.tflops_per_device},
         {"fits", one.fits},
         {"idle_devices", one.idle},
         {"usd_per_step", usd ? Json(*usd / 1_USD) : Json(nullptr)},
         {"joules_per_step", one.expense.energy ? Json(*one.expense.energy / 1_J) : Json(nullptr)},
         {"peak_bytes", whole(one.peak)},
         {"headroom_bytes", whole(one.headroom())},
         {"breakdown_s", record::write(one.breakdown)},
         {"annotations", std::move(annotations)}});
  }
  return json.dump(1, ' ') + "\n";
}

std::string graph_search_csv(const GraphSearchResult& result, std::int64_t top) {
  std::string text =
      "rank,by,time_s,low_s,high_s,estimate_s,gap,peak_bytes,headroom_bytes,fits,mesh,idle_"
      "devices,unmeasured_share,evidence\n";
  std::int64_t rank = 0;
  for (const GraphCandidate& one : top_of(result, top)) {
    std::string mesh;
    for (const MeshAxis& axis : one.grouping.mesh())
      mesh += fmt::format("{}{}={}", mesh.empty() ? "" : " ", axis.name, axis.size);
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", ++rank, csv_field(one.by),
                        one.step.in_base(), one.low.in_base(), one.high.in_base(),
                        one.estimate ? fmt::format("{}", one.estimate->in_base()) : "", one.gap,
                        whole(one.peak), whole(one.headroom()), one.fits, csv_field(mesh), one.idle,
                        one.unmeasured.share, csv_field(join(one.unmeasured.remarks, "; ")));
  }
  return text;
}

}  // namespace foreshard::search
