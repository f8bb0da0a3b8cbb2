// Reads off a timeline what communications sent over the cluster's links, and how (analyse.h), for
// simulate.cc.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/simulate/analyse.h"

namespace foreshard::sim {
namespace {

using program::BlockId;
using program::Communication;
using program::Program;

// "node3/nic0 -> leaf1" as "node*/nic* -> leaf*".
std::string without_numbers(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit)
      result += c;
    else if (!result.ends_with('*'))
      result += '*';
  }
  return result;
}

// Groups of like links, and the group of each link.
struct Groups {
  std::vector<LinkGroupUse> all;
  std::vector<std::size_t> of_link;
};

Groups groups_of(const ClusterView& cluster) {
  std::vector<std::string> names;
  for (const Vertex& vertex : cluster.vertices()) names.push_back(without_numbers(vertex.name));
  std::map<std::pair<std::string, double>, std::size_t> known;
  Groups groups;
  for (const Link& link : cluster.links()) {
    const std::string what = names[link.from.index()] + " -> " + names[link.to.index()];
    const auto [found, is_new] =
        known.try_emplace({what, link.bandwidth.in_base()}, groups.all.size());
    if (is_new) groups.all.push_back({.what = what, .bandwidth = link.bandwidth});
    ++groups.all[found->second].links;
    groups.of_link.push_back(found->second);
  }
  return groups;
}

// An operation of a class that was done.
struct Done {
  std::pair<std::int32_t, double> what;  // its endpoint, its bytes
  Seconds start;
  Seconds finish;
};

std::vector<Done> done_by(std::size_t c, const Program& program, const Communicators& communicators,
                          const BuiltWorkload& built, const engine::Timeline& times) {
  std::vector<Done> done;
  const program::Role& role = role_of(program, built, c);
  const auto& instances = built.expansions[c]->instances;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const program::Task& task = program::task_of(program, role, instances[i]);
    const auto* operation = std::get_if<Communication>(&task.body);
    const Seconds finish = end_of(built, times, c, i);
    if (operation == nullptr || !std::isfinite(finish.in_base())) continue;
    const auto block = role.calls[static_cast<std::size_t>(instances[i].call)].block.index();
    const std::int32_t endpoint =
        communicators.endpoint_of_task[block][static_cast<std::size_t>(instances[i].task)];
    done.push_back({{endpoint, operation->bytes.in_base()}, start_of(built, times, c, i), finish});
  }
  return done;
}

// Adds up operations over links and time. An operation counts once, with the lowest of its ranks.
class Tally {
 public:
  Tally(const ClusterView& cluster, const Communicators& communicators,
        const CommunicatorForms& forms, const Folding& folding, Seconds step)
      : groups_(groups_of(cluster)),
        communicators_(communicators),
        forms_(forms),
        ranks_(folding.rank_count.size()),
        step_(step),
        crossing_(cluster.links().size()) {
    constexpr std::size_t kParts = 512;  // about the columns of a chart
    for (LinkGroupUse& group : groups_.all) group.use_over_time.resize(kParts);
    for (std::size_t rank = 0; rank < folding.class_of_rank.size(); ++rank)
      ranks_[static_cast<std::size_t>(folding.class_of_rank[rank])].push_back(rank);
  }

  void add(std::size_t of_class, const std::vector<Done>& done) {
    std::map<std::pair<std::int32_t, double>, std::vector<const Done*>> alike;
    for (const Done& one : done) alike[one.what].push_back(&one);
    for (const auto& [what, operations] : alike) {
      const std::map<std::size_t, double> sent = send(of_class, what, operations.size());
      for (const auto& [group, bytes] : sent)
        for (const Done* one : operations) spread(groups_.all[group], bytes, *one);
    }
  }

  // The groups that something crossed, the busiest first.
  std::vector<LinkGroupUse> finish() && {
    for (std::size_t i = 0; i < crossing_.size(); ++i) {
      LinkGroupUse& group = groups_.all[groups_.of_link[i]];
      const Bytes bytes = Bytes::from_base(crossing_[i]);
      group.most = std::max(group.most, bytes);
      group.mean += bytes;  // the sum, until all links are in
    }
    for (LinkGroupUse& group : groups_.all)
      group.mean = group.mean / static_cast<double>(group.links);
    std::erase_if(groups_.all, [](const LinkGroupUse& one) { return !(one.most > 0_B); });
    std::ranges::sort(groups_.all, {}, [](const LinkGroupUse& one) {
      return std::tuple(-(one.most / one.bandwidth), one.what, one.bandwidth);
    });
    return std::move(groups_.all);
  }

 private:
  // Books the bytes of `operations` like ones of a class on their links.
  // \return the bytes of one of them, all ranks of the class together, by groups of links.
  std::map<std::size_t, double> send(std::size_t of_class,
                                     const std::pair<std::int32_t, double>& what,
                                     std::size_t operations) {
    std::map<std::size_t, double> sent;
    for (const std::size_t rank : ranks_[of_class]) {
      const auto found = communicators_.of_rank[static_cast<std::size_t>(what.first)][rank];
      if (found == Communicators::kNone) continue;
      const auto communicator = static_cast<std::size_t>(found);
      if (communicators_.all[communicator].ranks.front() != static_cast<std::int32_t>(rank))
        continue;
      const comm::FlatCollective& form = forms_.at(communicator, Bytes::from_base(what.second));
      forms_.each_load(communicator, form, [&](LinkId link, double bytes_per_byte) {
        const double bytes = what.second * bytes_per_byte;
        crossing_[link.index()] += static_cast<double>(operations) * bytes;
        sent[groups_.of_link[link.index()]] += bytes;
      });
    }
    return sent;
  }

  // Adds the bytes of an operation to the parts of the step in which it lasts, evenly.
  void spread(LinkGroupUse& group, double bytes, const Done& one) const {
    const auto parts = static_cast<double>(group.use_over_time.size());
    const Seconds part = step_ / parts;
    const double full = (group.bandwidth * part).in_base() * static_cast<double>(group.links);
    const double begin = one.start / part;
    const double end = one.finish / part;
    const auto first = static_cast<std::size_t>(std::clamp(std::floor(begin), 0.0, parts - 1));
    const auto last = static_cast<std::size_t>(std::clamp(std::ceil(end) - 1, 0.0, parts - 1));
    for (std::size_t i = first; i <= last; ++i) {
      const auto from = static_cast<double>(i);
      const double share =
          end > begin ? (std::min(end, from + 1) - std::max(begin, from)) / (end - begin) : 1;
      group.use_over_time[i] += share * bytes / full;
    }
  }

  Groups groups_;
  const Communicators& communicators_;
  const CommunicatorForms& forms_;
  std::vector<std::vector<std::size_t>> ranks_;  // class -> its ranks
  Seconds step_;
  std::vector<double> crossing_;  // link -> bytes
};

}  // namespace

std::vector<LinkGroupUse> link_groups_of(const ClusterView& cluster, const Program& program,
                                         const Communicators& communicators,
                                         const CommunicatorForms& forms, const Folding& folding,
                                         const BuiltWorkload& built,
                                         const engine::Timeline& times) {
  Tally tally(cluster, communicators, forms, folding, times.makespan);
  for (std::size_t c = 0; c < built.expansions.size(); ++c)
    tally.add(c, done_by(c, program, communicators, built, times));
  return std::move(tally).finish();
}

std::map<CommunicationKey, ChosenForm> forms_of(const Program& program,
                                                const Communicators& communicators,
                                                const CommunicatorForms& forms,
                                                const Folding& folding,
                                                const BuiltWorkload& built) {
  std::map<CommunicationKey, ChosenForm> chosen;
  for (std::size_t c = 0; c < built.expansions.size(); ++c) {
    const auto rank = static_cast<std::size_t>(folding.rank_representative[c]);
    std::set<BlockId> blocks;
    for (const program::Call& call : role_of(program, built, c).calls) blocks.insert(call.block);
    for (const BlockId block : blocks) {
      const auto& tasks = program.blocks[block.index()].tasks;
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        const auto* what = std::get_if<Communication>(&tasks[t].body);
        if (what == nullptr) continue;
        const auto endpoint = communicators.endpoint_of_task[block.index()][t];
        const auto communicator = communicators.of_rank[static_cast<std::size_t>(endpoint)][rank];
        const comm::FlatCollective& form =
            forms.at(static_cast<std::size_t>(communicator), what->bytes);
        chosen[{static_cast<std::int32_t>(c), block.value(), static_cast<std::int32_t>(t)}] = {
            form.algorithm, form.protocol};
      }
    }
  }
  return chosen;
}

}  // namespace foreshard::sim
