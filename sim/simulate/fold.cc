#include "sim/simulate/fold.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <unordered_map>

#include "base/check.h"

#include "sim/simulate/covered.h"
#include "sim/simulate/internal/signature.h"

namespace foreshard::sim {
namespace {

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
struct Needed {
  std::vector<LinkId> links;
  std::vector<std::int32_t> place;  // link of the cluster -> position, or kNone
  std::int64_t covered = 0;
};

Needed needed_links(const ClusterView& cluster, const Communicators& communicators,
                    const CommunicatorForms& forms, const InitialColours& colours,
                    const std::vector<bool>& meets_alone) {
  std::vector<bool> special;
  for (const std::uint64_t colour : colours.of_link) special.push_back(colour != 0);
  if (colours.ways_may_change) special.assign(cluster.links().size(), true);
  const auto roles = link_roles(cluster, communicators, forms, special, meets_alone);
  Needed needed;
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
             const CommunicatorForms& forms, const Needed& needed, const InitialColours& colours,
             const std::vector<bool>& meets_alone)
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
  void start_communicators(const Needed& needed, const std::vector<bool>& meets_alone) {
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
    for (std::size_t c = 0; c < communicator_.size(); ++c) {
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
    const Needed needed = needed_links(cluster, communicators, forms, colours, limits.meets_alone);
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
