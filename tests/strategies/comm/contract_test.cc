// What every registered algorithm must obey. A new one is held to it without a line here.
#include <rapidcheck.h>

#include "tests/strategies/comm/clusters.h"
#include "tests/test.h"

#include "strategies/comm/algorithms.h"

namespace foreshard::comm::contract_test {

using Members = std::uint64_t;  // a set of members, one bit each

bool is_transfer(const Algorithm& algorithm) {
  return algorithm.kind == CollectiveKind::kSend || algorithm.kind == CollectiveKind::kReceive;
}
// Sums in switches: fewer bytes leave a member than any exchange of messages needs.
bool is_in_switch(const Algorithm& algorithm) {
  return algorithm.name.starts_with("nvls") || algorithm.name.starts_with("collnet");
}
bool is_hierarchical_exchange(const Algorithm& algorithm) {
  return algorithm.name == "hierarchical" && algorithm.kind == CollectiveKind::kAllToAll;
}
bool has_messages(const Algorithm& algorithm) {
  return algorithm.steps != nullptr;
}
// Rounds of any number of members treat them unlike.
bool is_uneven(const Algorithm& algorithm) {
  return algorithm.name == "chain" || algorithm.name.ends_with("tree") ||
         algorithm.name == "collnet_chain" || algorithm.name.starts_with("recursive") ||
         algorithm.name == "halving_doubling" || algorithm.name == "pat";
}

// Links alone, of every algorithm.
Parameters all_ideal() {
  Parameters parameters = ideal_parameters();
  for (FormParameters& form : parameters.forms) {
    form.on_request = false;
    form.operations.clear();
  }
  return parameters;
}

// The smallest cluster on which `p` members can do it: one switch, or nodes.
ClusterView place_for(const Algorithm& algorithm, std::int32_t p) {
  if (!algorithm.several_nodes) return star(p);
  if (algorithm.name == "pat") return rails(p, 1);
  return rails(p / 2, 2);
}

// Least that members send per byte of the operation, all together.
// Source: Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory,
// practice, and experience", 2007, table 1. Requirement: R2.5.
double least_sent(CollectiveKind kind, double p) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (p - 1);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kTokenExchange:
      return p - 1;
    case CollectiveKind::kToHost:
    case CollectiveKind::kFromHost:
    case CollectiveKind::kOnHost:
    case CollectiveKind::kShift:
      return p;
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
    case CollectiveKind::kExchange:
      return 1;
  }
  return 0;
}

// An exchange needs to be told who sends to whom: here everyone to everyone, unequal amounts; or
// how tokens are routed: here to every member.
Participants with_transfers(CollectiveKind kind, Participants group) {
  if (kind == CollectiveKind::kTokenExchange) {
    const auto all = static_cast<std::int32_t>(group.devices.size());
    group.routing = {.experts = all, .per_token = all};
  }
  if (kind != CollectiveKind::kExchange) return group;
  const auto p = static_cast<std::int32_t>(group.devices.size());
  for (std::int32_t from = 0; from < p; ++from)
    for (std::int32_t to = 0; to < p; ++to)
      if (from != to) group.transfers.push_back({from, to, from < to ? 1.0 : 2.0});
  for (Transfer& transfer : group.transfers) transfer.part /= 1.5 * p * (p - 1);
  return group;
}

std::map<LinkId, double> live_sets_of(const std::vector<LinkLoad>& loads) {
  std::map<LinkId, double> map;
  for (const LinkLoad& load : loads) map[load.link] = load.bytes_per_byte;
  return map;
}

double sent_by_devices(const ClusterView& cluster, const std::vector<LinkLoad>& loads) {
  double sum = 0;
  for (const LinkLoad& load : loads)
    if (cluster.vertices()[cluster.links()[load.link.index()].from.index()].kind ==
        VertexKind::kDevice)
      sum += load.bytes_per_byte;
  return sum;
}

FlatCollective ideal_form(const Algorithm& algorithm, const Participants& group) {
  const auto forms = flat_forms(algorithm.kind, with_transfers(algorithm.kind, group), all_ideal());
  EXPECT_TRUE(forms) << (forms ? "" : forms.error().message);
  if (forms)
    for (const FlatCollective& form : *forms)
      if (form.algorithm == algorithm.name) return form;
  return {};
}

// Runs the messages in the order in which they would start and end with these durations. Data is
// read when a message starts and written when it ends, so a missing dependency shows as lost data.
class Replay {
 public:
  Replay(const Algorithm& algorithm, std::int32_t members, const StepwiseCollective& steps)
      : kind_(algorithm.kind), members_(members), steps_(&steps) {
    buffers_.assign(static_cast<std::size_t>(members),
                    std::vector<Members>(static_cast<std::size_t>(steps.chunks), 0));
    for (std::int32_t member = 0; member < members; ++member)
      for (std::int32_t chunk = 0; chunk < steps.chunks; ++chunk)
        if (starts_with(member, chunk)) at(member, chunk) = Members{1} << member;
  }

  double run(const std::vector<double>& durations) {
    struct Event {
      double time;
      int phase;  // ends before starts
      std::size_t message;
      auto operator<=>(const Event&) const = default;
    };
    std::vector<Event> events;
    std::vector<double> end(steps_->messages.size());
    for (std::size_t i = 0; i < end.size(); ++i) {
      double start = 0;
      for (const std::int32_t earlier : steps_->messages[i].after) {
        EXPECT_LT(static_cast<std::size_t>(earlier), i);
        start = std::max(start, end[static_cast<std::size_t>(earlier)]);
      }
      end[i] = start + durations[i];
      events.push_back({start, 1, i});
      events.push_back({end[i], 0, i});
    }
    std::sort(events.begin(), events.end());
    std::map<std::size_t, std::vector<Members>> flying;
    for (const Event& event : events) {
      const Message& message = steps_->messages[event.message];
      for (std::int32_t i = 0; i < message.chunk_count; ++i) {
        if (event.phase == 1)
          flying[event.message].push_back(at(message.from, chunk_of(message, i)));
        else
          arrive(message, i, flying[event.message][static_cast<std::size_t>(i)]);
      }
    }
    return end.empty() ? 0 : *std::max_element(end.begin(), end.end());
  }

  void expect_promise() const {
    const Members all = (Members{1} << members_) - 1;
    for (std::int32_t member = 0; member < members_; ++member) {
      for (std::int32_t chunk = 0; chunk < steps_->chunks; ++chunk) {
        const Members held =
            buffers_[static_cast<std::size_t>(member)][static_cast<std::size_t>(chunk)];
        const std::string where =
            "member " + std::to_string(member) + " chunk " + std::to_string(chunk);
        if (kind_ == CollectiveKind::kAllReduce) {
          EXPECT_EQ(held, all) << where;
        }
        if (kind_ == CollectiveKind::kAllGather) {
          EXPECT_EQ(held, Members{1} << owner_of(chunk)) << where;
        }
        if (kind_ == CollectiveKind::kReduceScatter && member == owner_of(chunk)) {
          EXPECT_EQ(held, all) << where;
        }
        if (kind_ == CollectiveKind::kBroadcast) {
          EXPECT_EQ(held, Members{1}) << where;
        }
      }
    }
    if (kind_ == CollectiveKind::kAllToAll) {
      for (std::int32_t from = 0; from < members_; ++from)
        for (std::int32_t to = 0; to < members_; ++to)
          EXPECT_EQ(received_.contains({from, to}), from != to) << from << " to " << to;
    }
    if (kind_ == CollectiveKind::kExchange) {
      for (std::int32_t from = 0; from < members_; ++from)
        for (std::int32_t to = 0; to < members_; ++to)
          EXPECT_EQ(received_.count({from, to}), from != to ? 1U : 0U);
    }
    if (kind_ == CollectiveKind::kShift) {
      EXPECT_EQ(std::ssize(received_), members_);
      for (std::int32_t from = 0; from < members_; ++from)
        EXPECT_TRUE(received_.contains({from, (from + 1) % members_})) << from;
    }
    if (kind_ == CollectiveKind::kSend) {
      EXPECT_EQ(received_, (std::multiset<std::pair<std::int32_t, std::int32_t>>{{0, 1}}));
    }
  }

 private:
  // Whose part of what is gathered or scattered a chunk is: each ring has one of everybody.
  std::int32_t owner_of(std::int32_t chunk) const { return chunk * members_ / steps_->chunks; }
  bool starts_with(std::int32_t member, std::int32_t chunk) const {
    if (kind_ == CollectiveKind::kAllGather) return member == owner_of(chunk);
    if (kind_ == CollectiveKind::kBroadcast) return member == 0;
    return true;
  }
  Members& at(std::int32_t member, std::int32_t chunk) {
    return buffers_[static_cast<std::size_t>(member)][static_cast<std::size_t>(chunk)];
  }
  std::int32_t chunk_of(const Message& message, std::int32_t i) const {
    return (message.first_chunk + i * message.chunk_step) % steps_->chunks;
  }
  void arrive(const Message& message, std::int32_t i, Members data) {
    const std::int32_t chunk = chunk_of(message, i);
    if (kind_ == CollectiveKind::kAllToAll) {
      EXPECT_EQ(chunk, message.to) << "sends the part that is for another member";
      EXPECT_FALSE(received_.contains({message.from, message.to}));
      received_.insert({message.from, message.to});
      return;
    }
    received_.insert({message.from, message.to});
    EXPECT_NE(data, 0u) << "sends what it does not have";
    if (!message.reduces) {
      at(message.to, chunk) = data;
      return;
    }
    EXPECT_EQ(at(message.to, chunk) & data, 0u) << "adds a contribution twice";
    at(message.to, chunk) |= data;
  }

  CollectiveKind kind_;
  std::int32_t members_;
  const StepwiseCollective* steps_;
  std::vector<std::vector<Members>> buffers_;
  std::multiset<std::pair<std::int32_t, std::int32_t>> received_;
};

class CollectiveContract : public testing::TestWithParam<Algorithm> {
 protected:
  std::vector<std::int32_t> sizes() const {
    if (is_transfer(GetParam())) return {2};
    if (GetParam().several_nodes && GetParam().name != "pat") return {4, 6, 8, 16};
    return {2, 3, 4, 5, 7, 8, 9, 16};
  }
};

TEST_P(CollectiveContract, OneMemberCostsNothing) {
  if (is_transfer(GetParam())) return;
  const auto cluster = star(3);
  if (GetParam().kind == CollectiveKind::kExchange) return;
  const Participants alone = with_transfers(GetParam().kind, first(cluster, 1));
  const auto forms = value_of(flat_forms(GetParam().kind, alone, all_ideal()));
  ASSERT_EQ(forms.size(), 1u);
  EXPECT_EQ(forms.front().idle_time(1_GiB, cluster), 0_s);
  EXPECT_TRUE(value_of(stepwise_form(GetParam().name, GetParam().kind, alone)).messages.empty());
}

// What readers of forms refuse rests on these two.
TEST_P(CollectiveContract, RunsInsideANodeUnlessItNeedsSeveral) {
  const auto cluster = star(is_transfer(GetParam()) ? 2 : 4);
  const auto pattern = GetParam().pattern(with_transfers(GetParam().kind, everyone(cluster)));
  EXPECT_EQ(pattern.has_value(), !GetParam().several_nodes);
}

TEST_P(CollectiveContract, HopsOverPcieUnlessItSaysThatItDoesNot) {
  const auto cluster =
      pcie_nodes(GetParam().several_nodes ? 2 : 1, is_transfer(GetParam()) ? 2 : 4);
  const auto pattern = GetParam().pattern(with_transfers(GetParam().kind, everyone(cluster)));
  EXPECT_EQ(pattern && pattern->path.pcie > 0, !GetParam().no_pcie_hop);
}

TEST_P(CollectiveContract, SendsTheLeastThatItCan) {
  if (is_hierarchical_exchange(GetParam()) || GetParam().name.starts_with("collnet")) return;
  for (const std::int32_t p : sizes()) {
    const auto cluster = place_for(GetParam(), p);
    const auto flat = ideal_form(GetParam(), everyone(cluster));
    const double sent = sent_by_devices(cluster, flat.loads);
    if (GetParam().name == "nvls_tree") {
      // Two members a node: 1 + 1/2 each to the switch; the heads' trees 2 (p/2 - 1) in all.
      const std::int32_t nodes = p / 2;
      EXPECT_NEAR(sent, 1.5 * p + 2 * (nodes - 1), 1e-9) << p;
    } else if (is_in_switch(GetParam())) {
      const double least = GetParam().kind == CollectiveKind::kAllReduce   ? p + 1.0
                           : GetParam().kind == CollectiveKind::kAllGather ? 1.0
                                                                           : p;
      EXPECT_NEAR(sent, least, 1e-9) << p;
    } else {
      EXPECT_NEAR(sent, least_sent(GetParam().kind, p), 1e-9) << p;
    }
  }
}

// The messages cross the same links with the same bytes as the flat form: of all members of one
// node or of several, and of the first of several nodes, the last with fewer than the others.
TEST_P(CollectiveContract, FlatAndStepwiseLoadTheSameLinks) {
  if (!has_messages(GetParam())) return;
  std::vector<ClusterView> places;
  std::vector<std::int32_t> counts;
  for (const std::int32_t p : sizes()) {
    places.push_back(place_for(GetParam(), p));
    counts.push_back(p);
  }
  for (const std::int32_t p : {12, 11, 10, 9, 7, 5}) {
    if (is_transfer(GetParam()) || GetParam().several_nodes) continue;
    places.push_back(rails(3, 4));
    counts.push_back(p);
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& cluster = places[i];
    const std::int32_t p = counts[i];
    const auto group = with_transfers(GetParam().kind, first(cluster, p));
    const auto steps = value_of(stepwise_form(GetParam().name, GetParam().kind, group));
    internal::LoadSum sum;
    for (const Message& message : steps.messages) {
      if (GetParam().kind != CollectiveKind::kExchange) {
        EXPECT_DOUBLE_EQ(message.part, static_cast<double>(message.chunk_count) / steps.chunks);
      }
      sum.add(*internal::route_between(group, message.from, message.to), message.part);
    }
    const auto from_steps = live_sets_of(sum.take());
    const auto from_flat = live_sets_of(ideal_form(GetParam(), first(cluster, p)).loads);
    ASSERT_EQ(from_steps.size(), from_flat.size());
    for (const auto& [link, load] : from_flat) EXPECT_NEAR(from_steps.at(link), load, 1e-12) << p;
  }
}

// On an idle star every message has its links to itself: a step takes latency + part / bandwidth.
// (Not those of the two trees, or of an exchange or all-to-all, which run side by side.)
TEST_P(CollectiveContract, StepwiseTakesAsLongAsFlatOnAnIdleStar) {
  if (!has_messages(GetParam()) || GetParam().name == "tree" || GetParam().several_nodes) return;
  if (GetParam().name == "pairwise") return;
  for (const std::int32_t p : sizes()) {
    const auto cluster = place_for(GetParam(), p);
    const auto group = with_transfers(GetParam().kind, everyone(cluster));
    const auto steps = value_of(stepwise_form(GetParam().name, GetParam().kind, group));
    const Bytes bytes = 64_MB;
    std::vector<double> durations;
    for (const Message& message : steps.messages)
      durations.push_back((message.latency + message.part * bytes / 100_GB_s) / 1_s);
    const double time = Replay(GetParam(), p, steps).run(durations);
    const double flat = ideal_form(GetParam(), everyone(cluster)).idle_time(bytes, cluster) / 1_s;
    if (GetParam().name == "ring" || GetParam().name == "direct") {
      EXPECT_NEAR(time, flat, 1e-9 * flat) << p;
    } else {  // the flat form overlaps the rounds and the chunks perfectly
      EXPECT_GE(time, flat * (1 - 1e-12)) << p;
    }
  }
}

TEST_P(CollectiveContract, DeliversWhatTheCollectivePromises) {
  if (!has_messages(GetParam())) return;
  const auto cluster = GetParam().name == "pat" ? rails(16, 1) : rails(4, 4);
  EXPECT_TRUE(rc::check([&] {
    const auto p = is_transfer(GetParam()) ? 2 : *rc::gen::inRange(2, 17);
    std::vector<std::int32_t> ranks(16);
    std::iota(ranks.begin(), ranks.end(), 0);
    for (std::size_t i = 15; i > 0; --i)
      std::swap(ranks[i], ranks[*rc::gen::inRange<std::size_t>(0, i + 1)]);
    Participants group{.cluster = &cluster, .devices = {}};
    for (std::int32_t i = 0; i < p; ++i)
      group.devices.emplace_back(ranks[static_cast<std::size_t>(i)]);
    const auto steps =
        stepwise_form(GetParam().name, GetParam().kind, with_transfers(GetParam().kind, group));
    if (!steps && steps.error().code == Error::Code::kUnsupported && GetParam().several_nodes)
      return;
    RC_ASSERT(steps.has_value());
    std::vector<double> durations;
    std::uint64_t state = *rc::gen::arbitrary<std::uint64_t>();
    for (std::size_t i = 0; i < steps->messages.size(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      durations.push_back(1 + static_cast<double>(state >> 40));
    }
    Replay replay(GetParam(), p, *steps);
    replay.run(durations);
    replay.expect_promise();
    RC_ASSERT(!testing::Test::HasFailure());
  }));
}

// Any group of a cluster: more bytes are never faster, loads are positive and sorted, and what
// devices send, devices receive.
TEST_P(CollectiveContract, IsSoundOnAnyGroup) {
  EXPECT_TRUE(rc::check([&] {
    const auto nodes = *rc::gen::inRange(1, 6);
    const auto per_node = *rc::gen::inRange(2, 6);
    const auto cluster = rails(nodes, per_node);
    const auto all = nodes * per_node;
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(all));
    std::iota(ranks.begin(), ranks.end(), 0);
    Participants group{.cluster = &cluster, .devices = {}};
    for (const std::int32_t rank : ranks)
      if (rank < 2 || *rc::gen::inRange(0, 3) > 0) group.devices.emplace_back(rank);
    if (is_transfer(GetParam()))
      group.devices.resize(std::min<std::size_t>(2, group.devices.size()));
    const auto forms =
        flat_forms(GetParam().kind, with_transfers(GetParam().kind, group), all_ideal());
    RC_ASSERT(forms.has_value());
    for (const FlatCollective& form : *forms) {
      if (form.algorithm != GetParam().name) continue;
      Seconds last;
      for (const Bytes bytes : {0_B, 1_B, 1_kB, 1_MB, 1_GB}) {
        const Seconds time = form.idle_time(bytes, cluster);
        RC_ASSERT(time >= last);
        last = time;
      }
      RC_ASSERT(form.idle_time(0_B, cluster) == form.latency);
      double sent = 0;
      double received = 0;
      for (std::size_t i = 0; i < form.loads.size(); ++i) {
        RC_ASSERT(form.loads[i].bytes_per_byte > 0);
        if (i > 0) RC_ASSERT(form.loads[i - 1].link < form.loads[i].link);
        const Link& link = cluster.links()[form.loads[i].link.index()];
        if (cluster.vertices()[link.from.index()].kind == VertexKind::kDevice)
          sent += form.loads[i].bytes_per_byte;
        if (cluster.vertices()[link.to.index()].kind == VertexKind::kDevice)
          received += form.loads[i].bytes_per_byte;
      }
      // A switch that adds or copies takes in more, or less, than it gives out.
      if (is_in_switch(GetParam())) continue;
      RC_ASSERT(std::abs(sent - received) < 1e-9 * sent);
      const auto p = static_cast<double>(group.devices.size());
      RC_ASSERT(sent >= least_sent(GetParam().kind, p) * (1 - 1e-9));
    }
  }));
}

// Where all members are alike, so are their links.
TEST_P(CollectiveContract, LoadsAlikeLinksAlike) {
  if (is_transfer(GetParam()) || is_uneven(GetParam())) return;
  // Of a shift only some members have their neighbour on another node.
  if (GetParam().kind == CollectiveKind::kExchange || GetParam().kind == CollectiveKind::kShift)
    return;
  for (const auto& cluster : {star(6), rails(1, 4), rails(2, 4), rails(4, 2), rails(6, 1)}) {
    const auto forms = value_of(flat_forms(
        GetParam().kind, with_transfers(GetParam().kind, everyone(cluster)), all_ideal()));
    for (const FlatCollective& form : forms) {
      if (form.algorithm != GetParam().name) continue;
      std::map<std::pair<VertexKind, VertexKind>, double> by_kind;
      for (const LinkLoad& load : form.loads) {
        const Link& link = cluster.links()[load.link.index()];
        const auto kinds = std::pair(cluster.vertices()[link.from.index()].kind,
                                     cluster.vertices()[link.to.index()].kind);
        const auto [place, is_new] = by_kind.try_emplace(kinds, load.bytes_per_byte);
        EXPECT_NEAR(place->second, load.bytes_per_byte, 1e-9);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, CollectiveContract,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const testing::TestParamInfo<Algorithm>& algorithm) {
                           return std::string(name_of(algorithm.param.kind)) + "_" +
                                  std::string(algorithm.param.name);
                         });

}  // namespace foreshard::comm::contract_test
