#include "validate/replay/session.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/quantity.h"

#include "validate/measurement/fingerprint.h"
#include "validate/measurement/json.h"
#include "validate/replay/statistics.h"

namespace foreshard::replay {
namespace {

using Json = nlohmann::json;

// Between looks at whether the medians are known well enough.
constexpr std::int64_t kRound = 5;

std::string numbered(const std::string& prefix, std::int64_t number) {
  return prefix + "/" + std::to_string(number);
}

Error malformed(std::int32_t rank, const std::string& what) {
  return {Error::Code::kIo, "rank " + std::to_string(rank) + " sent no " + what};
}

class Session {
 public:
  Session(const RankPlan& plan, Executor& executor, Store& store, Watch& watch, Watchdog& watchdog,
          const SessionOptions& options)
      : plan_(plan),
        executor_(executor),
        store_(store),
        watch_(watch),
        watchdog_(watchdog),
        options_(options),
        samples_(plan.expansion.instances.size()) {}

  Result<SessionResult> run() {
    if (auto fault = prepare()) return *fault;
    if (options_.verify)
      if (auto fault = verify()) return *fault;
    if (options_.measure) {
      if (auto fault = measure()) return *fault;
      if (auto fault = gather()) return *fault;
    }
    if (auto fault = meet("end")) return *fault;
    return std::move(result_);
  }

 private:
  bool leads() const { return options_.rank == 0; }
  std::optional<Error> meet(const std::string& name) {
    return barrier(store_, name, options_.rank, options_.ranks, options_.patience);
  }

  std::optional<Error> prepare() {
    watchdog_.enter("preparing");
    auto fault = executor_.prepare(plan_, watch_);
    watchdog_.leave();
    if (fault) return fault;
    // Who prepares for long is no less alive: the watchdog has the shorter patience.
    return barrier(store_, "prepared", options_.rank, options_.ranks, 10 * options_.patience);
  }

  std::optional<Error> verify() {
    watchdog_.enter("verifying");
    auto found = executor_.verify(watch_);
    watchdog_.leave();
    if (!found) return found.error();
    const Json json{{"operations", found->operations},
                    {"elements", found->elements},
                    {"faults", found->faults}};
    if (auto fault = store_.set(numbered("verified", options_.rank), json.dump())) return fault;
    if (leads()) {
      for (std::int32_t rank = 0; rank < options_.ranks; ++rank) {
        const auto text = store_.get(numbered("verified", rank), options_.patience);
        if (!text) return text.error();
        const Json theirs = Json::parse(*text, nullptr, false);
        if (!theirs.is_object()) return malformed(rank, "verification");
        RankVerification of{.rank = rank};
        of.result.operations = theirs.value("operations", std::int64_t{0});
        of.result.elements = theirs.value("elements", std::int64_t{0});
        of.result.faults = theirs.value("faults", std::vector<std::string>());
        result_.verified = result_.verified && of.result.faults.empty();
        result_.verifications.push_back(std::move(of));
      }
      return store_.set("verdict", result_.verified ? "right" : "wrong");
    }
    const auto verdict = store_.get("verdict", options_.patience);
    if (!verdict) return verdict.error();
    result_.verified = *verdict == "right";
    return std::nullopt;
  }

  std::optional<Error> step(const std::string& stage, bool counts) {
    watchdog_.enter(stage);
    const auto times = executor_.step(watch_);
    watchdog_.leave();
    if (!times) return times.error();
    if (counts) samples_.add(*times);
    return std::nullopt;
  }

  void read(const std::string& when) {
    readings_.push_back(executor_.reading());
    readings_.back().when = when;
  }

  std::optional<Error> measure() {
    for (std::int64_t i = 0; i < options_.warmup; ++i)
      if (auto fault = step("warming up " + std::to_string(i + 1), false)) return fault;
    read("before");
    std::int64_t done = 0;
    for (std::int64_t round = 0;; ++round) {
      const std::int64_t goal =
          round == 0 ? options_.repeats : std::min(done + kRound, options_.most_repeats);
      for (; done < goal; ++done)
        if (auto fault = step("repeat " + std::to_string(done + 1), true)) return fault;
      if (!options_.until || done >= options_.most_repeats) break;
      const auto enough =
          all_agree(numbered("until", round), samples_.narrow(*options_.until, plan_));
      if (!enough) return enough.error();
      if (*enough) break;
    }
    read("after");
    return std::nullopt;
  }

  // Whether all ranks say yes: the same answer on all of them.
  Result<bool> all_agree(const std::string& question, bool own) {
    if (auto fault = store_.set(numbered(question, options_.rank), own ? "yes" : "no"))
      return *fault;
    if (leads()) {
      bool all = true;
      for (std::int32_t rank = 0; rank < options_.ranks; ++rank) {
        const auto answer = store_.get(numbered(question, rank), options_.patience);
        if (!answer) return answer.error();
        all = all && *answer == "yes";
      }
      if (auto fault = store_.set(question + "/all", all ? "yes" : "no")) return *fault;
    }
    const auto all = store_.get(question + "/all", options_.patience);
    if (!all) return all.error();
    return *all == "yes";
  }

  measure::Measurement own() const {
    measure::RankRecord record{.rank = plan_.rank,
                               .machine = 0,
                               .device = executor_.device(),
                               .steps = samples_.steps(),
                               .tasks = samples_.tasks(),
                               .peak_memory = executor_.peak_memory(),
                               .scratch = executor_.scratch(),
                               .readings = readings_};
    return {.program = plan_.program->name,
            .fingerprint = measure::fingerprint_of(*plan_.program),
            .backend = options_.backend,
            .mode = options_.mode,
            .shared = options_.shared,
            .date = options_.date,
            .version = options_.version,
            .warmup = options_.warmup,
            .repeats = static_cast<std::int64_t>(samples_.steps().size()),
            .machines = {executor_.machine()},
            .ranks = {std::move(record)}};
  }

  std::optional<Error> gather() {
    measure::Measurement whole = own();
    const Bytes peak = expected_peak(plan_, whole.ranks.front().tasks);
    if (!leads()) {
      if (auto fault = store_.set(numbered("peak", options_.rank), format_exact(peak)))
        return fault;
      return store_.set(numbered("record", options_.rank), to_json(whole));
    }
    result_.expected_peaks[plan_.rank] = peak;
    for (std::int32_t rank = 1; rank < options_.ranks; ++rank) {
      const auto text = store_.get(numbered("record", rank), options_.patience);
      if (!text) return text.error();
      auto part = measure::measurement_from_json(*text);
      if (!part) return malformed(rank, "measurement: " + part.error().message);
      measure::RankRecord record = part->ranks.front();
      const measure::Machine& machine = part->machines.at(static_cast<std::size_t>(record.machine));
      const auto known = std::ranges::find(whole.machines, machine);
      record.machine = static_cast<std::int32_t>(known - whole.machines.begin());
      if (known == whole.machines.end()) whole.machines.push_back(machine);
      whole.ranks.push_back(std::move(record));
      const auto theirs = store_.get(numbered("peak", rank), options_.patience);
      if (!theirs) return theirs.error();
      const auto bytes = parse<Bytes>(*theirs);
      if (!bytes) return malformed(rank, "peak: " + bytes.error().message);
      result_.expected_peaks[whole.ranks.back().rank] = *bytes;
    }
    result_.measurement = std::move(whole);
    return std::nullopt;
  }

  const RankPlan& plan_;
  Executor& executor_;
  Store& store_;
  Watch& watch_;
  Watchdog& watchdog_;
  const SessionOptions& options_;
  Samples samples_;
  std::vector<measure::Reading> readings_;
  SessionResult result_;
};

std::string percent_off(Bytes measured, Bytes expected) {
  if (expected == Bytes()) return "";
  std::array<char, 32> text{};
  static_cast<void>(
      std::snprintf(text.data(), text.size(), ", %+.1f %%", (measured / expected - 1) * 100));
  return text.data();
}

}  // namespace

Result<SessionResult> run_session(const RankPlan& plan, Executor& executor, Store& store,
                                  Watch& watch, Watchdog& watchdog, const SessionOptions& options) {
  return Session(plan, executor, store, watch, watchdog, options).run();
}

std::string date_of_now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

std::string summary(const SessionResult& result) {
  std::string text;
  if (!result.verifications.empty()) {
    std::int64_t operations = 0, elements = 0;
    std::string faults;
    for (const RankVerification& of : result.verifications) {
      operations += of.result.operations;
      elements += of.result.elements;
      for (const std::string& fault : of.result.faults) faults += "  " + fault + "\n";
    }
    text += "verified " + std::to_string(operations) + " communications of " +
            std::to_string(result.verifications.size()) + " ranks, " + std::to_string(elements) +
            " elements: " + (faults.empty() ? "all as expected\n" : "wrong\n" + faults);
  }
  if (!result.measurement) return text;
  const measure::Measurement& measurement = *result.measurement;
  const measure::StepTimes step = measure::step_of(measurement);
  const std::string who = measurement.mode == measure::Mode::kOneRank
                              ? "rank " + std::to_string(measurement.ranks.front().rank) + " alone"
                              : std::to_string(measurement.ranks.size()) +
                                    (measurement.ranks.size() == 1 ? " rank" : " ranks");
  text += "replayed " + measurement.program + " (" + measurement.backend + ", " + who +
          "): " + std::to_string(measurement.warmup) + " to warm up, " +
          std::to_string(measurement.repeats) + " steps measured\n";
  text += "step " + format(step.median) + ", from " + format(step.low) + " to " +
          format(step.high) + " (10 % to 90 %)" +
          (measurement.shared ? "; ranks share a device, so no time of it counts" : "") + "\n";
  // Of a thousand ranks the first few are enough: the file has all.
  constexpr std::size_t kShown = 16;
  for (std::size_t i = 0; i < std::min(kShown, measurement.ranks.size()); ++i) {
    const measure::RankRecord& rank = measurement.ranks[i];
    const auto expected = result.expected_peaks.find(rank.rank);
    text += "rank " + std::to_string(rank.rank) + " on " + rank.device + ": peak " +
            format(rank.peak_memory) + " of buffers";
    if (expected != result.expected_peaks.end())
      text += " (the Program's: " + format(expected->second) +
              percent_off(rank.peak_memory, expected->second) + ")";
    text += ", " + format(rank.scratch) + " beside\n";
  }
  if (measurement.ranks.size() > kShown)
    text += "... (" + std::to_string(measurement.ranks.size()) + " ranks)\n";
  return text;
}

}  // namespace foreshard::replay
