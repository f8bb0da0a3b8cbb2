// Collectives message by message, for simulations of stepwise granularity, and a warning where
// these take other times than one activity per collective. The header has the model.
#include "sim/simulate/internal/messages.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <tuple>

#include "base/index.h"
#include "base/quantity.h"

namespace foreshard::sim::internal {
namespace {

// Resources that limit flows to less than the rate of their links. Every byte takes one unit.
class Limits {
 public:
  Limits(engine::Workload& workload, const Operation& operation) : workload_(workload) {
    comm::FlatCollective links_alone = operation.form;
    links_alone.rate_cap = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
    const BytesPerSecond of_links = links_alone.idle_rate(*operation.group.cluster);
    channels_decide_ = operation.form.rate_cap < of_links;
    rate_ = std::min(operation.form.rate_cap, of_links) / operation.form.bandwidth_fraction;
  }

  // Whether the channels, not the links, limit the operation's rate.
  bool channels_decide() const { return channels_decide_; }
  // A resource for flows that together carry the fraction `part` of the operation's bytes. With its
  // rate the whole operation takes the time that its form takes on idle links.
  engine::ResourceId of(double part) const {
    return workload_.add_resource((rate_ * part).in_base(), "channels");
  }

 private:
  engine::Workload& workload_;
  bool channels_decide_ = false;
  BytesPerSecond rate_;
};

}  // namespace

Operation operation_of(const ClusterView& cluster, const program::Program& program,
                       const Communicators& communicators, const CommunicatorForms& forms,
                       std::size_t communicator, Bytes bytes) {
  Operation operation{.kind = communicators.all[communicator].kind,
                      .group = participants_of(cluster, program, communicators, communicator),
                      .form = forms.at(communicator, bytes),
                      .bytes = bytes};
  std::vector<comm::LinkLoad> loads;
  loads.reserve(operation.form.loads.size());
  forms.each_load(communicator, operation.form, [&](LinkId link, double bytes_per_byte) {
    loads.push_back({link, bytes_per_byte});
  });
  operation.form.loads = std::move(loads);
  return operation;
}

MessageWriter::MessageWriter(engine::Workload& workload, std::vector<engine::ResourceId> links)
    : workload_(workload),
      links_(std::move(links)),
      nothing_(workload.add_shape(engine::Shape{.usages = {}, .occupations = {}})) {}

engine::ShapeId MessageWriter::shape_of(Way way) {
  const auto known = shapes_.find(way);
  if (known != shapes_.end()) return known->second;
  engine::Shape shape{.usages = {}, .occupations = {}};
  shape.connections = way.second;
  for (const auto& [resource, weight] : way.first)
    shape.usages.push_back({.resource = resource, .weight = weight});
  return shapes_.emplace(std::move(way), workload_.add_shape(std::move(shape))).first->second;
}

Result<MessageWriter::Script> MessageWriter::script_of(const Operation& operation) {
  if (program::is_with_host(operation.kind)) return copy_of(operation);
  if (!comm::has_messages(operation.form.algorithm, operation.kind))
    return switch_flows_of(operation);
  return messages_of(operation);
}

// A sender's messages share its channels. The messages of an exchange begin together, and each has
// a rate of its own, so that all end together.
Result<MessageWriter::Script> MessageWriter::messages_of(const Operation& operation) {
  FORESHARD_ASSIGN(const auto form,
                   comm::stepwise_form(operation.form.algorithm, operation.kind, operation.group));
  const Bytes work = operation.bytes / operation.form.bandwidth_fraction;
  const Limits limits(workload_, operation);
  const bool is_paced = operation.kind == program::CollectiveKind::kExchange;
  std::vector<engine::ResourceId> channels(operation.group.devices.size());
  if (limits.channels_decide() && !is_paced) {
    std::vector<double> sent(channels.size(), 0);
    for (const comm::Message& message : form.messages) sent[at(message.from)] += message.part;
    for (std::size_t i = 0; i < sent.size(); ++i)
      if (sent[i] > 0) channels[i] = limits.of(sent[i]);
  }

  Script script;
  script.reserve(form.messages.size());
  std::map<std::pair<std::int32_t, std::int32_t>, Way> ways;
  for (const comm::Message& message : form.messages) {
    const auto [known, is_new] = ways.try_emplace({message.from, message.to});
    if (is_new) {
      const auto route = form.route_of(message, operation.group);
      if (!route) return route.error();
      auto& [path, widest] = known->second;
      for (const RoutedLink& routed : route->taken(operation.form.detour)) {
        path.emplace_back(links_[routed.link.index()], routed.share);
        widest = std::max(widest, routed.share);
      }
    }
    Way way = known->second;
    const engine::ResourceId limit =
        is_paced ? limits.of(message.part) : channels[at(message.from)];
    if (limit.valid()) {
      way.first.emplace_back(limit, 1);
      way.second = 1;
    }
    Flow& flow = script.emplace_back();
    flow.shape = shape_of(std::move(way));
    flow.work = (work * message.part).in_base();
    if (form.pipelined) continue;
    flow.after = message.after;
    for (const std::int32_t before : message.after) script[at(before)].is_last = false;
  }
  return script;
}

// One message over all links of its path at once.
MessageWriter::Script MessageWriter::copy_of(const Operation& operation) {
  Way way;
  way.second = 0;
  for (const comm::LinkLoad& load : operation.form.loads) {
    way.first.emplace_back(links_[load.link.index()], load.bytes_per_byte);
    way.second = std::max(way.second, load.bytes_per_byte);
  }
  Script script(1);
  script.front().shape = shape_of(std::move(way));
  script.front().work = operation.bytes.in_base();
  return script;
}

MessageWriter::Script MessageWriter::switch_flows_of(const Operation& operation) {
  const Bytes work = operation.bytes / operation.form.bandwidth_fraction;
  const Limits limits(workload_, operation);
  Script script;
  for (const comm::LinkLoad& load : operation.form.loads) {
    Way way{{{links_[load.link.index()], 1}}, 1};
    if (limits.channels_decide()) way.first.emplace_back(limits.of(load.bytes_per_byte), 1);
    Flow& flow = script.emplace_back();
    flow.shape = shape_of(std::move(way));
    flow.work = (work * load.bytes_per_byte).in_base();
  }
  return script;
}

engine::ActivityId MessageWriter::write(const Script& script, engine::ActivityId begins) {
  const auto first = static_cast<std::int64_t>(workload_.activity_count());
  const auto add = [&](engine::ShapeId shape, double work) {
    return workload_.add_activity(
        {.shape = shape, .latency = {}, .work = work, .release_from = {}, .release_lag = {}});
  };
  for (const Flow& flow : script) {
    const auto id = add(flow.shape, flow.work);
    if (flow.after.empty()) workload_.add_edge(begins, id);
    for (const std::int32_t before : flow.after)
      workload_.add_edge(engine::ActivityId(first + before), id);
  }
  const auto ends = add(nothing_, 0);
  for (std::size_t i = 0; i < script.size(); ++i)
    if (script[i].is_last)
      workload_.add_edge(engine::ActivityId(first + static_cast<std::int64_t>(i)), ends);
  workload_.add_edge(begins, ends);
  return ends;
}

Result<Seconds> time_by_messages(const Operation& operation) {
  const ClusterView& cluster = *operation.group.cluster;
  engine::Workload workload;
  std::vector<engine::ResourceId> links;
  for (const Link& link : cluster.links())
    links.push_back(workload.add_resource(link.bandwidth.in_base()));
  MessageWriter writer(workload, std::move(links));
  const auto begins =
      workload.add_activity({.shape = workload.add_shape({.usages = {}, .occupations = {}}),
                             .latency = operation.form.delay(operation.bytes, cluster),
                             .work = 0,
                             .release_from = {},
                             .release_lag = {}});
  FORESHARD_TRY(writer.write({0, 0}, begins, [&] { return operation; }));
  FORESHARD_ASSIGN(const auto times, engine::run_fluid(workload));
  return times.makespan;
}

namespace {

constexpr double kSame = 1e-9;  // largest relative difference that counts as rounding
constexpr std::size_t kMostListed = 4;

// A collective (`what`) whose messages take another time than its flat form.
struct Difference {
  std::string what;
  Seconds flat;
  Seconds by_messages;

  double relative() const { return by_messages / flat - 1; }
};

Result<std::vector<Difference>> differences(const ClusterView& cluster,
                                            const program::Program& program,
                                            const Communicators& communicators,
                                            const CommunicatorForms& forms) {
  std::vector<Difference> found;
  std::set<std::int32_t> kinds;
  std::set<std::tuple<std::string, double, double>> listed;
  for (std::size_t c = 0; c < communicators.all.size(); ++c) {
    if (!kinds.insert(forms.kind_of(c)).second) continue;
    for (const auto& [in_base, form] : forms.of(c)) {
      if (!form.overlaps_rounds) continue;
      const Bytes bytes = Bytes::from_base(in_base);
      FORESHARD_ASSIGN(const auto time, time_by_messages(operation_of(
                                            cluster, program, communicators, forms, c, bytes)));
      const Difference difference{fmt::format("{} {} of {} among {}", form.algorithm,
                                              comm::name_of(communicators.all[c].kind),
                                              format(bytes), communicators.all[c].ranks.size()),
                                  forms.idle(c, bytes).time, time};
      if (std::abs(difference.relative()) > kSame &&
          listed.insert({difference.what, difference.flat.in_base(), time.in_base()}).second)
        found.push_back(difference);
    }
  }
  std::ranges::stable_sort(found, std::greater{},
                           [](const Difference& one) { return one.by_messages - one.flat; });
  return found;
}

double most_held(const Communicators& communicators, const CommunicatorForms& forms) {
  double most = 0;
  for (std::size_t c = 0; c < communicators.all.size(); ++c)
    for (const auto& [bytes, form] : forms.of(c)) most = std::max(most, form.sm_share);
  return most;
}

}  // namespace

Result<std::vector<Warning>> granularity_warnings(const ClusterView& cluster,
                                                  const program::Program& program,
                                                  const Communicators& communicators,
                                                  const CommunicatorForms& forms,
                                                  const SimulateOptions& options) {
  std::vector<Warning> warnings;
  if (options.granularity == Granularity::kFlat) return warnings;
  const auto warn = [&](std::string message) {
    warnings.push_back({.code = "granularity", .message = std::move(message)});
  };
  if (options.engine == EngineKind::kSimgrid)
    warn("SimGrid simulates each message of a collective (--granularity stepwise)");
  if (const double held = most_held(communicators, forms); held > 0)
    warn(
        fmt::format("messages hold no multiprocessors: kernels beside a collective run at full "
                    "speed, where --granularity flat takes up to {:.3g} % of a device from them",
                    100 * held));
  FORESHARD_ASSIGN(const auto different, differences(cluster, program, communicators, forms));
  if (different.empty()) return warnings;
  std::string list;
  for (std::size_t i = 0; i < std::min(kMostListed, different.size()); ++i) {
    const Difference& one = different[i];
    list += fmt::format("{}{} takes {}, flat {} ({:+.2g} %)", i == 0 ? "" : "; ", one.what,
                        format(one.by_messages), format(one.flat), 100 * one.relative());
  }
  if (different.size() > kMostListed)
    list += fmt::format("; and {} more", different.size() - kMostListed);
  warn(
      "on idle links some collectives take longer message by message, because their rounds wait "
      "for one another, which --granularity flat leaves out: " +
      list);
  return warnings;
}

}  // namespace foreshard::sim::internal
