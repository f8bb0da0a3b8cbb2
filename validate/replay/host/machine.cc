#include "validate/replay/host/machine.h"

#include <dlfcn.h>
#include <fstream>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <vector>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "base/quantity.h"

#include "validate/replay/host/memory.h"

namespace foreshard::replay::host {
namespace {

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  utsname name{};
  return uname(&name) == 0 ? std::string(name.machine) : "unknown";
}

// A function of OpenBLAS; null with other libraries.
template <class Function>
Function* from_blas(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string blas() {
  std::string text;
  if (auto* config = from_blas<char*()>("openblas_get_config")) text = config();
  if (auto* core = from_blas<char*()>("openblas_get_corename"))
    text += std::string(", kernels for ") + core();
  return text.empty() ? "unknown" : text;
}

}  // namespace

std::string host_name() {
  std::string name(256, '\0');
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.c_str();
}

std::map<std::string, std::string> host_facts() {
  std::map<std::string, std::string> facts;
  facts["processor"] = processor();
  facts["cores"] = std::to_string(sysconf(_SC_NPROCESSORS_ONLN));
  facts["memory"] = format(Bytes::from_base(static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                                            static_cast<double>(sysconf(_SC_PAGESIZE))));
  if (const auto cache = cache_share()) facts["last-level cache per core"] = format(*cache);
  utsname name{};
  if (uname(&name) == 0) facts["kernel"] = std::string(name.sysname) + " " + name.release;
  facts["blas"] = blas();
  return facts;
}

void bind_to_core(int local_rank, int local_ranks) {
  const std::vector<int> cores = allowed_cores();
  const long all = sysconf(_SC_NPROCESSORS_ONLN);
  if (static_cast<long>(cores.size()) < all || local_ranks > static_cast<int>(cores.size())) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cores[static_cast<std::size_t>(local_rank)]), &set);
  sched_setaffinity(0, sizeof set, &set);  // where it is not permitted, it stays unbound
}

std::string cores_bound_to() {
  const std::vector<int> cores = allowed_cores();
  std::string text = cores.size() == 1 ? "core " : "cores ";
  for (std::size_t i = 0; i < cores.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(cores[i]);
  return text;
}

int core_count() {
  return static_cast<int>(allowed_cores().size());
}

int cores_of_host() {
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

void use_one_thread() {
  if (auto* set = from_blas<void(int)>("openblas_set_num_threads")) set(1);
}

void flush_subnormal_numbers() {
#if defined(__SSE__)
  // Bits of the control register for results (15) and operands (6). Source: Intel, "Architectures
  // software developer's manual", volume 1, section 10.2.3.
  constexpr unsigned kFlushToZero = 1U << 15;
  constexpr unsigned kSubnormalsAreZero = 1U << 6;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kSubnormalsAreZero);
#endif
}

}  // namespace foreshard::replay::host
