// The result of `foreshard elastic` as JSON and as text. A further number gets a member in
// run.h, a key in elastic_json(), and one in cli/results/elastic.json.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/grouped.h"
#include "base/quantity.h"
#include "base/text.h"

#include "sim/elastic/internal/words.h"
#include "sim/elastic/run.h"
#include "sim/report/numbers.h"

namespace foreshard::elastic {
namespace {

using Json = nlohmann::ordered_json;
using internal::known;
using internal::kUnknown;
using internal::shown;
using report::right;

struct PartName {
  const char* key;
  const char* label;
  Seconds Parts::*part;
};
constexpr std::array<PartName, 8> kPartNames{{
    {"useful_s", "useful", &Parts::useful},
    {"slowdown_s", "slower", &Parts::slowdown},
    {"lost_s", "again", &Parts::lost},
    {"saving_s", "saving", &Parts::saving},
    {"detection_s", "detect", &Parts::detection},
    {"restart_s", "restart", &Parts::restart},
    {"slices_s", "slices", &Parts::slices},
    {"waiting_s", "waiting", &Parts::waiting},
}};

// Runs take days and differ by hours.
std::string days(Seconds time) {
  constexpr Seconds kDay = 24_h;
  return time < kDay ? format(time) : fmt::format("{:.1f} d", time / kDay);
}

// Whether nothing is missing: the rates of all causes, and what this policy needs.
bool is_known(const ElasticResult& result, const PolicyFigures& figures) {
  return figures.unknown.empty() && result.without_rate.empty();
}

Json json_of(const ElasticResult& result, const PolicyFigures& figures) {
  const bool simulated = figures.unknown.empty();
  const bool exact = is_known(result, figures);
  Json json{{"policy", yaml::name_of(figures.policy)},
            {"unknown", figures.unknown},
            {"goodput", exact ? Json(figures.goodput) : Json(nullptr)},
            {"goodput_at_most", simulated ? Json(figures.goodput) : Json(nullptr)},
            {"time_s", nullptr},
            {"time_s_at_least", nullptr},
            {"parts", nullptr},
            {"failures", figures.failures},
            {"interruptions", figures.interrupted},
            {"checkpoints", figures.checkpoints},
            {"moves", figures.moves},
            {"moved_bytes", figures.moved.in_base()},
            {"fewest_nodes", figures.fewest_nodes},
            {"rent_usd", exact ? known(figures.rent) : Json(nullptr)},
            {"rent_usd_at_least", known(figures.rent)},
            {"by_cause", Json::object()}};
  if (!simulated) return json;
  json["time_s_at_least"] = {{"mean", figures.time.mean.in_base()},
                             {"p10", figures.time.p10.in_base()},
                             {"median", figures.time.median.in_base()},
                             {"p90", figures.time.p90.in_base()}};
  if (exact) json["time_s"] = json["time_s_at_least"];
  for (const PartName& name : kPartNames)
    json["parts"][name.key] = (figures.parts.*name.part).in_base();
  for (const auto& [cause, count] : figures.by_cause)
    json["by_cause"][result.causes[cause].name] = count;
  return json;
}

std::vector<std::string> evidence_of(const ElasticResult& result) {
  std::vector<const study::Unmeasured*> all;
  for (const study::Unmeasured& one : result.unmeasured) all.push_back(&one);
  return study::evidence_remarks(all, "strategy");
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

std::string elastic_json(const ElasticResult& result) {
  Json causes = Json::array();
  for (const CauseFigures& cause : result.causes)
    causes.push_back({{"name", cause.name},
                      {"units", cause.units},
                      {"mtbf_s", known(cause.mtbf)},
                      {"between_s", known(cause.between)},
                      {"takes_nodes", cause.takes},
                      {"repair_s", known(cause.repair)}});
  Json policies = Json::array();
  for (const PolicyFigures& figures : result.policies) policies.push_back(json_of(result, figures));
  Json arrangements = Json::array();
  for (const ArrangementFigures& each : result.arrangements)
    arrangements.push_back({{"nodes", each.arrangement.nodes},
                            {"replicas_lost", each.arrangement.replicas_lost},
                            {"strategy", each.strategy},
                            {"step_s", known(each.step)},
                            {"low_s", known(each.low)},
                            {"high_s", known(each.high)},
                            {"tight", each.tight},
                            {"idle_devices", each.idle}});
  return Json{{"schema", "foreshard.elastic/1"},
              {"name", result.name},
              {"model", result.model},
              {"cluster", result.cluster},
              {"strategy", result.strategy},
              {"train", result.train},
              {"steps", result.steps},
              {"step_s", result.step.in_base()},
              {"low_s", result.low.in_base()},
              {"high_s", result.high.in_base()},
              {"evidence", evidence_of(result)},
              {"ideal_s", result.ideal().in_base()},
              {"nodes", result.nodes},
              {"spares", result.spares},
              {"histories", result.histories},
              {"seed", result.seed},
              {"causes", std::move(causes)},
              {"without_rate", result.without_rate},
              {"between_s", known(result.between)},
              {"checkpoint",
               {{"bytes", internal::whole(result.checkpoint.size)},
                {"interval_s", result.checkpoint.interval.in_base()},
                {"rule", result.checkpoint.rule},
                {"blocked_s", result.checkpoint.blocked.in_base()},
                {"written_s", result.checkpoint.written.in_base()}}},
              {"policies", std::move(policies)},
              {"arrangements", std::move(arrangements)}}
             .dump(2) +
         "\n";
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
