#include "sim/simulate/communicators.h"

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
  auto operator<=>(const Endpoint&) const = default;
};

bool is_transfer(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
}

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program) {
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
        const auto [it, added] = number.try_emplace({communication->group, communication->kind},
                                                    static_cast<std::int32_t>(endpoints_.size()));
        if (added) endpoints_.push_back(it->first);
        of_task.push_back(it->second);
      }
    }
    found_.of_rank.assign(endpoints_.size(),
                          std::vector<std::int32_t>(static_cast<std::size_t>(program_.ranks()),
                                                    Communicators::kNone));
  }

  std::int32_t add(CollectiveKind kind, std::vector<std::int32_t> ranks, std::int32_t pattern) {
    const auto index = static_cast<std::int32_t>(found_.all.size());
    for (const std::int32_t rank : ranks)
      found_.memberships[static_cast<std::size_t>(rank)].push_back(index);
    found_.all.push_back({kind, std::move(ranks), pattern});
    return index;
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
      // All transfers have one pattern: what tells them apart is where their ends are.
      of_rank[static_cast<std::size_t>(rank)] =
          known != transfers_.end()
              ? known->second
              : (transfers_[ends] = add(CollectiveKind::kSend, {ends.first, ends.second}, -1));
      return;
    }
    auto members = program::members_of(program_, what.group, rank);
    FORESHARD_CHECK(!members.empty());
    const std::int32_t index = add(what.kind, members, endpoint);
    for (const std::int32_t member : members) of_rank[static_cast<std::size_t>(member)] = index;
  }

  const Program& program_;
  std::vector<Endpoint> endpoints_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> transfers_;
  Communicators found_;
};

}  // namespace

Communicators communicators_of(const program::Program& program) {
  return Finder(program).run();
}

}  // namespace foreshard::sim
