// Explains a search's choice from its JSON (explain.h), for `foreshard explain`. Nothing is
// searched or simulated anew.
#include "sim/search/explain.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/grouped.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/record/record.h"
#include "base/text.h"
#include "base/yaml/loader.h"

#include "sim/search/output.h"
#include "sim/study/records.h"

namespace foreshard::search {
namespace {

using Json = nlohmann::ordered_json;
using record::Record;

Seconds seconds_at(const Json& json, const char* key) {
  return Seconds::from_base(json.at(key).get<double>());
}
Bytes bytes_at(const Json& json, const char* key) {
  return Bytes::from_base(json.at(key).get<double>());
}

// What no search writes, and no text could say something of.
std::string fault_in(const Simulated& one) {
  if (!(one.low > 0_s && one.low <= one.step && one.step <= one.high))
    return "its times are not 0 < low_s <= time_s <= high_s";
  for (const sim::BreakdownPart& part : sim::kBreakdownParts)
    if (one.breakdown.*part.time < 0_s) return fmt::format("breakdown_s.{} is negative", part.key);
  if (one.peak < 0_B) return "peak_bytes is negative";
  return {};
}

Result<Simulated> listed_of(const Json& json) {
  Simulated one;
  one.step = seconds_at(json, "time_s");
  one.low = seconds_at(json, "low_s");
  one.high = seconds_at(json, "high_s");
  one.peak = bytes_at(json, "peak_bytes");
  one.capacity = one.peak + bytes_at(json, "headroom_bytes");
  FORESHARD_ASSIGN(one.unmeasured, record::read_at<study::Unmeasured>(json, "evidence"));
  one.fits = json.at("fits").get<bool>();
  one.tight = json.value("tight", false);  // results of graphs have none
  FORESHARD_ASSIGN(one.breakdown, record::read_at<sim::Breakdown>(json, "breakdown_s"));
  if (auto why = fault_in(one); !why.empty())
    return Error{Error::Code::kInvalidInput, std::move(why)};
  return one;
}

// Reads what only results for models have.
Status read_model(const Json& json, SearchResult& found) {
  found.whole_space = json.at("whole_space").get<bool>();
  found.partial = json.at("partial").get<bool>();
  found.missing = json.value("missing_resource", "");
  found.tried_hosts = json.at("needs_hosts").get<bool>();
  found.memory_margin = json.at("memory_margin").get<double>();
  found.margin_source = json.at("memory_margin_source").get<std::string>();
  found.certified = json.at("certified").get<bool>();
  found.slower = json.at("slower_by_estimate").get<std::int64_t>();
  found.provably_slower = json.at("slower_by_bound").get<std::int64_t>();
  if (!json.at("best_bound_s").is_null()) found.best_bound = seconds_at(json, "best_bound_s");
  if (const Json& of = json.at("robustness"); !of.is_null())
    found.robustness = {.draws = of.at("draws").get<std::int64_t>(),
                        .firsts = of.at("firsts").get<std::vector<std::int64_t>>(),
                        .beside_slow = of.at("first_beside_slow_device").get<std::int64_t>() - 1};
  if (found.robustness.draws > 0 && found.robustness.firsts.empty())
    return Error{Error::Code::kInvalidInput, "robustness.firsts is empty"};
  return {};
}

Status read_strategies(const Json& json, SearchResult& found) {
  yaml::Loader loader;
  const Json& best = json.at("best");
  for (std::size_t i = 0; i < best.size(); ++i) {
    Simulated& one = found.simulated[i];
    FORESHARD_ASSIGN(one.strategy, loader.read_text<Strategy>(best[i].at("strategy").dump(),
                                                              "the result's strategy"));
    one.use = best[i].at("use").get<std::vector<std::string>>();
    one.estimate.step = seconds_at(best[i], "estimate_s");
    one.estimate.bound = seconds_at(best[i], "bound_s");
  }
  return {};
}

// The settings of a plan of a graph: the keys that study_keys_of (graph/output.h) writes.
std::vector<yaml::Override> settings_of_plan(const Json& plan) {
  std::vector<yaml::Override> settings;
  for (const Json& axis : plan.at("mesh")) {
    const auto name = axis.at("name").get<std::string>();
    const std::string size = std::to_string(axis.at("size").get<std::int64_t>());
    if (name == "tensor" || name == "data")
      settings.push_back({fmt::format("strategy.{}_parallel", name), size});
    else if (name != "pipeline")
      settings.push_back({"graph.axes." + name, size});
  }
  settings.push_back({"graph.annotations", plan.at("annotations").dump()});
  settings.push_back(
      {"strategy.micro_batch", std::to_string(plan.at("micro_batch").get<std::int64_t>())});
  settings.push_back({"strategy.granularity", plan.at("granularity").dump()});
  if (const Json& use = plan.at("use"); !use.empty()) settings.push_back({"use", use.dump()});
  return settings;
}

Result<ReadResult> read(const Json& json) {
  ReadResult result{.schema = json.at("schema").get<std::string>()};
  result.subject = json.at(result.is_of_model() ? "model" : "graph").get<std::string>();
  result.cluster = json.at("cluster").get<std::string>();
  result.framework = json.at("framework").get<std::string>();
  result.global_batch = json.at("global_batch").get<std::int64_t>();
  for (const Json& one : json.at("best")) {
    FORESHARD_ASSIGN(result.found.simulated.emplace_back(), listed_of(one));
    result.words.push_back(one.at("words").get<std::string>());
  }
  result.overlapping = result.found.overlapping();
  FORESHARD_ASSIGN(result.asked, record::read_at<Asked>(json, "asked"));
  if (!result.is_of_model()) {
    for (const Json& plan : json.at("best")) result.settings.push_back(settings_of_plan(plan));
    return result;
  }
  FORESHARD_TRY(read_model(json, result.found));
  result.overlapping = json.at("overlapping_the_best").get<std::int64_t>();
  FORESHARD_TRY(read_strategies(json, result.found));
  for (const Simulated& one : result.found.simulated) result.settings.push_back(settings_of(one));
  yaml::Loader loader;
  FORESHARD_ASSIGN(result.found.space, loader.read_text<SearchSpace>(
                                           result.asked.space.value_or(""), "the result's space"));
  return result;
}

bool has_answer(const SearchResult& found) {
  return !found.simulated.empty() && found.simulated.front().fits;
}
bool has_second(const SearchResult& found) {
  return found.simulated.size() > 1 && found.simulated[1].fits;
}

// Both steps, term by term, without terms that neither has.
void write_terms(Page& page, const Simulated& first, const Simulated* second) {
  std::vector<std::string> heads{"<", ">first"};
  if (second != nullptr) heads.insert(heads.end(), {">second", ">second loses"});
  TextTable table(std::move(heads));
  const auto add = [&](std::string_view label, Seconds own, Seconds other) {
    if (second == nullptr)
      table.row(label, format(own));
    else
      table.row(label, format(own), format(other), format(other - own));
  };
  for (const sim::BreakdownPart& part : sim::kBreakdownParts) {
    const Seconds own = first.breakdown.*part.time;
    const Seconds other = second == nullptr ? Seconds{} : second->breakdown.*part.time;
    if (own > Seconds{} || other > Seconds{}) add(part.label, own, other);
  }
  add("step", first.step, second == nullptr ? Seconds{} : second->step);
  page.table(table);
}

std::string dominance_text(const Simulated& first) {
  const sim::BreakdownPart& all = sim::dominant(first.breakdown, true);
  const sim::BreakdownPart& rest = sim::dominant(first.breakdown, false);
  std::string text = fmt::format("\nOf the first's step {} takes most, {:.0f} %", all.label,
                                 100 * (first.breakdown.*all.time / first.step));
  if (all.key != rest.key)
    text += fmt::format("; beside it {}, {:.0f} %", rest.label,
                        100 * (first.breakdown.*rest.time / first.step));
  return text + fmt::format(". Each device has {} of memory left.\n", format(first.headroom()));
}

std::string sureness_text(const ReadResult& result) {
  const SearchResult& found = result.found;
  std::string text;
  if (result.is_of_model())
    text += found.certified
                ? "Certified within the model: no other strategy considered is simulated as "
                  "faster.\n"
                : fmt::format(
                      "Not certified: an unsimulated strategy could be up to {:.1f} % faster.\n",
                      100 * found.gap());
  if (result.overlapping > 0)
    text += fmt::format("{} other {} an interval that overlaps the first's.\n",
                        grouped(result.overlapping),
                        result.overlapping == 1 ? "strategy has" : "strategies have");
  if (const auto probability = found.first_beats_second())
    text += fmt::format(
        "A machine runs the first faster than the second with probability {:.0f} % (errors "
        "log-normal and independent of each other).\n",
        100 * *probability);
  text += robustness_text(found);
  if (found.partial)
    text += fmt::format("The search ended before it was through: {}.\n", found.ended_by());
  return text;
}

// A strategy of the result, for an explanation.
struct Contestant : Simulated {
  std::string words;
};

const Record<Contestant>& record_of(const Contestant*) {
  static const auto record =
      Record<Contestant>("contestant")
          .field("words", &Contestant::words)
          .field("time_s", &Simulated::step)
          .field("low_s", &Simulated::low)
          .field("high_s", &Simulated::high)
          .field("evidence", &Simulated::unmeasured)
          .field("fits", &Simulated::fits)
          .field("headroom_bytes", record::at<&Simulated::headroom, &Bytes::in_base>)
          .field("dominant", dominant_of(true), "Key of the largest term.")
          .field("dominant_overhead", dominant_of(false), "Key of the largest one but compute.");
  return record;
}

auto contestant(std::size_t index) {
  return [index](const ReadResult& result) {
    const std::vector<Simulated>& all = result.found.simulated;
    return index < all.size() ? std::optional(Contestant{all[index], result.words[index]})
                              : std::nullopt;
  };
}

// A part of the step of both strategies.
struct Term {
  Seconds first;
  std::optional<Seconds> second;
  std::optional<Seconds> loss;
};

const Record<Term>& record_of(const Term*) {
  static const auto record =
      Record<Term>("term")
          .field("first_s", &Term::first)
          .field("second_s", &Term::second)
          .field("second_loses_s", &Term::loss, "Negative: the second gains.");
  return record;
}

std::vector<std::pair<std::string, Term>> terms_of(const ReadResult& result) {
  const std::vector<Simulated>& all = result.found.simulated;
  std::vector<std::pair<std::string, Term>> terms;
  for (const sim::BreakdownPart& part : sim::kBreakdownParts) {
    if (all.empty()) break;
    Term& term = terms.emplace_back(part.key, Term{}).second;
    term.first = all[0].breakdown.*part.time;
    if (all.size() < 2) continue;
    term.second = all[1].breakdown.*part.time;
    term.loss = *term.second - term.first;
  }
  return terms;
}

}  // namespace

bool is_result_schema(std::string_view schema) {
  return schema == "foreshard.search/1" || schema == "foreshard.graph_search/1";
}

ReadResult beside(ReadResult result, std::size_t index) {
  if (index < 2) return result;
  std::swap(result.found.simulated[1], result.found.simulated[index]);
  std::swap(result.words[1], result.words[index]);
  std::swap(result.settings[1], result.settings[index]);
  result.number = static_cast<std::int64_t>(index) + 1;
  return result;
}

Result<ReadResult> read_result(std::string_view text) {
  const auto fault = [](const std::string& why) {
    return Error{Error::Code::kInvalidInput,
                 fmt::format("no result of a search that can be explained: {}\n   help: foreshard "
                             "search STUDY.yaml --format json -o RESULT.json makes one",
                             why)};
  };
  const auto parsed = parsed_json<Json>(text);
  if (!parsed) return fault(parsed.error().message);
  const Json& json = *parsed;
  if (!json.is_object()) return fault("no JSON object");
  const std::string schema = json.contains("schema") && json["schema"].is_string()
                                 ? json["schema"].get<std::string>()
                                 : "";
  if (!is_result_schema(schema)) return fault(fmt::format("its schema is '{}'", schema));
  const auto other_version = [&](const std::string& why) {
    return fault(fmt::format("it is not as this version writes it ({})", why));
  };
  try {
    auto result = read(json);
    if (!result) return other_version(result.error().message);
    return result;
  } catch (const Json::exception& exception) {
    return other_version(json_words(exception.what()));
  }
}

std::string explanation_text(const ReadResult& result, const Paper& paper) {
  const SearchResult& found = result.found;
  Page page(paper);
  page.line(fmt::format("{} on {}, batch of {}, {}", result.subject, result.cluster,
                        grouped(result.global_batch), result.framework));
  if (!has_answer(found)) {
    page.line("\nNothing that fits was found, so nothing won.");
  } else {
    const Simulated& first = found.simulated.front();
    const Simulated* second = has_second(found) ? &found.simulated[1] : nullptr;
    std::vector<const study::Unmeasured*> unmeasured{&first.unmeasured};
    if (second != nullptr) unmeasured.push_back(&second->unmeasured);
    page.add(study::evidence_text(unmeasured, "strategy") + "\n");
    const std::string second_name =
        result.number == 2 ? "second" : fmt::format("no. {}", result.number);
    TextTable table({"<", ">", "<"});
    for (std::size_t i = 0; i < (second == nullptr ? 1U : 2U); ++i) {
      const Simulated& one = found.simulated[i];
      table.row(i == 0 ? "first" : second_name, format(one.step),
                fmt::format("{}: {}", interval_text(one), result.words[i]));
    }
    page.table(table);
    write_terms(page, first, second);
    if (second != nullptr)
      page.line(fmt::format("\nThe {} is {}.", second_name, difference_text(first, *second)));
    page.add(dominance_text(first) + needs_hosts_text(found) + sureness_text(result));
  }
  if (found.why_not) page.add(why_not_text(*found.why_not));
  return std::move(page).take();
}

const Record<ReadResult>& record_of(const ReadResult*) {
  static const auto record =
      Record<ReadResult>::result(
          "foreshard.explanation/1",
          "Why a search chose what it chose, as `explain` reads it from its result.")
          .field("of", &ReadResult::schema, "The schema of the result.")
          .field("subject", &ReadResult::subject, "The model, or the graph.")
          .field("cluster", &ReadResult::cluster)
          .field("global_batch", &ReadResult::global_batch)
          .field("framework", &ReadResult::framework)
          .field("first", contestant(0))
          .field("second", contestant(1))
          .field("second_number", &ReadResult::number, "Rank of the second one in the result.")
          .field("terms", terms_of, "Parts of the step, by their keys in a breakdown.")
          .field(
              "certified",
              [](const ReadResult& of) {
                return of.is_of_model() ? std::optional(of.found.certified) : std::nullopt;
              },
              "Whether nothing can be faster, within the model; null for a graph.")
          .field("overlapping_the_best", &ReadResult::overlapping, kOverlapping)
          .field("first_beats_second",
                 record::at<&ReadResult::found, &SearchResult::first_beats_second>,
                 kFirstBeatsSecond)
          .field("robustness", record::at<&ReadResult::found, &SearchResult::tested>)
          .field("why_not", record::at<&ReadResult::found, &SearchResult::why_not>);
  return record;
}

std::string explanation_json(const ReadResult& result) {
  return record::text_of(record::write(result), 1);
}

}  // namespace foreshard::search
