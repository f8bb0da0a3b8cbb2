#include "sim/simulate/fold.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/check.h"

namespace foreshard::sim {
namespace {

using program::Program;

// Finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
std::uint64_t joined(std::uint64_t seed, std::uint64_t value) {
  return mixed(seed ^ mixed(value));
}
// Numbers that symmetry makes equal may differ in their last bits, by the order of a sum.
std::uint64_t rounded(double value) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<float>(value)));
}

// Numbers signatures in the order of their first holder. Returns how many differ.
std::int32_t number(const std::vector<std::uint64_t>& signatures,
                    std::vector<std::int32_t>& colour) {
  std::unordered_map<std::uint64_t, std::int32_t> known;
  colour.resize(signatures.size());
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    const auto next = static_cast<std::int32_t>(known.size());
    colour[i] = known.try_emplace(signatures[i], next).first->second;
  }
  return static_cast<std::int32_t>(known.size());
}

class Refinement {
 public:
  Refinement(const ClusterView& cluster, const Program& program, const Communicators& communicators,
             const CommunicatorForms& forms, const InitialColours& colours)
      : communicators_(communicators), forms_(forms) {
    rank_.resize(static_cast<std::size_t>(program.ranks()));
    for (std::size_t r = 0; r < program.roles.size(); ++r) {
      for (const std::int32_t rank : program.roles[r].ranks) {
        const Device& device = cluster.devices()[device_of(program, rank).index()];
        rank_[static_cast<std::size_t>(rank)] =
            joined(joined(r, static_cast<std::uint64_t>(device.type.value())),
                   std::bit_cast<std::uint64_t>(device.speed));
      }
    }
    for (const Link& link : cluster.links())
      link_.push_back(mixed(rounded(link.bandwidth.in_base())));
    for (std::size_t r = 0; r < colours.of_rank.size(); ++r)
      rank_[r] = joined(rank_[r], colours.of_rank[r]);
    for (std::size_t l = 0; l < colours.of_link.size(); ++l)
      link_[l] = joined(link_[l], colours.of_link[l]);
    for (std::size_t c = 0; c < communicators.all.size(); ++c) {
      std::uint64_t signature = joined(static_cast<std::uint64_t>(communicators.all[c].pattern),
                                       communicators.all[c].ranks.size());
      for (const auto& [bytes, form] : forms.of[c]) {
        signature = joined(signature, rounded(bytes));
        signature =
            joined(signature, rounded(form.delay(Bytes::from_base(bytes), cluster).in_base()));
        signature = joined(signature, rounded(form.connections));
        signature = joined(signature, rounded(form.rate_cap.in_base()));
        signature = joined(signature, rounded(form.sm_share));
      }
      communicator_.push_back(signature);
    }
  }

  static DeviceId device_of(const Program& program, std::int32_t rank) {
    return DeviceId{program.device_of_rank.empty()
                        ? rank
                        : program.device_of_rank[static_cast<std::size_t>(rank)]};
  }

  void run(Folding& folding) {
    std::int64_t before = -1;
    for (;;) {
      const std::int64_t colours = number(rank_, folding.class_of_rank) +
                                   number(communicator_, folding.class_of_communicator) +
                                   number(link_, folding.class_of_link);
      if (colours == before) return;
      before = colours;
      refine();
    }
  }

 private:
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
      std::uint64_t signature = joined(communicator_[c], members);
      for (const auto& [bytes, form] : forms_.of[c]) {
        std::uint64_t links = 0;
        for (const comm::LinkLoad& load : form.loads) {
          const std::uint64_t amount = joined(rounded(bytes), rounded(load.bytes_per_byte));
          links += joined(link_[load.link.index()], amount);
          link_sum[load.link.index()] += joined(communicator_[c], amount);
        }
        signature = joined(signature, links);
      }
      next[c] = signature;
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

  const Communicators& communicators_;
  const CommunicatorForms& forms_;
  std::vector<std::uint64_t> rank_;
  std::vector<std::uint64_t> communicator_;
  std::vector<std::uint64_t> link_;
};

// Per class its first member.
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

comm::Participants participants_of(const ClusterView& cluster, const Program& program,
                                   const Communicators& communicators, std::size_t communicator) {
  const Communicator& of = communicators.all[communicator];
  comm::Participants group{.cluster = &cluster,
                           .devices = {},
                           .flow = communicator,
                           .root = of.root,
                           .transfers = of.transfers};
  for (const std::int32_t rank : of.ranks)
    group.devices.push_back(Refinement::device_of(program, rank));
  return group;
}

Result<CommunicatorForms> choose_forms(const ClusterView& cluster, const Program& program,
                                       const Communicators& communicators,
                                       const comm::Parameters& parameters) {
  // The sizes of each endpoint's operations.
  std::vector<std::set<double>> sizes(communicators.of_rank.size());
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    for (std::size_t t = 0; t < program.blocks[b].tasks.size(); ++t) {
      const std::int32_t endpoint = communicators.endpoint_of_task[b][t];
      if (endpoint == Communicators::kNone) continue;
      const auto& what = std::get<program::Communication>(program.blocks[b].tasks[t].body);
      sizes[static_cast<std::size_t>(endpoint)].insert(what.bytes.in_base());
    }
  }
  std::vector<std::set<double>> wanted(communicators.all.size());
  for (std::size_t e = 0; e < sizes.size(); ++e) {
    for (const std::int32_t c : communicators.of_rank[e]) {
      if (c != Communicators::kNone)
        wanted[static_cast<std::size_t>(c)].insert(sizes[e].begin(), sizes[e].end());
    }
  }
  CommunicatorForms chosen;
  for (std::size_t c = 0; c < communicators.all.size(); ++c) {
    const auto group = participants_of(cluster, program, communicators, c);
    const auto forms = comm::flat_forms(communicators.all[c].kind, group, parameters);
    if (!forms) return forms.error();
    auto& of = chosen.of.emplace_back();
    for (const double bytes : wanted[c])
      of[bytes] = (*forms)[comm::best_form(*forms, Bytes::from_base(bytes), cluster)];
  }
  return chosen;
}

Folding fold(const ClusterView& cluster, const Program& program, const Communicators& communicators,
             const CommunicatorForms& forms, bool fold, const InitialColours& colours) {
  Folding folding;
  if (fold) {
    Refinement(cluster, program, communicators, forms, colours).run(folding);
  } else {
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
