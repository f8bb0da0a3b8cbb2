
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/limits.h"
#include "base/record/record.h"

#include "strategies/program/ir/json_node.h"
#include "validate/measurement/measurement.h"

namespace foreshard::measure {
namespace {

using record::at;
using record::Json;
using record::Record;
using record::unless_empty;
using Node = program::JsonNode;

constexpr program::JsonForm kMeasurementForm{.what = "measurement",
                                             .schema = kMeasurementSchema,
                                             .made_by = "foreshard replay -o FILE",
                                             .largest = limits::kMeasurement};
constexpr program::JsonForm kArrivalsForm{.what = "arrivals",
                                          .schema = kArrivalsSchema,
                                          .made_by = "foreshard export --arrivals FILE",
                                          .largest = limits::kMeasurement};

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
  Measurement out{
      .program = root["program"].text(),
      .fingerprint = fingerprint(root["fingerprint"]),
      .backend = root["backend"].text(),
      .providers = providers_of(root),
      .mode = root["mode"].named("mode ('whole' or 'one_rank')",
                                 [](std::string_view name) {
                                   return yaml_names(static_cast<const Mode*>(nullptr)).find(name);
                                 }),
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

// Whole numbers without ".0", which is shorter and what people write.
void shorten(Json& json) {
  constexpr double kExact = 0x1p53;
  for (Json& one : json)
    if (one.is_structured())
      shorten(one);
    else if (const auto* value = one.get_ptr<const double*>();
             value != nullptr && std::abs(*value) < kExact && *value == std::floor(*value))
      one = static_cast<std::int64_t>(*value);
}

// The members of an object, separated by `comma`; `text` writes a value of a key.
template <class Text>
std::string members(const Json& object, std::string_view comma, Text text) {
  std::string out;
  for (const auto& [key, value] : object.items())
    out.append(out.empty() ? "{" : comma).append(dump(key)).append(":").append(text(key, value));
  return out + "}";
}

// The columns of a rank's tasks are a line each.
std::string text_of_rank(Json rank) {
  const Json tasks = std::move(rank["tasks"]);
  rank.erase("tasks");
  std::string out = dump(rank);
  out.back() = ',';
  return out + "\n   \"tasks\":" +
         members(tasks, ",\n    ", [](const auto&, const Json& column) { return dump(column); }) +
         "}";
}

// Keys are a line each; so are machines and ranks.
std::string text_of(Json json) {
  shorten(json);
  const auto lines = [](const Json& list, auto text) {
    std::string out = "[";
    for (const Json& one : list) out += (out.size() > 1 ? ",\n  " : "\n  ") + text(one);
    return out + "]";
  };
  return members(json, ",\n",
                 [&](const std::string& key, const Json& value) {
                   return key == "machines" ? lines(value, dump)
                          : key == "ranks"  ? lines(value, text_of_rank)
                                            : dump(value);
                 }) +
         "\n";
}

// A rank of a measurement.
struct Rank {
  const RankRecord* of;
  Mode mode;
};

auto column(Seconds TaskTimes::*field) {
  return [field](const Rank& rank) {
    std::vector<Seconds> times;
    times.reserve(rank.of->tasks.size());
    for (const TaskTimes& task : rank.of->tasks) times.push_back(task.*field);
    return times;
  };
}

std::optional<std::vector<std::optional<Seconds>>> lasted(const Rank& rank) {
  std::vector<std::optional<Seconds>> times;
  for (const TaskTimes& task : rank.of->tasks) times.push_back(task.lasted);
  const bool any = std::ranges::any_of(times, [](const auto& time) { return time.has_value(); });
  return any ? std::optional(std::move(times)) : std::nullopt;
}

Record<Rank> tasks_group() {
  Record<Rank> tasks;
  for (const auto& [key, field] : kColumns) tasks.append(std::string(key), column(field));
  return std::move(tasks)
      .sometimes(
          "slack_s",
          [](const Rank& rank) {
            return rank.mode == Mode::kOneRank ? std::optional(column(&TaskTimes::slack)(rank))
                                               : std::nullopt;
          },
          "With --as-rank.")
      .sometimes("lasted_s", lasted,
                 "Time of a communication, from the last member's start to the last member's "
                 "finish; null for other tasks.");
}

}  // namespace

const yaml::Names<Mode>& yaml_names(const Mode*) {
  static const yaml::Names<Mode> names{{"whole", Mode::kWhole, "Every rank."},
                                       {"one_rank", Mode::kOneRank, "One rank alone."}};
  return names;
}

const Record<Providers>& record_of(const Providers*) {
  static const auto record = [] {
    Record<Providers> all("providers",
                          "Whose kernels ran: a library, or foreshard for the replay's own.");
    for (const auto& [key, field] : kProviders) all.append(std::string(key), field);
    return all;
  }();
  return record;
}

const Record<Machine>& record_of(const Machine*) {
  static const auto record = Record<Machine>("machine")
                                 .field("name", &Machine::name)
                                 .field("facts", &Machine::facts)
                                 .field("topology", &Machine::topology);
  return record;
}

const Record<Reading>& record_of(const Reading*) {
  static const auto record = [] {
    Record<Reading> all("reading");
    all.append("when", &Reading::when);
    for (const auto& [key, field] : kReadings) all.append_sometimes(std::string(key), field);
    return std::move(all).sometimes("throttle", unless_empty<&Reading::throttle>,
                                    "Why the device did not run at its highest clock.");
  }();
  return record;
}

const Record<Span>& record_of(const Span*) {
  static const auto record = Record<Span>("span")
                                 .field("low", &Span::low)
                                 .field("median", &Span::median)
                                 .field("high", &Span::high);
  return record;
}

const Record<During>& record_of(const During*) {
  static const auto record = [] {
    Record<During> all("during");
    all.append("samples", &During::samples, "Readings while steps were measured.");
    for (const auto& [key, field] : kDuring) all.append_sometimes(std::string(key), field);
    return std::move(all).field("throttle", &During::throttle, "All reasons that were seen.");
  }();
  return record;
}

const Record<TimingCost>& record_of(const TimingCost*) {
  static const auto record =
      Record<TimingCost>("timing", "What the timing of tasks costs, on GPUs.")
          .field("events", &TimingCost::events, "Events of a step that only the timing needs.")
          .field("step_s", &TimingCost::step, "Time that a step without them saves.")
          .field("event_s", &TimingCost::event, "The same per event.");
  return record;
}

const Record<GemmChoice>& record_of(const GemmChoice*) {
  static const auto record =
      Record<GemmChoice>("gemm")
          .field("kernel", &GemmChoice::kernel)
          .field("count", &GemmChoice::count, "Instances in a step.")
          .field("tried", &GemmChoice::tried, "Proposals of cuBLASLt that ran.")
          .field("taken_s", &GemmChoice::taken, "Time of the first proposal, which is used.")
          .field("fastest_s", &GemmChoice::fastest);
  return record;
}

namespace {

const Record<Rank>& record_of(const Rank*) {
  static const auto record =
      Record<Rank>("rank")
          .field("rank", at<&Rank::of, &RankRecord::rank>)
          .field("machine", at<&Rank::of, &RankRecord::machine>, "Index in machines.")
          .field("device", at<&Rank::of, &RankRecord::device>)
          .field("steps_s", at<&Rank::of, &RankRecord::steps>)
          .field("peak_memory_bytes", at<&Rank::of, &RankRecord::peak_memory, &Bytes::in_base>)
          .field("scratch_bytes", at<&Rank::of, &RankRecord::scratch, &Bytes::in_base>)
          .field("readings", at<&Rank::of, &RankRecord::readings>)
          .sometimes("timing", at<&Rank::of, &RankRecord::timing>)
          .sometimes("gemms", unless_empty<&Rank::of, &RankRecord::gemms>)
          .sometimes("during", at<&Rank::of, &RankRecord::during>)
          .group("tasks", tasks_group());
  return record;
}

std::vector<Rank> ranks_of(const Measurement& measurement) {
  std::vector<Rank> ranks;
  for (const RankRecord& rank : measurement.ranks) ranks.push_back({&rank, measurement.mode});
  return ranks;
}

}  // namespace

const Record<Measurement>& record_of(const Measurement*) {
  using Of = Measurement;
  static const auto record =
      Record<Of>::result(std::string(kMeasurementSchema),
                         "A replay, as `replay -o` and foreshard-replay write it (docs/replay.md).")
          .field("program", &Of::program)
          .field("fingerprint", &Of::fingerprint, "The Program's.")
          .field("backend", &Of::backend)
          .field("providers", &Of::providers)
          .field("mode", &Of::mode)
          .field("shared", &Of::shared, "Whether ranks shared a device.")
          .field("date", &Of::date)
          .field("version", &Of::version)
          .field("warmup", &Of::warmup)
          .field("repeats", &Of::repeats)
          .field("machines", &Of::machines)
          .field("ranks", ranks_of);
  return record;
}

const Record<Arrivals>& record_of(const Arrivals*) {
  static const auto record =
      Record<Arrivals>::result(std::string(kArrivalsSchema),
                               "Simulated times at which what a rank receives arrives, as `export "
                               "--arrivals` writes them (docs/replay.md).")
          .field("program", &Arrivals::program)
          .field("fingerprint", &Arrivals::fingerprint)
          .field("rank", &Arrivals::rank)
          .field("seconds", &Arrivals::seconds, "By task of the rank; null: nothing arrives.");
  return record;
}

std::string to_json(const Measurement& measurement) {
  return text_of(record::write(measurement));
}

Result<Measurement> measurement_from_json(std::string_view text) {
  return program::read_json<Measurement>(text, kMeasurementForm, measurement_of);
}

std::string to_json(const Arrivals& arrivals) {
  return text_of(record::write(arrivals));
}

Result<Arrivals> arrivals_from_json(std::string_view text) {
  return program::read_json<Arrivals>(text, kArrivalsForm, arrivals_of);
}

}  // namespace foreshard::measure
