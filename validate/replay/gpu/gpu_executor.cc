#include "validate/replay/gpu/gpu_executor.h"

#include <algorithm>
#include <set>
#include <thread>

#include "base/check.h"
#include "base/quantity.h"

#include "validate/replay/gpu/attention.h"
#include "validate/replay/gpu/cuda_error.h"
#include "validate/replay/gpu/gpu_verify.h"
#include "validate/replay/gpu/nvml.h"
#include "validate/replay/gpu/passes.h"
#include "validate/replay/gpu/utility.h"

namespace foreshard::replay::gpu {
namespace {

constexpr std::size_t kLookEvery = 64;  // instances issued between two checks for finished ones

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

// Why a kernel cannot be run as the Program says; nothing if it can.
Status kernel_fault(const Kernel& kernel) {
  if (const auto* attention = std::get_if<Attention>(&kernel)) return attention_fault(*attention);
  const auto* gemm = std::get_if<Gemm>(&kernel);
  if (gemm == nullptr || gemm->matrix_units) return {};
  return Error{Error::Code::kUnsupported,
               foreshard::describe(kernel) +
                   ": cuBLASLt takes the matrix units for it, which the library of the Program's "
                   "framework does not (matrix_units_need_alignment): replay it with another "
                   "framework"};
}

std::size_t rounded(std::size_t bytes) {
  return (bytes + Ring::kAlignment - 1) / Ring::kAlignment * Ring::kAlignment;
}

}  // namespace

GpuExecutor::GpuExecutor(ExecutorOptions options, Store& store, int device)
    : options_(std::move(options)), store_(store), device_(device), nvml_(device_bus(device)) {}

GpuExecutor::~GpuExecutor() {
  communicators_.reset();
  for (const auto* events : {&start_, &finish_})
    for (cudaEvent_t event : *events)
      if (event != nullptr) cudaEventDestroy(event);
  if (origin_event_ != nullptr) cudaEventDestroy(origin_event_);
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
}

Status GpuExecutor::prepare(const RankPlan& plan, Watch& watch) {
  plan_ = &plan;
  watch.alone("makes streams and events");
  FORESHARD_TRY(make_work());
  FORESHARD_TRY(make_streams());
  watch.alone("allocates memory");
  FORESHARD_TRY(make_memory());
  watch.alone("chooses algorithms of matrix products");
  FORESHARD_TRY(choose_gemms(watch));
  watch.alone("loads kernels");
  FORESHARD_TRY(load_kernels(watch));
  watch.alone(nullptr);
  if (options_.mode == measure::Mode::kOneRank || plan.program->ranks() == 1) return {};
  FORESHARD_ASSIGN(communicators_, Communicators::make(plan, store_, options_.shared, watch));
  return connect(watch);
}

Status GpuExecutor::make_work() {
  const std::size_t count = plan_->expansion.instances.size();
  std::unordered_map<const program::Task*, std::size_t> known;
  work_of_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const program::Task& task = plan_->task(i);
    const auto [entry, fresh] = known.emplace(&task, works_.size());
    work_of_.push_back(entry->second);
    if (!fresh) continue;
    Work work{.task = &task};
    if (const auto* kernel = std::get_if<Kernel>(&task.body)) {
      work.operands = operands_of(*kernel);
      if (const Status fault = kernel_fault(*kernel); !fault.ok())
        return Error{fault.error().code,
                     "task " + describe(*plan_, i) + ": " + fault.error().message};
    } else if (const auto* body = std::get_if<program::Communication>(&task.body)) {
      work.elements = elements_of(*plan_, i);
      work.element_bytes = static_cast<std::size_t>(size_of(body->dtype).in_base());
    }
    works_.push_back(std::move(work));
  }
  return {};
}

Status GpuExecutor::make_streams() {
  for (std::size_t s = 0; s < plan_->program->streams.size(); ++s) {
    cudaStream_t stream = nullptr;
    FORESHARD_TRY(
        fault_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream"));
    streams_.push_back(stream);
  }
  const std::size_t count = plan_->expansion.instances.size();
  start_.assign(count, nullptr);
  finish_.assign(count, nullptr);
  host_start_.assign(count, Seconds{});
  host_finish_.assign(count, Seconds{});
  auto status = cudaEventCreate(&origin_event_);
  for (std::size_t i = 0; i < count && status == cudaSuccess; ++i) {
    if (plan_->expansion.instances[i].stream < 0) continue;
    status = cudaEventCreate(&start_[i]);
    if (status == cudaSuccess) status = cudaEventCreate(&finish_[i]);
  }
  find_marks();
  return fault_of(status, "making events");
}

// Finds the events that are needed without timing: the finishes for which another stream or the
// host waits, and the finish of each stream's last instance.
void GpuExecutor::find_marks() {
  const auto& instances = plan_->expansion.instances;
  std::vector<bool> awaited(instances.size());
  for (std::size_t i = 0; i < instances.size(); ++i)
    for (const std::int32_t before : plan_->expansion.predecessors(i))
      if (instances[static_cast<std::size_t>(before)].stream != instances[i].stream)
        awaited[static_cast<std::size_t>(before)] = true;
  std::vector<std::optional<std::size_t>> next(streams_.size());
  mark_of_.resize(instances.size());
  for (std::size_t i = instances.size(); i-- > 0;) {
    mark_of_[i] = i;
    if (instances[i].stream < 0) continue;
    auto& mark = next[static_cast<std::size_t>(instances[i].stream)];
    if (!mark || awaited[i]) mark = i;
    mark_of_[i] = *mark;
  }
}

Status GpuExecutor::make_memory() {
  // Most bytes that one task reads and writes.
  std::size_t reads = Ring::kAlignment;
  std::size_t writes = Ring::kAlignment;
  std::set<std::int32_t> with_gemms;
  for (std::size_t i = 0; i < work_of_.size(); ++i) {
    const Work& work = works_[work_of_[i]];
    std::size_t read = rounded(static_cast<std::size_t>(work.elements.send) * work.element_bytes);
    std::size_t written =
        rounded(static_cast<std::size_t>(work.elements.receive) * work.element_bytes);
    for (const Operand& operand : work.operands)
      (operand.access == Access::kRead ? read : written) += rounded(operand.bytes);
    reads = std::max(reads, read);
    writes = std::max(writes, written);
    if (const auto* kernel = std::get_if<Kernel>(&work.task->body))
      if (std::holds_alternative<Gemm>(*kernel))
        with_gemms.insert(plan_->expansion.instances[i].stream);
  }
  cudaDeviceProp properties{};
  FORESHARD_TRY(fault_of(cudaGetDeviceProperties(&properties, device_), "the device"));
  const std::size_t cache = rounded(static_cast<std::size_t>(properties.l2CacheSize));

  // The Program's memory is allocated first, so that a shortage is reported for one of its tasks.
  const ArenaPlan arena = plan_arena(*plan_);
  std::size_t free = 0;
  std::size_t total = 0;
  FORESHARD_TRY(fault_of(cudaMemGetInfo(&free, &total), "the device's memory"));
  std::string what = "the Program's buffers";
  for (const ArenaPlan::Growth& growth : arena.growths)
    if (growth.to > free) {
      what = growth.what + " (" + format(static_cast<double>(growth.asked) * 1_B) +
             ", which brings the Program's buffers to " +
             format(static_cast<double>(growth.to) * 1_B) + ")";
      break;
    }
  what += " of rank " + std::to_string(plan_->rank);
  FORESHARD_TRY(arena_.allocate(arena.bytes, what));
  const std::string scratch = "what tasks read and write beside the Program's buffers, on rank " +
                              std::to_string(plan_->rank);
  FORESHARD_TRY(read_memory_.allocate(reads + 2 * cache, scratch));
  FORESHARD_TRY(written_memory_.allocate(writes + 2 * cache, scratch));
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    workspaces_.push_back(std::make_unique<DeviceMemory>());
    if (!with_gemms.contains(static_cast<std::int32_t>(s))) continue;
    FORESHARD_TRY(workspaces_.back()->allocate(kGemmWorkspace, scratch));
  }
  FORESHARD_TRY(origin_.allocate(sizeof(std::uint64_t), scratch));
  read_.over(read_memory_);
  written_.over(written_memory_);
  auto status = fill_plausibly(read_memory_.data(), read_memory_.size(), nullptr);
  if (status == cudaSuccess)
    status = fill_plausibly(written_memory_.data(), written_memory_.size(), nullptr);
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  return fault_of(status, "filling scratch memory");
}

// NCCL connects peers when they first use a communicator, and that call waits for the peer. In a
// step this could deadlock, because ranks may issue operations on different streams in different
// orders: two ranks that each send before they receive. So all first uses are here, communicator by
// communicator in ascending order. Which connections an operation needs may depend on its size;
// members see the same sizes in the same order. Source: sjeaugey in NVIDIA/nccl issue 783; NCCL
// User Guide, NCCL_RUNTIME_CONNECT.
Status GpuExecutor::connect(Watch& watch) {
  std::vector<std::vector<std::size_t>> firsts(plan_->communicators.size());
  const auto body = [&](std::size_t i) -> const program::Communication& {
    return std::get<program::Communication>(plan_->task(i).body);
  };
  const auto alike = [&](std::size_t a, std::size_t b) {
    return body(a).kind == body(b).kind && body(a).bytes == body(b).bytes &&
           body(a).dtype == body(b).dtype && body(a).roots == body(b).roots &&
           body(a).transfers == body(b).transfers;
  };
  for (std::size_t i = 0; i < work_of_.size(); ++i) {
    if (plan_->operations[i].communicator < 0) continue;
    auto& known = firsts[static_cast<std::size_t>(plan_->operations[i].communicator)];
    if (std::ranges::none_of(known, [&](std::size_t other) { return alike(i, other); }))
      known.push_back(i);
  }
  for (const auto& instances : firsts)
    for (const std::size_t i : instances) {
      watch.at(static_cast<std::int64_t>(i));
      cudaStream_t stream = stream_of(i);
      auto error = communicate(i, works_[work_of_[i]], stream);
      if (error.ok())
        error = fault_of(cudaEventRecord(origin_event_, stream), "recording an event");
      if (error.ok()) error = wait_for(origin_event_, watch, true);
      if (!error.ok())
        return given_up(Error{error.error().code,
                              "connecting: " + describe(*plan_, i) + ": " + error.error().message});
    }
  watch.at(-1);
  return {};
}

Status GpuExecutor::choose_gemms(Watch& watch) {
  for (std::size_t i = 0; i < work_of_.size(); ++i) {
    const Work& work = works_[work_of_[i]];
    const auto* kernel = std::get_if<Kernel>(&work.task->body);
    const auto* gemm = kernel == nullptr ? nullptr : std::get_if<Gemm>(kernel);
    if (gemm == nullptr) continue;
    if (!gemms_) {
      FORESHARD_ASSIGN(gemms_, Gemms::make());
    }
    const auto [entry, fresh] = choice_of_.emplace(*gemm, choices_.size());
    if (fresh) {
      const auto stream = static_cast<std::size_t>(plan_->expansion.instances[i].stream);
      FORESHARD_ASSIGN(auto choice, gemms_->prepare(
                                        *gemm, [&] { return pieces(work.operands); },
                                        workspaces_[stream]->data(), streams_[stream]));
      choices_.push_back(std::move(choice));
      watch.beat();
    }
    ++choices_[entry->second].count;
  }
  return {};
}

// CUDA loads a kernel at its first launch and may wait for an idle device to do so. It would wait
// for ever while an NCCL kernel waits for a peer. So each kernel of the plan runs once here, while
// nothing else runs. Source: NVIDIA, "CUDA Programming Guide", Lazy Loading, potential hazards
// (lazy loading is Linux's default since CUDA 12.2).
Status GpuExecutor::load_kernels(Watch& watch) {
  std::vector<bool> loaded(works_.size());
  for (std::size_t i = 0; i < work_of_.size(); ++i) {
    const Work& work = works_[work_of_[i]];
    if (loaded[work_of_[i]] || !std::holds_alternative<Kernel>(work.task->body)) continue;
    loaded[work_of_[i]] = true;
    if (const Status error =
            launch_kernel(work, stream_of(i), plan_->expansion.instances[i].stream);
        !error.ok())
      return Error{error.error().code, describe(*plan_, i) + ": " + error.error().message};
    watch.beat();
  }
  auto status = cudaSuccess;
  if (options_.mode == measure::Mode::kOneRank) {
    auto* origin = static_cast<std::uint64_t*>(origin_.data());
    status = note_time(origin, nullptr);
    if (status == cudaSuccess) status = wait_until(origin, 0, nullptr);
  }
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  return fault_of(status, "running each kernel once");
}

std::vector<void*> GpuExecutor::pieces(const std::vector<Operand>& operands) {
  std::vector<void*> result;
  result.reserve(operands.size());
  for (const Operand& operand : operands)
    result.push_back((operand.access == Access::kRead ? read_ : written_).take(operand.bytes));
  return result;
}

cudaStream_t GpuExecutor::stream_of(std::size_t instance) const {
  return streams_[static_cast<std::size_t>(plan_->expansion.instances[instance].stream)];
}

Seconds GpuExecutor::since_beginning() const {
  return std::chrono::duration<double>(Clock::now() - began_).count() * 1_s;
}

Error GpuExecutor::given_up(Error error) {
  if (communicators_) communicators_->abort();
  return error;
}

Status GpuExecutor::begin(Watch& watch) {
  issued_ = 0;
  unfinished_ = 0;
  cudaStream_t first = streams_.front();
  if (communicators_) FORESHARD_TRY(communicators_->meet(first));
  auto status = cudaSuccess;
  if (options_.mode == measure::Mode::kOneRank)
    status = note_time(static_cast<std::uint64_t*>(origin_.data()), first);
  if (status == cudaSuccess) status = cudaEventRecord(origin_event_, first);
  for (std::size_t s = 1; s < streams_.size() && status == cudaSuccess; ++s)
    status = cudaStreamWaitEvent(streams_[s], origin_event_, 0);
  FORESHARD_TRY(fault_of(status, "beginning a step"));
  FORESHARD_TRY(wait_for(origin_event_, watch, false));
  began_ = Clock::now();
  return {};
}

Status GpuExecutor::carry_out(Watch& watch, Inspector* inspector) {
  FORESHARD_TRY(begin(watch));
  const std::size_t count = work_of_.size();
  for (std::size_t i = 0; i < count; ++i) {
    watch.issuing(static_cast<std::int64_t>(i));
    if (watch.stopped()) break;
    if (plan_->expansion.instances[i].stream < 0) {
      FORESHARD_TRY(on_host(i, watch));
    } else if (const Status error = issue(i, inspector); !error.ok()) {
      return error;
    }
    issued_ = i + 1;
    watch.beat();
    if (i % kLookEvery == 0) look_around(watch);
  }
  // Waiting for all unfinished instances, of which the last one of each stream ends last.
  for (std::size_t i = 0; i < issued_; ++i)
    if (finish_[i] != nullptr && i >= unfinished_) FORESHARD_TRY(wait_for(finish_[i], watch, true));
  if (watch.stopped()) return Error{Error::Code::kIo, "the step was stopped"};
  look_around(watch);
  if (inspector != nullptr) return fault_of(cudaDeviceSynchronize(), "the end of the step");
  return {};
}

Status GpuExecutor::issue(std::size_t instance, Inspector* inspector) {
  const auto& at = plan_->expansion.instances[instance];
  const Work& work = works_[work_of_[instance]];
  cudaStream_t stream = stream_of(instance);
  auto status = cudaSuccess;
  for (const std::int32_t before : plan_->expansion.predecessors(instance)) {
    const auto b = static_cast<std::size_t>(before);
    // A stream keeps its order, and the host has finished its earlier instances.
    if (plan_->expansion.instances[b].stream == at.stream || finish_[b] == nullptr) continue;
    if (status == cudaSuccess) status = cudaStreamWaitEvent(stream, finish_[b], 0);
  }
  host_start_[instance] = since_beginning();
  if (status == cudaSuccess && !bare_) status = cudaEventRecord(start_[instance], stream);
  if (status != cudaSuccess) return fault_of(status, "before " + describe(*plan_, instance));

  Status error;
  if (const auto* kernel = std::get_if<Kernel>(&work.task->body)) {
    (void)kernel;
    error = launch_kernel(work, stream, at.stream);
  } else if (options_.mode == measure::Mode::kOneRank) {
    const Seconds arrival =
        instance < options_.arrivals.size() ? options_.arrivals[instance] : Seconds{};
    const double nanoseconds = std::max(0.0, arrival / 1_ns);
    error = fault_of(wait_until(static_cast<const std::uint64_t*>(origin_.data()),
                                static_cast<std::uint64_t>(nanoseconds), stream),
                     "waiting for an arrival");
  } else if (!communicators_) {
    // This is the only rank of the job: it copies what it sends to itself.
    const std::size_t bytes =
        static_cast<std::size_t>(std::min(work.elements.send, work.elements.receive)) *
        work.element_bytes;
    error = bytes == 0 ? Status()
                       : fault_of(cudaMemcpyAsync(written_.take(bytes), read_.take(bytes), bytes,
                                                  cudaMemcpyDeviceToDevice, stream),
                                  "copying");
  } else if (inspector != nullptr) {
    error = inspector->communicate(instance, work.elements, stream);
  } else {
    error = communicate(instance, work, stream);
  }
  if (!error.ok())
    return Error{error.error().code, describe(*plan_, instance) + ": " + error.error().message};
  if (!bare_ || mark_of_[instance] == instance) status = cudaEventRecord(finish_[instance], stream);
  return status == cudaSuccess ? Status() : fault_of(status, "after " + describe(*plan_, instance));
}

Status GpuExecutor::launch_kernel(const Work& work, cudaStream_t stream, std::int32_t number) {
  const std::vector<void*> operands = pieces(work.operands);
  return std::visit(
      Overloaded{
          [&](const Gemm& gemm) {
            return gemms_->run(gemm, operands,
                               workspaces_[static_cast<std::size_t>(number)]->data(), stream);
          },
          [&](const Attention& attention) {
            return fault_of(launch_attention(attention, operands, stream), "attention");
          },
          [&](const Pass& pass) { return fault_of(launch_pass(pass, operands, stream), "pass"); }},
      std::get<Kernel>(work.task->body));
}

Status GpuExecutor::communicate(std::size_t instance, const Work& work, cudaStream_t stream) {
  const std::size_t send = static_cast<std::size_t>(work.elements.send) * work.element_bytes;
  const std::size_t receive = static_cast<std::size_t>(work.elements.receive) * work.element_bytes;
  return communicators_->issue(instance, work.elements, read_.take(send), written_.take(receive),
                               stream);
}

Status GpuExecutor::on_host(std::size_t instance, Watch& watch) {
  host_start_[instance] = since_beginning();
  const program::Task& task = *works_[work_of_[instance]].task;
  if (const auto* work = std::get_if<program::HostWork>(&task.body)) {
    while (since_beginning() - host_start_[instance] < work->time && !watch.stopped()) {
    }
  } else {
    for (const std::int32_t before : plan_->expansion.predecessors(instance))
      if (cudaEvent_t event = finish_[static_cast<std::size_t>(before)]; event != nullptr)
        FORESHARD_TRY(wait_for(event, watch, false));
  }
  host_finish_[instance] = since_beginning();
  return {};
}

Status GpuExecutor::wait_for(cudaEvent_t event, Watch& watch, bool idle) {
  constexpr std::uint64_t kAskNccl = 4096;  // polls between two calls of fault()
  for (;;) {
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaSuccess) return {};
    if (status != cudaErrorNotReady) {
      const std::string where = unfinished_ < issued_ ? describe(*plan_, unfinished_)
                                                      : std::string("the step's beginning");
      return fault_of(status, "at or after " + where);
    }
    look_around(watch);
    if (watch.stopped()) return Error{Error::Code::kIo, "the step was stopped"};
    if (++polls_ % kAskNccl == 0 && communicators_) FORESHARD_TRY(communicators_->fault());
    // At the end of a step nothing waits for the host; within a step every microsecond counts.
    if (idle)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    else
      std::this_thread::yield();
  }
}

void GpuExecutor::look_around(Watch& watch) {
  const std::size_t before = unfinished_;
  const auto finished = [&](std::size_t instance) {
    if (finish_[instance] == nullptr) return true;
    const std::size_t mark = bare_ ? mark_of_[instance] : instance;
    return mark < issued_ && cudaEventQuery(finish_[mark]) == cudaSuccess;
  };
  while (unfinished_ < issued_ && finished(unfinished_)) ++unfinished_;
  // Before the first issue the rank may wait for other ranks, in no instance.
  if (unfinished_ != before || (issued_ > 0 && watch.instance() < 0))
    watch.at(static_cast<std::int64_t>(std::min(unfinished_, work_of_.size() - 1)));
}

Result<StepTimes> GpuExecutor::step(Watch& watch) {
  if (const Status error = carry_out(watch, nullptr); !error.ok()) return given_up(error.error());
  return times();
}

Result<std::optional<BareStep>> GpuExecutor::bare_step(Watch& watch) {
  bare_ = true;
  auto error = carry_out(watch, nullptr);
  bare_ = false;
  if (!error.ok()) return given_up(std::move(error).error());
  BareStep step;
  for (std::size_t i = 0; i < finish_.size(); ++i) {
    Seconds finish = host_finish_[i];
    if (finish_[i] != nullptr) {
      step.events += mark_of_[i] == i ? 1 : 2;
      if (mark_of_[i] != i) continue;
      FORESHARD_TRY(fault_of(time_of(finish_[i], finish), "reading the time of a step"));
    }
    step.total = std::max(step.total, finish);
  }
  return std::optional(step);
}

cudaError_t GpuExecutor::time_of(cudaEvent_t event, Seconds& time) const {
  float milliseconds = 0;
  const cudaError_t status = cudaEventElapsedTime(&milliseconds, origin_event_, event);
  time = static_cast<double>(milliseconds) * 1_ms;
  return status;
}

Result<StepTimes> GpuExecutor::times() const {
  const std::size_t count = work_of_.size();
  StepTimes result;
  result.start.resize(count);
  result.finish.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (finish_[i] == nullptr) {
      result.start[i] = host_start_[i];
      result.finish[i] = host_finish_[i];
    } else {
      auto status = time_of(start_[i], result.start[i]);
      if (status == cudaSuccess) status = time_of(finish_[i], result.finish[i]);
      if (status != cudaSuccess)
        return fault_of(status, "reading the time of " + describe(*plan_, i)).error();
    }
    result.total = std::max(result.total, result.finish[i]);
  }
  if (options_.mode == measure::Mode::kOneRank) result.slack = slack_of(result);
  return result;
}

// The rank needs a result when a task that uses it has nothing else left to wait for. The next
// communication on the same stream depends on the result only by order and does not use it.
std::vector<Seconds> GpuExecutor::slack_of(const StepTimes& times) const {
  const std::size_t count = work_of_.size();
  std::vector<std::optional<Seconds>> needed(count);
  const auto communicates = [&](std::size_t i) {
    return std::holds_alternative<program::Communication>(works_[work_of_[i]].task->body);
  };
  for (std::size_t i = 0; i < count; ++i)
    for (const std::int32_t before : plan_->expansion.predecessors(i)) {
      const auto b = static_cast<std::size_t>(before);
      if (!communicates(b)) continue;
      if (communicates(i) &&
          plan_->expansion.instances[i].stream == plan_->expansion.instances[b].stream)
        continue;
      Seconds ready = host_start_[i];
      for (const std::int32_t other : plan_->expansion.predecessors(i))
        if (other != before) ready = std::max(ready, times.finish[static_cast<std::size_t>(other)]);
      needed[b] = needed[b] ? std::min(*needed[b], ready) : ready;
    }
  std::vector<Seconds> slack(count);
  for (std::size_t i = 0; i < count; ++i)
    if (communicates(i)) slack[i] = (needed[i] ? *needed[i] : times.total) - times.finish[i];
  return slack;
}

Result<Verification> GpuExecutor::verify(Watch& watch) {
  if (!communicators_) {
    if (const Status error = carry_out(watch, nullptr); !error.ok()) return given_up(error.error());
    return Verification{};
  }
  Inspector inspector(*plan_, *communicators_, streams_);
  if (const Status error = inspector.prepare(); !error.ok()) return given_up(error.error());
  if (const Status error = carry_out(watch, &inspector); !error.ok())
    return given_up(error.error());
  return inspector.result();
}

measure::Machine GpuExecutor::machine() const {
  measure::Machine machine = machine_facts(device_);
  machine.facts["driver"] = nvml_.driver();
  if (gemms_) machine.facts["cublas"] = gemms_->version();
  if (communicators_) machine.facts["nccl"] = communicators_->version();
  return machine;
}

measure::Providers GpuExecutor::providers() const {
  const std::string own(measure::kOwnKernels);
  return {.gemm = "cublas", .attention = own, .pass = own};
}

std::string GpuExecutor::device() const {
  return device_name(device_);
}

std::string GpuExecutor::sole_device() const {
  return options_.shared ? std::string() : device_uuid(device_);
}

Bytes GpuExecutor::peak_memory() const {
  return static_cast<double>(arena_.size()) * 1_B;
}

Bytes GpuExecutor::scratch() const {
  std::size_t bytes = read_memory_.size() + written_memory_.size() + origin_.size();
  for (const auto& workspace : workspaces_) bytes += workspace->size();
  return static_cast<double>(bytes) * 1_B;
}

measure::Reading GpuExecutor::reading() const {
  return nvml_.reading();
}

}  // namespace foreshard::replay::gpu
