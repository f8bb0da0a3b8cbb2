
#include "tests/strategies/comm/clusters.h"
#include "tests/test.h"

#include "strategies/comm/collective.h"
#include "topology/cluster_config.h"

namespace foreshard::comm::parameters_test {

Result<Parameters> nccl() {
  return yaml::Loader(shipped_options()).read_ref<Parameters>("nccl");
}

TEST(NcclParameters, HaveASourceAndServeEveryKind) {
  const auto parameters = value_of(nccl());
  for (const FormParameters& form : parameters.forms) {
    EXPECT_FALSE(form.source.empty()) << form.algorithm;
    EXPECT_NE(form.evidence, yaml::Evidence::kUser) << form.algorithm;
  }
  const auto cluster = rails(2, 4);
  for (const auto kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kBroadcast, CollectiveKind::kAllToAll})
    EXPECT_TRUE(predict(kind, 1_MB, everyone(cluster), parameters)) << name_of(kind);
  EXPECT_TRUE(predict(CollectiveKind::kSend, 1_MB, first(cluster, 2), parameters));
}

// LL for small messages, Simple for large ones, as NCCL does.
TEST(NcclParameters, ChooseTheProtocolBySize) {
  const auto parameters = value_of(nccl());
  const auto cluster = star(8);
  const auto protocol = [&](Bytes bytes) {
    return predict(CollectiveKind::kAllReduce, bytes, everyone(cluster), parameters)->form.protocol;
  };
  EXPECT_EQ(protocol(1_KiB), "LL");
  EXPECT_EQ(protocol(1_GiB), "Simple");
}

TEST(Parameters, RefuseNumbersOfATransportForWhichTheyHaveTheirOwn) {
  const auto parameters = value_of(nccl());
  Transport transport{.name = "efa"};
  EXPECT_FALSE(replaced_number(parameters, transport));
  transport.eager_limit = {.value = 16_KiB};  // the default, but written
  const auto fault = value_of(replaced_number(parameters, transport));
  EXPECT_EQ(fault.key, "eager_limit");
  EXPECT_EQ(fault.message,
            "transport 'efa' gives eager_limit, but communication 'NCCL' has numbers of its own "
            "for 'efa' (transports)");
  EXPECT_EQ(fault.help, "remove eager_limit, or give the transport a name of its own");
  transport.name = "my-efa";
  EXPECT_FALSE(replaced_number(parameters, transport));
}

// Through the collectives of a cluster: with own numbers they are taken, with NCCL's too.
TEST(Parameters, TakeTheirOwnNumbersOfATransportOrThoseThatItGives) {
  yaml::Loader loader(shipped_options());
  auto config = *loader.read_text<ClusterConfig>("{nodes: 2, node: hgx-a100-efa}", "c.yaml");
  const auto time = [&](const Parameters& parameters) {
    const auto cluster = *build_cluster(config);
    const auto forecast = predict(CollectiveKind::kAllReduce, 1_MiB, everyone(cluster), parameters);
    return forecast ? forecast->time : -1_s;
  };
  auto parameters = *nccl();
  const Seconds fitted = time(parameters);
  EXPECT_GT(fitted, 0_s);
  Transport& transport = config.node->value.nics->transport->value;
  transport.latency = {.value = 500_us};
  EXPECT_EQ(time(parameters), -1_s);
  transport.name = "mine";
  EXPECT_GT(time(parameters), fitted);
}

// Settings that come with a transport hold inside a node as well, but not for sends to all.
TEST(Parameters, TakeOnlyFormsThatTheSettingsOfATransportLeave) {
  yaml::Loader loader(shipped_options());
  auto config = *loader.read_text<ClusterConfig>("{nodes: 1, node: dgx-h100}", "c.yaml");
  config.node->value.nics->transport =
      yaml::Ref<Transport>{*loader.read_ref<Transport>("gpudirect-tcpxo"), "gpudirect-tcpxo"};
  const auto cluster = *build_cluster(config);
  const Parameters parameters = *nccl();
  const auto forms =
      value_of(flat_forms(CollectiveKind::kAllReduce, everyone(cluster), parameters));
  for (const FlatCollective& form : forms) {
    EXPECT_TRUE(form.algorithm == "ring" || form.algorithm == "tree") << form.algorithm;
    EXPECT_EQ(form.protocol, "Simple");
  }
  EXPECT_GT(flat_forms(CollectiveKind::kAllToAll, everyone(cluster), parameters)->size(), 1U);
}

// Nodes of different settings run what both allow; where that is nothing, it is no licence for all.
TEST(Parameters, TakeOnlyFormsThatTransportsOfAllNodesLeave) {
  yaml::Loader loader(shipped_options());
  auto config = *loader.read_text<ClusterConfig>(
      "{name: two, groups: [{node: dgx-h100}, {node: dgx-h100}], fabric: {kind: single-switch}}",
      "c.yaml");
  const auto forms_with = [&](std::vector<std::string> first, std::vector<std::string> second) {
    std::vector<std::vector<std::string>> settings{std::move(first), std::move(second)};
    for (std::size_t i = 0; i < 2; ++i) {
      auto& transport = config.groups[i].node.value.nics->transport;
      transport = yaml::Ref<Transport>{*loader.read_ref<Transport>("roce"), "roce"};
      transport->value.name = "mine" + std::to_string(i);
      transport->value.algorithms = settings[i];
    }
    return flat_forms(CollectiveKind::kAllReduce, everyone(*build_cluster(config)), *nccl());
  };
  const auto common = value_of(forms_with({"ring", "tree"}, {"tree"}));
  ASSERT_FALSE(common.empty());
  for (const FlatCollective& form : common) EXPECT_EQ(form.algorithm, "tree");
  EXPECT_THAT(message_of(forms_with({"ring"}, {"tree"})),
              HasSubstr("leave no algorithm or no protocol that both allow"));
}

// Eight nodes of one member each send seven messages: those of at most 192 B, which commands carry,
// cost 10 us more each, those without bytes 3 us less.
TEST(Parameters, MessagesThatCommandsCarryTakeLonger) {
  const auto time = [&](Bytes bytes, bool special) {
    Parameters parameters{.name = "test", .forms = {}};
    FormParameters form;
    form.algorithm = "pairwise";
    form.hop.network = 5_us;
    if (special) form.hop.network_empty = 2_us;
    parameters.forms.push_back(form);
    if (special)
      parameters.transports.push_back(
          {.inject = {.value = 10_us}, .inject_limit = {.value = 192_B}});
    const auto cluster = rails(8, 1);
    return predict(CollectiveKind::kAllToAll, bytes, everyone(cluster), parameters)->time / 1_us;
  };
  EXPECT_NEAR(time(8 * 192_B, true) - time(8 * 192_B, false), 70, 1e-9);
  EXPECT_NEAR(time(8 * 200_B, true) - time(8 * 200_B, false), 0, 1e-9);
  EXPECT_NEAR(time(0_B, true) - time(0_B, false), -21, 1e-9);
}

// Eight nodes of one member each. In an all-to-all a member starts seven messages, of 5 us each,
// which wait for their way (3 us) and for the receivers' answers (20 us) together; the seven hops
// of a ring wait one after another.
TEST(Parameters, MessagesToManyPeersWaitTogether) {
  const auto waits = [&](CollectiveKind kind, const char* algorithm) {
    const auto time = [&](Seconds latency, Seconds rendezvous) {
      Parameters parameters{.name = "test", .forms = {}};
      FormParameters form;
      form.algorithm = algorithm;
      form.hop.network = 5_us;
      parameters.forms.push_back(form);
      parameters.transports.push_back({.latency = {.value = latency},
                                       .rendezvous = {.value = rendezvous},
                                       .eager_limit = {.value = 1_B}});
      return predict(kind, 1_GiB, everyone(rails(8, 1)), parameters)->time / 1_us;
    };
    return time(3_us, 20_us) - time(0_s, 0_s);
  };
  EXPECT_NEAR(waits(CollectiveKind::kAllToAll, "pairwise"), 23, 1e-3);
  EXPECT_NEAR(waits(CollectiveKind::kAllGather, "ring"), 7 * 23, 1e-3);
}

TEST(Parameters, RefuseTwoSetsOfNumbersOfOneTransport) {
  yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"},
                       .overrides = {{"transports.1.name", "efa"}}});
  EXPECT_THAT(message_of(loader.read_ref<Parameters>("nccl")),
              HasSubstr("'efa' is listed twice; remove one"));
}

}  // namespace foreshard::comm::parameters_test
