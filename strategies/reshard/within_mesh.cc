// Conversions between attributes on one mesh: the direct series of primitives where it is possible,
// else the cheapest one.
#include "strategies/reshard/within_mesh.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"

#include "strategies/reshard/price.h"

namespace foreshard::reshard {
namespace {

using Kind = AxisState::Kind;

std::optional<Primitive> primitive_for(const AxisState& from, const AxisState& to) {
  if (from == to) return std::nullopt;
  if (to.kind == Kind::kPartial) return Primitive::kPad;
  switch (from.kind) {
    case Kind::kPartial:
      return to.kind == Kind::kSplit ? Primitive::kReduceScatter : Primitive::kAllReduce;
    case Kind::kSplit:
      return to.kind == Kind::kSplit ? Primitive::kAllToAll : Primitive::kAllGather;
    case Kind::kReplicated:
      return Primitive::kSlice;
  }
  return std::nullopt;
}

constexpr std::array kOrder{Primitive::kSlice,     Primitive::kReduceScatter, Primitive::kAllToAll,
                            Primitive::kAllReduce, Primitive::kAllGather,     Primitive::kPad};

// An axis whose state changes in the conversion.
struct AxisChange {
  Axis axis = 0;
  AxisState from{};
  AxisState to{};
};

// Those changes, all by the same primitive, that a single operation can make with the first.
std::vector<AxisChange> together(Primitive primitive, const std::vector<AxisChange>& changes) {
  const AxisChange& first = changes.front();
  const auto those = [&](auto alike) {
    std::vector<AxisChange> found;
    std::ranges::copy_if(changes, std::back_inserter(found), alike);
    return found;
  };
  if (primitive != Primitive::kAllToAll)
    return those([&](const AxisChange& change) {
      return change.from.reduction == first.from.reduction &&
             change.to.reduction == first.to.reduction;
    });
  auto reach = those([&](const AxisChange& change) { return change.to.dim == first.to.dim; });
  auto leave = those([&](const AxisChange& change) { return change.from.dim == first.from.dim; });
  return leave.size() > reach.size() ? leave : reach;
}

// An attribute in which `axes` have their states in `to`, and all other axes their states in
// `from`.
Attribute with_axes_of(const Attribute& from, const Attribute& to, const std::vector<Axis>& axes) {
  const auto is_one = [&](Axis axis) { return std::ranges::find(axes, axis) != axes.end(); };
  Attribute next = from;
  for (auto& dim : next.dims) std::erase_if(dim, is_one);
  std::erase_if(next.partial, [&](const Partial& partial) { return is_one(partial.axis); });
  for (const Partial& partial : to.partial)
    if (is_one(partial.axis)) next.partial.push_back(partial);
  std::ranges::sort(next.partial);
  for (std::size_t d = 0; d < to.dims.size(); ++d)
    std::ranges::copy_if(to.dims[d], std::back_inserter(next.dims[d]), is_one);
  return next;
}

// dimension -> axes that split it, without axes of one rank.
std::vector<std::vector<Axis>> splits_of(const Attribute& attribute,
                                         const std::vector<MeshAxis>& mesh) {
  std::vector<std::vector<Axis>> dims = attribute.dims;
  for (auto& axes : dims)
    std::erase_if(axes, [&](Axis axis) { return mesh[static_cast<std::size_t>(axis)].size == 1; });
  return dims;
}

std::optional<std::vector<MeshStep>> direct(const TensorSpec& tensor, const Attribute& from,
                                            const Attribute& to,
                                            const std::vector<MeshAxis>& mesh) {
  if (!from.sizes.empty() || !to.sizes.empty()) return std::nullopt;
  // A sum of maxima is not a maximum of sums: all partial axes must have the same reduction.
  if (!from.partial.empty() && !to.partial.empty() &&
      from.partial.front().reduction != to.partial.front().reduction)
    return std::nullopt;
  std::vector<MeshStep> steps;
  Attribute lies = from;
  for (const auto& [primitive, axes, volume] :
       direct_steps(tensor.shape, size_of(tensor.dtype), from, to, mesh)) {
    const auto is_one = [&](Axis axis) { return std::ranges::find(axes, axis) != axes.end(); };
    // Only the minor axes of a dimension can leave it.
    for (const auto& split : splits_of(lies, mesh))
      if (std::find_if_not(std::ranges::find_if(split, is_one), split.end(), is_one) != split.end())
        return std::nullopt;
    Attribute next = with_axes_of(lies, to, axes);
    steps.push_back({primitive, axes, lies, next, volume});
    lies = std::move(next);
  }
  if (splits_of(lies, mesh) != splits_of(to, mesh)) return std::nullopt;
  return steps;
}

// The cheapest series of primitives along axes of the mesh; empty if no series has a price.
std::optional<std::vector<MeshStep>> cheapest(const TensorSpec& tensor, const Attribute& from,
                                              const Attribute& to, const ProcessMesh& mesh,
                                              const StepPrice& price) {
  const auto along_axes = [&](const Step& step) -> Result<Seconds> {
    if (step.from.mesh != step.to.mesh || step.primitive == Primitive::kTransfer ||
        step.primitive == Primitive::kBroadcast)
      return Error{Error::Code::kInfeasible, "not along axes of the mesh"};
    return price(step);
  };
  const auto found = candidates(tensor, {mesh, from}, {mesh, to}, along_axes);
  if (!found) return std::nullopt;
  const auto within = std::ranges::find_if(found->plans, [&](const Plan& plan) {
    return std::ranges::all_of(plan.steps, [&](const Step& step) {
      return step.from.mesh == mesh && step.to.mesh == mesh;
    });
  });
  if (within == found->plans.end()) return std::nullopt;
  std::vector<MeshStep> steps;
  steps.reserve(within->steps.size());
  for (const Step& step : within->steps) {
    const std::int64_t groups = mesh.size() / ways(step.axes, mesh.axes);
    Volume volume = volume_of(step, tensor);
    volume.patent_total = volume.patent_total / static_cast<double>(groups);
    volume.exact_total = volume.exact_total / static_cast<double>(groups);
    steps.push_back({step.primitive, step.axes, step.from.attribute, step.to.attribute, volume});
  }
  return steps;
}

Result<Seconds> time_of(const std::vector<MeshStep>& steps, const ProcessMesh& mesh,
                        const StepPrice& price) {
  Seconds sum;
  for (const MeshStep& step : steps) {
    FORESHARD_ASSIGN(const auto time, price({.primitive = step.primitive,
                                             .from = {mesh, step.from},
                                             .to = {mesh, step.to},
                                             .axes = step.axes}));
    sum += time;
  }
  return sum;
}

class PlannerByTime {
 public:
  PlannerByTime(const CostModel& cost, Placement placement, std::vector<std::int32_t> ranks)
      : cost_(cost), placement_(std::move(placement)), ranks_(std::move(ranks)) {}

  const std::vector<MeshStep>& steps(const TensorSpec& tensor, const Attribute& from,
                                     const Attribute& to, const std::vector<MeshAxis>& mesh) {
    const auto [place, is_new] = known_.try_emplace({tensor.dtype, tensor.shape, from, to});
    if (is_new) {
      StepPricer price(tensor, cost_, placement_);
      place->second = fastest_within(tensor, from, to, {.axes = mesh, .ranks = ranks_},
                                     [&](const Step& step) { return price.on_links(step); });
    }
    return place->second;
  }

 private:
  const CostModel& cost_;
  Placement placement_;
  std::vector<std::int32_t> ranks_;
  std::map<std::tuple<DType, Shape, Attribute, Attribute>, std::vector<MeshStep>> known_;
};

}  // namespace

std::vector<AxesStep> direct_steps(const Shape& shape, Bytes element, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh) {
  FORESHARD_CHECK(from.dims.size() == shape.size() && to.dims.size() == shape.size());
  Bytes whole = element;
  for (const std::int64_t extent : shape) whole = whole * static_cast<double>(extent);

  // Number of ways in which the axes that are split at present divide the tensor.
  double divided = 1;
  std::map<Primitive, std::vector<AxisChange>> changes;
  for (Axis axis = 0; axis < static_cast<Axis>(mesh.size()); ++axis) {
    const std::int64_t ranks = mesh[static_cast<std::size_t>(axis)].size;
    if (ranks == 1) continue;
    const AxisChange change{axis, state_of(from, axis), state_of(to, axis)};
    if (change.from.kind == Kind::kSplit) divided *= static_cast<double>(ranks);
    if (const auto primitive = primitive_for(change.from, change.to))
      changes[*primitive].push_back(change);
  }

  std::vector<AxesStep> steps;
  for (const Primitive primitive : kOrder) {
    std::vector<AxisChange>& left = changes[primitive];
    while (!left.empty()) {
      AxesStep step{.primitive = primitive};
      const std::vector<AxisChange> joint = together(primitive, left);
      for (const AxisChange& change : joint) step.axes.push_back(change.axis);
      std::erase_if(left, [&](const AxisChange& change) {
        return std::ranges::find(step.axes, change.axis) != step.axes.end();
      });
      const auto ranks = static_cast<double>(ways(step.axes, mesh));
      const auto splits = [&](const AxisState AxisChange::*state) {
        double product = 1;
        for (const AxisChange& change : joint)
          if ((change.*state).kind == Kind::kSplit)
            product *= static_cast<double>(mesh[static_cast<std::size_t>(change.axis)].size);
        return product;
      };
      divided /= splits(&AxisChange::from);
      step.volume = volume_of_group(primitive, whole / divided, ranks);
      divided *= splits(&AxisChange::to);
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

std::vector<MeshStep> steps_within(const TensorSpec& tensor, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh) {
  if (auto steps = direct(tensor, from, to, mesh)) return *std::move(steps);
  // Each byte that is sent is priced at one second, since only the order of prices matters.
  auto steps = cheapest(tensor, from, to, mesh_from(mesh), [&](const Step& step) {
    return Result<Seconds>(Seconds::from_base(volume_of(step, tensor).exact_total.in_base()));
  });
  FORESHARD_CHECK(steps.has_value());
  return *std::move(steps);
}

std::vector<MeshStep> fastest_within(const TensorSpec& tensor, const Attribute& from,
                                     const Attribute& to, const ProcessMesh& mesh,
                                     const StepPrice& price) {
  auto usual = steps_within(tensor, from, to, mesh.axes);
  auto other = cheapest(tensor, from, to, mesh, price);
  if (!other) return usual;
  const auto usual_time = time_of(usual, mesh, price);
  const auto other_time = time_of(*other, mesh, price);
  if (other_time && (!usual_time || *other_time < *usual_time)) return *std::move(other);
  return usual;
}

MeshPlanner planner_by_time(const CostModel& cost, Placement placement,
                            std::vector<std::int32_t> ranks) {
  const auto planner =
      std::make_shared<PlannerByTime>(cost, std::move(placement), std::move(ranks));
  return [planner](const TensorSpec& tensor, const Attribute& from, const Attribute& to,
                   const std::vector<MeshAxis>& mesh) {
    return planner->steps(tensor, from, to, mesh);
  };
}

}  // namespace foreshard::reshard
