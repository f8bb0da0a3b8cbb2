#include "validate/replay/session.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "base/quantity.h"

#include "validate/measurement/measurement.h"
#include "validate/replay/statistics.h"

namespace foreshard::replay {
namespace {

using Json = nlohmann::json;

// Steps between two checks of whether the medians are certain enough.
constexpr std::int64_t kRound = 5;
// How long other ranks may prepare, in multiples of the patience.
constexpr double kPreparing = 10;

std::string numbered(const std::string& prefix, std::int64_t number) {
  return prefix + "/" + std::to_string(number);
}

Error malformed(std::int32_t rank, const std::string& what) {
  return {Error::Code::kIo, "rank " + std::to_string(rank) + " sent no " + what};
}

// The verification that a rank sent; nothing for another text.
std::optional<Verification> verification_in(const std::string& text) {
  const auto json = parsed_json(text);
  if (!json) return std::nullopt;
  try {
    return Verification{.operations = json->at("operations").get<std::int64_t>(),
                        .elements = json->at("elements").get<std::int64_t>(),
                        .faults = json->at("faults").get<std::vector<std::string>>()};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
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
    FORESHARD_TRY(prepare());
    if (options_.verify) FORESHARD_TRY(verify());
    if (options_.measure) {
      FORESHARD_TRY(measure());
      FORESHARD_TRY(gather());
    }
    FORESHARD_TRY(meet("end"));
    return std::move(result_);
  }

 private:
  bool leads() const { return options_.rank == 0; }
  Status meet(const std::string& name) {
    return barrier(store_, name, options_.rank, options_.ranks, options_.patience);
  }

  Status prepare() {
    FORESHARD_TRY(claim_device());
    watchdog_.enter_preparation("preparing");
    auto fault = executor_.prepare(plan_, watch_);
    watchdog_.leave();
    if (!fault.ok()) return fault;
    // A rank that prepares for long may be alive; the watchdog notices if it is not.
    return barrier(store_, "prepared", options_.rank, options_.ranks,
                   kPreparing * options_.patience);
  }

  // Checks that no two ranks take the same device unknowingly. A rank that sees one device cannot
  // tell whether the launcher gave each rank its own (srun --gpus-per-task=1) or all the same one.
  Status claim_device() {
    FORESHARD_TRY(store_.set(numbered("device", options_.rank), executor_.sole_device()));
    if (leads()) {
      std::map<std::string, std::int32_t> ranks;
      std::string shared;
      for (std::int32_t rank = 0; rank < options_.ranks; ++rank) {
        const auto device = store_.get(numbered("device", rank), kPreparing * options_.patience);
        if (!device)
          return Error{device.error().code,
                       "rank " + std::to_string(rank) +
                           " has not started its device: " + device.error().message};
        const auto [other, is_new] = ranks.emplace(*device, rank);
        if (is_new || device->empty() || !shared.empty()) continue;
        shared = "ranks " + std::to_string(other->second) + " and " + std::to_string(rank) +
                 " take the same device, " + *device +
                 ": start as many ranks on a host as it has GPUs and show each its own (srun "
                 "--gpus-per-task=1) or all of them, or let ranks share one with --shared";
      }
      FORESHARD_TRY(store_.set("devices", shared));
    }
    FORESHARD_ASSIGN(const auto shared, store_.get("devices", 2 * kPreparing * options_.patience));
    if (shared.empty()) return {};
    return Error{Error::Code::kInvalidInput, shared};
  }

  Status verify() {
    watchdog_.enter("verifying");
    auto found = executor_.verify(watch_);
    watchdog_.leave();
    if (!found) return found.error();
    const Json json{{"operations", found->operations},
                    {"elements", found->elements},
                    {"faults", found->faults}};
    FORESHARD_TRY(store_.set(numbered("verified", options_.rank), json.dump()));
    if (leads()) {
      for (std::int32_t rank = 0; rank < options_.ranks; ++rank) {
        FORESHARD_ASSIGN(const auto text,
                         store_.get(numbered("verified", rank), options_.patience));
        auto theirs = verification_in(text);
        if (!theirs) return malformed(rank, "verification");
        RankVerification of{.rank = rank, .result = *std::move(theirs)};
        result_.verified = result_.verified && of.result.faults.empty();
        result_.verifications.push_back(std::move(of));
      }
      return store_.set("verdict", result_.verified ? "right" : "wrong");
    }
    FORESHARD_ASSIGN(const auto verdict, store_.get("verdict", options_.patience));
    result_.verified = verdict == "right";
    return {};
  }

  Status step(const std::string& stage, bool counts) {
    watchdog_.enter(stage);
    const auto times = executor_.step(watch_);
    watchdog_.leave();
    if (!times) return times.error();
    if (counts) samples_.add(*times);
    return {};
  }

  // Runs the step without timing of its tasks, for comparison with the step measured before it.
  Status bare_step(const std::string& stage) {
    watchdog_.enter(stage);
    const auto bare = executor_.bare_step(watch_);
    watchdog_.leave();
    if (!bare) return bare.error();
    if (!*bare) return {};
    timing_costs_.push_back(samples_.steps().back() - (*bare)->total);
    timing_events_ = (*bare)->events;
    return {};
  }

  void read(const std::string& when) {
    readings_.push_back(executor_.reading());
    readings_.back().when = when;
  }

  Status measure() {
    for (std::int64_t i = 0; i < options_.warmup; ++i)
      FORESHARD_TRY(step("warming up " + std::to_string(i + 1), false));
    read("before");
    // The sampling thread runs only if there is something to read.
    std::optional<Sampler> sampler;
    if (measure::during_of({readings_.back()}))
      sampler.emplace([this] { return executor_.reading(); });
    const auto begin = std::chrono::steady_clock::now();
    const auto passed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() * 1_s;
    };
    std::int64_t done = 0;
    for (std::int64_t round = 0;; ++round) {
      const std::int64_t goal = round == 0 ? options_.repeats : done + steps_of_round(done);
      for (; done < goal; ++done) {
        const std::string stage = "repeat " + std::to_string(done + 1);
        FORESHARD_TRY(step(stage, true));
        if (round > 0) continue;
        FORESHARD_TRY(bare_step(stage + " without its tasks' times"));
      }
      const bool known = !options_.until || done >= options_.most_repeats;
      if (known && !options_.lasting) break;
      FORESHARD_ASSIGN(const auto enough,
                       all_agree(numbered("until", round),
                                 (known || samples_.narrow(*options_.until, plan_)) &&
                                     (!options_.lasting || passed() >= *options_.lasting)));
      if (enough) break;
    }
    if (sampler) during_ = measure::during_of(sampler->stop());
    read("after");
    return {};
  }

  // Steps in the next round, equal on all ranks. In a long session rounds grow with the number of
  // steps, because the devices idle between rounds.
  std::int64_t steps_of_round(std::int64_t done) const {
    if (options_.lasting) return std::max(kRound, done / 10);
    return std::min(kRound, options_.most_repeats - done);
  }

  // Whether all ranks say yes. All ranks get the same answer.
  Result<bool> all_agree(const std::string& question, bool own) {
    FORESHARD_TRY(store_.set(numbered(question, options_.rank), own ? "yes" : "no"));
    if (leads()) {
      bool all = true;
      for (std::int32_t rank = 0; rank < options_.ranks; ++rank) {
        FORESHARD_ASSIGN(const auto answer,
                         store_.get(numbered(question, rank), options_.patience));
        all = all && answer == "yes";
      }
      FORESHARD_TRY(store_.set(question + "/all", all ? "yes" : "no"));
    }
    FORESHARD_ASSIGN(const auto all, store_.get(question + "/all", options_.patience));
    return all == "yes";
  }

  measure::Measurement own() const {
    measure::RankRecord record{.rank = plan_.rank,
                               .machine = 0,
                               .device = executor_.device(),
                               .steps = samples_.steps(),
                               .tasks = samples_.tasks(),
                               .peak_memory = executor_.peak_memory(),
                               .scratch = executor_.scratch(),
                               .readings = readings_,
                               .during = during_,
                               .gemms = executor_.gemms()};
    if (timing_events_ > 0) {
      const Seconds cost = measure::quantile(timing_costs_, 0.5);
      record.timing = {.events = timing_events_,
                       .step = cost,
                       .event = cost / static_cast<double>(timing_events_)};
    }
    return {.program = plan_.program->name,
            .fingerprint = measure::fingerprint_of(*plan_.program),
            .backend = options_.backend,
            .providers = executor_.providers(),
            .mode = options_.mode,
            .shared = options_.shared,
            .date = options_.date,
            .version = options_.version,
            .warmup = options_.warmup,
            .repeats = static_cast<std::int64_t>(samples_.steps().size()),
            .machines = {executor_.machine()},
            .ranks = {std::move(record)}};
  }

  Status gather() {
    measure::Measurement whole = own();
    const Bytes peak = expected_peak(plan_, whole.ranks.front().tasks);
    const bool together = options_.mode == measure::Mode::kWhole;
    const std::string communications = together ? communications_of(plan_, samples_) : "";
    if (!leads()) {
      FORESHARD_TRY(store_.set(numbered("communications", options_.rank), communications));
      FORESHARD_TRY(store_.set(numbered("peak", options_.rank), format_exact(peak)));
      return store_.set(numbered("record", options_.rank), to_json(whole));
    }
    result_.expected_peaks[plan_.rank] = peak;
    for (std::int32_t rank = 1; rank < options_.ranks; ++rank) {
      FORESHARD_ASSIGN(const auto text, store_.get(numbered("record", rank), options_.patience));
      auto part = measure::measurement_from_json(text);
      if (!part) return malformed(rank, "measurement: " + part.error().message);
      measure::RankRecord record = part->ranks.front();
      const measure::Machine& machine = part->machines.at(static_cast<std::size_t>(record.machine));
      const auto known = std::ranges::find(whole.machines, machine);
      record.machine = static_cast<std::int32_t>(known - whole.machines.begin());
      if (known == whole.machines.end()) whole.machines.push_back(machine);
      whole.ranks.push_back(std::move(record));
      FORESHARD_ASSIGN(const auto theirs, store_.get(numbered("peak", rank), options_.patience));
      const auto bytes = parse<Bytes>(theirs);
      if (!bytes) return malformed(rank, "peak: " + bytes.error().message);
      result_.expected_peaks[whole.ranks.back().rank] = *bytes;
    }
    if (together) FORESHARD_TRY(add_lasting(communications, whole));
    result_.measurement = std::move(whole);
    return {};
  }

  // Sets how long communications lasted, from the times of all their members.
  Status add_lasting(const std::string& own, measure::Measurement& whole) {
    CommunicationDurations together;
    for (std::int32_t rank = 0; rank < options_.ranks; ++rank) {
      FORESHARD_ASSIGN(const auto text,
                       rank == 0 ? Result<std::string>(own)
                                 : store_.get(numbered("communications", rank), options_.patience));
      if (!together.add(rank, text)) return malformed(rank, "times of its communications");
    }
    for (measure::RankRecord& record : whole.ranks) together.fill(record.rank, record.tasks);
    return {};
  }

  const RankPlan& plan_;
  Executor& executor_;
  Store& store_;
  Watch& watch_;
  Watchdog& watchdog_;
  const SessionOptions& options_;
  Samples samples_;
  std::vector<measure::Reading> readings_;
  std::vector<Seconds> timing_costs_;  // one per repeat that is followed by a bare step
  std::int64_t timing_events_ = 0;     // events that timing adds to a step
  std::optional<measure::During> during_;
  SessionResult result_;
};

std::string percent_off(Bytes measured, Bytes expected) {
  if (expected == Bytes()) return "";
  std::array<char, 32> text{};
  static_cast<void>(
      std::snprintf(text.data(), text.size(), ", %+.1f %%", (measured / expected - 1) * 100));
  return text.data();
}

// "; clock 1740 to 1980 MHz, median 1935; 640 W; 61 C". Power and temperature are medians.
std::string during_text(const measure::RankRecord& rank) {
  if (!rank.during) return "";
  const auto whole = [](double value) { return std::to_string(std::lround(value)); };
  std::string text;
  if (const auto& clock = rank.during->clock_mhz)
    text += "; clock " + whole(clock->low) + " to " + whole(clock->high) + " MHz, median " +
            whole(clock->median);
  if (const auto& watts = rank.during->watts) text += "; " + whole(watts->median) + " W";
  if (const auto& celsius = rank.during->celsius) text += "; " + whole(celsius->median) + " C";
  return text;
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
  for (const std::string& remark : measure::remarks_of(measurement))
    text += "note: " + remark + "\n";
  // The first ranks are enough; the file has all of them.
  constexpr std::size_t kShown = 16;
  for (std::size_t i = 0; i < std::min(kShown, measurement.ranks.size()); ++i) {
    const measure::RankRecord& rank = measurement.ranks[i];
    const auto expected = result.expected_peaks.find(rank.rank);
    text += "rank " + std::to_string(rank.rank) + " on " + rank.device + ": peak " +
            format(rank.peak_memory) + " of buffers";
    if (expected != result.expected_peaks.end())
      text += " (the Program's: " + format(expected->second) +
              percent_off(rank.peak_memory, expected->second) + ")";
    text += ", " + format(rank.scratch) + " beside" + during_text(rank) + "\n";
  }
  if (measurement.ranks.size() > kShown)
    text += "... (" + std::to_string(measurement.ranks.size()) + " ranks)\n";
  for (const std::string& remark : measure::remarks_on_clocks(measurement))
    text += "note: " + remark + "\n";
  return text;
}

Sampler::Sampler(std::function<measure::Reading()> read, Seconds period)
    : read_(std::move(read)), period_(period), thread_([this] { run(); }) {}

Sampler::~Sampler() {
  if (thread_.joinable()) stop();
}

void Sampler::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::duration<double>(period_ / 1_s),
                            [&] { return over_; })) {
    lock.unlock();
    measure::Reading reading = read_();
    lock.lock();
    readings_.push_back(std::move(reading));
  }
}

std::vector<measure::Reading> Sampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  return std::move(readings_);
}

}  // namespace foreshard::replay
