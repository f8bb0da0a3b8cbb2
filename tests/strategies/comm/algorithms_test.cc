// Every algorithm on clusters small enough to work it out by hand.

#include "tests/strategies/comm/clusters.h"
#include "tests/test.h"

#include "strategies/comm/collective.h"
#include "topology/cluster_builder.h"
#include "topology/cluster_config.h"

namespace foreshard::comm::algorithms_test {

FlatCollective form_of(std::string_view algorithm, CollectiveKind kind, const Participants& group) {
  const auto forms = flat_forms(kind, group, ideal_parameters());
  EXPECT_TRUE(forms) << (forms ? "" : forms.error().message);
  if (forms)
    for (const FlatCollective& form : *forms)
      if (form.algorithm == algorithm) return form;
  ADD_FAILURE() << "no form " << algorithm;
  return {};
}

Parameters one_form(const std::string& algorithm) {
  Parameters parameters{.name = "test", .forms = std::vector<FormParameters>(1)};
  parameters.forms[0].algorithm = algorithm;
  return parameters;
}

// By hand: a hop is device - switch - device, 2 us. 8 ranks, 800 MB: 14 steps of 100 MB at
// 100 GB/s are 14 ms, plus 14 x 2 us.
TEST(RingAllReduce, MatchesTheHandComputedExample) {
  const auto cluster = star(8);
  const auto flat = form_of("ring", CollectiveKind::kAllReduce, everyone(cluster));
  EXPECT_NEAR(flat.idle_time(800_MB, cluster) / 1_ms, 14.028, 1e-9);
  EXPECT_EQ(flat.loads.size(), 16u);
  for (const LinkLoad& load : flat.loads) EXPECT_DOUBLE_EQ(load.bytes_per_byte, 2 * 7.0 / 8);
}

// Half of that: 7 steps of 100 MB and 2 us.
TEST(RingAllGatherAndReduceScatter, TakeHalfOfAnAllReduce) {
  const auto cluster = star(8);
  const auto gather = form_of("ring", CollectiveKind::kAllGather, everyone(cluster));
  const auto scatter = form_of("ring", CollectiveKind::kReduceScatter, everyone(cluster));
  EXPECT_NEAR(gather.idle_time(800_MB, cluster) / 1_ms, 7.014, 1e-9);
  EXPECT_NEAR(scatter.idle_time(800_MB, cluster) / 1_ms, 7.014, 1e-9);
}

// Three hops of 2 us, then 800 MB at 100 GB/s; with chunks of 100 MB two more chunk times of 1 ms.
TEST(ChainBroadcast, FillsItsPipeline) {
  const auto cluster = star(4);
  auto flat = form_of("chain", CollectiveKind::kBroadcast, everyone(cluster));
  EXPECT_NEAR(flat.idle_time(800_MB, cluster) / 1_ms, 8.006, 1e-9);
  flat.start.chunk = 100_MB;
  EXPECT_NEAR(flat.idle_time(800_MB, cluster) / 1_ms, 10.006, 1e-9);
  EXPECT_NEAR(flat.delay(50_MB, cluster) / 1_ms, 1.006, 1e-9);  // a chunk is the whole message
}

// 7/8 of 800 MB leave each rank; all rounds are in flight together.
TEST(PairwiseAllToAll, SendsAllButItsOwnPart) {
  const auto cluster = star(8);
  const auto flat = form_of("pairwise", CollectiveKind::kAllToAll, everyone(cluster));
  EXPECT_NEAR(flat.idle_time(800_MB, cluster) / 1_ms, 7.002, 1e-9);
}

// Two nodes of four; a token goes to two of eight experts, one on each member: to 2 members and to
// 2 (1 - C(4,2) / C(8,2)) = 11/7 nodes. So of B bytes, 2 copies of each token, the other node is
// sent 11/7 / 2 of them for 1/2 of the nodes, 11/28 B; an all-to-all would send 1/2 B.
TEST(OncePerNode, SendsATokenToANodeOnce) {
  const auto cluster = rails(2, 4);
  Participants group = everyone(cluster);
  group.routing = {.experts = 8, .per_token = 2};
  const auto flat = form_of("once_per_node", CollectiveKind::kTokenExchange, group);
  EXPECT_NEAR(flat.idle_rate(cluster) / 1_GB / (1 / 1_s), 25 / (11.0 / 28), 1e-6);
  const auto all = form_of("pairwise", CollectiveKind::kAllToAll, everyone(cluster));
  EXPECT_NEAR(all.idle_rate(cluster) / 1_GB / (1 / 1_s), 25 / 0.5, 1e-6);
  // Within a node nothing is saved but copies for one member.
  const auto star_of_8 = star(8);
  Participants near = everyone(star_of_8);
  near.routing = group.routing;
  EXPECT_NEAR(
      form_of("once_per_node", CollectiveKind::kTokenExchange, near).idle_rate(star_of_8) /
          form_of("pairwise", CollectiveKind::kAllToAll, everyone(star_of_8)).idle_rate(star_of_8),
      1, 1e-9);
}

TEST(DirectTransfer, IsLatencyPlusBytesOverBandwidth) {
  const auto cluster = star(3);
  Participants pair{.cluster = &cluster, .devices = {DeviceId{2}, DeviceId{0}}};
  const auto flat = form_of("direct", CollectiveKind::kSend, pair);
  EXPECT_NEAR(flat.idle_time(100_MB, cluster) / 1_ms, 1.002, 1e-9);
  EXPECT_EQ(load_between(cluster, flat, "gpu2", "hub"), 1);
  EXPECT_EQ(load_between(cluster, flat, "hub", "gpu0"), 1);
  EXPECT_EQ(flat.loads.size(), 2u);
}

// (p+1)/p = 9/8 of 800 MB out of and into each rank, one hop of 2 us.
TEST(NvlsAllReduce, LoadsEveryLinkAndItsHeadOnceMore) {
  const auto cluster = star(8);
  const auto flat = form_of("nvls", CollectiveKind::kAllReduce, everyone(cluster));
  EXPECT_NEAR(flat.idle_time(800_MB, cluster) / 1_ms, 9.002, 1e-9);
  EXPECT_EQ(flat.loads.size(), 16u);
}

TEST(NvlsAllReduce, IsLeftOutWithoutACommonSwitch) {
  for (const auto& cluster : {mesh_of_four(), rails(2, 2)}) {
    const auto forms =
        value_of(flat_forms(CollectiveKind::kAllReduce, everyone(cluster), ideal_parameters()));
    for (const auto& form : forms) EXPECT_NE(form.algorithm, "nvls");
  }
}

// 2 nodes x 8: each of 8 rings enters and leaves a node at another member, so each NIC carries 1/8
// of 2 x 15/16 out and in. 7 of a member's 8 hops stay on NVLink. Leaving on the rail of the next
// node's entrance keeps the spine idle.
TEST(RingOverNodes, GivesEveryNicItsShareOnItsOwnRail) {
  const auto cluster = rails(2, 8);
  const auto flat = form_of("ring", CollectiveKind::kAllReduce, everyone(cluster));
  const double bytes = 2 * 15.0 / 16;
  EXPECT_NEAR(load_between(cluster, flat, "nic0.3", "leaf3"), bytes / 8, 1e-12);
  EXPECT_NEAR(load_between(cluster, flat, "leaf3", "nic0.3"), bytes / 8, 1e-12);
  EXPECT_NEAR(load_between(cluster, flat, "nic1.0", "leaf0"), bytes / 8, 1e-12);
  EXPECT_NEAR(load_between(cluster, flat, "gpu1.5", "hub1"), bytes * 7 / 8, 1e-12);
  EXPECT_EQ(load_between(cluster, flat, "leaf3", "spine"), 0);
  // 16 NICs and 16 NVLinks, each with PCIe where it is a NIC's, both ways.
  EXPECT_EQ(flat.loads.size(), 2u * (16 + 16 + 16));
  // 30 hops: the ring has 2 over the network (3 us by PCIe, cable, cable, PCIe) and 14 on NVLink
  // (2 us); twice round less two hops on NVLink.
  EXPECT_NEAR(flat.latency / 1_us, 4 * 3 + 26 * 2, 1e-9);
}

TEST(RingOverNodes, KeepsItsRailsWithAnyNumberOfNodes) {
  for (const std::int32_t nodes : {2, 3, 4, 5, 6, 7}) {
    const auto cluster = rails(nodes, 4);
    const auto flat = form_of("ring", CollectiveKind::kAllGather, everyone(cluster));
    const double p = 4.0 * nodes;
    for (const char* leaf : {"leaf0", "leaf1", "leaf2", "leaf3"})
      EXPECT_EQ(load_between(cluster, flat, leaf, "spine"), 0) << nodes << " nodes";
    EXPECT_NEAR(load_between(cluster, flat, "nic1.2", "leaf2"), (p - 1) / p / 4, 1e-12) << nodes;
  }
}

// Four nodes in two racks: the ring 0-1-2-3 crosses the spine once each way. 4 ranks: each hop
// carries 2 x 3/4.
TEST(RingOverNodes, LoadsTheSpineTwice) {
  const auto cluster = two_leaves();
  const auto flat = form_of("ring", CollectiveKind::kAllReduce, everyone(cluster));
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "leaf0", "spine"), 1.5);
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "leaf1", "spine"), 1.5);
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "spine", "leaf1"), 1.5);
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "nic2", "leaf1"), 1.5);
}

// All to all in the same racks: 2 x 2 pairs cross from rack to rack, with 1/4 each.
TEST(PairwiseAllToAll, LoadsTheSpineByPairs) {
  const auto cluster = two_leaves();
  const auto flat = form_of("pairwise", CollectiveKind::kAllToAll, everyone(cluster));
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "leaf0", "spine"), 1.0);
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "nic0", "leaf0"), 0.75);
}

// K4 has 12 directed links; rings use them evenly: 4 hops x 1.5 over 12 links. So 800 MB take
// 400 MB / 100 GB/s, plus 6 hops of 1 us.
TEST(RingInAMesh, UsesAllLinksEvenly) {
  const auto cluster = mesh_of_four();
  const auto flat = form_of("ring", CollectiveKind::kAllReduce, everyone(cluster));
  ASSERT_EQ(flat.loads.size(), 12u);
  for (const LinkLoad& load : flat.loads) EXPECT_NEAR(load.bytes_per_byte, 0.5, 1e-12);
  EXPECT_NEAR(flat.idle_time(800_MB, cluster) / 1_ms, 4.006, 1e-9);
}

// The first five GPUs of a DGX-1: GPU 4 has a link to GPU 0 alone, so what it sends to another one
// passes GPU 0. No ring is over PCIe, and six GPUs, which a ring of links of their own joins, need
// no relay.
TEST(RingInAMesh, PassesAGpuWhereTwoHaveNoLink) {
  const auto config = value_of(yaml::Loader(shipped_options())
                                   .read_text<ClusterConfig>("{nodes: 1, node: dgx-1v}", "c.yaml"));
  const auto cluster = *build_cluster(config);
  for (const std::int32_t members : {5, 6}) {
    const auto flat =
        (*flat_forms(CollectiveKind::kAllReduce, first(cluster, members), ideal_parameters()))[0];
    EXPECT_EQ(flat.algorithm, "ring");
    for (const LinkLoad& load : flat.loads)
      EXPECT_EQ(cluster.links()[load.link.index()].kind, LinkKind::kNvLink) << members;
  }
}

// Two nodes: each is the root of one tree with half the bytes; it sends that half down and the
// other up. So each sends the whole buffer once; a ring of two does, too.
TEST(TreeAllReduce, OfTwoNodesSendsTheBufferOnce) {
  const auto cluster = rails(2, 1);
  const auto flat = form_of("tree", CollectiveKind::kAllReduce, everyone(cluster));
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "nic0.0", "leaf0"), 1.0);
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "nic1.0", "leaf0"), 1.0);
  EXPECT_NEAR(flat.latency / 1_us, 2 * 3, 1e-9);  // up and down, 3 us each
}

// Tree 0 over nodes 0..3: 0 - 2 - {1, 3}; tree 1 mirrors it: 3 - 1 - {2, 0}. Node 2 sends half a
// buffer up and two halves down in tree 0, half up in tree 1: 2 buffers. Node 0: half a buffer down
// and half up.
TEST(TreeAllReduce, IsInsideOneTreeAndALeafOfTheOther) {
  const auto cluster = rails(4, 1);
  const auto flat = form_of("tree", CollectiveKind::kAllReduce, everyone(cluster));
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "nic0.0", "leaf0"), 1.0);
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "nic1.0", "leaf0"), 2.0);
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "nic2.0", "leaf0"), 2.0);
  EXPECT_DOUBLE_EQ(load_between(cluster, flat, "nic3.0", "leaf0"), 1.0);
  EXPECT_NEAR(flat.latency / 1_us, 2 * 2 * 3, 1e-9);  // depth 2
}

// Depth grows with log2 of the nodes, a ring's latency with their number.
TEST(TreeAllReduce, HasLogarithmicLatency) {
  for (const std::int32_t nodes : {2, 3, 5, 8, 16, 33, 64}) {
    const auto cluster = rails(nodes, 1);
    const auto flat = form_of("tree", CollectiveKind::kAllReduce, everyone(cluster));
    std::int32_t log = 0;
    while ((1 << log) < nodes) ++log;
    EXPECT_LE(flat.latency / 1_us, 2 * 3 * log + 1e-9) << nodes;
    for (const LinkLoad& load : flat.loads) EXPECT_LE(load.bytes_per_byte, 2.0 + 1e-12) << nodes;
  }
}

// Turnaround 1 with 7 hops: NVLink is busy 7/8 of the time. Efficiency 0.8. 8 ranks, 800 MB:
// 700 MB / (100 GB/s x 0.8 x 7/8) = 10 ms, plus 5 us and 7 x (2 us wire + 1 us).
TEST(Forms, ApplyTheProtocolsNumbers) {
  const auto cluster = star(8);
  Parameters parameters = one_form("ring");
  FormParameters& form = parameters.forms[0];
  form.protocol = Protocol::kLl128;
  form.base = 5_us;
  form.hop.nvlink = 1_us;
  form.efficiency.nvlink = 0.8;
  form.turnaround = 1;
  form.channels = 25;
  const auto flat = (*flat_forms(CollectiveKind::kAllGather, everyone(cluster), parameters))[0];
  EXPECT_EQ(flat.protocol, "LL128");
  EXPECT_NEAR(flat.idle_time(800_MB, cluster) / 1_ms, 10.026, 1e-9);
  EXPECT_DOUBLE_EQ(flat.bandwidth_fraction, 0.7);
  EXPECT_DOUBLE_EQ(flat.sm_share, 0.25);
}

// Two channels of 5 GB/s carry 10 GB/s although the NIC could 25: 100 MB take 10 ms.
TEST(Forms, AreCappedByTheirChannels) {
  const auto cluster = rails(2, 1);
  Parameters parameters = one_form("direct");
  FormParameters& form = parameters.forms[0];
  form.network_channels = 2;
  form.network_channel_rate = 5_GB_s;
  const auto forecast =
      value_of(predict(CollectiveKind::kSend, 100_MB, everyone(cluster), parameters));
  EXPECT_NEAR(forecast.time / 1_ms, 10.003, 1e-9);
}

// A channel moves 20 GB/s and takes 1 MB before another one is opened: of ten, five fill a link of
// 100 GB/s, so up to 1 MB one channel sends, up to 5 MB each MB takes a channel of its own (50 us),
// and then the link decides. A link of 10 GB/s is slower than one channel. 2 us of wire.
TEST(Forms, ChannelsHaveARateOfTheirOwn) {
  const auto cluster = star(2);
  Parameters parameters = one_form("direct");
  FormParameters& form = parameters.forms[0];
  form.channels = 10;
  form.channel_rate = 20_GB_s;
  form.channel_bytes = 1_MB;
  const auto time = [&](Bytes bytes) {
    const auto forecast = predict(CollectiveKind::kSend, bytes, everyone(cluster), parameters);
    return (forecast->time - 2_us) / 1_us;
  };
  EXPECT_NEAR(time(100_kB), 5, 1e-9);
  EXPECT_NEAR(time(1_MB), 50, 1e-9);
  EXPECT_NEAR(time(2.5 * 1_MB), 50, 1e-9);
  EXPECT_NEAR(time(10_MB), 100, 1e-9);
  parameters.forms[0].efficiency.nvlink = 0.1;
  EXPECT_NEAR(time(100_kB), 10, 1e-9);
  EXPECT_NEAR(time(1_MB), 100, 1e-9);
}

// An operation that crosses the network starts the host's thread once, however many hops it has.
TEST(Forms, StartTheHostsThreadOnceAcrossTheNetwork) {
  const Parameters parameters = one_form("ring");
  Parameters with_base = parameters;
  with_base.forms[0].network_base = 5_us;
  const auto added = [&](const ClusterView& cluster) {
    const auto time = [&](const Parameters& one) {
      return predict(CollectiveKind::kAllReduce, 1_MB, everyone(cluster), one)->time;
    };
    return (time(with_base) - time(parameters)) / 1_us;
  };
  EXPECT_NEAR(added(rails(4, 2)), 5, 1e-9);
  EXPECT_NEAR(added(star(8)), 0, 1e-9);
}

// Of a transfer whose communicator has one channel for a peer, one carries: twice the time.
TEST(Forms, TransfersHaveTheChannelsOfTheirCommunicator) {
  const auto cluster = rails(2, 1);
  Parameters parameters = one_form("direct");
  FormParameters& form = parameters.forms[0];
  form.network_channels = 2;
  form.network_channel_rate = 5_GB_s;
  Participants group = everyone(cluster);
  group.peer_channels = 1;
  const auto forecast = value_of(predict(CollectiveKind::kSend, 100_MB, group, parameters));
  EXPECT_NEAR(forecast.time / 1_ms, 20.003, 1e-9);
}

// Two devices on sockets of their own, PCIe 63 GB/s, of which 10 GB/s go through the host: 100 MB
// take 10 ms and not 1.6, and the same on one switch, which needs no host, still 1.6.
TEST(Forms, GoThroughTheHostAtARateOfItsOwn) {
  Parameters parameters = one_form("direct");
  FormParameters& form = parameters.forms[0];
  form.host_rate = 10_GB_s;
  const auto time = [&](bool one_switch) {
    ClusterView::Builder builder("hosts");
    const auto type = builder.add_device_type(DeviceType{});
    const auto node = builder.add_node();
    const auto kind = one_switch ? VertexKind::kPcieSwitch : VertexKind::kSocket;
    const auto middle = builder.add_vertex(kind, "middle", node);
    for (const char* name : {"gpu0", "gpu1"})
      builder.connect(builder.vertex_of(builder.add_device(type, name, node)), middle,
                      {.kind = LinkKind::kPcie, .bandwidth = 62.5_GB_s, .latency = 0_us});
    const auto cluster = std::move(builder).build();
    return predict(CollectiveKind::kSend, 100_MB, everyone(cluster), parameters)->time / 1_ms;
  };
  EXPECT_NEAR(time(false), 10, 1e-9);
  EXPECT_NEAR(time(true), 1.6, 1e-9);
}

// Two channels of 10 GB/s also copy the half of an all-to-all that a member of two keeps: 20 MB in
// 1 ms, though only 10 MB leave.
TEST(Forms, ChannelsOfAnAllToAllCopyWhatAMemberKeeps) {
  const auto cluster = star(2);
  Parameters parameters = one_form("pairwise");
  FormParameters& form = parameters.forms[0];
  form.channels = 2;
  form.channel_rate = 10_GB_s;
  const auto forecast =
      value_of(predict(CollectiveKind::kAllToAll, 20_MB, everyone(cluster), parameters));
  EXPECT_NEAR((forecast.time - 2_us) / 1_ms, 1, 1e-9);
}

// Copies of an all-to-all hide behind the next chunk: 40 MB leave and arrive in 10 chunks of 8 MB
// of the operation in 400 us; then half of a chunk's 80 us. Less than a chunk is a chunk.
TEST(Forms, CopiesOfAnAllToAllHideButTheLast) {
  const auto cluster = star(2);
  Parameters parameters = one_form("pairwise");
  FormParameters& form = parameters.forms[0];
  form.chunk = 8_MB;
  form.turnaround = 0.5;
  const auto time = [&](Bytes bytes) {
    return predict(CollectiveKind::kAllToAll, bytes, everyone(cluster), parameters)->time - 2_us;
  };
  EXPECT_NEAR(time(80_MB) / 1_us, 400 + 20, 1e-9);
  EXPECT_NEAR(time(4_MB) / 1_us, 20 + 10, 1e-9);
}

// Two pairs of four exchange 40 MB each, in no one's way: as fast as one pair. Each has ten chunks
// of 4 MB under way, 40 us each, and waits for half of the last one's copy. 100 kB take one channel
// of 10 GB/s (10 us), in one pair and in two, and half of that again, as they are one chunk.
TEST(Forms, PairsOfAnExchangeDoNotSpeedEachOtherUp) {
  const auto cluster = star(4);
  Parameters parameters = one_form("pairwise");
  FormParameters& form = parameters.forms[0];
  form.channels = 10;
  form.channel_rate = 10_GB_s;
  form.channel_bytes = 1_MB;
  form.chunk = 4_MB;
  form.turnaround = 0.5;
  const auto time = [&](std::vector<Transfer> transfers, Bytes bytes) {
    Participants group = everyone(cluster);
    group.transfers = std::move(transfers);
    return (predict(CollectiveKind::kExchange, bytes, group, parameters)->time - 2_us) / 1_us;
  };
  const std::vector<Transfer> one{{.from = 0, .to = 1, .part = 1}};
  const std::vector<Transfer> two{{.from = 0, .to = 1, .part = 0.5},
                                  {.from = 2, .to = 3, .part = 0.5}};
  EXPECT_NEAR(time(one, 40_MB), 400 + 20, 1e-9);
  EXPECT_NEAR(time(two, 80_MB), 400 + 20, 1e-9);
  EXPECT_NEAR(time(one, 100_kB), time(two, 200_kB), 1e-9);
}

// 1 us + 2 x bytes / 100 GB/s against 3 us + bytes / 100 GB/s: equal at 200 kB.
TEST(BestForm, IsTheFasterOneForTheSize) {
  const auto cluster = star(2);
  Parameters parameters = one_form("direct");
  FormParameters form = parameters.forms[0];
  form.protocol = Protocol::kLl;
  form.base = 1_us;
  form.efficiency.nvlink = 0.5;
  parameters.forms = {form};
  form.protocol = Protocol::kSimple;
  form.base = 3_us;
  form.efficiency.nvlink = 1;
  parameters.forms.push_back(form);
  const auto choose = [&](Bytes bytes) {
    return predict(CollectiveKind::kSend, bytes, everyone(cluster), parameters)->form.protocol;
  };
  EXPECT_EQ(choose(199_kB), "LL");
  EXPECT_EQ(choose(201_kB), "Simple");
}

}  // namespace foreshard::comm::algorithms_test
