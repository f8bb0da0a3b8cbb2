#include "validate/replay/host/host_executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <sched.h>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/quantity.h"

#include "validate/replay/executor.h"
#include "validate/replay/host/collective.h"
#include "validate/replay/host/kernels.h"
#include "validate/replay/host/machine.h"
#include "validate/replay/host/memory.h"
#include "validate/replay/host/mpi_wire.h"
#include "validate/replay/host/streams.h"
#include "validate/replay/plan.h"

namespace foreshard::replay::host::internal {
namespace {

// How long the results of communications had been there when a rank needed them.

// One per instance: time of need - arrival; 0 for other instances than communications. The result
// of a communication is needed when an instance that waits for it, directly or through other
// communications, has nothing else left to wait for; at the end of the step if no instance does.
std::vector<Seconds> slack_of(const RankPlan& plan, const StepTimes& times,
                              const std::vector<Seconds>& arrivals) {
  const auto& instances = plan.expansion.instances;
  const auto is_communication = [&](std::size_t i) {
    return std::holds_alternative<program::Communication>(plan.task(i).body);
  };
  std::vector<Seconds> need(instances.size(), times.total);
  // Goes backwards, because instances that wait for i come after i.
  for (std::size_t i = instances.size(); i-- > 0;) {
    const auto before = plan.expansion.predecessors(i);
    if (is_communication(i)) {
      for (const std::int32_t p : before) {
        auto& earlier = need[static_cast<std::size_t>(p)];
        earlier = std::min(earlier, need[i]);
      }
      continue;
    }
    for (const std::int32_t p : before) {
      if (!is_communication(static_cast<std::size_t>(p))) continue;
      // When everything else for which i waits had finished.
      Seconds others = 0_s;
      if (instances[i].host_sync >= 0)
        others = times.finish[static_cast<std::size_t>(instances[i].host_sync)];
      for (const std::int32_t other : before)
        if (other != p) others = std::max(others, times.finish[static_cast<std::size_t>(other)]);
      auto& earlier = need[static_cast<std::size_t>(p)];
      earlier = std::min(earlier, others);
    }
  }
  std::vector<Seconds> slack(instances.size());
  for (std::size_t i = 0; i < instances.size(); ++i)
    if (is_communication(i)) slack[i] = need[i] - arrivals[i];
  return slack;
}

}  // namespace
}  // namespace foreshard::replay::host::internal

namespace foreshard::replay {
namespace host {
namespace {

using program::CollectiveKind;
using program::Communication;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t in_place_or_none(CollectiveKind kind, std::size_t bytes) {
  const bool in_place = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
                        kind == CollectiveKind::kBroadcast;
  return in_place ? 0 : bytes;
}

// Sizes of the buffers of one communication, in bytes.
struct Buffers {
  std::size_t send = 0;
  std::size_t receive = 0;
};
Buffers buffers_of(const RankPlan& plan, std::size_t instance) {
  const auto& communication = std::get<Communication>(plan.task(instance).body);
  const auto element = static_cast<std::size_t>(size_of(communication.dtype).in_base());
  const Elements elements = elements_of(plan, instance);
  return {.send = in_place_or_none(communication.kind,
                                   static_cast<std::size_t>(elements.send) * element),
          .receive = static_cast<std::size_t>(elements.receive) * element};
}

// A communication under way.
struct Open {
  std::size_t instance = 0;
  std::unique_ptr<Collective> collective;
  std::vector<std::byte> stage;
  // Buffers during `verify`; otherwise empty.
  std::vector<std::byte> send;
  std::vector<std::byte> receive;
};

class HostExecutor final : public Executor, private Work {
 public:
  HostExecutor(std::unique_ptr<MpiWire> wire, const ExecutorOptions& options,
               const RegionBounds& bounds)
      : options_(options), bounds_(bounds), wire_(std::move(wire)) {}

  Status prepare(const RankPlan& plan, Watch& watch) override {
    plan_ = &plan;
    FORESHARD_CHECK(options_.mode == measure::Mode::kWhole ||
                    options_.arrivals.size() == plan.expansion.instances.size());
    if (wire_) {
      FORESHARD_TRY(wire_->join(plan.rank, plan.program->ranks()));
      bind_to_core(wire_->local_rank(), wire_->local_ranks());
      // A process that is bound to one core does not see which cores other processes have.
      yields_ = wire_->local_ranks() > (core_count() == 1 ? cores_of_host() : core_count());
    } else {
      bind_to_core(options_.local_rank, options_.local_rank + 1);
    }
    use_one_thread();
    FORESHARD_TRY(look_at_tasks());
    memory_.emplace(plan);
    FORESHARD_TRY(check_memory(watch));
    FORESHARD_TRY(allocate(watch));
    streams_.emplace(plan);
    return {};
  }

  Result<StepTimes> step(Watch& watch) override { return run(watch); }

  Result<Verification> verify(Watch& watch) override {
    verification_ = Verification{};
    auto times = run(watch);
    const Verification verification = *std::exchange(verification_, std::nullopt);
    if (!times) return times.error();
    return verification;
  }

  measure::Machine machine() const override {
    measure::Machine machine{.name = host_name(), .facts = host_facts()};
    if (wire_) machine.facts["mpi"] = wire_->version();
    return machine;
  }
  measure::Providers providers() const override {
    const std::string own(measure::kOwnKernels);
    return {.gemm = "blas", .attention = own, .pass = own};
  }
  std::string device() const override { return cores_bound_to(); }
  Bytes peak_memory() const override { return memory_ ? memory_->peak() : 0_B; }
  Bytes scratch() const override {
    const std::size_t own = read_.size() + written_.size() + zero_.size() + work_.bytes().size();
    return static_cast<double>(own) * 1_B + (memory_ ? memory_->gaps() : 0_B);
  }
  measure::Reading reading() const override { return {}; }

 private:
  // Finds the largest footprints, and checks that every kernel can be run.
  Status look_at_tasks() {
    for (std::size_t i = 0; i < plan_->expansion.instances.size(); ++i) {
      const auto& body = plan_->task(i).body;
      if (const auto* kernel = std::get_if<Kernel>(&body)) {
        if (const auto why = refusal_of(*kernel))
          return Error{Error::Code::kUnsupported, describe(*plan_, i) + ": " + *why};
        const Footprint footprint = footprint_of(*kernel);
        if (footprint.read + footprint.written > largest_.read + largest_.written)
          largest_kernel_ = i;
        largest_.read = std::max(largest_.read, footprint.read);
        largest_.written = std::max(largest_.written, footprint.written);
        largest_.work = std::max(largest_.work, footprint.work);
      } else if (wire_ && std::holds_alternative<Communication>(body)) {
        const Buffers buffers = buffers_of(*plan_, i);
        largest_buffers_ = std::max(largest_buffers_, buffers.send + buffers.receive + 2 * kLine);
      }
    }
    return {};
  }

  std::size_t region_size(std::size_t largest) const {
    if (largest == 0) return 0;
    const Bytes twice = 2 * cache_share().value_or(bounds_.least);
    return std::max(largest, static_cast<std::size_t>(
                                 std::clamp(twice, bounds_.least, bounds_.most).in_base()));
  }
  Bytes scratch_need() const {
    return static_cast<double>(region_size(largest_.read) + region_size(largest_.written) +
                               region_size(largest_buffers_) + largest_.work) *
           1_B;
  }

  // Checks that the ranks of a host, which share its memory, fit in the order of their local ranks.
  // All ranks see the same numbers, so all fail together: the first rank that does not fit names
  // what is too large, and the other ranks refer to it.
  Status check_memory(Watch& watch) {
    const Bytes need = scratch_need() + memory_->need();
    const Bytes own = address_space_left();
    Bytes left = available_memory();
    if (!wire_)
      return need > std::min(left, own) ? out_of_memory(shortage(std::min(left, own))) : Status();
    FORESHARD_ASSIGN(const auto free, wire_->gather_on_host(left.in_base(), watch));
    FORESHARD_ASSIGN(
        const auto needs,
        wire_->gather_on_host(need > own ? std::numeric_limits<double>::infinity() : need.in_base(),
                              watch));
    left = Bytes::from_base(*std::ranges::min_element(free));
    for (std::int32_t local = 0; local < wire_->local_ranks(); ++local) {
      const Bytes other = Bytes::from_base(needs[static_cast<std::size_t>(local)]);
      if (other > left)
        return out_of_memory(local == wire_->local_rank()
                                 ? shortage(std::min(left, own))
                                 : "on process " + std::to_string(local) +
                                       " of this host, which "
                                       "has " +
                                       format(left) +
                                       " left for it; its message says what is too much");
      left -= other;
    }
    return {};
  }
  static Status out_of_memory(const std::string& why) {
    return Error{Error::Code::kInfeasible, "out of memory " + why};
  }
  std::string shortage(Bytes available) const {
    const std::string rank = "on rank " + std::to_string(plan_->rank) + ": ";
    const std::string free = " (of " + format(available) + " that this rank may take)";
    if (const auto buffers = memory_->shortage(available)) return rank + *buffers + free;
    return rank + "operands of " + describe(*plan_, largest_kernel_) + " ask for " +
           format(static_cast<double>(largest_.read + largest_.written) * 1_B) +
           ", all scratch for " + format(scratch_need()) + ", beside " + format(memory_->need()) +
           " of the Program's buffers" + free;
  }

  Status allocate(Watch& watch) {
    FORESHARD_TRY(memory_->reserve());
    watch.beat();
    const std::pair<Region*, std::size_t> regions[] = {
        {&read_, region_size(largest_.read)},
        {&written_, region_size(largest_.written)},
        {&zero_, region_size(largest_buffers_)},
    };
    for (const auto& [region, size] : regions) {
      FORESHARD_ASSIGN(auto made, Region::make(size, region == &read_ ? Region::Content::kOrdinary
                                                                      : Region::Content::kZero));
      *region = std::move(made);
      watch.beat();
    }
    FORESHARD_ASSIGN(work_, Pages::reserve(largest_.work));
    if (!work_.bytes().empty()) std::memset(work_.bytes().data(), 0, work_.bytes().size());
    return {};
  }

  Result<StepTimes> run(Watch& watch) {
    flush_subnormal_numbers();
    memory_->begin_step();
    read_.rewind();
    written_.rewind();
    zero_.rewind();
    open_.clear();
    if (wire_) {
      FORESHARD_TRY(wire_->barrier(watch));
      FORESHARD_ASSIGN(zero_time_, wire_->common_beginning(watch));
      while (seconds_now() < zero_time_) continue;
    } else {
      zero_time_ = seconds_now();
    }
    auto times = streams_->run(*this, watch);
    if (times && options_.mode == measure::Mode::kOneRank) {
      StepTimes with_slack = *std::move(times);
      with_slack.slack = internal::slack_of(*plan_, with_slack, options_.arrivals);
      return with_slack;
    }
    return times;
  }

  // Implementation of Work.
  Seconds now() override { return (seconds_now() - zero_time_) * 1_s; }
  Status starts(std::size_t instance) override { return memory_->starts(instance); }
  void finished(std::size_t instance) override { memory_->finished(instance); }
  void compute(std::size_t instance) override {
    foreshard::replay::host::run(std::get<Kernel>(plan_->task(instance).body), read_, written_,
                                 work_.bytes());
  }
  void idle() override {
    if (yields_) sched_yield();
  }

  Status begin(std::size_t instance) override {
    if (!wire_) return {};
    const auto& communication = std::get<Communication>(plan_->task(instance).body);
    const Operation& operation = plan_->operations[instance];
    const Communicator& communicator =
        plan_->communicators[static_cast<std::size_t>(operation.communicator)];
    CollectiveSpec spec{.kind = communication.kind,
                        .dtype = communication.dtype,
                        .channel = communicator.number,
                        .members = communicator.members,
                        .me = communicator.me,
                        .peer = operation.peer,
                        .root = std::max(operation.root, 0)};
    if (is_group_call(communication.kind)) spec.messages = messages_of(*plan_, instance);

    const Buffers sizes = buffers_of(*plan_, instance);
    Open open;
    open.instance = instance;
    std::span<std::byte> send;
    std::span<std::byte> receive;
    if (verification_) {
      // The byte pattern is neither zero nor an expected number.
      open.send.assign(sizes.send, std::byte{0xa5});
      open.receive.assign(sizes.receive, std::byte{0xa5});
      send = open.send;
      receive = open.receive;
      write_given(*plan_, instance, send, receive);
    } else {
      zero_.begin(sizes.send + sizes.receive + 2 * kLine);
      send = zero_.take(sizes.send);
      receive = zero_.take(sizes.receive);
    }
    if (!stages_.empty()) {
      open.stage = std::move(stages_.back());
      stages_.pop_back();
    }
    if (open.stage.size() < stage_bytes(spec)) open.stage.resize(stage_bytes(spec));
    open.collective = start_collective(spec, *wire_, send, receive, open.stage);
    open_.push_back(std::move(open));
    return {};
  }

  Result<Progress> advance(std::size_t instance) override {
    if (!wire_) return now() >= options_.arrivals[instance] ? Progress::kDone : Progress::kStalled;
    const auto open =
        std::ranges::find_if(open_, [&](const Open& of) { return of.instance == instance; });
    FORESHARD_CHECK(open != open_.end());
    const auto progress = open->collective->advance();
    if (!progress || *progress != Progress::kDone) return progress;
    if (verification_) check_expected(*plan_, instance, open->receive, *verification_);
    stages_.push_back(std::move(open->stage));
    open_.erase(open);
    return progress;
  }

  static constexpr std::size_t kLine = 64;

  const ExecutorOptions options_;
  const RegionBounds bounds_;
  const RankPlan* plan_ = nullptr;
  bool yields_ = false;

  Footprint largest_;
  std::size_t largest_kernel_ = 0;
  std::size_t largest_buffers_ = 0;
  Region read_;
  Region written_;
  Region zero_;
  Pages work_;
  std::optional<ProgramMemory> memory_;
  std::optional<Streams> streams_;

  double zero_time_ = 0;
  std::optional<Verification> verification_;
  std::vector<Open> open_;
  std::vector<std::vector<std::byte>> stages_;  // free stages, for reuse
  // Declared last, so destroyed first: messages under way may use the memory above.
  std::unique_ptr<MpiWire> wire_;
};

}  // namespace

std::unique_ptr<Executor> make_executor_on(std::unique_ptr<MpiWire> wire,
                                           const ExecutorOptions& options,
                                           const RegionBounds& bounds) {
  return std::make_unique<HostExecutor>(std::move(wire), options, bounds);
}

}  // namespace host

Result<std::unique_ptr<Executor>> make_host_executor(const ExecutorOptions& options,
                                                     Store& /*store*/) {
  if (options.mode == measure::Mode::kOneRank) return host::make_executor_on(nullptr, options);
  FORESHARD_ASSIGN(auto wire, host::MpiWire::start());
  return host::make_executor_on(std::move(wire), options);
}

}  // namespace foreshard::replay
