// Classes of ranks that behave alike, by colour refinement. Verification of programs (verify.cc)
// checks one representative of each class.
#include "strategies/program/ir/internal/rank_classes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/index.h"

#include "strategies/program/ir/group.h"

namespace foreshard::program::internal {
namespace {

constexpr std::int32_t kNone = -1;

// One Group of the program, resolved for all ranks.
struct Partition {
  const Group* group = nullptr;
  // rank -> its peer (AxisPeer), or else a label that the members of its group share; kNone if it
  // is in no group.
  std::vector<std::int32_t> cell;
  std::vector<std::uint64_t> fingerprint;  // label -> a hash of the set of ranks with it
};

Partition partition(const Program& program, const Group& group) {
  const auto ranks = static_cast<std::int32_t>(program.ranks());
  Partition out{&group, {}, {}};
  if (std::holds_alternative<AxisPeer>(group)) {
    for (std::int32_t r = 0; r < ranks; ++r) out.cell.push_back(*peer_of(program, group, r));
    return out;
  }
  out.cell = labels_of(program, group);
  out.fingerprint.resize(at(ranks));
  for (std::int32_t r = 0; r < ranks; ++r)
    if (out.cell[at(r)] != kNone)
      out.fingerprint[at(out.cell[at(r)])] += mixed(static_cast<std::uint64_t>(r));
  return out;
}

class Refiner {
 public:
  explicit Refiner(const Program& program) : program_(program), ranks_(at(program.ranks())) {
    role_of_.resize(ranks_);
    for (std::size_t role = 0; role < program.roles.size(); ++role)
      for (const std::int32_t rank : program.roles[role].ranks)
        role_of_[at(rank)] = static_cast<std::int32_t>(role);
    find_groups();
  }

  Status membership_fault() const {
    for (std::size_t r = 0; r < ranks_; ++r)
      for (const std::int32_t g : groups_of_role_[at(role_of_[r])]) {
        const Partition& p = partitions_[at(g)];
        if (p.cell[r] == kNone)
          return violation(16, who(r), "names a group for communication that it is not in");
        if (p.fingerprint.empty() && p.cell[r] == static_cast<std::int32_t>(r))
          return violation(16, who(r), "sends to, or receives from, itself");
      }
    return {};
  }

  Result<RankClasses> refine() {
    find_same_groups();
    class_of_ = role_of_;
    std::size_t classes = program_.roles.size();
    for (;;) {
      FORESHARD_TRY(find_attendees());
      const std::size_t refined = split();
      if (refined == classes) break;
      classes = refined;
    }
    return collect(classes);
  }

 private:
  std::string who(std::size_t rank) const {
    return "rank " + std::to_string(rank) + " (role " +
           in_quotes(program_.roles[at(role_of_[rank])].name) + ")";
  }

  void find_groups() {
    std::map<Group, std::int32_t> known;
    for (const Role& role : program_.roles) {
      std::set<std::int32_t> blocks;
      for (const Call& call : role.calls) blocks.insert(call.block.value());
      auto& groups = groups_of_role_.emplace_back();
      for (const std::int32_t block : blocks)
        for (const Task& task : program_.blocks[at(block)].tasks) {
          const auto* communication = std::get_if<Communication>(&task.body);
          if (!communication) continue;
          const auto [entry, is_new] =
              known.emplace(communication->group, static_cast<std::int32_t>(partitions_.size()));
          if (is_new) partitions_.push_back(partition(program_, communication->group));
          if (std::find(groups.begin(), groups.end(), entry->second) == groups.end())
            groups.push_back(entry->second);
        }
    }
    first_group_.push_back(0);
    for (std::size_t r = 0; r < ranks_; ++r)
      first_group_.push_back(first_group_.back() + groups_of_role_[at(role_of_[r])].size());
  }

  // A key that distinguishes the groups of one rank: the peer, or the hash of the set of ranks.
  std::pair<bool, std::uint64_t> identity(std::size_t rank, std::int32_t group) const {
    const Partition& p = partitions_[at(group)];
    if (p.fingerprint.empty()) return {true, static_cast<std::uint64_t>(p.cell[rank])};
    return {false, p.fingerprint[at(p.cell[rank])]};
  }

  // The first of `rank`'s groups with that identity.
  std::int32_t position(std::size_t rank, std::pair<bool, std::uint64_t> wanted) const {
    const auto& groups = groups_of_role_[at(role_of_[rank])];
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (identity(rank, groups[i]) == wanted) return static_cast<std::int32_t>(i);
    return kNone;
  }

  void find_same_groups() {
    for (std::size_t r = 0; r < ranks_; ++r)
      for (const std::int32_t g : groups_of_role_[at(role_of_[r])])
        same_as_.push_back(position(r, identity(r, g)));
    attendance_.resize(same_as_.size());
  }

  // Sets `attendance_` from `class_of_`: for each rank and each of its groups, the list of the
  // classes of the members.
  Status find_attendees() {
    lists_.clear();
    list_ids_.clear();
    for (std::size_t g = 0; g < partitions_.size(); ++g) {
      const bool transfer = partitions_[g].fingerprint.empty();
      FORESHARD_TRY(transfer ? attendees_of_peer(g) : attendees_of_cells(g));
    }
    return {};
  }

  Status attendees_of_peer(std::size_t g) {
    for (std::size_t r = 0; r < ranks_; ++r) {
      const auto own = own_index(r, g);
      if (!own) continue;
      const std::size_t peer = at(partitions_[g].cell[r]);
      const std::int32_t back = position(peer, {true, r});
      if (back == kNone)
        return violation(
            17, who(r),
            "sends to, or receives from, " + who(peer) + ", which never does so with it");
      attendance_[first_group_[r] + *own] = intern({{class_of_[peer], back}});
    }
    return {};
  }

  Status attendees_of_cells(std::size_t g) {
    const Partition& p = partitions_[g];
    std::vector<std::vector<GroupMember>> of_cell(ranks_);
    std::vector<std::int32_t> silent(ranks_, kNone);
    std::vector<bool> used(ranks_, false);
    for (std::size_t r = 0; r < ranks_; ++r) {
      if (p.cell[r] == kNone) continue;
      const std::size_t cell = at(p.cell[r]);
      const std::int32_t index = position(r, {false, p.fingerprint[cell]});
      if (index == kNone) {
        silent[cell] = static_cast<std::int32_t>(r);
        continue;
      }
      if (own_index(r, g)) used[cell] = true;
      const GroupMember attendee{class_of_[r], index};
      auto& list = of_cell[cell];
      const auto place = std::lower_bound(list.begin(), list.end(), attendee);
      if (place == list.end() || *place != attendee) list.insert(place, attendee);
    }
    for (std::size_t r = 0; r < ranks_; ++r) {
      const auto own = own_index(r, g);
      if (!own) continue;
      const std::size_t cell = at(p.cell[r]);
      if (silent[cell] != kNone)
        return violation(
            17, who(r),
            "communicates in a group with " + who(at(silent[cell])) + ", which never does so");
      attendance_[first_group_[r] + *own] = intern(of_cell[cell]);
    }
    return {};
  }

  std::optional<std::size_t> own_index(std::size_t rank, std::size_t group) const {
    const auto& groups = groups_of_role_[at(role_of_[rank])];
    const auto found = std::find(groups.begin(), groups.end(), static_cast<std::int32_t>(group));
    if (found == groups.end()) return std::nullopt;
    return static_cast<std::size_t>(found - groups.begin());
  }

  std::int32_t intern(const std::vector<GroupMember>& list) {
    const auto [entry, is_new] = list_ids_.emplace(list, static_cast<std::int32_t>(lists_.size()));
    if (is_new) lists_.push_back(list);
    return entry->second;
  }

  // Splits classes whose ranks differ. \return the number of classes, numbered by role and rank.
  std::size_t split() {
    std::map<std::vector<std::int32_t>, std::int32_t> ids;
    std::vector<std::int32_t> next(ranks_);
    std::vector<std::int32_t> key;
    for (const Role& role : program_.roles)
      for (const std::int32_t rank : role.ranks) {
        const std::size_t r = at(rank);
        key.assign(1, class_of_[r]);
        const auto from = static_cast<std::ptrdiff_t>(first_group_[r]);
        const auto to = static_cast<std::ptrdiff_t>(first_group_[r + 1]);
        key.insert(key.end(), same_as_.begin() + from, same_as_.begin() + to);
        key.insert(key.end(), attendance_.begin() + from, attendance_.begin() + to);
        next[r] = ids.emplace(key, static_cast<std::int32_t>(ids.size())).first->second;
      }
    class_of_ = std::move(next);
    return ids.size();
  }

  // Finds the attendees once more, because the last `split` changed the numbers of the classes (but
  // nothing else).
  Result<RankClasses> collect(std::size_t classes) {
    FORESHARD_TRY(find_attendees());
    RankClasses out;
    for (const auto& groups : groups_of_role_) {
      auto& list = out.groups_of_role.emplace_back();
      for (const std::int32_t g : groups) list.push_back(partitions_[at(g)].group);
    }
    out.classes.resize(classes);
    std::vector<bool> filled(classes, false);
    for (std::size_t r = 0; r < ranks_; ++r) {
      const std::size_t c = at(class_of_[r]);
      if (filled[c]) continue;
      filled[c] = true;
      RankClass& to = out.classes[c];
      to.role = role_of_[r];
      to.representative = static_cast<std::int32_t>(r);
      for (std::size_t i = first_group_[r]; i < first_group_[r + 1]; ++i) {
        to.same_as.push_back(same_as_[i]);
        to.attendees.push_back(lists_[at(attendance_[i])]);
      }
    }
    return out;
  }

  const Program& program_;
  std::size_t ranks_;
  std::vector<std::int32_t> role_of_;
  std::vector<Partition> partitions_;
  std::vector<std::vector<std::int32_t>> groups_of_role_;  // role -> indices into partitions_
  std::vector<std::size_t> first_group_;  // rank -> its first index in the next two
  std::vector<std::int32_t> same_as_;
  std::vector<std::int32_t> attendance_;  // Indices of lists_.
  std::vector<std::int32_t> class_of_;
  std::vector<std::vector<GroupMember>> lists_;
  std::map<std::vector<GroupMember>, std::int32_t> list_ids_;
};

}  // namespace

Result<RankClasses> rank_classes(const Program& program) {
  Refiner refiner(program);
  FORESHARD_TRY(refiner.membership_fault());
  return refiner.refine();
}

}  // namespace foreshard::program::internal
