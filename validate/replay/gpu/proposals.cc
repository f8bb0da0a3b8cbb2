#include "validate/replay/gpu/proposals.h"

#include <array>
#include <chrono>

#include "validate/measurement/measurement.h"
#include "validate/replay/gpu/cuda_error.h"

namespace foreshard::replay::gpu {
namespace {

constexpr std::chrono::milliseconds kSpinUp{30};
constexpr std::size_t kRounds = 5;

// The events around one run, destroyed at the end.
struct Events {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    for (cudaEvent_t event : {begin, end})
      if (event != nullptr) cudaEventDestroy(event);
  }
};

}  // namespace

Result<std::vector<std::optional<Seconds>>> time_proposals(
    std::size_t count, const std::function<bool(std::size_t)>& run, cudaStream_t stream) {
  using Clock = std::chrono::steady_clock;
  std::vector<bool> runs(count, true);
  auto status = cudaSuccess;
  const auto began = Clock::now();
  do {
    for (std::size_t i = 0; i < count; ++i) runs[i] = runs[i] && run(i);
    status = cudaStreamSynchronize(stream);
  } while (status == cudaSuccess && Clock::now() - began < kSpinUp);

  std::vector<std::array<Events, kRounds>> events(count);
  for (std::size_t round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < count; ++i) {
      Events& around = events[i][round];
      if (status == cudaSuccess) status = cudaEventCreate(&around.begin);
      if (status == cudaSuccess) status = cudaEventCreate(&around.end);
    }
  for (std::size_t round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < count; ++i) {
      if (!runs[i] || status != cudaSuccess) continue;
      status = cudaEventRecord(events[i][round].begin, stream);
      runs[i] = run(i);
      if (status == cudaSuccess) status = cudaEventRecord(events[i][round].end, stream);
    }
  if (status == cudaSuccess) status = cudaStreamSynchronize(stream);

  std::vector<std::optional<Seconds>> medians(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Seconds> times;
    for (const Events& around : events[i]) {
      float milliseconds = 0;
      if (!runs[i] || status != cudaSuccess) continue;
      status = cudaEventElapsedTime(&milliseconds, around.begin, around.end);
      times.push_back(static_cast<double>(milliseconds) * 1_ms);
    }
    if (!times.empty()) medians[i] = measure::quantile(times, 0.5);
  }
  FORESHARD_TRY(fault_of(status, "timing proposals"));
  return medians;
}

}  // namespace foreshard::replay::gpu
