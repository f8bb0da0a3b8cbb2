#include "tests/validate/replay/gpu/fake_runtime.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <map>
#include <mutex>

namespace foreshard::replay::gpu {

FakeDevice& fake_device() {
  static FakeDevice device;
  return device;
}

namespace {

using Clock = std::chrono::steady_clock;

struct Event {
  Clock::time_point time{};
};
Event* event_of(cudaEvent_t event) {
  return reinterpret_cast<Event*>(event);
}
std::mutex& lock() {
  static std::mutex mutex;
  return mutex;
}
std::map<void*, std::size_t>& sizes() {
  static std::map<void*, std::size_t> known;
  return known;
}

}  // namespace
}  // namespace foreshard::replay::gpu

using foreshard::replay::gpu::fake_device;
namespace fake = foreshard::replay::gpu;

extern "C" {
cudaError_t cudaGetDeviceCount(int* count) {
  *count = fake_device().count;
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  fake_device().current = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Fake GPU");
  properties->uuid.bytes[0] = static_cast<char>(fake_device().uuid);
  properties->l2CacheSize = 1 << 16;
  properties->multiProcessorCount = 4;
  properties->totalGlobalMem = fake_device().memory;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int) {
  std::strncpy(text, "0000:17:00.0", static_cast<std::size_t>(size));
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = fake_device().memory - fake_device().used;
  *total = fake_device().memory;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  const std::lock_guard guard(fake::lock());
  if (fake_device().used + bytes > fake_device().memory) return cudaErrorMemoryAllocation;
  *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  fake_device().used += bytes;
  fake::sizes()[*data] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  const std::lock_guard guard(fake::lock());
  if (data == nullptr) return cudaSuccess;
  fake_device().used -= fake::sizes().at(data);
  fake::sizes().erase(data);
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorNoDevice ? "cudaErrorNoDevice" : "cudaErrorUnknown";
}
const char* cudaGetErrorString(cudaError_t) {
  return "as the fake runtime says";
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(new int);
  ++fake_device().streams;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<int*>(stream);
  --fake_device().streams;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new fake::Event);
  ++fake_device().events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete fake::event_of(event);
  --fake_device().events;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  const std::lock_guard guard(fake::lock());
  ++fake_device().records;
  fake::event_of(event)->time = fake::Clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  *milliseconds = std::chrono::duration<float, std::milli>(fake::event_of(to)->time -
                                                           fake::event_of(from)->time)
                      .count();
  return cudaSuccess;
}
}
