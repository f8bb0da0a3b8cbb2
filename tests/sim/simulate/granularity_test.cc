// A collective as one activity and message by message: the same links, the same time on idle links.
#include <cstdio>

#include "tests/sim/simulate/random_cluster.h"
#include "tests/sim/simulate/random_program.h"
#include "tests/sim/simulate/small.h"
#include "tests/test.h"
#include "tests/topology/example_fabrics.h"
#include "tests/topology/small_clusters.h"

#include "sim/simulate/internal/messages.h"
#include "strategies/comm/algorithms.h"
#include "topology/fabrics/fabric.h"

namespace foreshard::sim::granularity_test {

using enum program::CollectiveKind;

struct Algorithm {
  const char* name;
  program::CollectiveKind kind;
};
constexpr std::array kRings{Algorithm{"ring", kAllReduce}, Algorithm{"ring", kAllGather},
                            Algorithm{"ring", kReduceScatter}};

int below(std::mt19937& random, int count) {
  return static_cast<int>(random() % static_cast<unsigned>(count));
}

double relative(Seconds a, Seconds b) {
  const double scale = std::max(std::abs(a.in_base()), std::abs(b.in_base()));
  return scale > 0 ? std::abs((a - b).in_base()) / scale : 0;
}

/// This algorithm alone, with links alone.
comm::Parameters only(const char* algorithm) {
  comm::Parameters parameters = comm::ideal_parameters();
  std::erase_if(parameters.forms,
                [&](const comm::FormParameters& form) { return form.algorithm != algorithm; });
  for (comm::FormParameters& form : parameters.forms) {
    form.on_request = false;
    form.operations.clear();
  }
  return parameters;
}

/// The same with a protocol of random numbers: channels decide, or links do.
comm::Parameters with_protocol(const char* algorithm, std::mt19937& random) {
  comm::Parameters parameters = only(algorithm);
  const auto part = [&](double from) { return from + (1 - from) * below(random, 1000) / 1000; };
  comm::FormParameters& form = parameters.forms.front();
  form.base = 20_us * part(0.1);
  form.hop = {1_us * part(0), 2_us * part(0), 10_us * part(0)};
  form.efficiency = {.nvlink = part(0.3), .pcie = part(0.3), .network = part(0.3)};
  form.channels = 1 + below(random, 24);
  form.network_channels = 1 + below(random, 16);
  form.channel_rate = 20_GB_s * part(0.05);
  form.network_channel_rate = 20_GB_s * part(0.05);
  form.channel_bytes = 64_KiB * part(0);
  form.chunk = 1_MiB * part(0);
  form.turnaround = part(0);
  return parameters;
}

/// One operation of random ranks on a random fabric of nodes with unequal numbers of them.
struct Case {
  ClusterView cluster;
  program::Program program;
  std::string words;
};

Case random_case(const Algorithm& what, std::mt19937& random) {
  const auto all = fabrics();
  const std::string kind(all[random() % all.size()].name);
  const std::int64_t nodes = 2 + below(random, 4);
  const std::int64_t gpus = std::array{1, 2, 4}[random() % 3];
  auto config = small_cluster(nodes, example_fabric(kind, nodes, nodes * gpus), small_node(gpus));
  config.routing = std::array{Routing::kSpread, Routing::kEcmpHash, Routing::kUpDown,
                              Routing::kAdaptive}[random() % 4];
  config.single_cables = random() % 2 == 0;
  config.seed = below(random, 10);
  Case made{must_build(config), {}, kind};

  std::vector<std::int32_t> devices(made.cluster.devices().size());
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i] = static_cast<std::int32_t>(i);
  if (random() % 2 == 0) std::shuffle(devices.begin(), devices.end(), random);
  const bool is_pair = what.kind == kSend;
  const std::size_t count = is_pair ? 2 : 2 + random() % (devices.size() - 1);
  devices.resize(count);
  const Bytes bytes = (1 + below(random, 100000)) * 1_kB;
  if (is_pair) {
    made.program = each_rank({{send(1, bytes, kFirst)}, {receive(0, bytes, kFirst)}});
  } else {
    program::Task task = all_reduce(bytes, kFirst);
    auto& body = std::get<program::Communication>(task.body);
    body.kind = what.kind;
    const auto ranks = static_cast<std::int32_t>(count);
    if (what.kind == kBroadcast) body.roots = {static_cast<std::int32_t>(random() % count)};
    if (what.kind == kExchange) {
      body.bytes = 0_B;
      for (std::int32_t from = 0; from < ranks; ++from)
        for (std::int32_t to = 0; to < ranks; ++to) {
          if (from == to || (random() % 2 == 0 && from + to != 1)) continue;
          body.transfers.push_back({from, to, (1 + below(random, 10000)) * 1_kB});
          body.bytes += body.transfers.back().bytes;
        }
    }
    made.program = every_rank(ranks, {task});
  }
  made.program.device_of_rank = devices;
  made.words += ", " + std::to_string(nodes) + " nodes of " + std::to_string(gpus) + ", " +
                std::to_string(count) + " ranks, " + std::string(comm::name_of(what.kind)) + " " +
                what.name + " of " + format(bytes);
  return made;
}

double difference(const Case& one, const comm::Parameters& parameters) {
  const auto flat = run(one.cluster, one.program, {}, parameters);
  const auto stepwise =
      run(one.cluster, one.program, {.granularity = Granularity::kStepwise}, parameters);
  EXPECT_GT(flat.step, 0_s);
  return relative(flat.step, stepwise.step);
}

// By induction over steps: a link's most loaded step takes T = max over links of load / bandwidth,
// all messages of a step get at least their part of every link, and none begins before those of
// the step before have ended. So k steps take k T, which is bytes / rate of the flat form.
TEST(Granularity, IsTheSameOnIdleLinks) {
  constexpr std::array kSame{kRings[0],
                             kRings[1],
                             kRings[2],
                             Algorithm{"chain", kBroadcast},
                             Algorithm{"pairwise", kAllToAll},
                             Algorithm{"pairwise", kExchange},
                             Algorithm{"direct", kSend},
                             Algorithm{"direct", kShift},
                             Algorithm{"tree", kAllReduce}};
  constexpr unsigned kRuns = 160;
  double worst = 0;
  double worst_with_protocol = 0;
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    std::mt19937 random(seed);
    const Algorithm& what = kSame[seed % kSame.size()];
    const Case one = random_case(what, random);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + one.words);
    const double links_alone = difference(one, only(what.name));
    const double with_terms = difference(one, with_protocol(what.name, random));
    EXPECT_LT(links_alone, 1e-9);
    EXPECT_LT(with_terms, 1e-9);
    worst = std::max(worst, links_alone);
    worst_with_protocol = std::max(worst_with_protocol, with_terms);
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%u cases: flat and stepwise differ by %.1e at most, with a protocol by %.1e\n",
              kRuns, worst, worst_with_protocol);
}

yaml::Loader catalogue() {
  return yaml::Loader(shipped_options());
}

/// NCCL's forms, and those on request.
comm::Parameters every_form() {
  yaml::Loader loader = catalogue();
  comm::Parameters every = value_of(loader.read_ref<comm::Parameters>("nccl"));
  for (comm::FormParameters& form : every.forms) form.on_request = false;
  return every;
}

ClusterView two_dgx_h100(const std::string& sharp) {
  yaml::Loader loader = catalogue();
  const auto config = value_of(loader.read_text<ClusterConfig>(
      "{nodes: 2, node: dgx-h100, fabric: {kind: single-switch}, sharp: " + sharp + "}", "text"));
  return must_build(config);
}

// Every form of NCCL's and every one on request, of 16, 8, 15 and 2 of the GPUs of two DGX H100.
TEST(Granularity, DiffersWhereRoundsWaitForOneAnother) {
  const ClusterView cluster = two_dgx_h100("true");
  const comm::Parameters parameters = every_form();
  const std::vector<std::vector<std::int32_t>> groups{
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
      {0, 1, 2, 3, 4, 5, 6, 7},
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14},
      {0, 8}};
  std::printf("%-18s %-14s %-8s %7s %12s %12s %12s\n", "64 MiB", "", "", "members", "flat, us",
              "messages, us", "differ");
  int different = 0;
  for (const auto& members : groups) {
    for (const auto kind : {kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAllToAll, kSend}) {
      if ((kind == kSend) != (members.size() == 2)) continue;
      internal::Operation operation;
      operation.kind = kind;
      operation.group = {.cluster = &cluster, .devices = {}};
      for (const std::int32_t member : members) operation.group.devices.emplace_back(member);
      operation.bytes = 64_MiB;
      const auto forms = value_of(comm::flat_forms(kind, operation.group, parameters));
      for (const comm::FlatCollective& form : forms) {
        operation.form = form;
        const auto time = value_of(internal::time_by_messages(operation));
        const Seconds flat = form.idle_time(operation.bytes, cluster);
        std::printf("%-18s %-14s %-8s %7zu %12.3f %12.3f %+11.2g%%\n",
                    std::string(form.algorithm).c_str(), std::string(comm::name_of(kind)).c_str(),
                    std::string(form.protocol).c_str(), members.size(), flat / 1_us, time / 1_us,
                    100 * (time / flat - 1));
        if (form.overlaps_rounds) {
          EXPECT_GE(time, flat * (1 - 1e-9));
          different += time > flat * (1 + 1e-9) ? 1 : 0;
        } else {
          EXPECT_LT(relative(time, flat), 1e-9) << form.algorithm;
        }
      }
    }
  }
  EXPECT_GT(different, 0);
}

// By hand, two nodes of two, 100 GB/s inside and 10 GB/s outside, 40 MB by halving and doubling:
// first 20 MB go across (2 ms), then 10 MB inside (0.1 ms), and all of it back: 4.2 ms. The flat
// form has what goes inside on its links while the rest goes across: 4 ms.
TEST(Granularity, SaysWhichFormsDiffer) {
  const auto cluster = must_build(small_cluster(2, {.kind = "single-switch"}, small_node(2)));
  const auto program = every_rank(4, {all_reduce(40_MB, kFirst)});
  const comm::Parameters parameters = only("halving_doubling");
  const auto flat = run(cluster, program, {}, parameters);
  EXPECT_TRUE(flat.warnings.empty());
  const auto stepwise = run(cluster, program, {.granularity = Granularity::kStepwise}, parameters);
  EXPECT_NEAR((stepwise.step - flat.step) / 1_ms, 0.2, 1e-9);
  ASSERT_EQ(stepwise.warnings.size(), 1u);
  EXPECT_EQ(stepwise.warnings[0].code, "granularity");
  EXPECT_THAT(stepwise.warnings[0].message,
              HasSubstr("halving_doubling all_reduce of " + format(40_MB) + " among 4 takes " +
                        format(stepwise.step) + ", flat " + format(flat.step)));
  const auto ring = run(cluster, program, {.granularity = Granularity::kStepwise}, only("ring"));
  EXPECT_TRUE(ring.warnings.empty());
}

// What kernels gain is told where a form holds multiprocessors, and that SimGrid knows no other
// way.
TEST(Granularity, SaysWhatMessagesDoNotHold) {
  const auto cluster = star(4);
  comm::Parameters parameters = rings();
  for (comm::FormParameters& form : parameters.forms) form.channels = 24;
  const auto program = every_rank(4, {all_reduce(4_MB, kFirst)});
  const auto prediction =
      run(cluster, program, {.engine = EngineKind::kSimgrid, .granularity = Granularity::kStepwise},
          parameters);
  ASSERT_EQ(prediction.warnings.size(), 2u);
  EXPECT_THAT(prediction.warnings[0].message, HasSubstr("--granularity stepwise"));
  EXPECT_THAT(prediction.warnings[1].message, HasSubstr("up to 24 % of a device"));
}

// Sums in switches: both engines carry them out, link by link.
TEST(Granularity, SwitchesAreFlowsOfTheirOwn) {
  const auto cluster = star(8);
  const auto program = every_rank(8, {all_reduce(8_MB, kFirst)});
  const auto parameters = only("nvls");
  const auto flat = run(cluster, program, {}, parameters);
  for (const auto engine : {EngineKind::kFluid, EngineKind::kSimgrid}) {
    const auto stepwise = run(
        cluster, program, {.engine = engine, .granularity = Granularity::kStepwise}, parameters);
    EXPECT_LT(relative(flat.step, stepwise.step), 1e-9);
  }
}

// Slow devices, kernels of unequal times, links that lose bandwidth: what SimGrid can express.
disturbance::Plan random_plan(std::mt19937& random, const ClusterView& cluster, Seconds step) {
  const auto part = [&](double from) { return from + (1 - from) * below(random, 1000) / 1000; };
  disturbance::Plan plan;
  plan.seed = random();
  plan.slow = {{.device = DeviceId(static_cast<std::int64_t>(random() % cluster.devices().size())),
                .speed = part(0.3)}};
  if (random() % 2 == 0)
    plan.jitter = disturbance::Distribution{
        .kind = disturbance::DistributionKind::kUniform, .low = 0.8, .high = 1.3};
  for (std::size_t l = 0; l < cluster.links().size(); ++l) {
    if (random() % 3 > 0) continue;
    const Seconds at = step * part(0);
    const double factor = part(0.2);
    plan.profiles.push_back({.links = {LinkId(static_cast<std::int64_t>(l))},
                             .points = {{at, factor}, {at + step * part(0), factor * part(0.3)}}});
  }
  return plan;
}

// Half of the programs copy to and from hosts. Where those share a link with what is slowed, they
// may end earlier, and with them the step.
TEST(Granularity, EnginesAgreeOnDisturbedMessages) {
  double worst = 0;
  constexpr unsigned kRuns = 120;
  for (unsigned i = 0; i < kRuns; ++i) {
    const unsigned seed = i / 2;
    const bool has_host = i % 2 == 1;
    std::mt19937 random(seed);
    const std::int64_t ranks = std::array{2, 3, 4, 6, 8}[random() % 5];
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
    const ClusterView whole = random_cluster(random, ranks, {.routing = Routing::kEcmpHash});
    const auto program = random_program(random, ranks, has_host);
    const auto parameters = comm::ideal_parameters();
    SimulateOptions options{.granularity = Granularity::kStepwise, .timeline = true};
    const auto usual = run(whole, program, options, parameters);
    const auto plan = random_plan(random, whole, usual.step);
    const auto slowed = disturbance::slowed(whole, plan);
    const ClusterView& cluster = slowed ? *slowed : whole;
    options.disturbances = &plan;
    const auto fluid = run(cluster, program, options, parameters);
    options.engine = EngineKind::kSimgrid;
    const auto simgrid = run(cluster, program, options, parameters);
    if (!has_host) {
      EXPECT_GE(fluid.step, usual.step);
    }
    EXPECT_LT(relative(fluid.step, simgrid.step), 1e-6);
    ASSERT_EQ(fluid.timeline.size(), simgrid.timeline.size());
    for (std::size_t task = 0; task < fluid.timeline.size(); ++task)
      worst = std::max(worst, relative(fluid.timeline[task].finish, simgrid.timeline[task].finish));
    EXPECT_LT(worst, 1e-6);
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%u disturbed programs: fluid and SimGrid differ by %.1e at most\n", kRuns, worst);
}

}  // namespace foreshard::sim::granularity_test
