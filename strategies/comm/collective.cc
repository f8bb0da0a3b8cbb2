#include "strategies/comm/collective.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"

#include "strategies/comm/algorithms.h"
#include "strategies/comm/choose.h"
#include "strategies/comm/flat_form.h"
#include "strategies/comm/host_copy.h"
#include "strategies/comm/internal/representative.h"
#include "strategies/comm/internal/traffic.h"

namespace foreshard::comm {
namespace {

Status fault_in(CollectiveKind kind, const Participants& group) {
  const auto fault = [&](const std::string& why) {
    return Error{Error::Code::kInvalidInput, std::string(name_of(kind)) + ": " + why};
  };
  if (group.cluster == nullptr) return fault("no cluster given");
  if (group.devices.empty()) return fault("needs at least 1 device, got none");
  const auto count = static_cast<std::int64_t>(group.cluster->devices().size());
  std::set<DeviceId> seen;
  for (const DeviceId device : group.devices) {
    if (!device.valid() || device.value() >= count)
      return fault("no device " + std::to_string(device.value()) + "; the cluster has " +
                   std::to_string(count));
    if (!seen.insert(device).second)
      return fault("device " + std::to_string(device.value()) + " takes part twice");
  }
  const bool has_two = kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
  if (program::is_with_host(kind) && group.devices.size() != 1)
    return fault("is of one device, got " + std::to_string(group.devices.size()));
  if (has_two && group.devices.size() != 2)
    return fault("needs a sender and a receiver, got " + std::to_string(group.devices.size()) +
                 " devices");
  const auto members = static_cast<std::int32_t>(group.devices.size());
  if (group.root < 0 || group.root >= members)
    return fault("root " + std::to_string(group.root) + " of " + std::to_string(members));
  if ((kind == CollectiveKind::kExchange) == group.transfers.empty())
    return fault(group.transfers.empty() ? "needs at least 1 transfer, got none"
                                         : "only an exchange lists transfers");
  if ((kind == CollectiveKind::kTokenExchange) != group.routing.has_value())
    return fault(group.routing ? "only a token_exchange has a routing" : "needs a routing");
  for (const Transfer& transfer : group.transfers)
    if (transfer.from < 0 || transfer.from >= members || transfer.to < 0 ||
        transfer.to >= members || transfer.from == transfer.to || !(transfer.part > 0))
      return fault("no transfer of part " + std::to_string(transfer.part) + " from member " +
                   std::to_string(transfer.from) + " to " + std::to_string(transfer.to));
  return {};
}

bool suits(const FormParameters& form, const Participants& group) {
  if (form.architectures.empty()) return true;
  const DeviceType* known = nullptr;  // The type checked last: neighbours mostly have the same one.
  return std::all_of(group.devices.begin(), group.devices.end(), [&](DeviceId device) {
    const DeviceType& type = group.cluster->type_of(device);
    if (std::exchange(known, &type) == &type) return true;
    return std::find(form.architectures.begin(), form.architectures.end(), generation_of(type)) !=
           form.architectures.end();
  });
}

bool is_for(const FormParameters& form, CollectiveKind kind) {
  return form.operations.empty() || std::find(form.operations.begin(), form.operations.end(),
                                              name_of(kind)) != form.operations.end();
}

bool is_requested(const std::string& algorithm, CollectiveKind kind, const Parameters& parameters) {
  return std::any_of(parameters.choices.begin(), parameters.choices.end(),
                     [&](const Choice& choice) {
                       return choice.algorithm == algorithm && choice.operation == name_of(kind);
                     });
}

// For each algorithm and protocol, the first form that suits the group.
std::vector<const FormParameters*> suitable_forms(CollectiveKind kind, const Participants& group,
                                                  const Parameters& parameters) {
  std::vector<const FormParameters*> suitable;
  std::set<std::pair<std::string_view, Protocol>> seen;
  for (const FormParameters& form : parameters.forms)
    if (!seen.contains({form.algorithm, form.protocol}) && is_for(form, kind) &&
        (!form.on_request || is_requested(form.algorithm, kind, parameters)) &&
        suits(form, group)) {
      seen.insert({form.algorithm, form.protocol});
      suitable.push_back(&form);
    }
  return suitable;
}

// A device type without a number of SMs (a test's own) has none of them taken.
double part_of_multiprocessors(double channels, const Participants& group) {
  double part = 0;
  for (const DeviceId device : group.devices) {
    const std::int64_t all = *group.cluster->type_of(device).multiprocessors;
    if (all > 0) part = std::max(part, channels / static_cast<double>(all));
  }
  return std::min(1.0, part);
}

// The flat form of a pattern with one protocol's numbers.
FlatCollective flat_form(const Algorithm& algorithm, const Pattern& pattern, const Demand& demand,
                         const FormParameters& form, const Participants& group,
                         const TransportNumbers& transport) {
  const FormNumbers numbers = numbers_of(algorithm, pattern, demand, form, transport);
  FlatCollective flat;
  flat.algorithm = algorithm.name;
  flat.protocol = name_of(form.protocol);
  flat.latency = numbers.latency;
  flat.loads = pattern.loads;
  flat.bandwidth_fraction = numbers.bandwidth_fraction;
  flat.efficiency = numbers.efficiency;
  flat.rate_cap = numbers.rate_cap;
  flat.start = numbers.start;
  flat.overlaps_rounds = pattern.overlaps_rounds;
  flat.detour = pattern.detour;
  flat.sm_share = part_of_multiprocessors(numbers.channels, group);
  const bool networked = pattern.path.network > 0;
  flat.channels = numbers.channels;
  flat.connections = networked ? std::max(1.0, numbers.channels / pattern.ways) : numbers.channels;
  return flat;
}

}  // namespace

BytesPerSecond FlatCollective::idle_rate(const ClusterView& cluster) const {
  BytesPerSecond rate = rate_cap;
  for (const LinkLoad& load : loads)
    rate = std::min(rate, cluster.links()[load.link.index()].bandwidth * bandwidth_fraction /
                              load.bytes_per_byte);
  return rate;
}

namespace {

constexpr double kTolerance = 1e-9;  // Rounding must not decide between equals.

}  // namespace

LinkId FlatCollective::bottleneck(const ClusterView& cluster) const {
  BytesPerSecond least = std::min(rate_cap, efficiency.through_host);
  LinkId slowest;
  for (const LinkLoad& load : loads) {
    const Link& link = cluster.links()[load.link.index()];
    const BytesPerSecond rate = link.bandwidth * efficiency.of(link.kind) / load.bytes_per_byte;
    const bool is_slower = slowest.valid() ? rate < least * (1 - kTolerance) : rate <= least;
    if (!is_slower) continue;
    least = rate;
    slowest = load.link;
  }
  return slowest;
}

double LinkEfficiency::of(LinkKind kind) const {
  switch (kind) {
    case LinkKind::kNvLink:
      return nvlink;
    case LinkKind::kPcie:
    case LinkKind::kSocket:
      return pcie;
    case LinkKind::kNetwork:
      return network;
    case LinkKind::kMemory:
      break;
  }
  return 1;
}

Seconds FlatCollective::delay(Bytes bytes, const ClusterView& cluster) const {
  return latency + start.delay(bytes, idle_rate(cluster));
}

Seconds FlatCollective::idle_time(Bytes bytes, const ClusterView& cluster) const {
  return curve(cluster)(bytes);
}

TimeCurve FlatCollective::curve(const ClusterView& cluster) const {
  return {.latency = latency, .rate = idle_rate(cluster), .start = start};
}

Seconds StartUp::delay(Bytes bytes, BytesPerSecond rate) const {
  Seconds time;
  if (fill_chunks > 0) time += fill_chunks * (std::min(chunk, bytes) / rate);
  const Bytes open = channels * std::min(bytes, channel_bytes);
  if (open > bytes) time += (open - bytes) / rate;
  if (rendezvous > 0_s) time += rendezvous * (bytes / (bytes + eager_bytes));
  if (bytes > 0_B && bytes <= inject_bytes) time += inject;
  if (!(bytes > 0_B)) time -= empty;
  return time;
}

std::size_t least_of(const std::vector<TimeCurve>& curves, Bytes bytes) {
  FORESHARD_CHECK(!curves.empty());
  std::optional<std::size_t> best;
  Seconds least;
  for (const bool limited : {true, false}) {
    for (std::size_t i = 0; i < curves.size(); ++i) {
      if (limited && bytes > curves[i].start.most_bytes) continue;
      const Seconds time = curves[i](bytes);
      if (best && !(time < least * (1 - kTolerance))) continue;
      least = time;
      best = i;
    }
    if (best) break;
  }
  return *best;
}

namespace {

template <class PatternOf>
Result<std::vector<FlatCollective>> forms_of(CollectiveKind kind, const Participants& group,
                                             const Parameters& parameters, PatternOf pattern_of) {
  FORESHARD_TRY(fault_in(kind, group));
  if (program::is_with_host(kind)) {
    FORESHARD_ASSIGN(auto copy, host_copy(kind, group));
    return std::vector<FlatCollective>{std::move(copy)};
  }
  if (group.devices.size() == 1) {
    FlatCollective nothing;
    nothing.algorithm = "none";
    return std::vector<FlatCollective>{nothing};
  }

  const auto suitable = suitable_forms(kind, group, parameters);
  FORESHARD_ASSIGN(const auto transport, transport_of(group, parameters));
  std::vector<FlatCollective> forms;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != kind) continue;
    std::optional<Pattern> pattern;
    Demand demand;
    for (const FormParameters* form : suitable) {
      if (form->algorithm != algorithm.name) continue;
      if (!pattern) {
        auto result = pattern_of(algorithm);
        if (!result && result.error().code == Error::Code::kUnsupported) break;
        if (!result) return result.error();
        pattern = *std::move(result);
        demand = demand_of(*pattern, *group.cluster);
      }
      if (!can_use(*form, kind, *pattern, transport)) continue;
      forms.push_back(flat_form(algorithm, *pattern, demand, *form, group, transport.numbers));
    }
  }
  if (forms.empty())
    return Error{Error::Code::kUnsupported, std::string(name_of(kind)) + ": communication '" +
                                                parameters.name +
                                                "' has no form that these devices can do"};
  return forms;
}

}  // namespace

Result<std::vector<FlatCollective>> flat_forms(CollectiveKind kind, const Participants& group,
                                               const Parameters& parameters) {
  return forms_of(kind, group, parameters,
                  [&](const Algorithm& algorithm) { return algorithm.pattern(group); });
}

Result<std::vector<FlatCollective>> representative_forms(CollectiveKind kind,
                                                         const Participants& group,
                                                         const Parameters& parameters) {
  return forms_of(kind, group, parameters, [&](const Algorithm& algorithm) {
    return internal::representative_pattern(algorithm, group);
  });
}

std::size_t best_form(const std::vector<FlatCollective>& forms, Bytes bytes,
                      const ClusterView& cluster) {
  std::vector<TimeCurve> curves;
  curves.reserve(forms.size());
  for (const FlatCollective& form : forms) curves.push_back(form.curve(cluster));
  return least_of(curves, bytes);
}

bool has_messages(std::string_view algorithm, CollectiveKind kind) {
  return std::ranges::any_of(algorithms(), [&](const Algorithm& one) {
    return one.kind == kind && one.name == algorithm && one.steps != nullptr;
  });
}

Result<StepwiseCollective> stepwise_form(std::string_view algorithm, CollectiveKind kind,
                                         const Participants& group) {
  FORESHARD_TRY(fault_in(kind, group));
  std::string known;
  for (const Algorithm& candidate : algorithms()) {
    if (candidate.kind != kind) continue;
    if (candidate.name == algorithm) {
      if (group.devices.size() == 1)
        return StepwiseCollective{.algorithm = candidate.name, .messages = {}};
      if (candidate.steps != nullptr) return candidate.steps(group);
      return Error{Error::Code::kUnsupported,
                   std::string(algorithm) + ": is not made of messages between members"};
    }
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  }
  return Error{Error::Code::kInvalidInput, std::string(name_of(kind)) + ": unknown algorithm '" +
                                               std::string(algorithm) + "'; there are " + known};
}

Result<Route> StepwiseCollective::route_of(const Message& message,
                                           const Participants& group) const {
  return between_peers ? internal::peer_route_between(group, message.from, message.to)
                       : internal::route_between(group, message.from, message.to);
}

Result<Forecast> predict(CollectiveKind kind, Bytes bytes, const Participants& group,
                         const Parameters& parameters) {
  if (!(bytes >= 0_B))
    return Error{Error::Code::kInvalidInput, std::string(name_of(kind)) + ": negative size"};
  FORESHARD_ASSIGN(const auto repertoire, Repertoire::of(kind, group, parameters));
  FORESHARD_ASSIGN(auto form, repertoire.choose(bytes));
  const Seconds time = form.idle_time(bytes, *group.cluster);
  return Forecast{std::move(form), time};
}

}  // namespace foreshard::comm
