
#include "tests/strategies/comm/clusters.h"
#include "tests/test.h"

#include "strategies/comm/collective.h"
#include "topology/cluster_builder.h"

namespace foreshard::comm::errors_test {

std::string fault(CollectiveKind kind, const Participants& group, Bytes bytes = 1_MB) {
  return message_of(predict(kind, bytes, group, ideal_parameters()));
}

TEST(CollectiveErrors, NameTheFaultOfTheGroup) {
  const auto cluster = star(4);
  Participants group{.cluster = &cluster, .devices = {}};
  EXPECT_THAT(fault(CollectiveKind::kAllReduce, group), HasSubstr("all_reduce: needs at least 1"));
  group.devices = {DeviceId{0}, DeviceId{7}};
  EXPECT_THAT(fault(CollectiveKind::kAllGather, group),
              HasSubstr("no device 7; the cluster has 4"));
  group.devices = {DeviceId{1}, DeviceId{1}};
  EXPECT_THAT(fault(CollectiveKind::kAllToAll, group), HasSubstr("device 1 takes part twice"));
  group.devices = {DeviceId{0}, DeviceId{1}, DeviceId{2}};
  EXPECT_THAT(fault(CollectiveKind::kSend, group),
              HasSubstr("needs a sender and a receiver, got 3"));
  group.cluster = nullptr;
  EXPECT_THAT(fault(CollectiveKind::kAllReduce, group), HasSubstr("no cluster"));
  EXPECT_THAT(fault(CollectiveKind::kAllReduce, everyone(cluster), -1_MB),
              HasSubstr("negative size"));
}

TEST(CollectiveErrors, NameTheAlgorithmsThereAre) {
  const auto cluster = star(4);
  EXPECT_THAT(message_of(stepwise_form("rign", CollectiveKind::kAllReduce, everyone(cluster))),
              HasSubstr("unknown algorithm 'rign'; there are ring, tree"));
}

TEST(CollectiveErrors, SayThatThereIsNoRoute) {
  ClusterView::Builder builder("apart");
  const auto type = builder.add_device_type({});
  for (int i = 0; i < 2; ++i)
    builder.add_device(type, "gpu" + std::to_string(i), builder.add_node());
  const auto cluster = std::move(builder).build();
  for (const auto kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
                          CollectiveKind::kBroadcast, CollectiveKind::kSend}) {
    EXPECT_THAT(error_of(flat_forms(kind, everyone(cluster), ideal_parameters())),
                Fails(Error::Code::kInfeasible, HasSubstr("gpu1")));
  }
}

TEST(CollectiveErrors, SayThatNoFormSuits) {
  const auto cluster = star(4);
  EXPECT_THAT(error_of(flat_forms(CollectiveKind::kAllReduce, everyone(cluster),
                                  {.name = "empty", .forms = {}})),
              Fails(Error::Code::kUnsupported, HasSubstr("communication 'empty' has no form")));
}

}  // namespace foreshard::comm::errors_test
