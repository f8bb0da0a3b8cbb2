#include "validate/replay/gpu/nvml.h"

#include <array>
#include <cstdio>
#include <cuda_runtime_api.h>
#include <fstream>
#include <memory>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "validate/replay/gpu/library.h"

namespace foreshard::replay::gpu {

// Source of the prototypes and numbers: NVIDIA, "NVML API Reference Guide" (nvmlClockType_t:
// graphics 0, SM 1, memory 2; nvmlTemperatureSensors_t: GPU 0; power in milliwatts; 0 is success;
// NvmlClocksEventReasons; drivers before 535 call them throttle reasons).
struct Nvml::Functions {
  using Device = void*;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_by_bus)(const char*, Device*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*reasons)(Device, unsigned long long*) = nullptr;  // null if the driver lacks it
  int (*driver)(char*, unsigned) = nullptr;
  Device device = nullptr;
};

namespace {

constexpr std::array<std::pair<unsigned long long, const char*>, 9> kReasons{
    {{0x1, "idle"},
     {0x2, "applications_clocks"},
     {0x4, "sw_power_cap"},
     {0x8, "hw_slowdown"},
     {0x10, "sync_boost"},
     {0x20, "sw_thermal"},
     {0x40, "hw_thermal"},
     {0x80, "hw_power_brake"},
     {0x100, "display_clocks"}}};

}  // namespace

Nvml::Nvml(const std::string& bus) {
  constexpr std::array kNames{"libnvidia-ml.so.1", "libnvidia-ml.so"};
  const auto library = Library::open("NVML", kNames, "CUDA_HOME", "it comes with the driver");
  if (!library) return;
  auto functions = std::make_unique<Functions>();
  const bool complete =
      library->find("nvmlInit_v2", functions->init) &&
      library->find("nvmlShutdown", functions->shutdown) &&
      library->find("nvmlDeviceGetHandleByPciBusId_v2", functions->device_by_bus) &&
      library->find("nvmlDeviceGetClockInfo", functions->clock) &&
      library->find("nvmlDeviceGetTemperature", functions->temperature) &&
      library->find("nvmlDeviceGetPowerUsage", functions->power) &&
      library->find("nvmlSystemGetDriverVersion", functions->driver);
  if (!complete || functions->init() != 0) return;
  if (!library->find("nvmlDeviceGetCurrentClocksEventReasons", functions->reasons))
    library->find("nvmlDeviceGetCurrentClocksThrottleReasons", functions->reasons);
  if (functions->device_by_bus(bus.c_str(), &functions->device) != 0) functions->device = nullptr;
  functions_ = std::move(functions);
}

Nvml::~Nvml() {
  if (functions_) functions_->shutdown();
}

measure::Reading Nvml::reading() const {
  measure::Reading reading;
  if (!functions_ || functions_->device == nullptr) return reading;
  unsigned value = 0;
  if (functions_->clock(functions_->device, 1, &value) == 0) reading.clock_mhz = value;
  if (functions_->clock(functions_->device, 2, &value) == 0) reading.memory_clock_mhz = value;
  if (functions_->temperature(functions_->device, 0, &value) == 0) reading.celsius = value;
  if (functions_->power(functions_->device, &value) == 0) reading.watts = value / 1e3;
  unsigned long long reasons = 0;
  if (functions_->reasons != nullptr && functions_->reasons(functions_->device, &reasons) == 0)
    for (const auto& [bit, name] : kReasons)
      if ((reasons & bit) != 0) reading.throttle.emplace_back(name);
  return reading;
}

std::string Nvml::driver() const {
  std::array<char, 96> text{};
  if (!functions_ || functions_->driver(text.data(), text.size()) != 0) return {};
  return text.data();
}

namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

// Output of one of the driver's commands; empty if the command is missing.
std::string output_of(const char* command) {
  const auto close = [](std::FILE* pipe) { pclose(pipe); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(popen(command, "r"), close);
  std::string text;
  if (!pipe) return text;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe.get())) > 0;)
    text.append(part.data(), n);
  return text;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

measure::Machine machine_facts(int device) {
  measure::Machine machine;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) machine.name = host.data();
  utsname system{};
  if (uname(&system) == 0)
    machine.facts["kernel"] = std::string(system.sysname) + " " + system.release;
  machine.facts["processor"] = processor();
  machine.facts["cores"] = std::to_string(std::thread::hardware_concurrency());
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) == cudaSuccess) {
    machine.facts["device"] = properties.name;
    machine.facts["compute capability"] =
        std::to_string(properties.major) + "." + std::to_string(properties.minor);
    machine.facts["multiprocessors"] = std::to_string(properties.multiProcessorCount);
    machine.facts["memory bytes"] = std::to_string(properties.totalGlobalMem);
    machine.facts["l2 bytes"] = std::to_string(properties.l2CacheSize);
  }
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) machine.facts["cuda"] = version_text(version);
  if (cudaDriverGetVersion(&version) == cudaSuccess)
    machine.facts["cuda of driver"] = version_text(version);
  machine.topology = output_of("nvidia-smi topo -m 2>/dev/null");
  return machine;
}

std::string device_name(int device) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return "GPU";
  return std::string(properties.name) + ", " + device_uuid(device);
}

std::string device_uuid(int device) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return {};
  std::string text = "GPU-";
  std::array<char, 3> digits{};
  for (const char c : properties.uuid.bytes) {
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned char>(c));
    text += digits.data();
  }
  return text;
}

std::string device_bus(int device) {
  std::array<char, 32> text{};
  if (cudaDeviceGetPCIBusId(text.data(), text.size(), device) != cudaSuccess) return {};
  return text.data();
}

}  // namespace foreshard::replay::gpu
