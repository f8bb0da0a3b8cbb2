// Collectives written out message by message, on every fabric: one engine against the other, both
// against the plain oracle, and what must hold of any of them.
#include "topology/fabrics/fabric.h"

#include <cstdio>

#include "base/index.h"
#include "tests/sim/engine/oracle.h"
#include "tests/test.h"
#include "tests/topology/example_fabrics.h"
#include "tests/topology/small_clusters.h"

#include "sim/engine/workload.h"
#include "strategies/comm/algorithms.h"

namespace foreshard::engine::fabric_test {

using comm::CollectiveKind;

constexpr double kEnginesClose = 1e-6;
constexpr double kOracleClose = 1e-9;

/// One collective of some devices, and where its messages stand in a workload.
struct Operation {
  const char* algorithm;
  CollectiveKind kind;
  Bytes bytes;
  comm::Participants group;
  std::size_t first = 0;
  comm::StepwiseCollective form{};
};

struct Work {
  Workload workload;
  std::vector<Operation> operations;
};

double distance(double a, double b) {
  return std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1e-30});
}

ClusterView cluster_on(const std::string& kind, std::int64_t nodes, Routing routing,
                       std::int64_t gpus = 2) {
  auto config = small_cluster(nodes, example_fabric(kind, nodes, nodes * gpus), small_node(gpus));
  config.routing = routing;
  config.single_cables = true;  // merged spines would leave one path
  config.seed = 7;
  return must_build(config);
}

/// Every message is one flow over the links of its route, by their shares.
void write_out(const ClusterView& cluster, Work& work, Operation operation) {
  auto form = value_of(comm::stepwise_form(operation.algorithm, operation.kind, operation.group));
  operation.form = std::move(form);
  operation.first = work.workload.activity_count();
  for (const auto& message : operation.form.messages) {
    const auto route =
        value_of(cluster.route(operation.group.devices[at(message.from)],
                               operation.group.devices[at(message.to)], operation.group.flow));
    Shape shape{.usages = {}, .occupations = {}};
    for (const auto& [link, share] : route.links)
      shape.usages.push_back({.resource = ResourceId(link.value()), .weight = share});
    const auto id = work.workload.add_activity({.shape = work.workload.add_shape(std::move(shape)),
                                                .latency = message.latency,
                                                .work = message.part * operation.bytes.in_base(),
                                                .release_from = {},
                                                .release_lag = {}});
    if (operation.form.pipelined) continue;
    for (const auto before : message.after)
      work.workload.add_edge(ActivityId(static_cast<std::int64_t>(operation.first) + before), id);
  }
  work.operations.push_back(std::move(operation));
}

/// Some collectives at once, among random devices.
Work random_work(const ClusterView& cluster, std::mt19937_64& random, int operations,
                 bool rings_only = false) {
  Work work;
  for (const Link& link : cluster.links()) work.workload.add_resource(link.bandwidth.in_base());
  static constexpr std::pair<const char*, CollectiveKind> kKinds[] = {
      {"ring", CollectiveKind::kAllReduce},     {"ring", CollectiveKind::kAllGather},
      {"ring", CollectiveKind::kReduceScatter}, {"tree", CollectiveKind::kAllReduce},
      {"chain", CollectiveKind::kBroadcast},    {"pairwise", CollectiveKind::kAllToAll}};
  for (int i = 0; i < operations; ++i) {
    std::vector<DeviceId> devices(cluster.devices().size());
    for (std::size_t d = 0; d < devices.size(); ++d)
      devices[d] = DeviceId(static_cast<std::int64_t>(d));
    std::shuffle(devices.begin(), devices.end(), random);
    devices.resize(2 + random() % (devices.size() - 1));
    const auto& [algorithm, kind] = kKinds[random() % (rings_only ? 3 : std::size(kKinds))];
    const Bytes bytes = static_cast<double>(1 + random() % 64) * 1_MB;
    write_out(cluster, work,
              {algorithm,
               kind,
               bytes,
               {.cluster = &cluster, .devices = devices, .flow = static_cast<std::uint64_t>(i)}});
  }
  return work;
}

class OnEveryFabric : public testing::TestWithParam<Fabric> {
 protected:
  std::string kind() const { return std::string(GetParam().name); }
};

// One path per flow: what SimGrid can express.
TEST_P(OnEveryFabric, FluidIsSimgrid) {
  double worst = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::mt19937_64 random(seed);
    const auto cluster = cluster_on(kind(), 4, Routing::kEcmpHash);
    const Work work = random_work(cluster, random, 3);
    const auto fluid = run_fluid(work.workload);
    const auto simgrid = run_simgrid(work.workload);
    ASSERT_TRUE(fluid) << fluid.error().message;
    ASSERT_TRUE(simgrid) << simgrid.error().message;
    for (std::size_t a = 0; a < fluid->finish.size(); ++a)
      worst = std::max(worst, distance(fluid->finish[a].in_base(), simgrid->finish[a].in_base()));
  }
  std::printf("%-16s fluid - simgrid, worst finish time: %.1e\n", kind().c_str(), worst);
  EXPECT_LT(worst, kEnginesClose);
}

// Weighted shares of several paths: what the oracle alone can check.
TEST_P(OnEveryFabric, SpreadIsTheOracle) {
  double worst = 0;
  bool several_paths = false;
  for (const auto routing : {Routing::kSpread, Routing::kUpDown, Routing::kAdaptive})
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      std::mt19937_64 random(seed);
      const auto cluster = cluster_on(kind(), 4, routing);
      const Work work = random_work(cluster, random, 2);
      for (const auto& shape : work.workload.shapes())
        for (const auto& usage : shape.usages) several_paths = several_paths || usage.weight < 1;
      const auto fluid = value_of(run_fluid(work.workload));
      const auto expected = oracle::finish_times(work.workload);
      for (std::size_t a = 0; a < expected.size(); ++a)
        worst = std::max(worst, distance(fluid.finish[a].in_base(), expected[a]));
    }
  std::printf("%-16s fluid - oracle, worst finish time: %.1e%s\n", kind().c_str(), worst,
              several_paths ? "" : " (single paths only)");
  EXPECT_LT(worst, kOracleClose);
}

// What a member puts on its links is what its messages carry, and so is what it takes off them.
// With PXN it passes on what others of its host send by its adapter: as much in as out.
TEST_P(OnEveryFabric, BytesSentAreBytesReceived) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(seed);
    const auto cluster = cluster_on(kind(), 4, Routing::kSpread);
    const Work work = random_work(cluster, random, 1);
    const Operation& operation = work.operations[0];
    std::vector<double> sent(operation.group.devices.size(), 0);
    auto received = sent;
    for (const auto& message : operation.form.messages) {
      sent[at(message.from)] += message.part;
      received[at(message.to)] += message.part;
    }
    EXPECT_NEAR(std::accumulate(sent.begin(), sent.end(), 0.0),
                std::accumulate(received.begin(), received.end(), 0.0), 1e-9);
    for (std::size_t i = 0; i < sent.size() && operation.algorithm == std::string("ring"); ++i)
      EXPECT_NEAR(sent[i], received[i], 1e-9);
    std::vector<double> out(cluster.vertices().size(), 0);
    auto in = out;
    for (std::size_t a = 0; a < work.workload.activity_count(); ++a) {
      const auto& activity = work.workload.activities()[a];
      for (const auto& usage : work.workload.shape(activity.shape).usages) {
        const Link& link = cluster.links()[usage.resource.index()];
        out[link.from.index()] += usage.weight * activity.work / operation.bytes.in_base();
        in[link.to.index()] += usage.weight * activity.work / operation.bytes.in_base();
      }
    }
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const auto vertex = cluster.devices()[operation.group.devices[i].index()].vertex;
      const double passed_on = out[vertex.index()] - sent[i];
      EXPECT_GE(passed_on, -1e-9);
      if (!cluster.pxn()) {
        EXPECT_LE(passed_on, 1e-9);
      }
      EXPECT_NEAR(in[vertex.index()], received[i] + passed_on, 1e-9);
    }
    for (std::size_t v = 0; v < out.size(); ++v)
      if (cluster.vertices()[v].kind != VertexKind::kDevice) {
        EXPECT_NEAR(out[v], in[v], 1e-9);
      }
  }
}

// Whatever flows began and ended within an interval fits through each link in that interval; with
// the whole run as the interval, the run is no shorter than its most loaded link allows.
TEST_P(OnEveryFabric, NoLinkCarriesMoreThanItCan) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::mt19937_64 random(seed);
    const auto cluster = cluster_on(kind(), 4, Routing::kSpread);
    const Work work = random_work(cluster, random, 2);
    const auto times = value_of(run_fluid(work.workload));
    struct Flow {
      double begin;
      double end;
      double bytes;
    };
    std::vector<std::vector<Flow>> flows(work.workload.resource_count());
    for (std::size_t a = 0; a < work.workload.activity_count(); ++a) {
      const auto& activity = work.workload.activities()[a];
      for (const auto& usage : work.workload.shape(activity.shape).usages)
        flows[usage.resource.index()].push_back({(times.start[a] + activity.latency).in_base(),
                                                 times.finish[a].in_base(),
                                                 usage.weight * activity.work});
    }
    for (std::size_t l = 0; l < flows.size(); ++l) {
      const double capacity = work.workload.capacity(ResourceId(static_cast<std::int64_t>(l)));
      double all = 0;
      for (const auto& flow : flows[l]) all += flow.bytes;
      EXPECT_LE(all / capacity, times.makespan.in_base() * (1 + 1e-9));
      std::vector<Flow> by_end = flows[l];
      std::ranges::sort(by_end, {}, &Flow::end);
      for (const auto& first : flows[l]) {
        double within = 0;
        for (const auto& flow : by_end) {
          if (flow.begin < first.begin) continue;
          within += flow.bytes;
          ASSERT_LE(within, capacity * (flow.end - first.begin) * (1 + 1e-9) + 1e-3)
              << kind() << " link " << l;
        }
      }
    }
  }
}

// Alone, in its flat form, an operation never gets slower by a faster link; and with all links
// k times as fast and no latency everything takes 1/k. (Several at once, or written out in steps,
// are not monotone in one link: a flow that gets faster may take from another on the next link.)
TEST_P(OnEveryFabric, FasterLinksNeverSlowOneOperation) {
  std::mt19937_64 random(5);
  const auto cluster = cluster_on(kind(), 4, Routing::kSpread);
  const Work work = random_work(cluster, random, 1);
  const Operation& operation = work.operations[0];
  const auto forms =
      value_of(comm::flat_forms(operation.kind, operation.group, comm::ideal_parameters()));
  for (const auto& form : forms) {
    const auto time_with = [&](std::size_t raised) {
      Workload workload;
      for (std::size_t l = 0; l < cluster.links().size(); ++l)
        workload.add_resource(cluster.links()[l].bandwidth.in_base() * (l == raised ? 3 : 1));
      Shape shape{.usages = {}, .occupations = {}};
      for (const auto& [link, load] : form.loads)
        shape.usages.push_back({.resource = ResourceId(link.value()), .weight = load});
      workload.add_activity({.shape = workload.add_shape(std::move(shape)),
                             .latency = form.latency,
                             .work = operation.bytes.in_base(),
                             .release_from = {},
                             .release_lag = {}});
      return run_fluid(workload)->makespan;
    };
    const Seconds usual = time_with(cluster.links().size());
    for (const auto& load : form.loads)
      EXPECT_LE(time_with(load.link.index()).in_base(), usual.in_base() * (1 + 1e-12));
  }
  const auto scaled = [&](double factor) {
    Workload workload;
    for (const Link& link : cluster.links())
      workload.add_resource(link.bandwidth.in_base() * factor);
    for (const auto& shape : work.workload.shapes()) workload.add_shape(shape);
    for (auto activity : work.workload.activities()) {
      activity.latency = {};
      workload.add_activity(activity);
    }
    for (const auto& edge : work.workload.edges()) workload.add_edge(edge.from, edge.to);
    return run_fluid(workload)->makespan.in_base();
  };
  EXPECT_LT(distance(scaled(4), scaled(1) / 4), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(All, OnEveryFabric, testing::ValuesIn(fabrics().begin(), fabrics().end()),
                         [](const auto& fabric) {
                           std::string name(fabric.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

/// All of a group's operations in their flat form, at once.
Seconds flat_time(const ClusterView& cluster, const std::vector<Operation>& operations) {
  Workload workload;
  for (const Link& link : cluster.links()) workload.add_resource(link.bandwidth.in_base());
  for (const auto& operation : operations) {
    const auto forms =
        value_of(comm::flat_forms(operation.kind, operation.group, comm::ideal_parameters()));
    const auto form = std::ranges::find(forms, std::string_view(operation.algorithm),
                                        &comm::FlatCollective::algorithm);
    Shape shape{.usages = {}, .occupations = {}};
    for (const auto& [link, load] : form->loads)
      shape.usages.push_back({.resource = ResourceId(link.value()), .weight = load});
    workload.add_activity({.shape = workload.add_shape(std::move(shape)),
                           .latency = form->latency,
                           .work = operation.bytes.in_base(),
                           .release_from = {},
                           .release_lag = {}});
  }
  return run_fluid(workload)->makespan;
}

// A ring of equal links that nobody else uses: one GPU per node on one switch.
TEST(FlatAndStepwise, AgreeOnAnIdleUniformRing) {
  for (const auto kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
    for (const std::int64_t nodes : {2, 3, 8, 17}) {
      const auto cluster = cluster_on("single-switch", nodes, Routing::kSpread, 1);
      std::vector<DeviceId> devices;
      for (std::int64_t i = 0; i < nodes; ++i) devices.emplace_back(i);
      Work work;
      for (const Link& link : cluster.links()) work.workload.add_resource(link.bandwidth.in_base());
      const Operation ring{"ring", kind, 64_MB, {.cluster = &cluster, .devices = devices}};
      write_out(cluster, work, ring);
      const double stepwise = run_fluid(work.workload)->makespan.in_base();
      EXPECT_LT(distance(flat_time(cluster, {ring}).in_base(), stepwise), 1e-9) << nodes;
      // Equal devices: who is who changes nothing.
      std::mt19937_64 random(static_cast<std::uint64_t>(nodes));
      std::shuffle(devices.begin(), devices.end(), random);
      Work other;
      for (const Link& link : cluster.links())
        other.workload.add_resource(link.bandwidth.in_base());
      write_out(cluster, other, {"ring", kind, 64_MB, {.cluster = &cluster, .devices = devices}});
      EXPECT_LT(distance(run_fluid(other.workload)->makespan.in_base(), stepwise), 1e-9);
    }
}

// The figures stand in docs/topology-import.md; a change of more than a percentage point is one
// to look at.
TEST(FlatAndStepwise, ErrorUnderContention) {
  std::vector<double> errors;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto all = fabrics();
    const auto cluster = cluster_on(std::string(all[seed % all.size()].name), 4, Routing::kSpread);
    const Work work = random_work(cluster, random, 2 + static_cast<int>(random() % 4), true);
    const double stepwise = run_fluid(work.workload)->makespan.in_base();
    errors.push_back(flat_time(cluster, work.operations).in_base() / stepwise - 1);
  }
  std::ranges::sort(errors);
  const double median = errors[errors.size() / 2];
  const double p90 = errors[errors.size() * 9 / 10];
  std::printf("flat / stepwise - 1 over %zu cases: min %.3f, median %.3f, p90 %.3f, max %.3f\n",
              errors.size(), errors.front(), median, p90, errors.back());
  EXPECT_LT(std::abs(median), 0.25);
  EXPECT_GT(errors.front(), -0.9);
}

}  // namespace foreshard::engine::fabric_test
