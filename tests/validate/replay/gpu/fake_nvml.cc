// A libnvidia-ml without a driver: one device at 0000:17:00.0, which is hot.
#include <cstring>

// The names are NVML's.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  static int self = 0;
  *device = &self;
  return std::strcmp(bus, "0000:17:00.0") == 0 ? 0 : 6;  // NVML_ERROR_NOT_FOUND
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* megahertz) {
  *megahertz = type == 1 ? 1755 : 3201;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 84;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 612500;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x4 | 0x20;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "580.65.06", size);
  return 0;
}
}
// NOLINTEND(readability-identifier-naming)
