// Applies a plan of disturbances to a step (disturb.h), for simulate.cc: what may be folded, the
// routes after failures, and the events of the workload.
#include "sim/simulate/disturb.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "sim/simulate/internal/signature.h"
#include "topology/cluster_builder.h"

namespace foreshard::sim {
namespace {

using disturbance::FailureReaction;
using disturbance::Outage;
using disturbance::Plan;
using disturbance::Traffic;
using internal::joined;
using internal::rounded;
using program::Program;

std::uint64_t bits(double value) {
  return std::bit_cast<std::uint64_t>(value);
}
std::uint64_t colour_of(const Outage& outage) {
  std::uint64_t colour = static_cast<std::uint64_t>(outage.then) + 1;
  for (const Seconds time : {outage.at, outage.until, outage.detection})
    colour = joined(colour, bits(time.in_base()));
  return colour;
}

// For a flow over one link, or one that takes its rate from each link: its effect on that link. A
// flow that shares over several links ties them together, so its links get colours of their own.
std::uint64_t colour_of(const Traffic& traffic, const RoutedLink& link, std::size_t index) {
  std::uint64_t colour = traffic.constant ? 11 : 12;
  for (const double number : {traffic.rate.in_base(), traffic.connections, traffic.from.in_base(),
                              traffic.until.in_base(), traffic.period.in_base(), link.share})
    colour = joined(colour, bits(number));
  if (!traffic.constant && traffic.links.size() > 1)
    colour = joined(joined(colour, index), static_cast<std::uint64_t>(link.link.value()));
  return colour;
}

bool crosses(const CommunicatorForms& forms, std::size_t communicator,
             const std::vector<bool>& links) {
  return std::ranges::any_of(forms.uses(communicator), [&](const LinkUse& use) {
    return links[forms.link_of(communicator, use).index()];
  });
}

// The instants at which routes change.
std::vector<Seconds> instants_of(const Plan& plan) {
  std::vector<Seconds> instants;
  for (const Outage& outage : plan.outages) {
    const Seconds begin = outage.at + outage.detection;
    if (outage.then != FailureReaction::kReroute || begin >= outage.until) continue;
    instants.push_back(begin);
    if (outage.until < disturbance::kNever) instants.push_back(outage.until);
  }
  std::ranges::sort(instants);
  instants.erase(std::unique(instants.begin(), instants.end()), instants.end());
  return instants;
}

std::vector<bool> marked(std::size_t count, const std::vector<LinkId>& links) {
  std::vector<bool> result(count);
  for (const LinkId link : links) result[link.index()] = true;
  return result;
}

// The form with the same algorithm and protocol, or else the best one.
const comm::FlatCollective& like(const comm::FlatCollective& before,
                                 const std::vector<comm::FlatCollective>& forms, double bytes,
                                 const ClusterView& cluster) {
  for (const comm::FlatCollective& form : forms)
    if (form.algorithm == before.algorithm && form.protocol == before.protocol) return form;
  return forms[comm::best_form(forms, Bytes::from_base(bytes), cluster)];
}

}  // namespace

Result<std::vector<RoutesFrom>> routes_over_time(const ClusterView& cluster, const Program& program,
                                                 const Communicators& communicators,
                                                 const CommunicatorForms& forms,
                                                 const comm::Parameters& parameters,
                                                 const Plan& plan) {
  std::vector<RoutesFrom> routes;
  for (const Seconds at : instants_of(plan)) {
    RoutesFrom& now = routes.emplace_back(RoutesFrom{.at = at, .forms = {}});
    std::vector<LinkId> avoided;
    std::vector<LinkId> dead;
    std::string what;
    for (const Outage& outage : plan.outages) {
      if (at < outage.at || at >= outage.until) continue;
      dead.insert(dead.end(), outage.links.begin(), outage.links.end());
      if (outage.then != FailureReaction::kReroute || at < outage.at + outage.detection) continue;
      avoided.insert(avoided.end(), outage.links.begin(), outage.links.end());
      what += (what.empty() ? "" : ", ") + outage.what;
    }
    if (avoided.empty()) continue;
    auto copy = ClusterView::Builder::copy_of(cluster);
    for (const LinkId link : dead) copy.take_down(link);
    const ClusterView left = std::move(copy).build();
    const std::vector<bool> gone = marked(cluster.links().size(), avoided);
    for (std::size_t c = 0; c < communicators.all.size(); ++c) {
      if (!crosses(forms, c, gone)) continue;
      const auto group = participants_of(left, program, communicators, c);
      const auto others = comm::flat_forms(communicators.all[c].kind, group, parameters);
      if (!others)
        return Error{others.error().code, "after the failure of " + what +
                                              " no route is left: " + others.error().message};
      for (const auto& [bytes, form] : forms.of(c))
        now.forms[c].emplace(bytes, like(form, *others, bytes, left));
    }
  }
  return routes;
}

InitialColours colours_of(const ClusterView& cluster, const Program& program, const Plan& plan) {
  std::vector<std::uint64_t> of_device(cluster.devices().size(), 0);
  InitialColours colours{.of_rank = {}, .of_link = {}};
  colours.of_link.resize(cluster.links().size(), 0);
  const auto add = [](std::uint64_t& colour, std::uint64_t what) { colour = joined(colour, what); };
  for (const disturbance::SpeedChange& change : plan.throttled) {
    add(of_device[change.device.index()], bits(change.at.in_base()));
    add(of_device[change.device.index()], bits(change.speed));
  }
  for (const disturbance::Profile& profile : plan.profiles) {
    std::uint64_t colour = bits(profile.period.in_base());
    for (const disturbance::ProfilePoint& point : profile.points)
      colour = joined(joined(colour, bits(point.at.in_base())), bits(point.factor));
    for (const LinkId link : profile.links) add(colours.of_link[link.index()], colour);
  }
  for (const Outage& outage : plan.outages) {
    for (const LinkId link : outage.links) add(colours.of_link[link.index()], colour_of(outage));
    for (const DeviceId device : outage.devices) add(of_device[device.index()], colour_of(outage));
  }
  for (std::size_t t = 0; t < plan.traffic.size(); ++t) {
    for (const RoutedLink& link : plan.traffic[t].links)
      add(colours.of_link[link.link.index()], colour_of(plan.traffic[t], link, t));
  }
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank)
    colours.of_rank.push_back(of_device[device_of(program, rank).index()]);
  return colours;
}

namespace {

// Signatures of what the routings do to communicators, ranks and links, for given classes of links
// and communicators.
class RoutedSignatures {
 public:
  RoutedSignatures(const Communicators& communicators, const Folding& folding,
                   const std::vector<RoutesFrom>& routes, std::size_t ranks, std::size_t links)
      : communicator_(communicators.all.size()), rank_(ranks), link_(links) {
    for (std::size_t r = 0; r < routes.size(); ++r) {
      for (const auto& [c, forms] : routes[r].forms) {
        const auto of = static_cast<std::uint64_t>(folding.class_of_communicator[c]);
        for (const auto& [bytes, form] : forms) {
          std::uint64_t loads = 0;
          for (const comm::LinkLoad& load : form.loads) {
            const std::size_t l = load.link.index();
            const std::uint64_t amount =
                joined(joined(r, rounded(bytes)), rounded(load.bytes_per_byte));
            loads += joined(static_cast<std::uint64_t>(folding.class_of_link[l]), amount);
            link_[l] += joined(of, amount);
          }
          communicator_[c] = joined(joined(communicator_[c], r), joined(rounded(bytes), loads));
        }
      }
    }
    for (std::size_t c = 0; c < communicator_.size(); ++c) {
      const Communicator& of = communicators.all[c];
      for (std::size_t i = 0; i < of.ranks.size(); ++i) {
        const std::size_t place = of.kind == program::CollectiveKind::kSend ? i + 1 : 0;
        if (communicator_[c] != 0)
          rank_[static_cast<std::size_t>(of.ranks[i])] += joined(communicator_[c], place);
      }
    }
  }

  // Whether members of a class have equal signatures.
  bool agree_with(const Folding& folding) const {
    return uniform(communicator_, folding.class_of_communicator) &&
           uniform(link_, folding.class_of_link);
  }
  void refine(InitialColours& colours) const {
    for (std::size_t r = 0; r < rank_.size(); ++r)
      if (rank_[r] != 0) colours.of_rank[r] = joined(colours.of_rank[r], rank_[r]);
    for (std::size_t l = 0; l < link_.size(); ++l)
      if (link_[l] != 0) colours.of_link[l] = joined(colours.of_link[l], link_[l]);
  }

 private:
  static bool uniform(const std::vector<std::uint64_t>& signature,
                      const std::vector<std::int32_t>& class_of) {
    std::map<std::int32_t, std::uint64_t> of_class;
    for (std::size_t i = 0; i < signature.size(); ++i) {
      if (class_of[i] < 0) continue;
      if (of_class.emplace(class_of[i], signature[i]).first->second != signature[i]) return false;
    }
    return true;
  }

  std::vector<std::uint64_t> communicator_;
  std::vector<std::uint64_t> rank_;
  std::vector<std::uint64_t> link_;
};

}  // namespace

Folding fold_disturbed(const ClusterView& cluster, const Program& program,
                       const Communicators& communicators, const CommunicatorForms& forms,
                       bool folds, const Plan& plan, const std::vector<RoutesFrom>& routes,
                       const FoldLimits& limits) {
  constexpr int kMostRounds = 20;
  InitialColours colours = colours_of(cluster, program, plan);
  colours.ways_may_change = !routes.empty();
  for (int round = 0; folds && !plan.jitter && round < kMostRounds; ++round) {
    Folding folding = fold(cluster, program, communicators, forms, true, colours, limits);
    if (routes.empty()) return folding;
    const RoutedSignatures signatures(communicators, folding, routes, colours.of_rank.size(),
                                      colours.of_link.size());
    if (signatures.agree_with(folding)) return folding;
    signatures.refine(colours);
  }
  return fold(cluster, program, communicators, forms, false, colours);
}

namespace {

class Events {
 public:
  Events(BuiltWorkload& built, const ClusterView& cluster, const Program& program,
         const Folding& folding)
      : built_(built),
        cluster_(cluster),
        folding_(folding),
        class_if_first_(cluster.links().size(), -1) {
    for (std::size_t l = 0; l < folding.link_representative.size(); ++l)
      class_if_first_[folding.link_representative[l].index()] = static_cast<std::int32_t>(l);
    for (std::size_t c = 0; c < folding.rank_representative.size(); ++c)
      class_of_device_[device_of(program, folding.rank_representative[c])] = c;
  }

  void add(const Plan& plan, const std::vector<RoutesFrom>& routes) {
    for (const auto& change : plan.throttled) throttle(change);
    for (const auto& profile : plan.profiles) change_capacities(profile);
    for (const auto& outage : plan.outages) fail(outage);
    for (const auto& traffic : plan.traffic) share(traffic);
    for (const auto& now : routes) reroute(now);
  }

 private:
  // The resource of a link, if the link represents its class.
  std::optional<engine::ResourceId> resource_of(LinkId link) const {
    const std::int32_t of = class_if_first_[link.index()];
    if (of < 0) return std::nullopt;
    return built_.resources.links[static_cast<std::size_t>(of)];
  }

  // A kernel's work is its time at full speed: at speed s, each second of work takes 1/s seconds of
  // all SMs.
  void throttle(const disturbance::SpeedChange& change) {
    const auto of = class_of_device_.find(change.device);
    if (of == class_of_device_.end()) return;
    const engine::ShapeId normal = built_.resources.compute_shape[of->second];
    engine::ShapeId now = normal;
    if (change.speed != 1)
      now = built_.workload.add_shape(
          {.usages = {{.resource = built_.resources.sm[of->second], .weight = 1 / change.speed}},
           .occupations = {}});
    built_.workload.add_shape_change(normal, change.at, now);
  }

  void change_capacities(const disturbance::Profile& profile) {
    for (const LinkId link : profile.links) {
      const auto resource = resource_of(link);
      if (!resource) continue;
      const double bandwidth = cluster_.links()[link.index()].bandwidth.in_base();
      for (const disturbance::ProfilePoint& point : profile.points)
        built_.workload.add_capacity_change(*resource, point.at, bandwidth * point.factor,
                                            profile.period);
    }
  }

  void fail(const Outage& outage) {
    const Seconds failure_timeout =
        outage.then == FailureReaction::kFail ? outage.detection : Seconds(engine::kNever);
    const auto one = [&](engine::ResourceId resource) {
      built_.workload.add_failure(resource, outage.at, failure_timeout);
      if (outage.until < disturbance::kNever) built_.workload.add_repair(resource, outage.until);
    };
    for (const LinkId link : outage.links)
      if (const auto resource = resource_of(link)) one(*resource);
    for (const DeviceId device : outage.devices) {
      const auto of = class_of_device_.find(device);
      if (of != class_of_device_.end()) one(built_.resources.sm[of->second]);
    }
  }

  void share(const Traffic& traffic) {
    engine::Shape shape{.usages = {}, .occupations = {}};
    shape.connections = traffic.connections;
    shape.rate_cap = traffic.rate.in_base();
    for (const RoutedLink& link : traffic.links) {
      const auto resource = resource_of(link.link);
      if (!resource) {
        shape.rate_cap = std::min(
            shape.rate_cap, cluster_.links()[link.link.index()].bandwidth.in_base() / link.share);
      } else if (traffic.constant) {
        shape.occupations.push_back(
            {.resource = *resource, .amount = traffic.rate.in_base() * link.share});
      } else {
        shape.usages.push_back({.resource = *resource, .weight = link.share});
      }
    }
    // the job uses none of these links
    if (shape.usages.empty() && shape.occupations.empty()) return;
    built_.workload.add_background(built_.workload.add_shape(std::move(shape)), traffic.from,
                                   traffic.until, traffic.period);
  }

  // Does what internal::communication_shapes does, for the rerouted communicators.
  void reroute(const RoutesFrom& now) {
    struct Sum {
      double weight = 0;
      double total = 0;
    };
    std::map<std::pair<std::int32_t, double>, std::map<std::int32_t, Sum>> load;
    std::map<std::pair<std::int32_t, double>, const comm::FlatCollective*> form_of;
    for (const auto& [c, forms] : now.forms) {
      const std::int32_t of = folding_.class_of_communicator[c];
      for (const auto& [bytes, form] : forms) {
        form_of.emplace(std::pair(of, bytes), &form);
        auto& sums = load[{of, bytes}];
        for (const comm::LinkLoad& link : form.loads) {
          const std::int32_t link_class = class_if_first_[link.link.index()];
          if (link_class < 0) continue;
          Sum& sum = sums[link_class];
          const double weight = link.bytes_per_byte / form.bandwidth_fraction;
          sum.weight = std::max(sum.weight, weight);
          sum.total += weight;
        }
      }
    }
    for (const auto& [key, known] : built_.resources.communication_shape) {
      const auto& [shape, limited] = known;
      if (!limited) continue;
      const auto sums = load.find(key);
      auto& current = shape_now_.try_emplace(key, shape).first->second;
      if (sums == load.end()) {
        if (std::exchange(current, shape) != shape)
          built_.workload.add_shape_change(shape, now.at, shape);
        continue;
      }
      const comm::FlatCollective& form = *form_of.at(key);
      engine::Shape other{.usages = {}, .occupations = {}};
      other.connections = form.connections;
      other.rate_cap = form.rate_cap.in_base();
      other.occupations = built_.workload.shape(shape).occupations;
      for (const auto& [link_class, sum] : sums->second)
        other.usages.push_back(
            {.resource = built_.resources.links[static_cast<std::size_t>(link_class)],
             .weight = sum.weight,
             .multiplicity = sum.total / sum.weight});
      current = built_.workload.add_shape(std::move(other));
      built_.workload.add_shape_change(shape, now.at, current);
    }
  }

  BuiltWorkload& built_;
  const ClusterView& cluster_;
  const Folding& folding_;
  std::vector<std::int32_t> class_if_first_;         // link -> its class, if it represents it
  std::map<DeviceId, std::size_t> class_of_device_;  // devices of representatives
  std::map<std::pair<std::int32_t, double>, engine::ShapeId> shape_now_;
};

}  // namespace

Result<BuiltWorkload> build_disturbed(const ClusterView& cluster, const Program& program,
                                      const Communicators& communicators,
                                      const CommunicatorForms& forms, const Folding& folding,
                                      Granularity granularity, bool coalesce, const Plan& plan,
                                      const std::vector<RoutesFrom>& routes) {
  const bool devices_fail = std::ranges::any_of(
      plan.outages, [](const Outage& outage) { return !outage.devices.empty(); });
  FORESHARD_ASSIGN(BuiltWorkload built,
                   build_workload(cluster, program, communicators, forms, folding, granularity,
                                  coalesce && !devices_fail, &plan));
  Events(built, cluster, program, folding).add(plan, routes);
  return built;
}

Status obstacle_to(const Plan& plan, const SimulateOptions& options) {
  if (options.granularity == Granularity::kFlat || instants_of(plan).empty()) return {};
  return Error{Error::Code::kUnsupported,
               "failures are rerouted only where a collective is one activity: leave out "
               "--granularity stepwise, or let them fail or wait"};
}

}  // namespace foreshard::sim
