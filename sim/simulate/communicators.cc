// Lists the groups of ranks that communicate in a Program (communicators.h), for forms, folding and
// the cost model. Each group is listed once, whatever tasks name it.
#include "sim/simulate/communicators.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"

#include "strategies/program/ir/group.h"

namespace foreshard::sim {
namespace {

using program::CollectiveKind;
using program::Communication;
using program::Program;

struct Endpoint {
  program::Group group;
  CollectiveKind kind;
  std::vector<program::Transfer> transfers;
  std::vector<std::int32_t> roots;
  std::optional<program::TokenRouting> routing;
  auto operator<=>(const Endpoint&) const = default;
};

// For an endpoint with listed groups: which list holds a rank, and the transfers within each list.
struct Lists {
  std::vector<std::int32_t> label;  // by rank
  std::map<std::int32_t, std::vector<std::int32_t>> members;
  std::map<std::int32_t, std::vector<program::Transfer>> transfers;
};

bool is_transfer(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
}

class CommunicatorFinder {
 public:
  explicit CommunicatorFinder(const Program& program) : program_(program) {
    found_.memberships.resize(static_cast<std::size_t>(program.ranks()));
  }

  Communicators run() {
    number_endpoints();
    for (const program::Role& role : program_.roles) {
      std::set<std::int32_t> endpoints;
      for (const program::Call& call : role.calls) {
        for (const std::int32_t endpoint : found_.endpoint_of_task[call.block.index()]) {
          if (endpoint != Communicators::kNone) endpoints.insert(endpoint);
        }
      }
      for (const std::int32_t endpoint : endpoints) {
        for (const std::int32_t rank : role.ranks) join(endpoint, rank);
      }
    }
    return std::move(found_);
  }

 private:
  void number_endpoints() {
    std::map<Endpoint, std::int32_t> number;
    for (const program::Block& block : program_.blocks) {
      auto& of_task = found_.endpoint_of_task.emplace_back();
      for (const program::Task& task : block.tasks) {
        const auto* communication = std::get_if<Communication>(&task.body);
        if (communication == nullptr) {
          of_task.push_back(Communicators::kNone);
          continue;
        }
        const auto [it, added] =
            number.try_emplace({communication->group, communication->kind, communication->transfers,
                                communication->roots, communication->routing},
                               static_cast<std::int32_t>(endpoints_.size()));
        if (added) endpoints_.push_back(it->first);
        of_task.push_back(it->second);
      }
    }
    lists_.resize(endpoints_.size());
    found_.of_rank.assign(endpoints_.size(),
                          std::vector<std::int32_t>(static_cast<std::size_t>(program_.ranks()),
                                                    Communicators::kNone));
  }

  std::int32_t add(CollectiveKind kind, std::vector<std::int32_t> ranks, std::int32_t pattern) {
    const auto index = static_cast<std::int32_t>(found_.all.size());
    for (const std::int32_t rank : ranks)
      found_.memberships[static_cast<std::size_t>(rank)].push_back(index);
    found_.all.push_back(
        {.kind = kind, .ranks = std::move(ranks), .pattern = pattern, .root = 0, .transfers = {}});
    return index;
  }

  const Lists& lists_of(std::int32_t endpoint) {
    auto& lists = lists_[static_cast<std::size_t>(endpoint)];
    if (lists) return *lists;
    const Endpoint& what = endpoints_[static_cast<std::size_t>(endpoint)];
    lists.emplace().label = program::labels_of(program_, what.group);
    for (std::size_t rank = 0; rank < lists->label.size(); ++rank) {
      if (lists->label[rank] >= 0)
        lists->members[lists->label[rank]].push_back(static_cast<std::int32_t>(rank));
    }
    for (const program::Transfer& transfer : what.transfers)
      lists->transfers[lists->label[static_cast<std::size_t>(transfer.from)]].push_back(transfer);
    return *lists;
  }

  static void add_transfers(Communicator& to, const std::vector<program::Transfer>& transfers,
                            Bytes bytes) {
    const auto member = [&](std::int32_t rank) {
      return static_cast<std::int32_t>(std::lower_bound(to.ranks.begin(), to.ranks.end(), rank) -
                                       to.ranks.begin());
    };
    for (const program::Transfer& transfer : transfers)
      to.transfers.push_back(
          {member(transfer.from), member(transfer.to), transfer.bytes / bytes, 1});
  }

  void join(std::int32_t endpoint, std::int32_t rank) {
    const Endpoint& what = endpoints_[static_cast<std::size_t>(endpoint)];
    auto& of_rank = found_.of_rank[static_cast<std::size_t>(endpoint)];
    if (of_rank[static_cast<std::size_t>(rank)] != Communicators::kNone) return;
    if (is_transfer(what.kind)) {
      const std::int32_t peer = *program::peer_of(program_, what.group, rank);
      const auto ends =
          what.kind == CollectiveKind::kSend ? std::pair(rank, peer) : std::pair(peer, rank);
      const auto known = transfers_.find(ends);
      // All transfers share one pattern: only the location of their ends tells them apart.
      of_rank[static_cast<std::size_t>(rank)] =
          known != transfers_.end()
              ? known->second
              : (transfers_[ends] = add(CollectiveKind::kSend, {ends.first, ends.second}, -1));
      return;
    }
    const bool listed = std::holds_alternative<program::RankGroups>(what.group) ||
                        what.kind == CollectiveKind::kExchange;
    const std::int32_t label =
        listed ? lists_of(endpoint).label[static_cast<std::size_t>(rank)] : 0;
    FORESHARD_CHECK(label >= 0);
    auto members = listed ? lists_of(endpoint).members.at(label)
                          : program::members_of(program_, what.group, rank);
    FORESHARD_CHECK(!members.empty());
    const std::int32_t index = add(what.kind, members, endpoint);
    Communicator& added = found_.all[static_cast<std::size_t>(index)];
    added.routing = what.routing;
    for (const std::int32_t root : what.roots) {
      const auto place = std::lower_bound(members.begin(), members.end(), root);
      if (place != members.end() && *place == root)
        added.root = static_cast<std::int32_t>(place - members.begin());
    }
    if (what.kind == CollectiveKind::kExchange) {
      Bytes bytes;
      for (const program::Transfer& transfer : what.transfers) bytes += transfer.bytes;
      add_transfers(added, lists_of(endpoint).transfers.at(label), bytes);
    }
    for (const std::int32_t member : members) of_rank[static_cast<std::size_t>(member)] = index;
  }

  const Program& program_;
  std::vector<Endpoint> endpoints_;
  std::vector<std::optional<Lists>> lists_;  // endpoint -> its lists, made when needed
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> transfers_;
  Communicators found_;
};

}  // namespace

Communicators communicators_of(const program::Program& program) {
  return CommunicatorFinder(program).run();
}

}  // namespace foreshard::sim
