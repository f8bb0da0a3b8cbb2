
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "strategies/program/ir/json_node.h"
#include "validate/measurement/measurement.h"

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

// Whole numbers are written without ".0", which is shorter and what people write.
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

// The columns of `tasks`: key and field. `slack` is handled separately (kOneRank).
constexpr std::pair<std::string_view, Seconds TaskTimes::*> kColumns[] = {
    {"start_s", &TaskTimes::start},   {"finish_s", &TaskTimes::finish}, {"low_s", &TaskTimes::low},
    {"median_s", &TaskTimes::median}, {"high_s", &TaskTimes::high},
};
constexpr std::pair<std::string_view, std::string Providers::*> kProviders[] = {
    {"gemm", &Providers::gemm}, {"attention", &Providers::attention}, {"pass", &Providers::pass}};
constexpr std::pair<std::string_view, std::optional<double> Reading::*> kReadings[] = {
    {"clock_mhz", &Reading::clock_mhz},
    {"memory_clock_mhz", &Reading::memory_clock_mhz},
    {"celsius", &Reading::celsius},
    {"watts", &Reading::watts},
};

constexpr std::pair<std::string_view, std::optional<Span> During::*> kDuring[] = {
    {"clock_mhz", &During::clock_mhz},
    {"celsius", &During::celsius},
    {"watts", &During::watts},
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

Json json_of(const Providers& providers) {
  Json json = Json::object();
  for (const auto& [key, field] : kProviders) json[std::string(key)] = providers.*field;
  return json;
}

Json json_of(const Reading& reading) {
  Json json{{"when", reading.when}};
  for (const auto& [key, field] : kReadings)
    if (reading.*field) json[std::string(key)] = number(*(reading.*field));
  if (!reading.throttle.empty()) json["throttle"] = reading.throttle;
  return json;
}

Json json_of(const During& during) {
  Json json{{"samples", during.samples}};
  for (const auto& [key, field] : kDuring)
    if (const auto& span = during.*field)
      json[std::string(key)] = {{"low", number(span->low)},
                                {"median", number(span->median)},
                                {"high", number(span->high)}};
  json["throttle"] = during.throttle;
  return json;
}

Json json_of(const TimingCost& timing) {
  return {{"events", timing.events},
          {"step_s", number(timing.step.in_base())},
          {"event_s", number(timing.event.in_base())}};
}

Json json_of(const GemmChoice& gemm) {
  return {{"kernel", gemm.kernel},
          {"count", gemm.count},
          {"tried", gemm.tried},
          {"taken_s", number(gemm.taken.in_base())},
          {"fastest_s", number(gemm.fastest.in_base())}};
}

std::string text_of(const RankRecord& rank, Mode mode) {
  Json readings = Json::array();
  for (const Reading& reading : rank.readings) readings.push_back(json_of(reading));
  Json head{{"rank", rank.rank},
            {"machine", rank.machine},
            {"device", rank.device},
            {"steps_s", column(rank.steps)},
            {"peak_memory_bytes", number(rank.peak_memory.in_base())},
            {"scratch_bytes", number(rank.scratch.in_base())},
            {"readings", std::move(readings)}};
  if (rank.timing) head["timing"] = json_of(*rank.timing);
  for (const GemmChoice& gemm : rank.gemms) head["gemms"].push_back(json_of(gemm));
  if (rank.during) head["during"] = json_of(*rank.during);
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
  if (std::ranges::any_of(rank.tasks,
                          [](const TaskTimes& task) { return task.lasted.has_value(); })) {
    Json lasted = Json::array();
    for (const TaskTimes& task : rank.tasks)
      lasted.push_back(task.lasted ? number(task.lasted->in_base()) : Json());
    out += ",\n    \"lasted_s\":" + dump(lasted);
  }
  return out + "}}";
}

// "[\n  a,\n  b]": one line per element.
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

std::string text_in(const Node& node) {
  return node.text();
}

// Files without this key come from replays that had only these providers.
Providers providers_of(const Node& root) {
  if (!root.has("providers"))
    return {.gemm = root["backend"].text() == "host" ? "blas" : "cublas",
            .attention = std::string(kOwnKernels),
            .pass = std::string(kOwnKernels)};
  const Node node = root["providers"];
  node.fields({"gemm", "attention", "pass"});
  Providers providers;
  for (const auto& [key, field] : kProviders) providers.*field = node[key].text();
  return providers;
}

Reading reading_of(const Node& node) {
  node.fields({"when"}, {"clock_mhz", "memory_clock_mhz", "celsius", "watts", "throttle"});
  Reading reading{.when = node["when"].text()};
  for (const auto& [key, field] : kReadings)
    if (node.has(key)) reading.*field = node[key].finite();
  if (node.has("throttle")) node["throttle"].each(reading.throttle, text_in);
  return reading;
}

TimingCost timing_of(const Node& node) {
  node.fields({"events", "step_s", "event_s"});
  return {.events = node["events"].count(),
          .step = Seconds::from_base(node["step_s"].finite()),
          .event = Seconds::from_base(node["event_s"].finite())};
}

GemmChoice gemm_of(const Node& node) {
  node.fields({"kernel", "count", "tried", "taken_s", "fastest_s"});
  return {.kernel = node["kernel"].text(),
          .count = node["count"].count(),
          .tried = node["tried"].count(),
          .taken = duration(node["taken_s"]),
          .fastest = duration(node["fastest_s"])};
}

During during_of(const Node& node) {
  node.fields({"samples", "throttle"}, {"clock_mhz", "celsius", "watts"});
  During during{.samples = node["samples"].count()};
  for (const auto& [key, field] : kDuring) {
    if (!node.has(key)) continue;
    const Node span = node[key];
    span.fields({"low", "median", "high"});
    during.*field = Span{.low = span["low"].finite(),
                         .median = span["median"].finite(),
                         .high = span["high"].finite()};
  }
  node["throttle"].each(during.throttle, text_in);
  return during;
}

std::vector<TaskTimes> tasks_of(const Node& node, Mode mode) {
  if (mode == Mode::kOneRank)
    node.fields({"start_s", "finish_s", "low_s", "median_s", "high_s", "slack_s"});
  else
    node.fields({"start_s", "finish_s", "low_s", "median_s", "high_s"}, {"lasted_s"});
  const std::size_t count = node["start_s"].size();
  std::vector<TaskTimes> tasks(count);
  const auto column = [&](std::string_view key) {
    const Node times = node[key];
    if (times.size() != count)
      times.fault("has " + std::to_string(times.size()) + " entries, start_s has " +
                  std::to_string(count) + "; one per instance is expected in both");
    return times;
  };
  const auto read = [&](std::string_view key, Seconds TaskTimes::*field, bool signed_time) {
    const Node times = column(key);
    for (std::size_t i = 0; i < count; ++i)
      tasks[i].*field =
          signed_time ? Seconds::from_base(times.at(i).finite()) : duration(times.at(i));
  };
  for (const auto& [key, field] : kColumns) read(key, field, false);
  if (mode == Mode::kOneRank) read("slack_s", &TaskTimes::slack, true);
  if (!node.has("lasted_s")) return tasks;
  const Node lasted = column("lasted_s");
  for (std::size_t i = 0; i < count; ++i)
    if (!lasted.at(i).is_null()) tasks[i].lasted = duration(lasted.at(i));
  return tasks;
}

RankRecord rank_of(const Node& node, const Measurement& measurement) {
  node.fields({"rank", "machine", "device", "steps_s", "peak_memory_bytes", "scratch_bytes",
               "readings", "tasks"},
              {"timing", "gemms", "during"});
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
  if (node.has("timing")) rank.timing = timing_of(node["timing"]);
  if (node.has("gemms")) node["gemms"].each(rank.gemms, gemm_of);
  if (node.has("during")) rank.during = during_of(node["during"]);
  rank.tasks = tasks_of(node["tasks"], measurement.mode);
  return rank;
}

// A Program's fingerprint: 16 hexadecimal digits.
std::string fingerprint(const Node& node) {
  std::string text = node.text();
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    node.fault("'" + text.substr(0, 60) + "' is not 16 hexadecimal digits");
  return text;
}

Measurement measurement_of(const Node& root) {
  root.fields({"schema", "program", "fingerprint", "backend", "mode", "shared", "date", "version",
               "warmup", "repeats", "machines", "ranks"},
              {"providers"});
  Measurement out{.program = root["program"].text(),
                  .fingerprint = fingerprint(root["fingerprint"]),
                  .backend = root["backend"].text(),
                  .providers = providers_of(root),
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
  add("providers", dump(json_of(measurement.providers)));
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
