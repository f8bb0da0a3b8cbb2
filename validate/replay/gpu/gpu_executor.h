/// \file
/// Carries out a rank's plan on one GPU. Each stream of the Program is a CUDA stream. The calling
/// thread issues all instances in order, with dependencies between streams as events, and encloses
/// each instance in two events. A bare step has only the events for which other streams, the host
/// or the step's end wait; its watch shows the earliest instance that may be unfinished. The steps
/// of all ranks begin together, at the end of a small collective of all ranks.
///
/// kOneRank: each communication is a kernel with one thread, which waits for the arrival of the
/// result; nothing is sent.
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

  // Data shared by all instances of a task.
  struct Work {
    const program::Task* task = nullptr;
    std::vector<Operand> operands{};  // kernels only
    Elements elements{};              // communications only
    std::size_t element_bytes = 0;
  };
  // Fills and checks the buffers of each communication during `verify` (gpu_verify.h).
  class Inspector;

  Status make_work();
  Status make_memory();
  Status make_streams();
  void find_marks();
  Status choose_gemms(Watch& watch);
  Status load_kernels(Watch& watch);
  /// Runs the first operations of each communicator, so that NCCL connects its peers.
  Status connect(Watch& watch);

  /// Lets all streams begin together with the streams of the other ranks; sets `began_`.
  Status begin(Watch& watch);
  /// Issues everything and waits for it.
  Status carry_out(Watch& watch, Inspector* inspector);
  Status issue(std::size_t instance, Inspector* inspector);
  Status launch_kernel(const Work& work, cudaStream_t stream, std::int32_t number);
  Status communicate(std::size_t instance, const Work& work, cudaStream_t stream);
  Status on_host(std::size_t instance, Watch& watch);
  /// Waits for an event; gives up with an error when asked to stop or when NCCL failed.
  Status wait_for(cudaEvent_t event, Watch& watch, bool idle);
  /// Reports the earliest unfinished instance to `watch`.
  void look_around(Watch& watch);
  Result<StepTimes> times() const;
  /// Time of an event since the step's beginning.
  cudaError_t time_of(cudaEvent_t event, Seconds& time) const;
  std::vector<Seconds> slack_of(const StepTimes& times) const;
  /// Aborts everything under way, because the state after an error is unknown. \return `error`.
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
  std::vector<std::size_t> work_of_;  // instance -> index into works_
  std::unique_ptr<Gemms> gemms_;
  std::map<Gemm, std::size_t> choice_of_;  // product -> index into choices_
  std::vector<measure::GemmChoice> choices_;
  std::unique_ptr<Communicators> communicators_;

  DeviceMemory arena_;
  DeviceMemory read_memory_;
  DeviceMemory written_memory_;
  std::vector<std::unique_ptr<DeviceMemory>> workspaces_;  // one per stream
  DeviceMemory origin_;  // device clock, in ns, when the step began (kOneRank)
  Ring read_;
  Ring written_;

  std::vector<cudaStream_t> streams_;
  cudaEvent_t origin_event_ = nullptr;
  std::vector<cudaEvent_t> start_;   // one per instance; null for instances on the host
  std::vector<cudaEvent_t> finish_;  // one per instance; null for instances on the host
  // Instance -> itself or the next one on its stream whose finish a bare step records.
  std::vector<std::size_t> mark_of_;
  bool bare_ = false;                // whether the step under way is a bare one
  std::vector<Seconds> host_start_;  // one per instance: start on the host, or issue to a stream
  std::vector<Seconds> host_finish_;
  Clock::time_point began_;
  std::size_t issued_ = 0;
  std::size_t unfinished_ = 0;
  std::uint64_t polls_ = 0;
};

}  // namespace foreshard::replay::gpu
