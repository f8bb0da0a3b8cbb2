#include "validate/measurement/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "strategies/program/ir/json_node.h"
#include "validate/measurement/arrivals.h"

namespace foreshard::measure {
namespace {

using Json = nlohmann::ordered_json;
using Node = program::JsonNode;

constexpr program::JsonForm kMeasurementForm{.what = "measurement",
                                             .schema = kMeasurementSchema,
                                             .made_by = "foreshard replay -o FILE",
                                             .largest = kLargestMeasurementText};
constexpr program::JsonForm kArrivalsForm{.what = "arrivals",
                                          .schema = kArrivalsSchema,
                                          .made_by = "foreshard export --arrivals FILE",
                                          .largest = kLargestMeasurementText};

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Whole numbers without ".0": shorter, and what people write.
Json number(double value) {
  constexpr double kExact = 0x1p53;
  if (std::abs(value) < kExact && value == std::floor(value))
    return static_cast<std::int64_t>(value);
  return value;
}

Json column(const std::vector<Seconds>& times) {
  Json out = Json::array();
  for (const Seconds time : times) out.push_back(number(time.in_base()));
  return out;
}

// The columns of `tasks`: key and field. Slack is one of its own (kOneRank).
constexpr std::pair<std::string_view, Seconds TaskTimes::*> kColumns[] = {
    {"start_s", &TaskTimes::start},   {"finish_s", &TaskTimes::finish}, {"low_s", &TaskTimes::low},
    {"median_s", &TaskTimes::median}, {"high_s", &TaskTimes::high},
};
constexpr std::pair<std::string_view, std::optional<double> Reading::*> kReadings[] = {
    {"clock_mhz", &Reading::clock_mhz},
    {"memory_clock_mhz", &Reading::memory_clock_mhz},
    {"celsius", &Reading::celsius},
    {"watts", &Reading::watts},
};

std::string_view name_of(Mode mode) {
  return mode == Mode::kWhole ? "whole" : "one_rank";
}
std::optional<Mode> find_mode(std::string_view name) {
  for (const Mode mode : {Mode::kWhole, Mode::kOneRank})
    if (name == name_of(mode)) return mode;
  return std::nullopt;
}

Json json_of(const Machine& machine) {
  Json facts = Json::object();
  for (const auto& [name, text] : machine.facts) facts[name] = text;
  return {{"name", machine.name}, {"facts", std::move(facts)}, {"topology", machine.topology}};
}

Json json_of(const Reading& reading) {
  Json json{{"when", reading.when}};
  for (const auto& [key, field] : kReadings)
    if (reading.*field) json[std::string(key)] = number(*(reading.*field));
  return json;
}

std::string text_of(const RankRecord& rank, Mode mode) {
  Json readings = Json::array();
  for (const Reading& reading : rank.readings) readings.push_back(json_of(reading));
  const Json head{{"rank", rank.rank},
                  {"machine", rank.machine},
                  {"device", rank.device},
                  {"steps_s", column(rank.steps)},
                  {"peak_memory_bytes", number(rank.peak_memory.in_base())},
                  {"scratch_bytes", number(rank.scratch.in_base())},
                  {"readings", std::move(readings)}};
  std::string out = dump(head);
  out.back() = ',';
  out += "\n   \"tasks\":{";
  const auto add = [&](std::string_view key, Seconds TaskTimes::*field) {
    std::vector<Seconds> times;
    times.reserve(rank.tasks.size());
    for (const TaskTimes& task : rank.tasks) times.push_back(task.*field);
    out +=
        (out.back() == '{' ? "" : ",\n    ") + dump(std::string(key)) + ":" + dump(column(times));
  };
  for (const auto& [key, field] : kColumns) add(key, field);
  if (mode == Mode::kOneRank) add("slack_s", &TaskTimes::slack);
  return out + "}}";
}

// "[\n  a,\n  b]": one line per member.
template <class Range, class Text>
std::string lines(const Range& range, Text text) {
  std::string out = "[";
  for (const auto& member : range) out += (out.size() > 1 ? ",\n  " : "\n  ") + text(member);
  return out + "]";
}

Seconds duration(const Node& node) {
  return Seconds::from_base(node.non_negative());
}

Machine machine_of(const Node& node) {
  node.fields({"name", "facts", "topology"});
  Machine machine{.name = node["name"].text(), .topology = node["topology"].text()};
  const Node facts = node["facts"];
  for (const std::string& name : facts.keys()) machine.facts[name] = facts[name].text();
  return machine;
}

Reading reading_of(const Node& node) {
  node.fields({"when"}, {"clock_mhz", "memory_clock_mhz", "celsius", "watts"});
  Reading reading{.when = node["when"].text()};
  for (const auto& [key, field] : kReadings)
    if (node.has(key)) reading.*field = node[key].finite();
  return reading;
}

std::vector<TaskTimes> tasks_of(const Node& node, Mode mode) {
  if (mode == Mode::kOneRank)
    node.fields({"start_s", "finish_s", "low_s", "median_s", "high_s", "slack_s"});
  else
    node.fields({"start_s", "finish_s", "low_s", "median_s", "high_s"});
  const std::size_t count = node["start_s"].size();
  std::vector<TaskTimes> tasks(count);
  const auto read = [&](std::string_view key, Seconds TaskTimes::*field, bool signed_time) {
    const Node times = node[key];
    if (times.size() != count)
      times.fault("has " + std::to_string(times.size()) + " entries, start_s has " +
                  std::to_string(count) + "; one per instance is expected in both");
    for (std::size_t i = 0; i < count; ++i)
      tasks[i].*field =
          signed_time ? Seconds::from_base(times.at(i).finite()) : duration(times.at(i));
  };
  for (const auto& [key, field] : kColumns) read(key, field, false);
  if (mode == Mode::kOneRank) read("slack_s", &TaskTimes::slack, true);
  return tasks;
}

RankRecord rank_of(const Node& node, const Measurement& measurement) {
  node.fields({"rank", "machine", "device", "steps_s", "peak_memory_bytes", "scratch_bytes",
               "readings", "tasks"});
  RankRecord rank{.rank = node["rank"].index(), .device = node["device"].text()};
  const auto machines = static_cast<std::int64_t>(measurement.machines.size());
  if (machines == 0) node["machine"].fault("there are no machines");
  rank.machine = static_cast<std::int32_t>(node["machine"].integer(0, machines - 1));
  node["steps_s"].each(rank.steps, duration);
  if (static_cast<std::int64_t>(rank.steps.size()) != measurement.repeats)
    node["steps_s"].fault("has " + std::to_string(rank.steps.size()) + " entries for " +
                          std::to_string(measurement.repeats) + " repeats");
  rank.peak_memory = Bytes::from_base(node["peak_memory_bytes"].non_negative());
  rank.scratch = Bytes::from_base(node["scratch_bytes"].non_negative());
  node["readings"].each(rank.readings, reading_of);
  rank.tasks = tasks_of(node["tasks"], measurement.mode);
  return rank;
}

// What rules out that a file of another Program is taken: 16 hexadecimal digits.
std::string fingerprint(const Node& node) {
  std::string text = node.text();
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    node.fault("'" + text.substr(0, 60) + "' is not 16 hexadecimal digits");
  return text;
}

Measurement measurement_of(const Node& root) {
  root.fields({"schema", "program", "fingerprint", "backend", "mode", "shared", "date", "version",
               "warmup", "repeats", "machines", "ranks"});
  Measurement out{.program = root["program"].text(),
                  .fingerprint = fingerprint(root["fingerprint"]),
                  .backend = root["backend"].text(),
                  .mode = root["mode"].named("mode ('whole' or 'one_rank')", find_mode),
                  .shared = root["shared"].flag(),
                  .date = root["date"].text(),
                  .version = root["version"].text(),
                  .warmup = root["warmup"].count(),
                  .repeats = root["repeats"].integer(1, std::int64_t{1} << 32)};
  root["machines"].each(out.machines, machine_of);
  const Node ranks = root["ranks"];
  ranks.each(out.ranks, [&](const Node& node) { return rank_of(node, out); });
  if (out.ranks.empty()) ranks.fault("there are none");
  if (out.mode == Mode::kOneRank && out.ranks.size() != 1)
    ranks.fault("mode 'one_rank' has one, found " + std::to_string(out.ranks.size()));
  for (std::size_t i = 1; i < out.ranks.size(); ++i)
    if (out.ranks[i - 1].rank >= out.ranks[i].rank)
      ranks.at(i)["rank"].fault(std::to_string(out.ranks[i].rank) + " follows " +
                                std::to_string(out.ranks[i - 1].rank) +
                                "; ranks are in ascending order");
  return out;
}

Arrivals arrivals_of(const Node& root) {
  root.fields({"schema", "program", "fingerprint", "rank", "seconds"});
  Arrivals out{.program = root["program"].text(),
               .fingerprint = fingerprint(root["fingerprint"]),
               .rank = root["rank"].index()};
  root["seconds"].each(out.seconds, [](const Node& node) -> std::optional<Seconds> {
    if (node.is_null()) return std::nullopt;
    return duration(node);
  });
  return out;
}

}  // namespace

std::string to_json(const Measurement& measurement) {
  std::string out = "{\"schema\":" + dump(kMeasurementSchema);
  const auto add = [&](const std::string& key, const std::string& text) {
    out += ",\n\"" + key + "\":" + text;
  };
  add("program", dump(measurement.program));
  add("fingerprint", dump(measurement.fingerprint));
  add("backend", dump(measurement.backend));
  add("mode", dump(name_of(measurement.mode)));
  add("shared", dump(measurement.shared));
  add("date", dump(measurement.date));
  add("version", dump(measurement.version));
  add("warmup", dump(measurement.warmup));
  add("repeats", dump(measurement.repeats));
  add("machines",
      lines(measurement.machines, [](const Machine& machine) { return dump(json_of(machine)); }));
  add("ranks", lines(measurement.ranks,
                     [&](const RankRecord& rank) { return text_of(rank, measurement.mode); }));
  return out + "}\n";
}

Result<Measurement> measurement_from_json(std::string_view text) {
  return program::read_json<Measurement>(text, kMeasurementForm, measurement_of);
}

std::string to_json(const Arrivals& arrivals) {
  Json seconds = Json::array();
  for (const auto& time : arrivals.seconds)
    seconds.push_back(time ? number(time->in_base()) : Json());
  return "{\"schema\":" + dump(kArrivalsSchema) + ",\n\"program\":" + dump(arrivals.program) +
         ",\n\"fingerprint\":" + dump(arrivals.fingerprint) +
         ",\n\"rank\":" + std::to_string(arrivals.rank) + ",\n\"seconds\":" + dump(seconds) + "}\n";
}

Result<Arrivals> arrivals_from_json(std::string_view text) {
  return program::read_json<Arrivals>(text, kArrivalsForm, arrivals_of);
}

}  // namespace foreshard::measure
