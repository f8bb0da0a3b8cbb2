#include "strategies/comm/flat_form.h"

#include <algorithm>
#include <cmath>

namespace foreshard::comm {
namespace {

bool all_pairs(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kExchange ||
         kind == CollectiveKind::kTokenExchange;
}

// Whether a member's adapter talks to several peers at a time. In a tree these are a parent and two
// children.
bool has_many_peers(const Algorithm& algorithm) {
  return all_pairs(algorithm.kind) || algorithm.name == "tree" || algorithm.name == "nvls_tree";
}

// Whether `names` has `name`; an empty list stands for all names.
bool allows(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}
// Keeps the names that both lists allow. False if none is left (an empty list would stand for all).
bool keep_common(std::vector<std::string>& names, const std::vector<std::string>& others) {
  if (names.empty()) {
    names = others;
    return true;
  }
  std::erase_if(names, [&](const std::string& name) { return !allows(others, name); });
  return !names.empty();
}

double slowest(const LinkDemand& demand) {
  return std::max({demand.nvlink, demand.pcie, demand.network});
}

}  // namespace

LinkDemand demand_of(const Pattern& pattern, const ClusterView& cluster) {
  LinkDemand demand;
  const bool networked = pattern.path.network > 0;
  const auto is = [&](VertexId vertex, VertexKind kind) {
    return cluster.vertices()[vertex.index()].kind == kind;
  };
  const auto is_socket = [&](VertexId vertex) { return is(vertex, VertexKind::kSocket); };
  const auto is_device = [&](VertexId vertex) { return is(vertex, VertexKind::kDevice); };
  double busiest = 0;  // load of the busiest PCIe link of a device, bytes per byte
  bool through_host = false;
  for (const LinkLoad& load : pattern.loads) {
    const Link& link = cluster.links()[load.link.index()];
    const double time = load.bytes_per_byte / link.bandwidth.in_base();
    switch (link.kind) {
      case LinkKind::kNvLink:
        demand.nvlink = std::max(demand.nvlink, time);
        break;
      case LinkKind::kPcie:
      case LinkKind::kSocket:
        demand.pcie = std::max(demand.pcie, time);
        if (is_device(link.from) || is_device(link.to))
          busiest = std::max(busiest, load.bytes_per_byte);
        if (!networked && (is_socket(link.from) || is_socket(link.to))) through_host = true;
        break;
      case LinkKind::kNetwork:
        demand.network = std::max(demand.network, time);
        break;
      case LinkKind::kMemory:  // on no route between devices
        break;
    }
  }
  if (through_host) demand.through_host = busiest;
  return demand;
}

Result<GroupTransport> transport_of(const Participants& group, const Parameters& parameters) {
  GroupTransport slowest;
  std::int32_t last = -1;
  for (const DeviceId device : group.devices) {
    const std::int32_t node = group.cluster->devices()[device.index()].node;
    if (node == last) continue;
    const Transport& own = group.cluster->host(node).transport;
    if (const auto fault = replaced_number(parameters, own))
      return Error{Error::Code::kInvalidInput, fault->message + "; " + fault->help};
    const TransportNumbers* known = own_numbers(parameters, own);
    const TransportNumbers one = known != nullptr ? *known : foreshard::numbers_of(own);
    TransportNumbers& all = slowest.numbers;
    if (last < 0) {
      slowest = {one, own.ordered, own.algorithms, own.protocols};
    } else {
      all.latency.value = std::max(*all.latency, *one.latency);
      all.rendezvous.value = std::max(*all.rendezvous, *one.rendezvous);
      all.eager_limit.value = std::min(*all.eager_limit, *one.eager_limit);
      all.exchange_efficiency.value = std::min(*all.exchange_efficiency, *one.exchange_efficiency);
      all.inject.value = std::max(*all.inject, *one.inject);
      all.inject_limit.value = std::max(*all.inject_limit, *one.inject_limit);
      slowest.ordered = slowest.ordered && own.ordered;
      if (!keep_common(slowest.algorithms, own.algorithms) ||
          !keep_common(slowest.protocols, own.protocols))
        return Error{Error::Code::kInvalidInput,
                     "the transports of two nodes leave no algorithm or no protocol that both "
                     "allow; change `algorithms` or `protocols` of one"};
    }
    last = node;
  }
  return slowest;
}

bool can_use(const FormParameters& form, CollectiveKind kind, const Pattern& pattern,
             const GroupTransport& transport) {
  const bool beside = form.protocol == Protocol::kLl || form.protocol == Protocol::kLl128;
  if (!transport.ordered && beside && pattern.path.network > 0) return false;
  const bool is_set = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
                      kind == CollectiveKind::kReduceScatter;
  return !is_set || (allows(transport.algorithms, form.algorithm) &&
                     allows(transport.protocols, name_of(form.protocol)));
}

BytesPerSecond FormNumbers::idle_rate(const LinkDemand& demand) const {
  const double time = slowest(demand) / bandwidth_fraction;
  return std::min(rate_cap, time > 0 ? BytesPerSecond::from_base(1 / time) : rate_cap);
}

FormNumbers numbers_of(const Algorithm& algorithm, const Pattern& pattern, const LinkDemand& demand,
                       const FormParameters& form, const TransportNumbers& transport) {
  const internal::Path& path = pattern.path;
  const bool networked = path.network > 0;
  FormNumbers numbers;
  numbers.channels =
      static_cast<double>(networked ? form.network_channels : form.channels.value_or(1));
  if (networked && pattern.most_channels > 0)
    numbers.channels = std::min(numbers.channels, static_cast<double>(pattern.most_channels));
  // Messages to many peers start one after another, but their waits on the way, and for the
  // receivers' answers, overlap.
  const double waits = all_pairs(algorithm.kind) ? std::min(path.network, 1.0) : path.network;
  numbers.latency = form.base + path.wire + path.nvlink * form.hop.nvlink +
                    path.pcie * form.hop.pcie.value_or(0_s) + path.network * form.hop.network +
                    waits * *transport.latency + (networked ? form.network_base : 0_s);

  // NVLinks are idle while a member copies within itself, unless the next chunk arrives meanwhile.
  // Other links are so much slower than memory that the copies hide behind them.
  const double hops = path.nvlink + path.pcie + path.network;
  const bool hides = pattern.copies_by_chunk && form.chunk > 0_B;
  const bool rests = hops > 0 && !hides && !pattern.in_rounds;
  const double busy = rests ? hops / (hops + form.turnaround) : 1;
  const double network_efficiency =
      form.efficiency.network * (has_many_peers(algorithm) ? *transport.exchange_efficiency : 1.0);
  // One fraction for all links: the fraction of the link that limits the rate on idle links.
  const double over_nvlink = demand.nvlink / (form.efficiency.nvlink * busy);
  const double used = std::max({over_nvlink, demand.pcie / form.efficiency.pcie,
                                demand.network / network_efficiency,
                                demand.through_host / form.host_rate.in_base()});
  numbers.bandwidth_fraction = used > 0 ? slowest(demand) / used : 1;
  numbers.efficiency.nvlink = form.efficiency.nvlink * busy;
  numbers.efficiency.pcie = form.efficiency.pcie;
  numbers.efficiency.network = network_efficiency;
  if (demand.through_host > 0)
    numbers.efficiency.through_host = form.host_rate / demand.through_host;
  const BytesPerSecond channel_rate =
      networked ? pattern.channel_part * form.network_channel_rate : form.channel_rate;
  const double moved = pattern.sent_per_member + pattern.kept_per_member;
  numbers.rate_cap = numbers.channels * channel_rate / moved;

  numbers.start.fill_chunks = pattern.fill_chunks;
  if (pattern.in_rounds) numbers.start.fill_chunks += pattern.rounds * form.turnaround;
  if (hides && used > 0) numbers.start.fill_chunks += form.turnaround * over_nvlink / used;
  numbers.start.chunk = form.chunk * pattern.chunks / pattern.share_of_member;
  numbers.start.channels = numbers.channels;
  if (std::isfinite(channel_rate.in_base()) && used > 0)
    numbers.start.channels =
        std::min(numbers.rate_cap, BytesPerSecond::from_base(1 / used)) / (channel_rate / moved);
  numbers.start.channel_bytes = form.channel_bytes / pattern.share_of_member;
  if (networked) {
    numbers.start.rendezvous = waits * *transport.rendezvous;
    numbers.start.eager_bytes = *transport.eager_limit * numbers.channels / pattern.message;
  }
  if (networked && all_pairs(algorithm.kind)) {
    numbers.start.inject = path.network * *transport.inject;
    numbers.start.inject_bytes = *transport.inject_limit / pattern.message;
    if (form.hop.network_empty)
      numbers.start.empty = path.network * (form.hop.network - *form.hop.network_empty);
  }
  numbers.start.most_bytes = form.largest_message / pattern.message;
  return numbers;
}

}  // namespace foreshard::comm
