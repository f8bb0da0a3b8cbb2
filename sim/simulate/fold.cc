// Finds what behaves alike (fold.h), so that one of each class is simulated; for simulate.cc,
// disturb.cc and sensitivity.cc. Ranks that differ in anything that can change a time are kept
// apart.
#include "sim/simulate/fold.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/caller.h"
#include "base/check.h"

#include "sim/simulate/forms.h"
#include "sim/simulate/internal/signature.h"

namespace foreshard::sim {
namespace {

// Links that can never limit a flow, because other links on the path of everything that crosses
// them fill up first: the uplinks of a leaf that is not oversubscribed, or the ports of a switch
// that is faster than everything attached to it. Folding and the engine can leave them out.
//
// **Why it is exact.** Let activity a put w(a,l) on link l, and let F be a set of links with
//
//     w(a,l)  <=  c * sum over f in F of w(a,f)        for every activity a of the step
//     c * sum over f in F of capacity(f)  <=  capacity(l).
//
// Then any rates r within the capacities of F are also within the capacity of l:
//
//     sum over a of w(a,l) r(a)  <=  c sum over f, a of w(a,f) r(a)
//                                <=  c sum over f of capacity(f)
//
// so without l the same rates are allowed. Max-min rates depend only on the set of allowed rates,
// so they stay the same. Links are left out one after another, each covered by links that are
// still there: by induction the remaining links imply all links that were left out.
//
// Two sets are tried as F: the links into l's tail (without the opposite direction of l's cable,
// since what comes down a cable does not go up it again), and the links out of its head. c is the
// largest quotient of all forms.

// What may become of a link.
enum class LinkRole : std::uint8_t {
  kUnused,   // No communicator uses it.
  kCovered,  // Other links always fill up first.
  kNeeded,
};

// \param special  link -> whether its capacity or its traffic may differ from what the forms say:
//     then it is needed, and covers nothing. Empty: none.
// \param left_out  communicator -> whether it does not count. Empty: all count.
//
// Cost: O(uses of all communicators + links).
std::vector<LinkRole> link_roles(const ClusterView& cluster, const Communicators& communicators,
                                 const CommunicatorForms& forms, const std::vector<bool>& special,
                                 const std::vector<bool>& left_out = {});

// Relative difference up to which sums of bandwidths count as equal.
constexpr double kRounding = 1e-12;

// Links by one of their ends, in CSR form.
struct LinksAt {
  std::vector<std::size_t> begin;
  std::vector<std::int32_t> links;

  LinksAt(const ClusterView& cluster, bool heads) : begin(cluster.vertices().size() + 1, 0) {
    const auto end_of = [heads](const Link& link) { return (heads ? link.to : link.from).index(); };
    for (const Link& link : cluster.links()) ++begin[end_of(link) + 1];
    for (std::size_t v = 1; v < begin.size(); ++v) begin[v] += begin[v - 1];
    links.resize(cluster.links().size());
    auto next = begin;
    for (std::size_t l = 0; l < links.size(); ++l)
      links[next[end_of(cluster.links()[l])]++] = static_cast<std::int32_t>(l);
  }
};

// Number of links between the nearest device and each vertex, by vertex.
std::vector<std::int32_t> distances(const ClusterView& cluster, const LinksAt& out) {
  std::vector<std::int32_t> distance(cluster.vertices().size(), -1);
  std::vector<std::size_t> reached;
  for (const Device& device : cluster.devices()) {
    distance[device.vertex.index()] = 0;
    reached.push_back(device.vertex.index());
  }
  for (std::size_t head = 0; head < reached.size(); ++head) {
    const std::size_t at = reached[head];
    for (std::size_t i = out.begin[at]; i < out.begin[at + 1]; ++i) {
      const auto to = cluster.links()[static_cast<std::size_t>(out.links[i])].to.index();
      if (distance[to] >= 0) continue;
      distance[to] = distance[at] + 1;
      reached.push_back(to);
    }
  }
  return distance;
}

std::vector<LinkRole> link_roles(const ClusterView& cluster, const Communicators& communicators,
                                 const CommunicatorForms& forms, const std::vector<bool>& special,
                                 const std::vector<bool>& left_out) {
  const auto links = cluster.links();
  std::vector<LinkRole> role(links.size(), LinkRole::kUnused);
  std::vector<double> of_feeders(links.size(), 0);
  std::vector<double> of_drains(links.size(), 0);
  for (std::size_t c = 0; c < communicators.all.size(); ++c) {
    if (!left_out.empty() && left_out[c]) continue;
    for (const LinkUse& use : forms.uses(c)) {
      const std::size_t l = forms.link_of(c, use).index();
      role[l] = LinkRole::kNeeded;
      of_feeders[l] = std::max(of_feeders[l], use.of_feeders);
      of_drains[l] = std::max(of_drains[l], use.of_drains);
    }
  }
  for (std::size_t l = 0; l < special.size(); ++l) {
    if (special[l]) role[l] = LinkRole::kNeeded;
  }

  const LinksAt out(cluster, false);
  const LinksAt in(cluster, true);
  const auto capacity_of = [&](const LinksAt& at, VertexId vertex, std::size_t without) {
    double sum = 0;
    for (std::size_t i = at.begin[vertex.index()]; i < at.begin[vertex.index() + 1]; ++i) {
      const auto other = static_cast<std::size_t>(at.links[i]);
      if (other == without || role[other] == LinkRole::kUnused) continue;
      if (role[other] == LinkRole::kCovered || (!special.empty() && special[other]))
        return std::numeric_limits<double>::infinity();
      sum += links[other].bandwidth.in_base();
    }
    return sum;
  };

  // From the top of the fabric down, so that the links that cover a link are still there.
  const auto distance = distances(cluster, out);
  std::vector<std::pair<std::int32_t, std::int32_t>> order;
  for (std::size_t l = 0; l < links.size(); ++l) {
    if (role[l] != LinkRole::kNeeded || (!special.empty() && special[l])) continue;
    const std::int32_t height =
        std::min(distance[links[l].from.index()], distance[links[l].to.index()]);
    if (height > 0) order.emplace_back(-height, static_cast<std::int32_t>(l));
  }
  std::ranges::sort(order);
  for (const auto& [height, index] : order) {
    const auto l = static_cast<std::size_t>(index);
    const auto opposite = opposite_of(cluster, LinkId{index});
    const std::size_t without = opposite ? opposite->index() : links.size();
    const double capacity = links[l].bandwidth.in_base() * (1 + kRounding);
    if (of_feeders[l] * capacity_of(in, links[l].from, without) <= capacity ||
        of_drains[l] * capacity_of(out, links[l].to, without) <= capacity)
      role[l] = LinkRole::kCovered;
  }
  return role;
}

using internal::joined;
using internal::rounded;
using program::Program;

constexpr std::int32_t kNone = -1;

// Numbers signatures in the order of their first occurrence. Returns the number of different ones.
std::int32_t number(const std::vector<std::uint64_t>& signatures,
                    std::vector<std::int32_t>& colour) {
  std::unordered_map<std::uint64_t, std::int32_t> known;
  colour.resize(signatures.size());
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    if (i > 0 && signatures[i] == signatures[i - 1]) {
      colour[i] = colour[i - 1];
      continue;
    }
    const auto next = static_cast<std::int32_t>(known.size());
    colour[i] = known.try_emplace(signatures[i], next).first->second;
  }
  return static_cast<std::int32_t>(known.size());
}

// The needed links; others refer to them by their position in this list.
struct NeededLinks {
  std::vector<LinkId> links;
  std::vector<std::int32_t> place;  // link of the cluster -> position, or kNone
  std::int64_t covered = 0;
};

NeededLinks needed_links(const ClusterView& cluster, const Communicators& communicators,
                         const CommunicatorForms& forms, const InitialColours& colours,
                         const std::vector<bool>& meets_alone) {
  std::vector<bool> special;
  for (const std::uint64_t colour : colours.of_link) special.push_back(colour != 0);
  if (colours.ways_may_change) special.assign(cluster.links().size(), true);
  const auto roles = link_roles(cluster, communicators, forms, special, meets_alone);
  NeededLinks needed;
  needed.place.resize(roles.size(), kNone);
  for (std::size_t l = 0; l < roles.size(); ++l) {
    if (roles[l] == LinkRole::kCovered) ++needed.covered;
    if (roles[l] != LinkRole::kNeeded) continue;
    needed.place[l] = static_cast<std::int32_t>(needed.links.size());
    needed.links.push_back(LinkId{static_cast<std::int64_t>(l)});
  }
  return needed;
}

class Refinement {
 public:
  Refinement(const ClusterView& cluster, const Program& program, const Communicators& communicators,
             const CommunicatorForms& forms, const NeededLinks& needed,
             const InitialColours& colours, const std::vector<bool>& meets_alone)
      : communicators_(communicators), forms_(forms) {
    rank_.resize(static_cast<std::size_t>(program.ranks()));
    for (std::size_t r = 0; r < program.roles.size(); ++r) {
      for (const std::int32_t rank : program.roles[r].ranks) {
        const Device& device = cluster.devices()[device_of(program, rank).index()];
        rank_[static_cast<std::size_t>(rank)] =
            joined(joined(joined(r, static_cast<std::uint64_t>(device.type.value())),
                          std::bit_cast<std::uint64_t>(device.speed)),
                   std::bit_cast<std::uint64_t>(program.launch_time_of(rank).in_base()));
      }
    }
    for (std::size_t r = 0; r < colours.of_rank.size(); ++r)
      rank_[r] = joined(rank_[r], colours.of_rank[r]);
    for (const LinkId link : needed.links) {
      link_.push_back(mixed(rounded(cluster.links()[link.index()].bandwidth.in_base())));
      if (!colours.of_link.empty())
        link_.back() = joined(link_.back(), colours.of_link[link.index()]);
    }
    start_communicators(needed, meets_alone);
  }

  void run(Folding& folding, std::vector<std::int32_t>& class_of_needed_link,
           std::size_t most_classes) {
    std::int64_t before = -1;
    for (;;) {
      const std::int32_t classes = number(rank_, folding.class_of_rank);
      folding.stable = static_cast<std::size_t>(classes) <= most_classes;
      if (!folding.stable) return;
      const std::int64_t colours = classes + number(communicator_, folding.class_of_communicator) +
                                   number(link_, class_of_needed_link);
      if (colours == before) return;
      before = colours;
      refine();
    }
  }

 private:
  void start_communicators(const NeededLinks& needed, const std::vector<bool>& meets_alone) {
    std::vector<std::uint64_t> of_kind(forms_.kinds(), 0);
    std::vector<bool> known(forms_.kinds(), false);
    first_use_.push_back(0);
    for (std::size_t c = 0; c < communicators_.all.size(); ++c) {
      const auto kind = static_cast<std::size_t>(forms_.kind_of(c));
      if (!known[kind]) {
        known[kind] = true;
        of_kind[kind] = signature_of_kind(c);
      }
      const Communicator& communicator = communicators_.all[c];
      communicator_.push_back(joined(
          joined(static_cast<std::uint64_t>(communicator.pattern), communicator.ranks.size()),
          of_kind[kind]));
      const bool alone = !meets_alone.empty() && meets_alone[c];
      for (const LinkUse& use : alone ? std::span<const LinkUse>{} : std::span(forms_.uses(c))) {
        const std::int32_t link = needed.place[forms_.link_of(c, use).index()];
        if (link != kNone) uses_.push_back({link, mixed(use.amount)});
      }
      first_use_.push_back(uses_.size());
    }
  }

  std::uint64_t signature_of_kind(std::size_t c) const {
    std::uint64_t signature = 0;
    for (const auto& [bytes, form] : forms_.of(c)) {
      double largest = 0;
      for (const comm::LinkLoad& load : form.loads)
        largest = std::max(largest, load.bytes_per_byte);
      for (const double value :
           {bytes, forms_.idle(c, Bytes::from_base(bytes)).delay.in_base(), form.connections,
            form.rate_cap.in_base(), form.sm_share, form.bandwidth_fraction, largest})
        signature = joined(signature, rounded(value));
    }
    return signature;
  }

  void refine() {
    std::vector<std::uint64_t> link_sum(link_.size(), 0);
    auto next = communicator_;
    EndPoll poll;
    for (std::size_t c = 0; c < communicator_.size(); ++c) {
      poll();
      const Communicator& communicator = communicators_.all[c];
      std::uint64_t members = 0;
      for (std::size_t i = 0; i < communicator.ranks.size(); ++i) {
        const auto position = communicator.kind == program::CollectiveKind::kSend ? i + 1 : 0;
        members += joined(rank_[static_cast<std::size_t>(communicator.ranks[i])], position);
      }
      std::uint64_t links = 0;
      for (std::size_t u = first_use_[c]; u < first_use_[c + 1]; ++u) {
        const Use& use = uses_[u];
        links += mixed(link_[static_cast<std::size_t>(use.link)] ^ use.amount);
        link_sum[static_cast<std::size_t>(use.link)] += mixed(communicator_[c] ^ use.amount);
      }
      next[c] = joined(joined(communicator_[c], members), links);
    }
    for (std::size_t r = 0; r < rank_.size(); ++r) {
      std::uint64_t sum = 0;
      for (const std::int32_t c : communicators_.memberships[r]) {
        const Communicator& communicator = communicators_.all[static_cast<std::size_t>(c)];
        const bool sends = communicator.kind == program::CollectiveKind::kSend &&
                           communicator.ranks.front() == static_cast<std::int32_t>(r);
        sum += joined(communicator_[static_cast<std::size_t>(c)], sends ? 2 : 1);
      }
      rank_[r] = joined(rank_[r], sum);
    }
    for (std::size_t l = 0; l < link_.size(); ++l) link_[l] = joined(link_[l], link_sum[l]);
    communicator_ = std::move(next);
  }

  struct Use {
    std::int32_t link;
    std::uint64_t amount;
  };
  const Communicators& communicators_;
  const CommunicatorForms& forms_;
  std::vector<std::uint64_t> rank_;
  std::vector<std::uint64_t> communicator_;
  std::vector<std::uint64_t> link_;     // by position among the needed links
  std::vector<std::size_t> first_use_;  // communicator -> start in uses_
  std::vector<Use> uses_;
};

// class -> its first member.
template <class Index>
std::vector<Index> representatives(const std::vector<std::int32_t>& class_of) {
  std::vector<Index> first;
  for (std::size_t i = 0; i < class_of.size(); ++i) {
    if (class_of[i] == static_cast<std::int32_t>(first.size()))
      first.push_back(Index{static_cast<std::int32_t>(i)});
  }
  return first;
}

std::vector<std::int32_t> each_for_itself(std::size_t count) {
  std::vector<std::int32_t> classes(count);
  for (std::size_t i = 0; i < count; ++i) classes[i] = static_cast<std::int32_t>(i);
  return classes;
}

}  // namespace

Folding fold(const ClusterView& cluster, const Program& program, const Communicators& communicators,
             const CommunicatorForms& forms, bool fold, const InitialColours& colours,
             const FoldLimits& limits) {
  Folding folding;
  if (fold) {
    folding.meets_alone = limits.meets_alone;
    folding.reason = forms.unshared_because();
    folding.method = folding.reason.empty() ? FoldMethod::kStructural : FoldMethod::kRefined;
    const NeededLinks needed =
        needed_links(cluster, communicators, forms, colours, limits.meets_alone);
    folding.covered_links = needed.covered;
    std::vector<std::int32_t> class_of_needed;
    Refinement(cluster, program, communicators, forms, needed, colours, limits.meets_alone)
        .run(folding, class_of_needed, limits.most_classes);
    if (!folding.stable) return folding;
    folding.class_of_link.assign(cluster.links().size(), kNone);
    for (std::size_t i = 0; i < needed.links.size(); ++i)
      folding.class_of_link[needed.links[i].index()] = class_of_needed[i];
  } else {
    folding.reason = "not asked for";
    folding.class_of_rank = each_for_itself(static_cast<std::size_t>(program.ranks()));
    folding.class_of_communicator = each_for_itself(communicators.all.size());
    folding.class_of_link = each_for_itself(cluster.links().size());
  }
  folding.rank_representative = representatives<std::int32_t>(folding.class_of_rank);
  folding.communicator_representative =
      representatives<std::int32_t>(folding.class_of_communicator);
  folding.link_representative = representatives<LinkId>(folding.class_of_link);
  folding.rank_count.resize(folding.rank_representative.size());
  for (const std::int32_t c : folding.class_of_rank)
    ++folding.rank_count[static_cast<std::size_t>(c)];
  return folding;
}

}  // namespace foreshard::sim
