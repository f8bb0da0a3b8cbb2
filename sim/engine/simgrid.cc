// The second engine (workload.h, run_simgrid), which lets SimGrid run the same workload; only this
// file includes SimGrid. sim/simulate calls it for `--engine simgrid`. What SimGrid cannot do is
// refused as kUnsupported.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <numeric>
#include <simgrid/Exception.hpp>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/index.h"

#include "sim/engine/internal/plan.h"
#include "sim/engine/workload.h"

namespace foreshard::engine {
namespace {

using internal::Dependencies;
using internal::NormalShape;
using internal::Shapes;

// SimGrid counts work in whole units. Works and capacities of resource r are multiplied by
// 2^exponent[r], which is the same for all resources that an activity uses.
struct WholeUnits {
  std::vector<int> exponent;        // resource -> exponent
  std::vector<std::uint64_t> work;  // activity -> its work, normalised, scaled and rounded.
};

// Destination of the results: memory that outlives this process.
struct Results {
  std::span<double> start;
  std::span<double> finish;
  std::int64_t* events;
  std::int64_t* finished;
};

namespace s4u = simgrid::s4u;
using simgrid::kernel::routing::NetPoint;
using simgrid::kernel::routing::NetZoneImpl;
using simgrid::kernel::routing::Route;
using simgrid::kernel::timer::Timer;

// A zone with a single route: the path of the flow that is about to start.
class PathZone final : public NetZoneImpl {
 public:
  using Path = std::vector<simgrid::kernel::resource::StandardLinkImpl*>;

  explicit PathZone(const std::string& name) : NetZoneImpl(name) {}
  void set_path(const Path* path) { path_ = path; }

  void get_local_route(const NetPoint*, const NetPoint*, Route* route, double* latency) override {
    route->link_list_.insert(route->link_list_.end(), path_->begin(), path_->end());
    // CM02 shares a link in proportion to 1 / latency: give all flows the same latency. The latency
    // factor of 0 (below) keeps it out of their times.
    if (latency != nullptr) *latency += 1.0;
  }
  void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                 std::map<std::string, xbt_edge_t, std::less<>>*) override {}

 private:
  void do_seal() override {}
  const Path* path_ = nullptr;
};

// Latency and release are kernel timers, and work is a flow without latency: the lazy solver of
// SimGrid up to 4.1 forgets links when flows that share their first link leave their latency
// together. Callbacks start what becomes ready; there are no actors.
class Driver {
 public:
  Driver(const Workload& workload, const WholeUnits& units, Results results)
      : workload_(workload),
        units_(units),
        results_(results),
        dependencies_(workload),
        running_(workload.activity_count()) {
    zone_ = new PathZone("root");  // owned by SimGrid's engine, as are hosts and links
    s4u::NetZone* zone = zone_->get_iface();
    sender_ = zone->create_host("sender", 1.0);
    receiver_ = zone->create_host("receiver", 1.0);
    PathZone::Path links;
    for (std::size_t r = 0; r < workload.resource_count(); ++r) {
      const ResourceId id(static_cast<std::int64_t>(r));
      std::string name = "l";
      name += std::to_string(r);
      const double bandwidth = std::ldexp(workload.capacity(id), units.exponent[r]);
      links_.push_back(zone->create_link(name, bandwidth));
      links.push_back(links_.back()->get_impl());
    }
    for (const Shape& shape : workload.shapes()) {
      PathZone::Path& path = paths_.emplace_back();
      for (const Usage& usage : shape.usages) path.push_back(links[usage.resource.index()]);
    }
    zone->seal();
    zone->get_network_model()->set_lat_factor_cb(
        [](double, const s4u::Host*, const s4u::Host*, const std::vector<s4u::Link*>&,
           const std::unordered_set<s4u::NetZone*>&) { return 0.0; });
  }

  void run(s4u::Engine& engine) {
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
      const auto* flow = dynamic_cast<const s4u::Comm*>(&activity);
      const auto a =
          static_cast<std::int32_t>(reinterpret_cast<std::intptr_t>(flow->get_data<void>())) - 1;
      ++*results_.events;
      ended_.push_back(std::move(running_[at(a)]));  // freed later: SimGrid still looks at it
      finish(a);
      start_ready();
    });
    s4u::Engine::on_time_advance_cb([this](double) { ended_.clear(); });
    set_capacity_changes();
    for (std::int32_t a = 0; at(a) < running_.size(); ++a)
      if (dependencies_.ready(a)) ready_.push_back(a);
    start_ready();
    engine.run();
  }

 private:
  void set_capacity_changes() {
    for (const Event& event : workload_.events()) {
      const std::size_t r = event.resource.index();
      const double bandwidth = std::ldexp(event.capacity, units_.exponent[r]);
      Timer::set(event.at.in_base(),
                 [link = links_[r], bandwidth] { link->set_bandwidth(bandwidth); });
    }
  }

  // Loops by index: an activity that starts may finish at once and make more ready.
  void start_ready() {
    for (std::size_t i = 0; i < ready_.size(); ++i) start(ready_[i]);
    ready_.clear();
  }

  void start(std::int32_t a) {
    const Activity& activity = workload_.activities()[at(a)];
    const double now = s4u::Engine::get_clock();
    const double lag = activity.release_lag.in_base();
    const double released =
        activity.release_from.valid() ? results_.finish[activity.release_from.index()] + lag : lag;
    const double begin = std::max(now, released);
    results_.start[at(a)] = begin;
    const double work_begins = begin + activity.latency.in_base();
    if (work_begins <= now) return work(a);
    Timer::set(work_begins, [this, a] {
      ++*results_.events;
      work(a);
      start_ready();
    });
  }

  void work(std::int32_t a) {
    if (units_.work[at(a)] == 0) return finish(a);
    zone_->set_path(&paths_[workload_.activities()[at(a)].shape.index()]);
    s4u::CommPtr flow = s4u::Comm::sendto_init();
    flow->set_data(reinterpret_cast<void*>(static_cast<std::intptr_t>(a) + 1));
    flow->set_payload_size(units_.work[at(a)]);
    running_[at(a)] = flow;  // SimGrid crashes if the last reference disappears while the flow runs
    flow->set_source(sender_)->set_destination(receiver_);  // this starts the flow
  }

  void finish(std::int32_t a) {
    results_.finish[at(a)] = s4u::Engine::get_clock();
    ++*results_.finished;
    for (const std::int32_t next : dependencies_.successors(a))
      if (dependencies_.count_down(next)) ready_.push_back(next);
  }

  const Workload& workload_;
  const WholeUnits& units_;
  Results results_;
  Dependencies dependencies_;
  std::vector<s4u::CommPtr> running_;
  std::vector<s4u::CommPtr> ended_;
  std::vector<std::int32_t> ready_;
  std::vector<s4u::Link*> links_;  // by resource
  std::vector<PathZone::Path> paths_;
  PathZone* zone_ = nullptr;
  s4u::Host* sender_ = nullptr;
  s4u::Host* receiver_ = nullptr;
};

// Runs the workload. SimGrid has one engine per process, and this call leaves it used.
// \pre SimGrid can express every activity.
// \throws whatever SimGrid throws
void simulate_on_simgrid(const Workload& workload, const WholeUnits& units, SimgridSolver solver,
                         Results results) {
  std::string name = "foreshard";
  std::string quiet = "--log=root.thres:critical";
  char* arguments[] = {name.data(), quiet.data(), nullptr};
  int count = 2;
  s4u::Engine engine(&count, arguments);
  // Plain max-min: no TCP window, no cross traffic, no 1 ns grid (the default precision).
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("network/TCP-gamma:1e300");
  s4u::Engine::set_config("surf/precision:1e-13");
  s4u::Engine::set_config(solver == SimgridSolver::kFull ? "network/optim:Full"
                                                         : "network/optim:Lazy");
  Driver driver(workload, units, results);
  driver.run(engine);
  // The caller ends the process without destructors: SimGrid's are slow and order-dependent.
}

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

  const pid_t child = fork();
  if (child < 0) return failed(std::string("cannot be forked: ") + std::strerror(errno));
  if (child == 0) {
    silence();
    try {
      simulate_on_simgrid(workload, units, solver,
                          {.start = start,
                           .finish = finish,
                           .events = &outcome->events,
                           .finished = &outcome->finished});
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
