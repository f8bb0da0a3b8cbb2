// The module for SimGrid (internal/simgrid.h): lets SimGrid run a workload. Only this file includes
// SimGrid.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "base/index.h"

#include "sim/engine/internal/plan.h"
#include "sim/engine/internal/simgrid.h"
#include "sim/engine/workload.h"

namespace foreshard::engine {
namespace {

using internal::Dependencies;
using internal::RunOnSimgrid;
using internal::SimgridResults;
using internal::WholeUnits;

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
  Driver(const Workload& workload, const WholeUnits& units, SimgridResults results)
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
  SimgridResults results_;
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

}  // namespace

extern "C" [[gnu::visibility("default")]] RunOnSimgrid foreshard_run_on_simgrid;
void foreshard_run_on_simgrid(const Workload& workload, const WholeUnits& units,
                              SimgridSolver solver, SimgridResults results) {
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

}  // namespace foreshard::engine
