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
using report::right;

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

std::string causes_text(const ElasticResult& result) {
  if (result.causes.empty()) return "";
  std::string text =
      fmt::format("\n  {:<34} {} {} {} {}\n", "What fails", right("units", 7),
                  right("MTBF of one", 12), right("of the run", 11), right("repair", 8));
  for (const CauseFigures& cause : result.causes)
    text += fmt::format("  {:<34} {} {} {} {}\n", cause.name, right(grouped(cause.units), 7),
                        right(shown(cause.mtbf), 12), right(shown(cause.between), 11),
                        right(cause.takes ? shown(cause.repair) : "-", 8));
  return text + fmt::format("  {:<34} {} {} {}\n", "all that are known", right("", 7),
                            right("", 12), right(shown(result.between), 11));
}

std::string checkpoint_text(const ElasticResult& result) {
  const CheckpointFigures& c = result.checkpoint;
  const std::string safe =
      c.written > c.blocked ? fmt::format(", and is safe after {}", format(c.written)) : "";
  return fmt::format("\nA checkpoint holds {}, stops the run for {}{}\n  every {} ({})\n",
                     format(c.size), format(c.blocked), safe, format(c.interval),
                     c.rule == "given" ? "given" : "the optimum by " + c.rule);
}

std::string policies_text(const ElasticResult& result) {
  const bool bounds = !result.without_rate.empty();
  const std::size_t wide = bounds ? 11 : 8;  // width of times
  std::string text =
      fmt::format("\n  {:<8} {} {} {} {} {} {} {} {}\n", "policy", right("goodput", 9),
                  right("mean", wide), right("p10", wide), right("median", wide),
                  right("p90", wide), right("stops", 6), right("moved", 9), right("rent/USD", 9));
  const std::string at_least = bounds ? ">= " : "";
  const auto time = [&](Seconds value) { return right(at_least + days(value), wide); };
  for (const PolicyFigures& figures : result.policies) {
    text += fmt::format("  {:<8} ", yaml::name_of(figures.policy));
    if (!figures.unknown.empty()) {
      text += fmt::format("{}: {}\n", kUnknown, figures.unknown);
      continue;
    }
    const std::string goodput = (bounds ? "<= " : "") + report::percent(figures.goodput);
    const std::string rent =
        figures.rent ? at_least + report::scaled(*figures.rent / 1_USD) : kUnknown;
    const Spread& of = figures.time;
    text += fmt::format("{} {} {} {} {} {} {} {}\n", right(goodput, 9), time(of.mean), time(of.p10),
                        time(of.median), time(of.p90),
                        right(fmt::format("{:.1f}", figures.interrupted), 6),
                        right(format(figures.moved), 9), right(rent, 9));
  }
  return text;
}

// Where no time was spent, rounding may leave a smaller sum of hours than this: "-0.000".
constexpr double kLeastShown = 5e-4;

std::string parts_text(const ElasticResult& result) {
  std::string text = fmt::format("\n  {:<8}", "of 100 h");
  for (const PartName& name : kPartNames) text += right(name.label, 9);
  text += "\n";
  for (const PolicyFigures& figures : result.policies) {
    if (!figures.unknown.empty()) continue;
    text += fmt::format("  {:<8}", yaml::name_of(figures.policy));
    for (const PartName& name : kPartNames) {
      const double share = 100 * (figures.parts.*name.part / figures.parts.total());
      text += right(fmt::format("{:.3f}", std::abs(share) < kLeastShown ? 0 : share), 9);
    }
    text += "\n";
  }
  return text;
}

// Comes first if the strategy of the run, or of one of its arrangements, leaves less than the
// memory margin.
std::string tight_text(const ElasticResult& result) {
  const bool is_tight = std::ranges::any_of(result.arrangements, &ArrangementFigures::tight);
  return is_tight ? "TIGHT: a strategy of this run leaves less than the study's memory margin and "
                    "may run out of memory.\n\n"
                  : "";
}

std::string arrangements_text(const ElasticResult& result) {
  std::string text;
  for (const ArrangementFigures& each : result.arrangements) {
    const Arrangement& arrangement = each.arrangement;
    if (arrangement == Arrangement{.nodes = result.nodes}) continue;
    if (text.empty()) text = "\nStrategies that runs came to\n";
    const std::string where =
        arrangement.replicas_lost > 0
            ? fmt::format("{} {} lost", arrangement.replicas_lost,
                          plural(arrangement.replicas_lost, "replica"))
            : fmt::format("{} {}", arrangement.nodes, plural(arrangement.nodes, "node"));
    const std::string idle =
        each.idle > 0 ? fmt::format(" ({} {} idle)", each.idle, plural(each.idle, "device")) : "";
    text +=
        fmt::format("  {:<15} {}  {}{}\n", where, right(each.step ? format(*each.step) : "-", 8),
                    each.step ? each.strategy : "none fits: the run waits",
                    each.tight ? idle + " (TIGHT)" : idle);
  }
  return text;
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
    for (const PartName& name : kPartNames) std::move(all).field(name.key, name.part, name.doc);
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

std::string elastic_text(const ElasticResult& result) {
  std::string text = tight_text(result);
  for (const std::string& remark : evidence_of(result)) text += "! " + remark + "\n";
  text += fmt::format(
      "{} on {}: {}\n  {}, {} steps of {} ({} to {}): {} without failures and checkpoints\n  {} "
      "{}{}, {} {}\n",
      result.model, result.cluster, result.strategy, result.train,
      grouped(static_cast<std::int64_t>(result.steps)), format(result.step), format(result.low),
      format(result.high), days(result.ideal()), grouped(result.nodes),
      plural(result.nodes, "node"),
      result.spares > 0
          ? fmt::format(" and {} {}", grouped(result.spares), plural(result.spares, "spare"))
          : "",
      grouped(result.histories), result.histories == 1 ? "history" : "histories");
  text += causes_text(result);
  if (!result.without_rate.empty())
    text += fmt::format("  nobody has counted {}: with them, goodput and time are {}\n",
                        join(result.without_rate), kUnknown);
  text += checkpoint_text(result);
  text += policies_text(result);
  text += fmt::format(
      "  percentiles are of failures; by its interval, the step is {:+.0f} % to {:+.0f} % off\n",
      100 * (result.low / result.step - 1), 100 * (result.high / result.step - 1));
  text += parts_text(result);
  return text + arrangements_text(result);
}

}  // namespace foreshard::elastic
