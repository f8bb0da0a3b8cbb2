#include "validate/replay/gpu/facts.h"

#include <array>
#include <cstdio>
#include <cuda_runtime_api.h>
#include <fstream>
#include <memory>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>

namespace foreshard::replay::gpu {
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
