#include <algorithm>

#include "strategies/reshard/internal/paths.h"

namespace foreshard::reshard::internal {
namespace {

// Beyond this many combinations, only single axes and all axes together are tried.
constexpr std::size_t kMostCombinations = 64;

// The edges that leave `at`, one function per primitive.
class Routes {
 public:
  Routes(const Attribute& at, const Attribute& from, const Attribute& to, const Grid& grid)
      : at_(at), from_(from), to_(to), grid_(grid) {
    for (const Partial& partial : at.partial)
      if (!kept(partial)) partial_.push_back(partial.axis);
  }

  std::vector<Route> all() && {
    slices();
    reductions();
    regroupings();
    return std::move(routes_);
  }

 private:
  bool kept(const Partial& partial) const {
    return std::ranges::find(to_.partial, partial) != to_.partial.end();
  }
  bool wanted(Axis axis) const { return dim_of(to_, axis) >= 0; }

  void add(Primitive primitive, std::vector<Axis> axes, Attribute to) {
    std::ranges::sort(axes);
    routes_.push_back({.primitive = primitive, .axes = std::move(axes), .to = std::move(to)});
  }

  void slices() {
    for (Axis axis = 0; static_cast<std::size_t>(axis) < grid_.axes.size(); ++axis) {
      if (grid_.size(axis) == 1 || state_of(at_, axis).kind != AxisState::Kind::kReplicated)
        continue;
      if (wanted(axis)) {
        if (auto next = placed(at_, grid_, {axis}, to_))
          add(Primitive::kSlice, {axis}, *std::move(next));
      } else if (state_of(from_, axis).kind == AxisState::Kind::kReplicated) {
        if (auto next = parked(at_, grid_, axis, to_))
          add(Primitive::kSlice, {axis}, *std::move(next));
      }
    }
  }

  // All runs of neighbours in `axes`, which ascend: one level of the cluster's hierarchy, or
  // several adjacent levels.
  static std::vector<std::vector<Axis>> runs(const std::vector<Axis>& axes) {
    std::vector<std::vector<Axis>> result;
    for (auto first = axes.begin(); first != axes.end(); ++first)
      for (auto last = first + 1;; ++last) {
        result.emplace_back(first, last);
        if (last == axes.end()) break;
      }
    return result;
  }

  void reductions() {
    for (const auto& axes : runs(partial_)) {
      Attribute reduced = at_;
      std::erase_if(reduced.partial, [&](const Partial& partial) {
        return std::ranges::find(axes, partial.axis) != axes.end();
      });
      // A scatter over all axes that must be gathered again would be an all-reduce.
      const bool all_again = axes.size() > 1 && axes.size() == partial_.size() &&
                             std::ranges::none_of(axes, [&](Axis axis) { return wanted(axis); });
      if (auto next = split_all(reduced, axes); next && !all_again)
        add(Primitive::kReduceScatter, axes, *std::move(next));
      add(Primitive::kAllReduce, axes, std::move(reduced));
    }
  }

  // `attribute` split by all of `axes`: axes that the target splits are placed there, and the rest
  // are parked.
  std::optional<Attribute> split_all(const Attribute& attribute,
                                     const std::vector<Axis>& axes) const {
    std::vector<Axis> here;
    std::vector<Axis> rest;
    for (const Axis axis : axes) (wanted(axis) ? here : rest).push_back(axis);
    auto next = placed(attribute, grid_, here, to_);
    for (const Axis axis : rest)
      if (next) next = parked(*next, grid_, axis, to_);
    return next;
  }

  // Gathers and all-to-alls take axes from the minor ends of the dimensions; every combination of
  // numbers of axes per dimension is tried.
  void regroupings() {
    std::vector<std::size_t> most;
    std::size_t combinations = 1;
    for (std::size_t d = 0; d < at_.dims.size(); ++d) {
      most.push_back(at_.dims[d].size() - settled(at_, to_, grid_, d));
      combinations *= most.back() + 1;
    }
    if (combinations > kMostCombinations) {
      for (std::size_t d = 0; d < most.size(); ++d) {
        std::vector<std::size_t> one(most.size(), 0);
        one[d] = 1;
        if (most[d] > 0) regroup(one, false);
      }
      regroup(most, true);
      return;
    }
    std::vector<std::size_t> counts(most.size(), 0);
    for (std::size_t i = 1; i < combinations; ++i) {
      for (std::size_t d = 0; d < counts.size(); ++d) {
        if (++counts[d] <= most[d]) break;
        counts[d] = 0;
      }
      regroup(counts, counts == most);
    }
  }

  // Moves `counts[d]` minor axes of each dimension d. Several axes move together only if they are
  // neighbours, or if they are all that are misplaced.
  void regroup(const std::vector<std::size_t>& counts, bool all) {
    std::vector<Axis> axes;
    bool all_move = true;
    for (std::size_t d = 0; d < counts.size(); ++d) {
      for (std::size_t i = 0; i < counts[d]; ++i) {
        axes.push_back(at_.dims[d][at_.dims[d].size() - 1 - i]);
        const auto target = dim_of(to_, axes.back());
        all_move = all_move && target >= 0 && target != static_cast<std::int32_t>(d);
      }
    }
    std::ranges::sort(axes);
    const bool run = axes.back() - axes.front() + 1 == static_cast<Axis>(axes.size());
    if (!run && !all) return;
    Attribute gathered = at_;
    for (std::size_t d = 0; d < counts.size(); ++d)
      if (counts[d] > 0) gathered = without_minor(gathered, grid_, d, counts[d]);
    if (all_move) {
      if (auto next = placed(gathered, grid_, axes, to_))
        add(Primitive::kAllToAll, axes, *std::move(next));
    }
    if (axes.size() == 1) move_out_of_the_way(axes[0], gathered);
    add(Primitive::kAllGather, std::move(axes), std::move(gathered));
  }

  // Parks an axis elsewhere if a more major axis of its dimension has to change first.
  void move_out_of_the_way(Axis axis, const Attribute& gathered) {
    const auto dim = static_cast<std::size_t>(dim_of(at_, axis));
    if (gathered.dims[dim].size() == settled(gathered, to_, grid_, dim)) return;
    auto next = parked(gathered, grid_, axis, to_);
    if (next && dim_of(*next, axis) != static_cast<std::int32_t>(dim))
      add(Primitive::kAllToAll, {axis}, *std::move(next));
  }

  const Attribute& at_;
  const Attribute& from_;
  const Attribute& to_;
  const Grid& grid_;
  std::vector<Axis> partial_;
  std::vector<Route> routes_;
};

}  // namespace

std::vector<Route> routes_from(const Attribute& at, const Attribute& from, const Attribute& to,
                               const Grid& grid) {
  return Routes(at, from, to, grid).all();
}

std::optional<std::vector<Axis>> pad_to(const Attribute& at, const Attribute& to,
                                        const Grid& grid) {
  std::vector<Axis> missing;
  for (const Partial& partial : to.partial)
    if (std::ranges::find(at.partial, partial) == at.partial.end()) missing.push_back(partial.axis);
  for (const Partial& partial : at.partial)
    if (std::ranges::find(to.partial, partial) == to.partial.end()) return std::nullopt;
  Attribute padded = at;
  for (std::size_t d = 0; d < at.dims.size(); ++d) {
    std::size_t count = 0;
    while (count < at.dims[d].size() &&
           std::ranges::find(missing, at.dims[d][at.dims[d].size() - 1 - count]) != missing.end())
      ++count;
    if (count > 0) padded = without_minor(padded, grid, d, count);
  }
  padded.partial = to.partial;
  if (padded != to) return std::nullopt;
  return missing;
}

}  // namespace foreshard::reshard::internal
