#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/quantity.h"

#include "strategies/graph/layout.h"
#include "strategies/reshard/internal/paths.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard::internal {
namespace {

// A common mesh for two layouts of the same ranks: tp8 and tp4 x pp2 can both be written on the
// mesh 4 x 2. Axes are also cut where the node changes, so that a collective can stay within nodes.

struct CommonMesh {
  ProcessMesh mesh{};
  // axis of the source (target) mesh -> the common axes that it consists of, the fastest first,
  // without axes of size 1.
  std::vector<std::vector<Axis>> from{};
  std::vector<std::vector<Axis>> to{};
};

// An axis in positions of the `from` mesh: coordinates are `stride` apart, up to `end`.
struct AxisStride {
  std::int64_t stride = 1;
  std::int64_t end = 1;
};

std::vector<AxisStride> spans_of(const std::vector<MeshAxis>& axes) {
  std::vector<AxisStride> spans;
  std::int64_t stride = 1;
  for (const MeshAxis& axis : axes) {
    spans.push_back({stride, stride * axis.size});
    stride *= axis.size;
  }
  return spans;
}

// The axes of `to` in positions of `from`; empty if the positions are not linear in `to`'s
// coordinates.
std::optional<std::vector<AxisStride>> spans_within(const ProcessMesh& from,
                                                    const ProcessMesh& to) {
  if (from.size() != to.size()) return std::nullopt;
  std::map<std::int32_t, std::int64_t> position;
  for (std::int64_t i = 0; i < from.size(); ++i)
    position[from.ranks[static_cast<std::size_t>(i)]] = i;
  std::vector<std::int64_t> seen;
  seen.reserve(to.ranks.size());
  for (const auto rank : to.ranks) {
    const auto found = position.find(rank);
    if (found == position.end()) return std::nullopt;
    seen.push_back(found->second);
  }
  std::vector<AxisStride> spans;
  std::int64_t step = 1;
  for (const MeshAxis& axis : to.axes) {
    const std::int64_t stride = axis.size > 1 ? seen[static_cast<std::size_t>(step)] - seen[0] : 1;
    if (stride < 1) return std::nullopt;
    spans.push_back({stride, stride * axis.size});
    step *= axis.size;
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t expected = 0;
    for (std::size_t a = 0; a < spans.size(); ++a) {
      expected += rest % to.axes[a].size * spans[a].stride;
      rest /= to.axes[a].size;
    }
    if (seen[i] != expected) return std::nullopt;
  }
  return spans;
}

// The coarsest mesh, in the order of `from`'s ranks, such that every axis of `from` and of `to` is
// a run of its axes. Empty if there is none (different ranks, an order of `to` that no axes
// describe, or sizes like 2 x 3 against 3 x 2).
// \param run  an extra cut of the axes: the number of consecutive positions that share a node; 1:
//     no extra cut.
std::optional<CommonMesh> common_mesh(const ProcessMesh& from, const ProcessMesh& to,
                                      std::int64_t run = 1) {
  const auto mine = spans_of(from.axes);
  const auto theirs = spans_within(from, to);
  if (!theirs) return std::nullopt;
  std::set<std::int64_t> cuts{1, from.size(), run};
  for (const auto* spans : {&mine, &*theirs})
    for (const AxisStride& span : *spans) cuts.insert({span.stride, span.end});

  CommonMesh common{.mesh = {.axes = {}, .ranks = from.ranks},
                    .from = std::vector<std::vector<Axis>>(from.axes.size()),
                    .to = std::vector<std::vector<Axis>>(to.axes.size())};
  std::set<std::string> names;
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    const std::int64_t begin = *cut;
    const std::int64_t end = *std::next(cut);
    if (end % begin != 0) return std::nullopt;
    const auto axis = static_cast<Axis>(common.mesh.axes.size());
    std::string name;
    std::string part_name;
    for (std::size_t a = 0; a < mine.size(); ++a) {
      if (begin < mine[a].stride || end > mine[a].end) continue;
      part_name = from.axes[a].name + "." + std::to_string(common.from[a].size());
      common.from[a].push_back(axis);
      if (begin == mine[a].stride && end == mine[a].end) name = from.axes[a].name;
    }
    for (std::size_t a = 0; a < theirs->size(); ++a) {
      const AxisStride& span = (*theirs)[a];
      if (begin < span.stride || end > span.end) continue;
      common.to[a].push_back(axis);
      if (name.empty() && begin == span.stride && end == span.end) name = to.axes[a].name;
    }
    if (name.empty() || names.contains(name)) name = part_name;
    while (names.contains(name)) name += "'";
    names.insert(name);
    common.mesh.axes.push_back({.name = name, .size = end / begin});
  }
  return common;
}

// Number of consecutive ranks of `mesh` that share a node, if it is the same everywhere and there
// is more than one node; else 1.
std::int64_t ranks_per_node(const ProcessMesh& mesh,
                            const std::vector<std::int32_t>& node_of_rank) {
  if (node_of_rank.empty()) return 1;
  const auto node = [&](std::size_t position) {
    return node_of_rank[static_cast<std::size_t>(mesh.ranks[position])];
  };
  std::size_t run = 1;
  while (run < mesh.ranks.size() && node(run) == node(0)) ++run;
  if (run == mesh.ranks.size() || mesh.ranks.size() % run != 0) return 1;
  for (std::size_t i = 0; i < mesh.ranks.size(); ++i)
    if (node(i) != node(i - i % run)) return 1;
  return static_cast<std::int64_t>(run);
}

// `attribute` with every axis replaced by the common axes that it consists of.
Attribute told_on(const std::vector<std::vector<Axis>>& axes, const Attribute& attribute) {
  Attribute told{.dims = {}, .partial = {}, .sizes = attribute.sizes};
  for (const auto& dim : attribute.dims) {
    auto& parts = told.dims.emplace_back();
    for (const Axis axis : dim) {
      const auto& finer = axes[static_cast<std::size_t>(axis)];
      parts.insert(parts.end(), finer.rbegin(), finer.rend());
    }
  }
  for (const Partial& partial : attribute.partial)
    for (const Axis axis : axes[static_cast<std::size_t>(partial.axis)])
      told.partial.push_back({axis, partial.reduction});
  std::ranges::sort(told.partial);
  return told;
}

}  // namespace
}  // namespace foreshard::reshard::internal

namespace foreshard::reshard {
namespace internal {
namespace {

constexpr std::size_t kMostRejected = 40;

// Plans differ if their steps differ in cost: in the primitive, the positions that it joins, or its
// bytes. For a transfer or broadcast only the time counts.
using Key = std::vector<std::tuple<Primitive, std::vector<std::int64_t>, double>>;

Key key_of(const Draft& draft, Pricer& pricer) {
  Key key;
  for (const DraftStep& step : draft.steps) {
    if (is_local(step.primitive)) continue;
    if (step.primitive == Primitive::kTransfer || step.primitive == Primitive::kBroadcast) {
      key.emplace_back(step.primitive, std::vector<std::int64_t>{}, pricer.price(step)->in_base());
      continue;
    }
    const ProcessMesh axes{.axes = pricer.meshes().at(step.to.mesh).axes};
    // Stride and end of each run of adjacent axes.
    std::vector<std::int64_t> runs;
    std::int64_t stride = 1;
    for (Axis axis = 0; static_cast<std::size_t>(axis) < axes.axes.size(); ++axis) {
      const std::int64_t end = stride * axes.axes[static_cast<std::size_t>(axis)].size;
      if (std::ranges::find(step.axes, axis) != step.axes.end()) {
        if (!runs.empty() && runs.back() == stride)
          runs.back() = end;
        else
          runs.insert(runs.end(), {stride, end});
      }
      stride = end;
    }
    const Bytes bytes = logical_bytes({.primitive = step.primitive,
                                       .from = {.mesh = axes, .attribute = step.from.attribute},
                                       .to = {.mesh = axes, .attribute = step.to.attribute},
                                       .axes = step.axes},
                                      pricer.tensor());
    key.emplace_back(step.primitive, std::move(runs), bytes.in_base());
  }
  return key;
}

std::size_t working_steps(const Draft& draft) {
  return static_cast<std::size_t>(
      std::ranges::count_if(draft.steps, [](const DraftStep& step) { return !step.rename; }));
}

class Planner {
 public:
  Planner(const TensorSpec& tensor, const Layout& from, const Layout& to, const StepPrice& price,
          const CandidateOptions& options)
      : from_(from), to_(to), options_(options), pricer_(tensor, meshes_, price) {}

  Result<Candidates> run() {
    const MeshAttribute from{meshes_.add(from_.mesh), from_.attribute};
    const MeshAttribute to{meshes_.add(to_.mesh), to_.attribute};
    const auto keep = static_cast<std::size_t>(std::max(options_.keep, 1));
    pricer_.calibrate(from.mesh);
    if (to.mesh != from.mesh) pricer_.calibrate(to.mesh);
    const Templates templates(meshes_, pricer_, failures_);
    const std::int64_t run = ranks_per_node(from_.mesh, options_.node_of_rank);
    std::set<std::size_t> tried;
    for (const std::int64_t cut : {std::int64_t{1}, run}) {
      auto common = common_mesh(from_.mesh, to_.mesh, cut);
      if (!common || !tried.insert(common->mesh.axes.size()).second) continue;
      MeshAttribute here;
      MeshAttribute there;
      if (cut == 1 && from_.mesh == to_.mesh) {
        here = from;
        there = to;
      } else {
        const MeshId mesh = meshes_.add(common->mesh);
        pricer_.calibrate(mesh);
        here = {mesh, told_on(common->from, from_.attribute)};
        there = {mesh, told_on(common->to, to_.attribute)};
      }
      for (Draft& draft : cheapest_paths(here, there, keep, limit(), pricer_, failures_))
        take(std::move(draft), from, to);
      take_all(templates.on_one_mesh(here, there), from, to);
    }
    if (tried.empty()) between(templates, from, to, run);
    return ranked(keep);
  }

 private:
  // Takes plans between meshes that have no common mesh: with the axes as they are, and with axes
  // cut where the node changes.
  void between(const Templates& templates, const MeshAttribute& from, const MeshAttribute& to,
               std::int64_t run) {
    take_all(templates.between(from, to), from, to);
    const auto cut = [&](const Layout& layout, std::int64_t at) -> std::optional<MeshAttribute> {
      if (at == 1) return std::nullopt;
      const auto finer = common_mesh(layout.mesh, layout.mesh, at);
      if (!finer || finer->mesh.axes.size() <= layout.mesh.axes.size()) return std::nullopt;
      return MeshAttribute{meshes_.add(finer->mesh), told_on(finer->from, layout.attribute)};
    };
    const auto finer_from = cut(from_, run);
    const auto finer_to = cut(to_, ranks_per_node(to_.mesh, options_.node_of_rank));
    if (!finer_from && !finer_to) return;
    take_all(templates.between(finer_from.value_or(from), finer_to.value_or(to)), from, to);
  }

  // The longest time of a plan that is still of interest.
  Seconds limit() const { return best_ * options_.slowest_ratio; }

  // Takes drafts by ascending lower bound, so that most of the slower ones need no price.
  void take_all(std::vector<Draft> drafts, const MeshAttribute& from, const MeshAttribute& to) {
    std::vector<std::pair<Seconds, Draft*>> order;
    order.reserve(drafts.size());
    for (Draft& draft : drafts) order.emplace_back(pricer_.bound(draft), &draft);
    std::ranges::stable_sort(order, {}, &std::pair<Seconds, Draft*>::first);
    for (const auto& [bound, draft] : order) {
      if (bound > limit())
        reject(name_of(*draft, meshes_), "slower: at least " + text_of(bound));
      else
        take(std::move(*draft), from, to);
    }
  }

  static std::string text_of(Seconds time) {
    return format_quantity(time.in_base(), Dimension::kSeconds);
  }

  // Makes the draft begin and end with the caller's spelling of the layouts, and prices it.
  void take(Draft draft, const MeshAttribute& from, const MeshAttribute& to) {
    auto& steps = draft.steps;
    const auto rename = [](const MeshAttribute& before, const MeshAttribute& after) {
      return DraftStep{
          .primitive = Primitive::kSlice, .from = before, .to = after, .axes = {}, .rename = true};
    };
    if (steps.empty()) {
      if (from != to) steps.push_back(rename(from, to));
    } else {
      if (steps.front().from.mesh == from.mesh)
        steps.front().from = from;
      else
        steps.insert(steps.begin(), rename(from, steps.front().from));
      if (steps.back().to.mesh == to.mesh)
        steps.back().to = to;
      else
        steps.push_back(rename(steps.back().to, to));
    }
    const auto price = pricer_.price(draft);
    if (!price) {
      reject(name_of(draft, meshes_), price.error().message);
      return;
    }
    draft.estimate = *price;
    best_ = std::min(best_, *price);
    std::string name = name_of(draft, meshes_);
    drafts_.push_back({std::move(draft), std::move(name)});
  }

  void reject(std::string name, std::string reason) {
    const bool known = std::ranges::any_of(
        rejected_, [&](const Candidates::Rejected& other) { return other.name == name; });
    if (!known && rejected_.size() < kMostRejected)
      rejected_.push_back({std::move(name), std::move(reason)});
  }

  Result<Candidates> ranked(std::size_t keep) {
    std::ranges::stable_sort(drafts_, [](const NamedDraft& a, const NamedDraft& b) {
      return std::tuple(a.draft.estimate, working_steps(a.draft), std::string_view(a.name)) <
             std::tuple(b.draft.estimate, working_steps(b.draft), std::string_view(b.name));
    });
    std::set<Key> known;
    std::map<std::string, int> names;
    Candidates result;
    for (NamedDraft& named : drafts_) {
      if (!known.insert(key_of(named.draft, pricer_)).second) continue;
      const int number = ++names[named.name];
      if (number > 1) named.name += " #" + std::to_string(number);
      if (result.plans.size() == keep || named.draft.estimate > limit()) {
        reject(std::move(named.name), "slower: " + text_of(named.draft.estimate));
        continue;
      }
      Plan plan{.name = std::move(named.name), .steps = {}, .estimate = named.draft.estimate};
      for (const DraftStep& step : named.draft.steps) plan.steps.push_back(pricer_.step_of(step));
      result.plans.push_back(std::move(plan));
    }
    for (const Failure& failure : failures_) {
      Draft alone;
      alone.steps.push_back(failure.step);
      reject(name_of(alone, meshes_), failure.reason);
    }
    if (result.plans.empty())
      return Error{Error::Code::kInfeasible,
                   "no way from " + describe(from_) + " to " + describe(to_) + ": " +
                       (rejected_.empty() ? "nothing leads there"
                                          : rejected_[0].name + ": " + rejected_[0].reason)};
    result.rejected = std::move(rejected_);
    return result;
  }

  struct NamedDraft {
    Draft draft;
    std::string name;
  };

  const Layout& from_;
  const Layout& to_;
  const CandidateOptions& options_;
  Meshes meshes_;
  Pricer pricer_;
  std::vector<NamedDraft> drafts_;
  Seconds best_ = kNoLimit;
  std::vector<Failure> failures_;
  std::vector<Candidates::Rejected> rejected_;
};

}  // namespace
}  // namespace internal

Result<Candidates> candidates(const TensorSpec& tensor, const Layout& from, const Layout& to,
                              const StepPrice& price, const CandidateOptions& options) {
  for (const auto& [what, layout] : {std::pair("source", &from), std::pair("target", &to)}) {
    if (const auto fault = fault_in(*layout, tensor.shape))
      return Error{Error::Code::kInvalidInput, std::string(what) + " layout: " + *fault};
    for (const auto rank : layout->mesh.ranks)
      if (!options.node_of_rank.empty() &&
          static_cast<std::size_t>(rank) >= options.node_of_rank.size())
        return Error{Error::Code::kInvalidInput,
                     std::string(what) + " layout: rank " + std::to_string(rank) +
                         " is not in the cluster, which has ranks 0 to " +
                         std::to_string(options.node_of_rank.size() - 1)};
  }
  return internal::Planner(tensor, from, to, price, options).run();
}

}  // namespace foreshard::reshard
