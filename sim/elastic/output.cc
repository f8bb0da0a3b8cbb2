// The result of `foreshard elastic` as JSON and as text. A further number gets a member in run.h
// and a line in a record.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include "base/grouped.h"
#include "base/quantity.h"
#include "base/record/record.h"
#include "base/text.h"

#include "sim/elastic/internal/words.h"
#include "sim/elastic/run.h"
#include "sim/report/numbers.h"

namespace foreshard::elastic {
namespace {

using internal::kUnknown;
using internal::shown;
using record::at;
using record::Record;

struct PartName {
  const char* key;
  const char* label;
  Seconds Parts::*part;
  const char* doc;
};
constexpr std::array<PartName, 8> kPartNames{{
    {"useful_s", "useful", &Parts::useful, ""},
    {"slowdown_s", "slower", &Parts::slowdown, "Additional time of steps on fewer nodes."},
    {"lost_s", "again", &Parts::lost, "Lost work, computed again."},
    {"saving_s", "saving", &Parts::saving, ""},
    {"detection_s", "detect", &Parts::detection, ""},
    {"restart_s", "restart", &Parts::restart, ""},
    {"slices_s", "slices", &Parts::slices, "Moving slices, or reading a checkpoint."},
    {"waiting_s", "waiting", &Parts::waiting, ""},
}};

// Runs take days and differ by hours.
std::string days(Seconds time) {
  constexpr Seconds kDay = 24_h;
  return time < kDay ? format(time) : fmt::format("{:.1f} d", time / kDay);
}

std::vector<std::string> evidence_of(const ElasticResult& result) {
  std::vector<const study::Unmeasured*> all;
  for (const study::Unmeasured& one : result.unmeasured) all.push_back(&one);
  return study::evidence_remarks(all, "strategy");
}

// A policy of a run.
struct PolicyReport {
  const PolicyFigures* figures;
  bool is_simulated;
  bool is_exact;  // nothing is missing: the rates of all causes, and what this policy needs
  std::vector<std::pair<std::string, double>> by_cause;
};

std::vector<PolicyReport> policies_of(const ElasticResult& run) {
  std::vector<PolicyReport> policies;
  for (const PolicyFigures& figures : run.policies) {
    const bool is_simulated = figures.unknown.empty();
    policies.push_back({&figures, is_simulated, is_simulated && run.without_rate.empty(), {}});
    if (!is_simulated) continue;
    for (const auto& [cause, count] : figures.by_cause)
      policies.back().by_cause.emplace_back(run.causes[cause].name, count);
  }
  return policies;
}

void write_causes(Page& page, const ElasticResult& result) {
  if (result.causes.empty()) return;
  TextTable table({"<What fails", ">units", ">MTBF of one", ">of the run", ">repair"});
  for (const CauseFigures& cause : result.causes)
    table.row(cause.name, grouped(cause.units), shown(cause.mtbf), shown(cause.between),
              cause.takes ? shown(cause.repair) : "-");
  table.row("all that are known", "", "", shown(result.between));
  page.table(table);
}

std::string checkpoint_text(const ElasticResult& result) {
  const CheckpointFigures& c = result.checkpoint;
  const std::string safe =
      c.written > c.blocked ? fmt::format(", and is safe after {}", format(c.written)) : "";
  return fmt::format("\nA checkpoint holds {}, stops the run for {}{}\n  every {} ({})\n",
                     format(c.size), format(c.blocked), safe, format(c.interval),
                     c.rule == "given" ? "given" : "the optimum by " + c.rule);
}

void write_policies(Page& page, const ElasticResult& result) {
  const bool bounds = !result.without_rate.empty();
  const std::string at_least = bounds ? ">= " : "";
  const auto time = [&](Seconds value) { return at_least + days(value); };
  TextTable table(
      {"<policy", ">goodput", ">mean", ">p10", ">median", ">p90", ">stops", ">moved", ">rent/USD"});
  for (const PolicyFigures& figures : result.policies) {
    if (!figures.unknown.empty()) {
      table.row(yaml::name_of(figures.policy), kUnknown);
      table.note(figures.unknown);
      continue;
    }
    const Spread& of = figures.time;
    table.row(yaml::name_of(figures.policy),
              (bounds ? "<= " : "") + report::percent(figures.goodput), time(of.mean), time(of.p10),
              time(of.median), time(of.p90), fmt::format("{:.1f}", figures.interrupted),
              format(figures.moved),
              figures.rent ? at_least + report::scaled(*figures.rent / 1_USD) : kUnknown);
  }
  page.table(table);
}

// Where no time was spent, rounding may leave a smaller sum of hours than this: "-0.000".
constexpr double kLeastShown = 5e-4;

void write_parts(Page& page, const ElasticResult& result) {
  std::vector<std::string> heads{"<of 100 h"};
  for (const PartName& name : kPartNames) heads.push_back(std::string(">") + name.label);
  TextTable table(std::move(heads));
  for (const PolicyFigures& figures : result.policies) {
    if (!figures.unknown.empty()) continue;
    std::vector<std::string> cells{std::string(yaml::name_of(figures.policy))};
    for (const PartName& name : kPartNames) {
      const double share = 100 * (figures.parts.*name.part / figures.parts.total());
      cells.push_back(fmt::format("{:.3f}", std::abs(share) < kLeastShown ? 0 : share));
    }
    table.add(std::move(cells));
  }
  page.table(table);
}

// Comes first if the strategy of the run, or of one of its arrangements, leaves less than the
// memory margin.
std::string tight_text(const ElasticResult& result) {
  const bool is_tight = std::ranges::any_of(result.arrangements, &ArrangementFigures::tight);
  return is_tight ? "TIGHT: a strategy of this run leaves less than the study's memory margin and "
                    "may run out of memory.\n\n"
                  : "";
}

void write_arrangements(Page& page, const ElasticResult& result) {
  TextTable table({"<Strategies that runs came to", ">step", "<"});
  for (const ArrangementFigures& each : result.arrangements) {
    const Arrangement& arrangement = each.arrangement;
    if (arrangement == Arrangement{.nodes = result.nodes}) continue;
    const std::string where =
        arrangement.replicas_lost > 0
            ? fmt::format("{} {} lost", arrangement.replicas_lost,
                          plural(arrangement.replicas_lost, "replica"))
            : fmt::format("{} {}", arrangement.nodes, plural(arrangement.nodes, "node"));
    const std::string idle =
        each.idle > 0 ? fmt::format(" ({} {} idle)", each.idle, plural(each.idle, "device")) : "";
    table.row(where, each.step ? format(*each.step) : "-",
              (each.step ? each.strategy : "none fits: the run waits") + idle +
                  (each.tight ? " (TIGHT)" : ""));
  }
  page.table(table);
}

}  // namespace

const Record<CauseFigures>& record_of(const CauseFigures*) {
  static const auto record =
      Record<CauseFigures>("cause")
          .field("name", &CauseFigures::name)
          .field("units", &CauseFigures::units, "Units in the run, without spares.")
          .field("mtbf_s", &CauseFigures::mtbf, "Mean time between failures of one; null: UNKNOWN.")
          .field("between_s", &CauseFigures::between, "Mean time between failures of all units.")
          .field("takes_nodes", &CauseFigures::takes)
          .field("repair_s", &CauseFigures::repair, "Null: UNKNOWN, or no node is taken down.");
  return record;
}

const Record<Spread>& record_of(const Spread*) {
  static const auto record = Record<Spread>("spread")
                                 .field("mean", &Spread::mean)
                                 .field("p10", &Spread::p10)
                                 .field("median", &Spread::median)
                                 .field("p90", &Spread::p90);
  return record;
}

const Record<Parts>& record_of(const Parts*) {
  static const auto record = [] {
    Record<Parts> all("parts", "Where the time went; means over the histories.");
    for (const PartName& name : kPartNames) all.append(name.key, name.part, name.doc);
    return all;
  }();
  return record;
}

const Record<ArrangementFigures>& record_of(const ArrangementFigures*) {
  using Of = ArrangementFigures;
  static const auto record =
      Record<Of>("arrangement")
          .field("nodes", at<&Of::arrangement, &Arrangement::nodes>)
          .field("replicas_lost", at<&Of::arrangement, &Arrangement::replicas_lost>)
          .field("strategy", &Of::strategy, "Empty: none fits.")
          .field("step_s", &Of::step)
          .field("low_s", &Of::low)
          .field("high_s", &Of::high)
          .field("tight", &Of::tight, "Whether it leaves less than the study's memory margin.")
          .field("idle_devices", &Of::idle, "Devices without a rank; 0 if replicas are lost.");
  return record;
}

namespace {

const Record<PolicyReport>& record_of(const PolicyReport*) {
  using Of = PolicyFigures;
  const auto of = [](auto Of::*member) {
    return [member](const PolicyReport& policy) { return policy.figures->*member; };
  };
  const auto known = [](bool PolicyReport::*is_known, auto Of::*member) {
    return [is_known, member](const PolicyReport& policy) {
      return policy.*is_known ? std::optional(policy.figures->*member) : std::nullopt;
    };
  };
  const auto exact = &PolicyReport::is_exact;
  const auto simulated = &PolicyReport::is_simulated;
  static const auto record =
      Record<PolicyReport>("policy", "At least, at most: causes without a rate are left out.")
          .field("policy", of(&Of::policy))
          .field("unknown", of(&Of::unknown), "Why its figures are unknown; empty: they are not.")
          .field("goodput", known(exact, &Of::goodput), "ideal_s / mean time; null: UNKNOWN.")
          .field("goodput_at_most", known(simulated, &Of::goodput))
          .field("time_s", known(exact, &Of::time))
          .field("time_s_at_least", known(simulated, &Of::time))
          .field("times_s_at_least", known(simulated, &Of::times), "Of each history, ascending.")
          .field("parts", known(simulated, &Of::parts))
          .field("failures", of(&Of::failures), "Failures of the machine.")
          .field("interruptions", of(&Of::interrupted), "Failures that stopped the run.")
          .field("checkpoints", of(&Of::checkpoints))
          .field("moves", of(&Of::moves))
          .field("moved_bytes", at<&PolicyReport::figures, &Of::moved, &Bytes::in_base>)
          .field("fewest_nodes", of(&Of::fewest_nodes), "Minimum over all histories.")
          .field("rent_usd", known(exact, &Of::rent), "Rent of all nodes that are there.")
          .field("rent_usd_at_least", of(&Of::rent))
          .field("by_cause", &PolicyReport::by_cause, "Interruptions.");
  return record;
}

Record<CheckpointFigures> checkpoint_group() {
  using Of = CheckpointFigures;
  return Record<Of>()
      .field("bytes", &Of::size)
      .field("interval_s", &Of::interval, "Time computed between two checkpoints.")
      .field("rule", &Of::rule, "", record::one_of({"given", "daly", "young"}))
      .field("blocked_s", &Of::blocked, "Time that one stops the run for.")
      .field("written_s", &Of::written, "Time from its beginning until it is safe.");
}

}  // namespace

const Record<ElasticResult>& record_of(const ElasticResult*) {
  using Of = ElasticResult;
  static const auto record =
      Record<Of>::result("foreshard.elastic/1",
                         "Goodput and cost of a run under failures, by policy (docs/elastic.md).")
          .field("name", &Of::name)
          .field("model", &Of::model)
          .field("cluster", &Of::cluster)
          .field("strategy", &Of::strategy)
          .field("train", &Of::train)
          .field("steps", &Of::steps)
          .field("step_s", &Of::step)
          .field("low_s", &Of::low, "8 of 10 measured steps are expected within.")
          .field("high_s", &Of::high)
          .field("evidence", evidence_of, "Parameters behind the steps that were not measured.")
          .field("ideal_s", &Of::ideal, "The run without failures and checkpoints.")
          .field("nodes", &Of::nodes)
          .field("spares", &Of::spares)
          .field("histories", &Of::histories)
          .field("seed", &Of::seed)
          .field("causes", &Of::causes)
          .field("without_rate", &Of::without_rate, "Causes whose rate nobody has counted.")
          .field("between_s", &Of::between, "Mean time between failures of known rate.")
          .group("checkpoint", &Of::checkpoint, checkpoint_group())
          .field("policies", policies_of)
          .field("arrangements", &Of::arrangements);
  return record;
}

std::string elastic_json(const ElasticResult& result) {
  return record::text_of(record::write(result), 2);
}

std::string elastic_text(const ElasticResult& result, const Paper& paper) {
  Page page(paper);
  page.add(tight_text(result));
  for (const std::string& remark : evidence_of(result)) page.line("! " + remark);
  page.line(fmt::format(
      "{} on {}: {}\n  {}, {} steps of {} ({} to {}): {} without failures and checkpoints\n  {} "
      "{}{}, {} {}",
      result.model, result.cluster, result.strategy, result.train,
      grouped(static_cast<std::int64_t>(result.steps)), format(result.step), format(result.low),
      format(result.high), days(result.ideal()), grouped(result.nodes),
      plural(result.nodes, "node"),
      result.spares > 0
          ? fmt::format(" and {} {}", grouped(result.spares), plural(result.spares, "spare"))
          : "",
      grouped(result.histories), result.histories == 1 ? "history" : "histories"));
  write_causes(page, result);
  if (!result.without_rate.empty())
    page.line(fmt::format("  nobody has counted {}: with them, goodput and time are {}",
                          join(result.without_rate), kUnknown));
  page.add(checkpoint_text(result));
  write_policies(page, result);
  page.line(fmt::format(
      "  percentiles are of failures; by its interval, the step is {:+.0f} % to {:+.0f} % off",
      100 * (result.low / result.step - 1), 100 * (result.high / result.step - 1)));
  write_parts(page, result);
  write_arrangements(page, result);
  return std::move(page).take();
}

}  // namespace foreshard::elastic
