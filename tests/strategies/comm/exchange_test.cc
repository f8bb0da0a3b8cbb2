// A group call of sends and receives: by hand, and beside what it generalises.

#include "tests/strategies/comm/clusters.h"
#include "tests/test.h"

#include "strategies/comm/collective.h"

namespace foreshard::comm {
namespace {

FlatCollective only_form(CollectiveKind kind, const Participants& group) {
  return value_of(flat_forms(kind, group, ideal_parameters())).front();
}

// By hand, 100 GB/s each way: member 0 sends 30 MB to 1 and 10 MB to 2; 2 sends 20 MB to 1. Member
// 0's way out carries 40 MB, member 1's way in 50 MB, so 500 us, and twice 1 us of latency.
TEST(Exchange, TakesAsLongAsItsBusiestLink) {
  const auto cluster = star(3);
  auto group = everyone(cluster);
  group.transfers = {{0, 1, 3.0 / 6}, {0, 2, 1.0 / 6}, {2, 1, 2.0 / 6}};
  const auto form = only_form(CollectiveKind::kExchange, group);
  EXPECT_NEAR(form.idle_time(60_MB, cluster) / 1_us, 502, 1e-9);
}

// Everyone sends everyone the same: that is an all-to-all. Its bytes count one member's buffer (p
// parts), those of the exchange all p (p-1) messages.
TEST(Exchange, OfEqualMessagesIsAnAllToAll) {
  for (const auto& cluster : {star(4), rails(2, 4), rails(3, 2)}) {
    auto group = everyone(cluster);
    const auto p = static_cast<std::int32_t>(group.devices.size());
    const Bytes buffer = 64_MB;
    const auto all_to_all = only_form(CollectiveKind::kAllToAll, group);
    for (std::int32_t from = 0; from < p; ++from)
      for (std::int32_t to = 0; to < p; ++to)
        if (from != to) group.transfers.push_back({from, to, 1.0 / (p * (p - 1))});
    const auto exchange = only_form(CollectiveKind::kExchange, group);
    EXPECT_NEAR(exchange.idle_time((p - 1.0) * buffer, cluster) / 1_us,
                all_to_all.idle_time(buffer, cluster) / 1_us, 1e-6)
        << cluster.name();
  }
}

// By hand, 100 GB/s each way: everyone sends 10 MB and takes in 10 MB at once, 100 us, and twice 1
// us of latency, whatever their number. It is the exchange that lists these messages.
TEST(Shift, TakesAsLongAsOneMessage) {
  for (const auto& cluster : {star(2), star(5), rails(2, 4)}) {
    auto group = everyone(cluster);
    const auto p = static_cast<std::int32_t>(group.devices.size());
    const auto shift = only_form(CollectiveKind::kShift, group);
    if (cluster.name() == star(2).name()) {
      EXPECT_NEAR(shift.idle_time(10_MB, cluster) / 1_us, 102, 1e-9) << p;
    }
    for (std::int32_t from = 0; from < p; ++from)
      group.transfers.push_back({from, (from + 1) % p, 1.0 / p});
    const auto exchange = only_form(CollectiveKind::kExchange, group);
    EXPECT_NEAR(shift.idle_time(10_MB, cluster) / 1_us,
                exchange.idle_time(p * 10_MB, cluster) / 1_us, 1e-6)
        << cluster.name();
  }
}

// The chain starts wherever the data is: over the rails of two nodes, which are alike, that changes
// no time, but the loads: nothing enters the root.
TEST(Broadcast, StartsAtItsRoot) {
  const auto cluster = star(4);
  auto group = everyone(cluster);
  group.root = 2;
  const auto form = only_form(CollectiveKind::kBroadcast, group);
  EXPECT_DOUBLE_EQ(load_between(cluster, form, "hub", "gpu2"), 0);
  EXPECT_DOUBLE_EQ(load_between(cluster, form, "gpu2", "hub"), 1);
  group.root = 0;
  EXPECT_EQ(form.idle_time(1_MB, cluster),
            only_form(CollectiveKind::kBroadcast, group).idle_time(1_MB, cluster));
}

std::string fault_in_exchange(CollectiveKind kind, const Participants& group) {
  return message_of(flat_forms(kind, group, ideal_parameters()));
}

TEST(Exchange, NamesWhatIsWrong) {
  const auto cluster = star(3);
  auto group = everyone(cluster);
  EXPECT_THAT(fault_in_exchange(CollectiveKind::kExchange, group),
              HasSubstr("needs at least 1 transfer"));
  group.transfers = {{0, 3, 1}};
  EXPECT_THAT(fault_in_exchange(CollectiveKind::kExchange, group), HasSubstr("from member 0 to 3"));
  group.transfers = {{0, 1, 1}};
  EXPECT_THAT(fault_in_exchange(CollectiveKind::kAllReduce, group), HasSubstr("only an exchange"));
  group.transfers.clear();
  group.root = 3;
  EXPECT_THAT(fault_in_exchange(CollectiveKind::kBroadcast, group), HasSubstr("root 3 of 3"));
}

}  // namespace
}  // namespace foreshard::comm
