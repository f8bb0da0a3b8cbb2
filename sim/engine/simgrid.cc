// The second engine (workload.h, run_simgrid), which lets SimGrid run the same workload in a
// process of its own. sim/simulate calls it for `--engine simgrid`. What SimGrid cannot do is
// refused as kUnsupported. simgrid_module.cc has what that process runs.
#include "sim/engine/internal/simgrid.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "base/index.h"

#include "sim/engine/internal/plan.h"
#include "sim/engine/workload.h"

namespace foreshard::engine {
namespace {

using internal::NormalShape;
using internal::Shapes;
using internal::WholeUnits;

// Largest relative change of a work by rounding to whole units.
constexpr double kRounding = 1e-9;
// Scaled works stay below 2^62, well within the 64 bits that SimGrid counts with.
constexpr int kWorkBits = 62;

// Why SimGrid cannot express a shape; nullptr: it can.
const char* obstacle(const Shapes& shapes, const NormalShape& shape) {
  if (shape.holds > 0) return "occupies a resource";
  if (std::isfinite(shape.cap)) return "has a rate cap";
  if (shape.connections != 1) return "has connections other than 1";
  for (const auto& load : shapes.loads(shape))
    if (load.load != 1) return "uses its resources with different weights or multiplicities";
  return nullptr;
}

Error unsupported(std::size_t activity, const char* why) {
  return {Error::Code::kUnsupported,
          "SimGrid cannot express activity " + std::to_string(activity) + ": it " + why};
}

// An error that describes the first event that SimGrid cannot express, if there is one.
Status obstacle_among_events(const Workload& workload) {
  const auto unsupported = [](const char* what) {
    return Error{Error::Code::kUnsupported,
                 std::string("SimGrid cannot express that ") + what + " while it runs"};
  };
  std::vector<Event> events(workload.events().begin(), workload.events().end());
  std::ranges::stable_sort(events, {}, &Event::at);
  std::vector<double> capacity;
  for (std::size_t r = 0; r < workload.resource_count(); ++r)
    capacity.push_back(workload.capacity(ResourceId(static_cast<std::int64_t>(r))));
  for (const Event& event : events) {
    switch (event.kind) {
      case Event::Kind::kCapacity: {
        if (event.period < kNever) return unsupported("a capacity changes again and again");
        double& before = capacity[event.resource.index()];
        if (event.capacity == 0) return unsupported("a resource has nothing left");
        if (event.capacity > before) return unsupported("a capacity grows");
        before = event.capacity;
        break;
      }
      case Event::Kind::kFails:
      case Event::Kind::kRepaired:
        return unsupported("a resource fails");
      case Event::Kind::kShape:
        return unsupported("an activity changes its shape");
      case Event::Kind::kLoadBegins:
      case Event::Kind::kLoadEnds:
        return unsupported("traffic of others comes and goes");
    }
  }
  return {};
}

// Sets of resources that share activities, directly or through others.
class Components {
 public:
  explicit Components(std::size_t resources) : parent_(resources) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t of(std::size_t r) {
    while (parent_[r] != r) r = parent_[r] = parent_[parent_[r]];
    return r;
  }
  void join(std::size_t a, std::size_t b) { parent_[of(a)] = of(b); }

 private:
  std::vector<std::size_t> parent_;
};

Result<WholeUnits> whole_units(const Workload& workload, const Shapes& shapes) {
  const auto activities = workload.activities();
  Components components(workload.resource_count());
  const auto any_resource = [&](std::size_t a) {
    return workload.shape(activities[a].shape).usages.front().resource.index();
  };
  std::vector<bool> checked(shapes.size());
  for (std::size_t a = 0; a < activities.size(); ++a) {
    const ShapeId id = activities[a].shape;
    if (activities[a].work == 0 || checked[id.index()]) continue;
    checked[id.index()] = true;
    if (const char* why = obstacle(shapes, shapes[id.value()])) return unsupported(a, why);
    for (const Usage& usage : workload.shape(id).usages)
      components.join(any_resource(a), usage.resource.index());
  }

  std::vector<double> largest(workload.resource_count());
  const auto normal_work = [&](std::size_t a) {
    return activities[a].work * shapes[activities[a].shape.value()].scale;
  };
  for (std::size_t a = 0; a < activities.size(); ++a) {
    if (activities[a].work == 0) continue;
    double& most = largest[components.of(any_resource(a))];
    most = std::max(most, normal_work(a));
  }
  WholeUnits units;
  units.exponent.resize(workload.resource_count());
  for (std::size_t r = 0; r < units.exponent.size(); ++r)
    if (const double most = largest[components.of(r)]; most > 0)
      units.exponent[r] = kWorkBits - 1 - std::ilogb(most);
  units.work.resize(activities.size());
  for (std::size_t a = 0; a < activities.size(); ++a) {
    if (activities[a].work == 0) continue;
    const double exact = std::ldexp(normal_work(a), units.exponent[any_resource(a)]);
    const double whole = std::nearbyint(exact);
    if (std::abs(whole - exact) > kRounding * exact)
      return unsupported(a, "is too small to be counted in the units of those it shares with");
    units.work[a] = static_cast<std::uint64_t>(whole);
  }
  return units;
}

// Memory that a forked process shares with this one.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes)
      : bytes_(bytes),
        address_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedMemory() {
    if (valid()) munmap(address_, bytes_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  bool valid() const { return address_ != MAP_FAILED; }
  void* address() const { return address_; }

 private:
  std::size_t bytes_;
  void* address_;
};

// Data that the two processes share: this, then a start and a finish per activity.
struct Outcome {
  std::int64_t events = 0;
  std::int64_t finished = 0;
  char message[256] = {};
};

// The module: the file that $FORESHARD_SIMGRID names; else the installed one, beside the folder of
// the running program or where it was built for; else the build's.
std::string module_file() {
  if (const char* named = std::getenv("FORESHARD_SIMGRID"); named != nullptr) return named;
  std::error_code fault;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", fault);
  const std::string installed = FORESHARD_SIMGRID_INSTALLED;  // relative to the prefix
  for (const std::filesystem::path& file :
       {program.parent_path().parent_path() / installed,
        std::filesystem::path(FORESHARD_INSTALL_PREFIX) / installed})
    if (std::filesystem::exists(file, fault)) return file.string();
  return FORESHARD_SIMGRID_BUILT;
}

// SimGrid writes errors to both streams; those that matter go into the outcome.
void silence() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

Error failed(const std::string& why) {
  return {Error::Code::kIo, "SimGrid's process " + why};
}

// \return kIo, which says what is missing
Result<internal::RunOnSimgrid*> load_module() {
  void* module = dlopen(module_file().c_str(), RTLD_NOW | RTLD_LOCAL);
  void* function = module == nullptr ? nullptr : dlsym(module, internal::kRunOnSimgrid);
  if (function != nullptr) return reinterpret_cast<internal::RunOnSimgrid*>(function);
  const char* why = dlerror();
  return failed(std::string("failed: it cannot be loaded: ") + (why == nullptr ? "" : why));
}

}  // namespace

Result<Timeline> run_simgrid(const Workload& workload, SimgridSolver solver) {
  FORESHARD_TRY(fault_in(workload));
  FORESHARD_TRY(obstacle_among_events(workload));
  const Shapes shapes(workload);
  FORESHARD_ASSIGN(const auto units, whole_units(workload, shapes));

  const std::size_t count = workload.activity_count();
  const SharedMemory memory(sizeof(Outcome) + 2 * count * sizeof(double));
  if (!memory.valid()) return failed(std::string("has no memory: ") + std::strerror(errno));
  auto* outcome = new (memory.address()) Outcome;
  auto* times = reinterpret_cast<double*>(outcome + 1);
  const std::span start(times, count);
  const std::span finish(times + count, count);

  static const auto run = load_module();  // once for all children: some 60 libraries come with it
  if (!run) return run.error();
  const pid_t child = fork();
  if (child < 0) return failed(std::string("cannot be forked: ") + std::strerror(errno));
  if (child == 0) {
    silence();
    try {
      (*run)(workload, units, solver,
             {.start = start,
              .finish = finish,
              .events = &outcome->events,
              .finished = &outcome->finished});
      // The process ends without destructors: SimGrid's are slow and order-dependent.
    } catch (const std::exception& e) {
      std::strncpy(outcome->message, e.what(), sizeof(outcome->message) - 1);
      _exit(EXIT_FAILURE);
    }
    _exit(EXIT_SUCCESS);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return failed(std::string("is lost: ") + std::strerror(errno));
  if (WIFSIGNALED(status)) return failed("was ended by signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != EXIT_SUCCESS)
    return failed(std::string("failed: ") + outcome->message);
  if (outcome->finished != static_cast<std::int64_t>(count))
    return failed("finished " + std::to_string(outcome->finished) + " of " + std::to_string(count) +
                  " activities");

  Timeline timeline;
  timeline.start.resize(count);
  timeline.finish.resize(count);
  timeline.events = outcome->events;
  for (std::size_t a = 0; a < count; ++a) {
    timeline.start[a] = Seconds::from_base(start[a]);
    timeline.finish[a] = Seconds::from_base(finish[a]);
    timeline.makespan = std::max(timeline.makespan, timeline.finish[a]);
  }
  return timeline;
}

}  // namespace foreshard::engine
