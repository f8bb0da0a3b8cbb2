// Structural folding against the truth, on clusters that are symmetric and on such whose symmetry
// is broken: every task of every rank as it is without folding; and the classes against colour
// refinement of the whole task graph {task instances, dependencies, resources}.
#include <bit>
#include <cstdio>

#include "tests/sim/compute/toy_device.h"
#include "tests/sim/simulate/random_program.h"
#include "tests/strategies/lower/random_strategy.h"
#include "tests/test.h"

#include "sim/simulate/build.h"
#include "sim/simulate/fold.h"
#include "sim/simulate/memory_limit.h"
#include "sim/simulate/simulate.h"
#include "strategies/program/lower/lower.h"
#include "topology/cluster_config.h"

namespace foreshard::sim::folding_test {

using program::Program;

enum class Kind { kSymmetric, kUnevenPods, kSlowDevice, kSlowLink, kHash };
constexpr std::array kAllKinds{Kind::kSymmetric, Kind::kUnevenPods, Kind::kSlowDevice,
                               Kind::kSlowLink, Kind::kHash};
constexpr std::array<const char*, 5> kNames{"symmetric", "uneven pods", "slow device", "slow link",
                                            "ecmp-hash"};

// 2 or 3 levels, oversubscribed or not.
ClusterView cluster_of(std::mt19937& random, std::int64_t devices, Kind kind) {
  NodeConfig node;
  node.cpu.memory_bandwidth.emplace().value = 100_GB_s;
  node.gpus = std::array{1, 2, 4}[random() % 3];
  while (devices % node.gpus != 0) node.gpus /= 2;
  node.device.value = test::toy_device();
  node.nvlink.emplace();
  node.nvlink->bandwidth.value = 100_GB_s;
  node.nics.emplace();
  node.nics->count = node.gpus;
  node.nics->bandwidth.value = 25_GB_s;
  ClusterConfig config;
  config.name = "random";
  config.nodes = devices / node.gpus;
  config.node = yaml::Ref<NodeConfig>{node, ""};
  config.seed = static_cast<std::int64_t>(random() % 100);
  config.fabric.kind = random() % 2 == 0 ? "rail-fat-tree" : "fat-tree";
  const bool uneven = kind == Kind::kUnevenPods;
  std::int64_t nodes_per_pod = 1 + static_cast<std::int64_t>(random() % 2);
  if (uneven && config.nodes > 2) ++nodes_per_pod;
  if (!uneven && config.nodes % nodes_per_pod != 0) nodes_per_pod = 1;
  config.fabric.nodes_per_pod = nodes_per_pod;
  const double ratio = random() % 2 == 0 ? 1.0 : 3.0;
  if (random() % 2 == 0) {
    config.fabric.levels = 3;
    config.fabric.pods_per_block = {2};
    config.fabric.oversubscription = {random() % 2 == 0 ? 1.0 : 2.0, ratio};
  } else {
    config.fabric.oversubscription = {ratio};
  }
  if (kind == Kind::kHash) config.routing = Routing::kEcmpHash;
  if (kind == Kind::kSlowDevice) config.degraded.push_back({.devices = "node0/gpu0", .speed = 0.5});
  if (kind == Kind::kSlowLink && config.nodes > 1)
    config.degraded.push_back({.links = "node0/nic0", .factor = 0.5});
  return value_of(build_cluster(config));
}

comm::Parameters parameters_of(std::mt19937& random) {
  comm::Parameters parameters = comm::ideal_parameters();
  if (random() % 3 == 0) {
    std::erase_if(parameters.forms, [](const comm::FormParameters& form) {
      return form.algorithm == "ring" || form.algorithm.find("nvls") != std::string::npos;
    });
    for (const comm::FormParameters& form : comm::ideal_parameters().forms) {
      if (form.algorithm == "ring") parameters.forms.push_back(form);
    }
  }
  return parameters;
}

double relative(Seconds a, Seconds b, Seconds scale) {
  return scale > 0_s ? std::abs(a / scale - b / scale) : 0;
}

struct Case {
  std::string what;
  ClusterView cluster;
  Program program;
  comm::Parameters parameters;
};

// Every other host launches more slowly.
void slow_hosts(const ClusterView& cluster, Program& program) {
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank) {
    const std::int32_t node = cluster.devices()[device_of(program, rank).index()].node;
    program.launch_time_of_rank.push_back(node % 2 == 0 ? 1_us : 3_us);
  }
  program.launch_time = std::ranges::max(program.launch_time_of_rank);
}

Case random_case(unsigned seed) {
  std::mt19937 random(seed);
  const Kind kind = kAllKinds[seed % kAllKinds.size()];
  const std::string what = "seed " + std::to_string(seed) + ", " + kNames[seed % kAllKinds.size()];
  auto parameters = parameters_of(random);
  if (seed % 2 == 0) {
    const std::int64_t ranks = std::array{4, 8, 12, 16, 24}[random() % 5];
    auto cluster = cluster_of(random, ranks, kind);
    auto program = random_program(random, ranks);
    if (seed % 3 == 0) slow_hosts(cluster, program);
    return {what, std::move(cluster), std::move(program), std::move(parameters)};
  }
  const auto training = random_training(random, 32);
  auto cluster = cluster_of(random, training.strategy.devices(), kind);
  auto lowered = value_of(lower::lower(training.model, training.strategy, {.launch_time = 2_us}));
  Program program = std::move(lowered);
  if (seed % 3 == 0) slow_hosts(cluster, program);
  return {what, std::move(cluster), std::move(program), std::move(parameters)};
}

Folding folded(const Case& on, const CommunicatorForms& forms, const Communicators& communicators,
               bool every_link) {
  return fold(on.cluster, on.program, communicators, forms, true,
              {.of_rank = {}, .of_link = {}, .ways_may_change = every_link});
}

TEST(StructuralFolding, ChangesNoTaskOfAnyRank) {
  std::map<std::string, int> methods;
  std::int64_t covered = 0;
  double worst = 0;
  int folding_cases = 0;
  int meetings = 0;  // without whose links there are fewer classes
  constexpr unsigned kCases = 500;
  for (unsigned seed = 0; seed < kCases; ++seed) {
    const Case on = random_case(seed);
    SCOPED_TRACE(on.what);
    const auto with = simulate(on.cluster, on.program, on.parameters, {.timeline = true});
    const auto without =
        simulate(on.cluster, on.program, on.parameters, {.fold = false, .timeline = true});
    ASSERT_TRUE(with && without);
    const Communicators communicators = communicators_of(on.program);
    const auto forms = value_of(choose_forms(on.cluster, on.program, communicators, on.parameters));
    const Folding folding = folded(on, forms, communicators, false);
    ASSERT_GE(folding.rank_representative.size(), with->classes.size());
    meetings += with->classes.size() < folding.rank_representative.size() ? 1 : 0;
    std::vector<std::vector<const TimelineEntry*>> of_class(with->classes.size());
    for (const TimelineEntry& entry : with->timeline)
      of_class[static_cast<std::size_t>(entry.device_class)].push_back(&entry);
    std::vector<std::size_t> next(without->classes.size(), 0);
    for (const TimelineEntry& entry : without->timeline) {
      const auto rank = static_cast<std::size_t>(entry.device_class);
      const auto& tasks = of_class[static_cast<std::size_t>(with->class_of_rank[rank])];
      ASSERT_LT(next[rank], tasks.size());
      const TimelineEntry& same = *tasks[next[rank]++];
      worst = std::max({worst, relative(entry.start, same.start, without->step),
                        relative(entry.finish, same.finish, without->step)});
    }
    ASSERT_LT(worst, 1e-9);
    ++methods[with->folding];
    covered += folding.covered_links;
    folding_cases += with->classes.size() < without->classes.size() ? 1 : 0;
  }
  std::printf(
      "%u cases (a fifth each: symmetric, uneven pods, slow device, slow link, ecmp-hash): "
      "%d fold, structural %d, refined %d; %lld links left out; meetings left out in %d; "
      "worst difference %.1e\n",
      kCases, folding_cases, methods["structural"], methods["refined"],
      static_cast<long long>(covered), meetings, worst);
  EXPECT_GT(folding_cases, 100);
  EXPECT_GT(methods["structural"], 100);
  EXPECT_GT(methods["refined"], 50);
  EXPECT_GT(covered, 100);
  EXPECT_GT(meetings, 10);
}

// Communicators that are not routed have the forms and the links that routing would give them.
TEST(StructuralFolding, SharedFormsAreThoseOfEachCommunicator) {
  std::size_t shared_away = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Case on = random_case(seed);
    SCOPED_TRACE(on.what);
    const Communicators communicators = communicators_of(on.program);
    const auto shared = choose_forms(on.cluster, on.program, communicators, on.parameters);
    const auto own = choose_forms(on.cluster, on.program, communicators, on.parameters, false);
    ASSERT_TRUE(shared && own);
    for (std::size_t c = 0; c < communicators.all.size(); ++c) {
      ASSERT_EQ(shared->of(c).size(), own->of(c).size());
      for (const auto& [bytes, form] : own->of(c)) {
        const auto& same = shared->of(c).at(bytes);
        EXPECT_EQ(same.algorithm, form.algorithm);
        EXPECT_EQ(same.latency, form.latency);
        std::map<std::int64_t, double> loads;
        shared->each_load(c, same,
                          [&](LinkId link, double weight) { loads[link.value()] = weight; });
        ASSERT_EQ(loads.size(), form.loads.size());
        for (const comm::LinkLoad& load : form.loads)
          EXPECT_NEAR(loads[load.link.value()], load.bytes_per_byte, 1e-12 * load.bytes_per_byte);
      }
    }
    shared_away += own->kinds() - shared->kinds();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(shared_away, 500u);
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
  a = (a ^ (a >> 30)) * 0xbf58476d1ce4e5b9u;
  return a ^ (a >> 27);
}
std::uint64_t of_number(double value) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(value)));
}

// Colours of the activities of an unfolded workload, refined until they are stable.
std::vector<std::uint64_t> refined(const engine::Workload& workload) {
  const auto activities = workload.activities();
  std::vector<std::uint64_t> colour;
  for (const engine::Activity& a : activities) {
    const engine::Shape& shape = workload.shapes()[a.shape.index()];
    std::uint64_t start = mixed(of_number(a.latency.in_base()), of_number(a.work));
    start = mixed(mixed(start, of_number(a.release_lag.in_base())), of_number(shape.connections));
    colour.push_back(mixed(start, of_number(shape.rate_cap)));
  }
  std::vector<std::uint64_t> resource;
  for (std::size_t r = 0; r < workload.resource_count(); ++r)
    resource.push_back(
        of_number(workload.capacity(engine::ResourceId(static_cast<std::int64_t>(r)))));
  std::size_t before = 0;
  for (;;) {
    std::vector<std::uint64_t> waits(colour.size(), 0);
    std::vector<std::uint64_t> users(resource.size(), 0);
    for (const auto& [from, to] : workload.edges())
      waits[to.index()] += mixed(colour[from.index()], 1);
    auto next = colour;
    for (std::size_t a = 0; a < activities.size(); ++a) {
      if (activities[a].release_from.valid())
        waits[a] += mixed(colour[activities[a].release_from.index()], 2);
      std::uint64_t uses = 0;
      const engine::Shape& shape = workload.shapes()[activities[a].shape.index()];
      for (const engine::Usage& usage : shape.usages) {
        uses += mixed(resource[usage.resource.index()], of_number(usage.weight));
        users[usage.resource.index()] += mixed(colour[a], of_number(usage.weight));
      }
      for (const engine::Occupation& part : shape.occupations) {
        uses += mixed(resource[part.resource.index()], ~of_number(part.amount));
        users[part.resource.index()] += mixed(colour[a], ~of_number(part.amount));
      }
      next[a] = mixed(mixed(colour[a], waits[a]), uses);
    }
    colour = std::move(next);
    for (std::size_t r = 0; r < resource.size(); ++r) resource[r] = mixed(resource[r], users[r]);
    const std::size_t count = std::set(colour.begin(), colour.end()).size() +
                              std::set(resource.begin(), resource.end()).size();
    if (count == before) return colour;
    before = count;
  }
}

// With every link in the graph: whatever folds, refinement of the whole graph finds alike, task by
// task.
TEST(StructuralFolding, ClassesAreAlikeInTheWholeTaskGraph) {
  int pairs = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Case on = random_case(seed);
    SCOPED_TRACE(on.what);
    const Communicators communicators = communicators_of(on.program);
    const auto forms = value_of(choose_forms(on.cluster, on.program, communicators, on.parameters));
    const Folding folding = folded(on, forms, communicators, true);
    const Folding none = fold(on.cluster, on.program, communicators, forms, false);
    const auto built = value_of(build_workload(on.cluster, on.program, communicators, forms, none,
                                               Granularity::kFlat, false));
    const auto colour = refined(built.workload);
    for (std::size_t rank = 0; rank < folding.class_of_rank.size(); ++rank) {
      const auto first = static_cast<std::size_t>(
          folding.rank_representative[static_cast<std::size_t>(folding.class_of_rank[rank])]);
      if (first == rank) continue;
      ++pairs;
      ASSERT_EQ(built.node[rank].size(), built.node[first].size());
      for (std::size_t i = 0; i < built.node[rank].size(); ++i)
        ASSERT_EQ(colour[last_activity(built, rank, i).index()],
                  colour[last_activity(built, first, i).index()])
            << "task " << i << " of ranks " << first << " and " << rank;
    }
  }
  std::printf("%d ranks are alike to another one in 100 task graphs\n", pairs);
  EXPECT_GT(pairs, 200);
}

TEST(MaxMemory, IsCheckedBeforeTasksAreWrittenOut) {
  const Case on = random_case(1);
  const auto refused = simulate(on.cluster, on.program, on.parameters, {.max_memory = 1_kB});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Error::Code::kInvalidInput);
  EXPECT_NE(refused.error().message.find("--max-memory"), std::string::npos);
  EXPECT_TRUE(simulate(on.cluster, on.program, on.parameters, {.max_memory = 1_GB}));
  ASSERT_TRUE(free_memory());
  EXPECT_GT(*free_memory(), 1_MB);
}

}  // namespace foreshard::sim::folding_test
