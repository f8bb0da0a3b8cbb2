/// \file
/// A rank's plan on one GPU. The Program's streams are CUDA's; the calling thread issues all
/// instances in order, with dependencies between streams as events; each instance stands between
/// two events. A bare step has only those that other streams, the host and the step's end wait for;
/// its watch shows the earliest instance that may be unfinished. All ranks' steps begin when a
/// small operation of all of them ends.
///
/// kOneRank: each communication is one thread on the device that waits for its arrival; nothing is
/// sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "validate/replay/executor.h"
#include "validate/replay/gpu/communicators.h"
#include "validate/replay/gpu/gemm.h"
#include "validate/replay/gpu/memory.h"
#include "validate/replay/gpu/nvml.h"
#include "validate/replay/gpu/operands.h"

namespace foreshard::replay::gpu {

class GpuExecutor final : public Executor {
 public:
  /// \pre `device` exists and is the current one.
  GpuExecutor(ExecutorOptions options, Store& store, int device);
  ~GpuExecutor() override;
  GpuExecutor(const GpuExecutor&) = delete;
  GpuExecutor& operator=(const GpuExecutor&) = delete;

  Status prepare(const RankPlan& plan, Watch& watch) override;
  Result<StepTimes> step(Watch& watch) override;
  Result<std::optional<BareStep>> bare_step(Watch& watch) override;
  Result<Verification> verify(Watch& watch) override;
  measure::Machine machine() const override;
  measure::Providers providers() const override;
  std::string device() const override;
  std::string sole_device() const override;
  Bytes peak_memory() const override;
  Bytes scratch() const override;
  measure::Reading reading() const override;
  std::vector<measure::GemmChoice> gemms() const override { return choices_; }

 private:
  using Clock = std::chrono::steady_clock;

  // What instances of one task have in common.
  struct Work {
    const program::Task* task = nullptr;
    std::vector<Operand> operands{};  // of a kernel
    Elements elements{};              // of a communication
    std::size_t element_bytes = 0;
  };
  // What an issue does with a communication beside its operation; see gpu_verify.cc.
  class Inspector;

  Status make_work();
  Status make_memory();
  Status make_streams();
  void find_marks();
  Status choose_gemms(Watch& watch);
  Status load_kernels(Watch& watch);
  /// Every communicator's first operations, in the order in which they are made.
  Status connect(Watch& watch);

  /// All streams go on together with those of the other ranks; sets `began_`.
  Status begin(Watch& watch);
  /// Issues everything and waits for it.
  Status carry_out(Watch& watch, Inspector* inspector);
  Status issue(std::size_t instance, Inspector* inspector);
  Status launch_kernel(const Work& work, cudaStream_t stream, std::int32_t number);
  Status communicate(std::size_t instance, const Work& work, cudaStream_t stream);
  Status on_host(std::size_t instance, Watch& watch);
  /// Waits for an event; gives up with an error when asked to stop or when NCCL failed.
  Status wait_for(cudaEvent_t event, Watch& watch, bool idle);
  /// Tells `watch` the earliest unfinished instance.
  void look_around(Watch& watch);
  Result<StepTimes> times() const;
  /// Since the step's beginning.
  cudaError_t time_of(cudaEvent_t event, Seconds& time) const;
  std::vector<Seconds> slack_of(const StepTimes& times) const;
  /// Aborts what is under way: after an error nothing can be relied on.
  Error given_up(Error error);
  std::vector<void*> pieces(const std::vector<Operand>& operands);
  cudaStream_t stream_of(std::size_t instance) const;
  Seconds since_beginning() const;

  ExecutorOptions options_;
  Store& store_;
  int device_;
  Nvml nvml_;
  const RankPlan* plan_ = nullptr;

  std::vector<Work> works_;
  std::vector<std::size_t> work_of_;  // by instance
  std::unique_ptr<Gemms> gemms_;
  std::map<Gemm, std::size_t> choice_of_;  // index into choices_
  std::vector<measure::GemmChoice> choices_;
  std::unique_ptr<Communicators> communicators_;

  DeviceMemory arena_;
  DeviceMemory read_memory_;
  DeviceMemory written_memory_;
  std::vector<std::unique_ptr<DeviceMemory>> workspaces_;  // by stream
  DeviceMemory origin_;  // nanoseconds of the device's clock when the step began (kOneRank)
  Ring read_;
  Ring written_;

  std::vector<cudaStream_t> streams_;
  cudaEvent_t origin_event_ = nullptr;
  std::vector<cudaEvent_t> start_;  // by instance; null for the host's
  std::vector<cudaEvent_t> finish_;
  // By instance: the next one of its stream (or itself) whose finish a bare step records.
  std::vector<std::size_t> mark_of_;
  bool bare_ = false;                // the step under way
  std::vector<Seconds> host_start_;  // of the host's instances; of others when they were issued
  std::vector<Seconds> host_finish_;
  Clock::time_point began_;
  std::size_t issued_ = 0;
  std::size_t unfinished_ = 0;
  std::uint64_t polls_ = 0;
};

}  // namespace foreshard::replay::gpu
