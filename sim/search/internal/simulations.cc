// Simulates candidates of a search, by threads and by other ranks of a team (simulations.h), for
// race.cc and search.cc.
#include "sim/search/internal/simulations.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "base/yaml/describe.h"
#include "base/yaml/loader.h"

#include "sim/search/team.h"
#include "sim/simulate/simulate.h"
#include "sim/study/evidence.h"
#include "sim/study/expense.h"
#include "sim/study/records.h"
#include "sim/study/run.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search {

std::optional<DollarsPerSecond> rent_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                        std::span<const std::int32_t> devices) {
  DollarsPerSecond sum{};
  for (const std::int32_t id : devices) {
    const Device& device = cluster.devices()[DeviceId{id}.index()];
    const auto price = study::price_of(cluster.device_types()[device.type.index()], study.cluster);
    if (!price) return std::nullopt;
    sum += *price;
  }
  return sum;
}

namespace {

// device type -> number of devices.
std::vector<std::int64_t> by_type(const ClusterView& cluster,
                                  std::span<const std::int32_t> devices) {
  std::vector<std::int64_t> counts(cluster.device_types().size(), 0);
  for (const std::int32_t device : devices)
    ++counts[cluster.devices()[DeviceId{device}.index()].type.index()];
  return counts;
}

// Simulates on a cluster with the clocks of `used`, the devices of the candidate's ranks.
Result<Simulated> simulated_on(const study::LoadedStudy& study, const ClusterView& cluster,
                               std::span<const std::int32_t> used, const SearchOptions& options,
                               const Candidate& candidate) {
  FORESHARD_ASSIGN(auto lowered, lower::lower(study.model, candidate.strategy, {}));
  const auto program =
      study::with_launch_times(candidate.place->pool.placed(std::move(lowered)), cluster);
  FORESHARD_ASSIGN(sim::Prediction prediction,
                   study::simulated(study, candidate.strategy, used, cluster, program,
                                    {.critical_path = false}));
  study::set_evidence(prediction, study);
  const auto worst = static_cast<std::size_t>(prediction.worst_memory);
  const auto expense = study::expense_of(prediction, cluster, study.cluster);
  Simulated one = not_yet_simulated(candidate);
  const auto rent = rent_of(study, cluster, one.devices);
  one.step = prediction.step;
  one.low = prediction.low;
  one.high = prediction.high;
  one.idle = prediction.idle;
  one.peak = prediction.classes[worst].memory.peak;
  one.capacity = prediction.memory_capacity - prediction.memory_reserve;
  one.fits = prediction.fits || options.all_fit;
  one.tight = !options.all_fit && study::memory_margin_of(study).is_tight(prediction);
  one.mfu = prediction.mfu;
  one.tflops_per_device = prediction.model_tflops_per_device;
  one.breakdown = prediction.breakdown;
  one.unmeasured = study::unmeasured_in(prediction);
  one.usd = expense.usd();
  one.energy = expense.energy;
  if (rent) one.rent_of_used = *rent * prediction.step;
  return one;
}

}  // namespace

Result<Simulated> simulated(const study::LoadedStudy& study, const ClusterView& cluster,
                            const SearchOptions& options, const Candidate& candidate) {
  const auto used = std::span(std::as_const(candidate.place->pool.devices))
                        .first(static_cast<std::size_t>(candidate.strategy.devices()));
  if (by_type(cluster, used) == by_type(cluster, study.pool.devices))
    return simulated_on(study, cluster, used, options, candidate);
  FORESHARD_ASSIGN(const auto own, cluster_of(study, used));
  return simulated_on(study, own, used, options, candidate);
}

Simulations::Simulations(const study::LoadedStudy& study, const SearchOptions& options,
                         const Deadline& deadline)
    : study_(study), options_(options), queue_([&deadline] { return deadline.is_over(); }) {}

Simulations::~Simulations() {
  queue_.stop();
}

Status Simulations::welcome(const std::vector<DeviceSubset>& places) {
  if (options_.team == nullptr) return {};
  team::Tasks tasks;
  tasks.order = [this, &places](std::int64_t task) {
    const Candidate& candidate = *round_[static_cast<std::size_t>(task)];
    return task_of(candidate.place - places.data(), candidate.strategy);
  };
  tasks.answer = [this](std::int64_t task, const team::Message& words) -> team::Answer {
    const auto i = static_cast<std::size_t>(task);
    auto found = simulated_in(words, *round_[i]);
    if (!found) return {};
    keep(i, *std::move(found));
    return {.state = team::Answer::State::kDone};
  };
  FORESHARD_ASSIGN(server_, team::serve(*options_.team, job_of(study_, options_.version), queue_,
                                        std::move(tasks)));
  return {};
}

Simulations::Results Simulations::run(const std::vector<const Candidate*>& round) {
  round_ = round;
  results_.assign(round.size(), std::nullopt);
  done_ = 0;
  std::vector<std::int64_t> tasks(round.size());
  std::iota(tasks.begin(), tasks.end(), std::int64_t{0});
  queue_.add(tasks);
  const auto threads =
      std::clamp<std::int64_t>(options_.threads, 1, std::max<std::int64_t>(std::ssize(round), 1));
  fault_ = nullptr;
  try {
    in_threads(threads, [this](std::int64_t) { work(); });
  } catch (...) {
    fault_ = std::current_exception();
  }
  if (queue_.has_left()) server_.reset();  // Time or memory is over, for other ranks too.
  return std::move(results_);
}

// A cluster that no thread uses, or a new one.
std::unique_ptr<ClusterView> Simulations::cluster() {
  {
    const std::lock_guard lock(mutex_);
    if (!clusters_.empty()) {
      auto last = std::move(clusters_.back());
      clusters_.pop_back();
      return last;
    }
  }
  auto made = cluster_of(study_, study_.pool.devices);
  FORESHARD_CHECK(made.has_value());  // it could be built earlier
  return std::make_unique<ClusterView>(*std::move(made));
}

void Simulations::work() {
  auto cluster = this->cluster();
  while (const auto task = queue_.take()) {
    const auto i = static_cast<std::size_t>(*task);
    try {
      keep(i, simulated(study_, *cluster, options_, *round_[i]));
    } catch (...) {  // no memory
      queue_.stop();
      throw;
    }
    queue_.done();
  }
  const std::lock_guard lock(mutex_);
  clusters_.push_back(std::move(cluster));
}

void Simulations::keep(std::size_t i, Result<Simulated> found) {
  results_[i] = std::move(found);
  if (options_.progress) options_.progress(++done_, std::ssize(results_));
}

namespace {

template <class T>
bool read_number(std::string_view word, T& value) {
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

// A number in base units; nothing for an empty optional.
template <class T>
std::optional<double> base_of(const T& value) {
  if constexpr (requires { value.has_value(); })
    return value ? base_of(*value) : std::nullopt;
  else if constexpr (requires { value.in_base(); })
    return value.in_base();
  else
    return static_cast<double>(value);
}
template <class T>
void set_base(T& value, double base) {
  if constexpr (requires { value.has_value(); })
    set_base(value.emplace(), base);
  else if constexpr (requires { value.in_base(); })
    value = T::from_base(base);
  else
    value = static_cast<T>(base);
}

// Visits all results of a simulation, in the order in which they are sent.
template <class S, class Visit>
void each_number(S& one, const Visit& visit) {
  visit(one.step);
  visit(one.low);
  visit(one.high);
  visit(one.idle);
  visit(one.peak);
  visit(one.capacity);
  visit(one.fits);
  visit(one.tight);
  visit(one.mfu);
  visit(one.tflops_per_device);
  for (const sim::BreakdownPart& part : sim::kBreakdownParts) visit(one.breakdown.*part.time);
  visit(one.usd);
  visit(one.energy);
  visit(one.rent_of_used);
  visit(one.unmeasured.share);
}

}  // namespace

team::Message task_of(std::int64_t place, const Strategy& strategy) {
  return {"simulate", std::to_string(place), yaml::echo(strategy)};
}

Result<Candidate> candidate_in(const team::Message& task, const study::LoadedStudy& study,
                               const std::vector<DeviceSubset>& places) {
  const Error fault{Error::Code::kInvalidInput, "what rank 0 asks for is no strategy of the study"};
  std::size_t place = 0;
  if (task.size() != 3 || task[0] != "simulate" || !read_number(task[1], place) ||
      place >= places.size())
    return fault;
  yaml::Loader loader;
  FORESHARD_ASSIGN(auto strategy, loader.read_text<Strategy>(task[2], "rank 0"));
  // The text lacks the framework, which has no name if it is written in place, and properties of
  // devices.
  strategy.framework = study.strategy.framework;
  strategy.one_copy_in_fp8 = study.strategy.one_copy_in_fp8;
  if (yaml::echo(strategy) != task[2]) return fault;
  return Candidate{.strategy = std::move(strategy), .estimate = {}, .place = &places[place]};
}

Simulated not_yet_simulated(const Candidate& candidate) {
  const auto devices = std::span(candidate.place->pool.devices)
                           .first(static_cast<std::size_t>(candidate.strategy.devices()));
  Simulated one{};
  one.strategy = candidate.strategy;
  one.estimate = candidate.estimate;
  one.use = candidate.place->use;
  one.order = candidate.order;
  one.devices = {devices.begin(), devices.end()};
  return one;
}

team::Message answer_of(const Result<Simulated>& found) {
  if (!found) return {"fault", found.error().message};
  team::Message words{"found"};
  // Writes the shortest text that reads back as the same number.
  each_number(*found, [&](const auto& value) {
    const auto base = base_of(value);
    words.push_back(base ? fmt::format("{}", *base) : "");
  });
  words.push_back(found->unmeasured.on);
  words.push_back(std::to_string(found->unmeasured.remarks.size()));
  words.insert(words.end(), found->unmeasured.remarks.begin(), found->unmeasured.remarks.end());
  return words;
}

std::optional<Result<Simulated>> simulated_in(const team::Message& answer,
                                              const Candidate& candidate) {
  if (answer.size() == 2 && answer[0] == "fault")
    return Result<Simulated>(Error{Error::Code::kInfeasible, answer[1]});
  if (answer.empty() || answer[0] != "found") return std::nullopt;
  Simulated one = not_yet_simulated(candidate);
  std::size_t next = 0;
  bool sound = true;
  each_number(one, [&](auto& value) {
    if (++next >= answer.size()) return;
    const std::string& word = answer[next];
    double base = 0;
    const bool is_there = !word.empty();
    sound = sound && (!is_there || read_number(word, base));
    if (is_there) set_base(value, base);
  });
  // After the numbers: the devices, the number of remarks, and the remarks.
  std::size_t remarks = 0;
  if (!sound || next + 2 >= answer.size() || !read_number(answer[next + 2], remarks) ||
      answer.size() != next + 3 + remarks)
    return std::nullopt;
  one.unmeasured.on = answer[next + 1];
  one.unmeasured.remarks.assign(answer.begin() + static_cast<std::ptrdiff_t>(next) + 3,
                                answer.end());
  return Result<Simulated>(std::move(one));
}

}  // namespace foreshard::search
