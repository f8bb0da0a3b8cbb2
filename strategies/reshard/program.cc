#include "strategies/reshard/program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"

namespace foreshard::reshard {
namespace {

using program::Communication;
using program::Task;

// Sets of ranks joined by messages.
class UnionFind {
 public:
  explicit UnionFind(std::size_t ranks) : parent_(ranks) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  std::int32_t of(std::int32_t rank) {
    while (at(rank) != rank) rank = at(rank) = at(at(rank));
    return rank;
  }
  void join(std::int32_t a, std::int32_t b) {
    a = of(a);
    b = of(b);
    at(std::max(a, b)) = std::min(a, b);
  }

 private:
  std::int32_t& at(std::int32_t rank) { return parent_[static_cast<std::size_t>(rank)]; }
  std::vector<std::int32_t> parent_;
};

class Writer {
 public:
  Writer(const Plan& plan, const TensorSpec& tensor, const Placement& placement)
      : tensor_(tensor), nodes_(nodes_of_ranks(placement)) {
    std::set<std::int32_t> ranks;
    for (const Step& step : plan.steps) {
      ranks.insert(step.from.mesh.ranks.begin(), step.from.mesh.ranks.end());
      ranks.insert(step.to.mesh.ranks.begin(), step.to.mesh.ranks.end());
    }
    for (const std::int32_t rank : ranks) {
      number_.emplace(rank, static_cast<std::int32_t>(program_.device_of_rank.size()));
      program_.device_of_rank.push_back(placement.device(rank).value());
    }
    blocks_of_rank_.resize(ranks.size());
    program_.name = plan.name;
    program_.mesh = {{"rank", std::max<std::int64_t>(1, std::ssize(ranks))}};
    program_.streams = {{"compute"}};
    program_.totals.peak_dtype = name_of(tensor.dtype);
  }

  Result<program::Program> run(const Plan& plan) {
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      FORESHARD_TRY(add(plan.steps[s], std::to_string(s + 1) + " "));
    if (program_.blocks.empty())
      return Error{Error::Code::kInvalidInput,
                   "plan '" + plan.name + "' has no Program: nothing moves and nothing is copied"};
    add_roles();
    return std::move(program_);
  }

 private:
  std::int32_t number(std::int32_t rank) const { return number_.at(rank); }
  std::vector<std::int32_t> numbers(const std::vector<std::int32_t>& ranks) const {
    std::vector<std::int32_t> list;
    list.reserve(ranks.size());
    for (const std::int32_t rank : ranks) list.push_back(number(rank));
    std::ranges::sort(list);
    return list;
  }

  // Adds a block of one task, which `ranks` call.
  void call(Task task, const std::vector<std::int32_t>& ranks) {
    const auto block = static_cast<std::int32_t>(program_.blocks.size());
    for (const std::int32_t rank : ranks)
      blocks_of_rank_[static_cast<std::size_t>(rank)].push_back(block);
    std::string name = task.name;
    program_.blocks.push_back({.name = std::move(name), .tasks = {std::move(task)}});
  }

  void copy(const std::string& name, std::int64_t elements, const ProcessMesh& mesh) {
    if (elements == 0) return;
    call(
        {.name = name,
         .body = Kernel{Pass{
             .kind = PassKind::kTranspose, .rows = elements, .columns = 1, .dtype = tensor_.dtype}},
         .stream = program::StreamId{0},
         .after = {}},
        numbers(mesh.ranks));
  }

  Status add(const Step& step, const std::string& prefix) {
    const std::string name = prefix + std::string(name_of(step.primitive));
    const Repack repack = repack_of(step, tensor_);
    copy(name + ": pack", repack.before, step.from.mesh);
    if (step.primitive == Primitive::kTransfer) {
      FORESHARD_TRY(transfer(step, name));
    } else if (!is_local(step.primitive)) {
      collective(step, name);
    }
    copy(is_local(step.primitive) ? name : name + ": unpack", repack.after, step.to.mesh);
    return {};
  }

  void collective(const Step& step, const std::string& name) {
    program::RankGroups groups;
    std::vector<std::int32_t> roots;
    std::size_t members = 0;
    for (const auto& group : groups_of(step)) {
      members = group.size();
      if (members < 2) return;  // nobody to talk to
      groups.groups.push_back(numbers(group));
      roots.push_back(number(group.front()));
    }
    std::ranges::sort(groups.groups);
    std::ranges::sort(roots);
    const Bytes bytes = communication_bytes(step.primitive, volume_of(step, tensor_).logical,
                                            static_cast<double>(members));
    Communication what{.kind = *collective_of(step.primitive),
                       .group = std::move(groups),
                       .bytes = bytes,
                       .dtype = tensor_.dtype};
    if (step.primitive == Primitive::kBroadcast) what.roots = std::move(roots);
    call({.name = name, .body = std::move(what), .stream = program::StreamId{0}, .after = {}},
         numbers(step.to.mesh.ranks));
  }

  Status transfer(const Step& step, const std::string& name) {
    if (const double moves = count_moves(step, tensor_); moves > kMostMoves)
      return Error{Error::Code::kUnsupported,
                   "a transfer of " + std::to_string(static_cast<std::int64_t>(moves)) +
                       " messages; at most " +
                       std::to_string(static_cast<std::int64_t>(kMostMoves)) + " are written out"};
    Communication what{
        .kind = program::CollectiveKind::kExchange, .group = {}, .dtype = tensor_.dtype};
    UnionFind components(program_.device_of_rank.size());
    for (const Move& move : moves_of(step, tensor_, nodes_)) {
      if (move.from == move.to) continue;
      const Bytes bytes = size_of(tensor_.dtype) * static_cast<double>(move.box.elements());
      what.transfers.push_back({number(move.from), number(move.to), bytes});
      what.bytes += bytes;
      components.join(number(move.from), number(move.to));
    }
    if (what.transfers.empty()) return {};
    std::map<std::int32_t, std::vector<std::int32_t>> lists;
    for (std::int32_t rank = 0; rank < std::ssize(program_.device_of_rank); ++rank)
      lists[components.of(rank)].push_back(rank);
    program::RankGroups groups;
    std::vector<std::int32_t> all;
    for (auto& [first, list] : lists) {
      if (list.size() < 2) continue;
      all.insert(all.end(), list.begin(), list.end());
      groups.groups.push_back(std::move(list));
    }
    what.group = std::move(groups);
    call({.name = name, .body = std::move(what), .stream = program::StreamId{0}, .after = {}}, all);
    return {};
  }

  // Ranks that call the same blocks share a role. Ranks without a part in the plan have a role
  // without calls.
  void add_roles() {
    std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> ranks_of;
    for (std::size_t rank = 0; rank < blocks_of_rank_.size(); ++rank)
      ranks_of[blocks_of_rank_[rank]].push_back(static_cast<std::int32_t>(rank));
    std::vector<program::Role> roles;
    for (auto& [blocks, ranks] : ranks_of) {
      program::Role role{.name = {}, .ranks = std::move(ranks)};
      for (const std::int32_t block : blocks)
        role.calls.push_back({.block = program::BlockId{block}, .repeat = 1});
      roles.push_back(std::move(role));
    }
    std::ranges::sort(roles, {}, [](const program::Role& role) { return role.ranks.front(); });
    for (std::size_t r = 0; r < roles.size(); ++r) roles[r].name = "ranks " + std::to_string(r);
    program_.roles = std::move(roles);
  }

  const TensorSpec& tensor_;
  std::vector<std::int32_t> nodes_;
  std::map<std::int32_t, std::int32_t> number_;
  std::vector<std::vector<std::int32_t>> blocks_of_rank_;
  program::Program program_;
};

// The largest extent of a dimension's slices.
std::int64_t widest(const Slices& slices, std::size_t dim) {
  const auto& bounds = slices.bounds(dim);
  std::int64_t extent = 0;
  for (std::size_t i = 1; i < bounds.size(); ++i)
    extent = std::max(extent, bounds[i] - bounds[i - 1]);
  return extent;
}

// Whether slices of `holder` are cut into slices of `other`, or joined from them, along a dimension
// that an earlier dimension with more than one index precedes.
bool scattered(const Slices& holder, const Slices& other, std::size_t dimensions) {
  std::int64_t outer = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (outer > 1 && holder.bounds(d) != other.bounds(d) && widest(holder, d) > 1) {
      // Cut finer: a bound of `other` lies within a slice of `holder`.
      const auto& own = holder.bounds(d);
      for (const std::int64_t bound : other.bounds(d))
        if (!std::binary_search(own.begin(), own.end(), bound)) return true;
    }
    outer *= widest(holder, d);
  }
  return false;
}

}  // namespace

Result<program::Program> program_of(const Plan& plan, const TensorSpec& tensor,
                                    const Placement& placement) {
  FORESHARD_CHECK(placement.cluster != nullptr);
  return Writer(plan, tensor, placement).run(plan);
}

Repack repack_of(const Step& step, const TensorSpec& tensor) {
  const Slices from(step.from, tensor.shape);
  const Slices to(step.to, tensor.shape);
  const std::size_t dimensions = tensor.shape.size();
  const bool cuts = scattered(from, to, dimensions);
  const bool joins = scattered(to, from, dimensions);
  switch (step.primitive) {
    case Primitive::kAllReduce:
    case Primitive::kBroadcast:
      return {};
    case Primitive::kAllGather:
      return {.after = joins ? to.largest() : 0};
    case Primitive::kReduceScatter:
      return {.before = cuts ? from.largest() : 0};
    case Primitive::kAllToAll:
    case Primitive::kTransfer:
      return {.before = cuts ? from.largest() : 0, .after = joins ? to.largest() : 0};
    case Primitive::kSlice:
      return {.after = cuts ? to.largest() : 0};
    case Primitive::kPad:
      return {.after = to.largest()};
  }
  return {};
}

}  // namespace foreshard::reshard
