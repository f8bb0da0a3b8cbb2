#include "strategies/reshard/choose.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/quantity.h"

#include "strategies/reshard/price.h"
#include "strategies/reshard/program.h"

namespace foreshard::reshard {
namespace {

constexpr double kMostCellVisits = 0x1p22;

// Bandwidth of all links into and out of one device or node.
struct Bandwidth {
  BytesPerSecond in{};
  BytesPerSecond out{};
};

struct ElementTraffic {
  double in = 0;  // elements
  double out = 0;
};

class LowerBoundFinder {
 public:
  LowerBoundFinder(const TensorSpec& tensor, const Layout& from, const Layout& to,
                   const Placement& placement)
      : tensor_(tensor),
        from_(from),
        to_(to),
        placement_(placement),
        sources_(from, tensor.shape),
        targets_(to, tensor.shape),
        summands_(summands_of(from)),
        device_(placement.cluster->devices().size()),
        node_(static_cast<std::size_t>(placement.cluster->node_count())) {
    const ClusterView& cluster = *placement.cluster;
    for (const Link& link : cluster.links()) {
      if (!link.up) continue;
      const Vertex& begin = cluster.vertices()[link.from.index()];
      const Vertex& end = cluster.vertices()[link.to.index()];
      if (begin.kind == VertexKind::kDevice) device_[begin.device.index()].out += link.bandwidth;
      if (end.kind == VertexKind::kDevice) device_[end.device.index()].in += link.bandwidth;
      if (begin.node == end.node) continue;
      if (begin.node >= 0) node_[static_cast<std::size_t>(begin.node)].out += link.bandwidth;
      if (end.node >= 0) node_[static_cast<std::size_t>(end.node)].in += link.bandwidth;
    }
  }

  LowerBound run() {
    if (summands_of(to_) > 1) return {};  // the summands are arbitrary
    const double cells = make_cells();
    const double ranks = static_cast<double>(from_.mesh.size() + to_.mesh.size());
    if (cells * ranks <= kMostCellVisits) {
      find_holders();
      of_devices_and_nodes();
    } else {
      of_slices();
    }
    return std::move(best_);
  }

 private:
  static std::int64_t summands_of(const Layout& layout) {
    return ways(axes_of(layout.attribute.partial), layout.mesh.axes);
  }

  // The cuts of both layouts, dimension by dimension. Returns the number of cells between them.
  double make_cells() {
    double cells = 1;
    for (std::size_t d = 0; d < tensor_.shape.size(); ++d) {
      std::set<std::int64_t> cuts(sources_.bounds(d).begin(), sources_.bounds(d).end());
      cuts.insert(targets_.bounds(d).begin(), targets_.bounds(d).end());
      cuts_.emplace_back(cuts.begin(), cuts.end());
      cells *= static_cast<double>(cuts.size() - 1);
    }
    return cells;
  }

  template <class Visit>
  void each_cell(const Box& box, Visit visit) const {
    if (box.empty()) return;
    const std::size_t dimensions = cuts_.size();
    std::vector<std::size_t> first(dimensions);
    std::vector<std::size_t> last(dimensions);
    for (std::size_t d = 0; d < dimensions; ++d) {
      const auto place = [&](std::int64_t at) {
        return static_cast<std::size_t>(std::ranges::lower_bound(cuts_[d], at) - cuts_[d].begin());
      };
      first[d] = place(box.begin[d]);
      last[d] = place(box.end[d]);
    }
    auto at = first;
    for (bool more = true; more;) {
      std::size_t cell = 0;
      double elements = 1;
      for (std::size_t d = 0; d < dimensions; ++d) {
        cell = cell * (cuts_[d].size() - 1) + at[d];
        elements *= static_cast<double>(cuts_[d][at[d] + 1] - cuts_[d][at[d]]);
      }
      visit(cell, elements);
      more = false;
      for (std::size_t d = dimensions; d-- > 0 && !more;) {
        more = ++at[d] < last[d];
        if (!more) at[d] = first[d];
      }
    }
  }

  // The devices or nodes that have a cell and that need it, ascending.
  struct CellDevices {
    double elements = 0;
    std::vector<std::int32_t> holders;
    std::vector<std::int32_t> takers;
  };

  DeviceId device_at(const ProcessMesh& mesh, std::int64_t position) const {
    return placement_.device(mesh.ranks[static_cast<std::size_t>(position)]);
  }

  void find_holders() {
    std::size_t count = 1;
    for (const auto& cuts : cuts_) count *= cuts.size() - 1;
    cells_.resize(count);
    for (std::int64_t i = 0; i < from_.mesh.size(); ++i)
      each_cell(sources_.of(i), [&](std::size_t cell, double elements) {
        cells_[cell].elements = elements;
        cells_[cell].holders.push_back(device_at(from_.mesh, i).value());
      });
    for (std::int64_t j = 0; j < to_.mesh.size(); ++j)
      each_cell(targets_.of(j), [&](std::size_t cell, double elements) {
        cells_[cell].elements = elements;
        cells_[cell].takers.push_back(device_at(to_.mesh, j).value());
      });
  }

  static void make_distinct(std::vector<std::int32_t>& list) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  // Adds the elements of a cell that must cross the borders of its holders and takers.
  // `each_differs`: every holder has a summand that no other holder has; `complete`: a holder may
  // have the complete value.
  static void cross(const CellDevices& cell, bool each_differs, bool complete,
                    std::map<std::int32_t, ElementTraffic>& at) {
    const bool one = cell.holders.size() == 1;
    for (const std::int32_t taker : cell.takers) {
      const bool has = std::ranges::binary_search(cell.holders, taker);
      if (!has || (!complete && !one)) at[taker].in += cell.elements;
    }
    for (const std::int32_t holder : cell.holders) {
      const bool others =
          std::ranges::any_of(cell.takers, [&](std::int32_t taker) { return taker != holder; });
      if ((one || each_differs) && others) at[holder].out += cell.elements;
    }
  }

  void of_devices_and_nodes() {
    std::map<std::int32_t, ElementTraffic> devices;
    std::map<std::int32_t, ElementTraffic> nodes;
    const auto node_of = [&](std::int32_t device) {
      return placement_.cluster->devices()[DeviceId{device}.index()].node;
    };
    for (CellDevices& cell : cells_) {
      make_distinct(cell.holders);
      make_distinct(cell.takers);
      // With replicas of summands, a node is assumed to hold all of them.
      const bool each_differs = summands_ > 1 && std::ssize(cell.holders) == summands_;
      cross(cell, each_differs, summands_ == 1, devices);
      for (auto* list : {&cell.holders, &cell.takers}) {
        for (std::int32_t& place : *list) place = node_of(place);
        make_distinct(*list);
      }
      cross(cell, each_differs, !each_differs, nodes);
    }
    for (const auto& [device, crossing] : devices)
      consider("device", device, crossing, device_[static_cast<std::size_t>(device)]);
    for (const auto& [node, crossing] : nodes)
      consider("node", node, crossing, node_[static_cast<std::size_t>(node)]);
  }

  // The bound without cells: the elements that each target device needs and does not hold.
  void of_slices() {
    std::map<std::int32_t, std::int64_t> position;
    for (std::int64_t i = 0; i < from_.mesh.size(); ++i)
      position[device_at(from_.mesh, i).value()] = i;
    for (std::int64_t j = 0; j < to_.mesh.size(); ++j) {
      const Box slice = targets_.of(j);
      const std::int32_t device = device_at(to_.mesh, j).value();
      auto elements = static_cast<double>(slice.elements());
      const auto own = position.find(device);
      if (own != position.end() && summands_ == 1)
        elements -= static_cast<double>(intersection(slice, sources_.of(own->second)).elements());
      consider("device", device, {.in = elements}, device_[static_cast<std::size_t>(device)]);
    }
  }

  void consider(const char* what, std::int32_t which, const ElementTraffic& crossing,
                const Bandwidth& bandwidth) {
    const auto one = [&](double elements, BytesPerSecond rate, const char* way) {
      if (elements <= 0 || !(rate > BytesPerSecond{})) return;
      const Bytes bytes = size_of(tensor_.dtype) * elements;
      if (!(bytes / rate > best_.time)) return;
      best_.time = bytes / rate;
      best_.meaning =
          fmt::format("{} must {} {} {} at {}", format(bytes), way, what, which, format(rate));
    };
    one(crossing.in, bandwidth.in, "enter");
    one(crossing.out, bandwidth.out, "leave");
  }

  const TensorSpec& tensor_;
  const Layout& from_;
  const Layout& to_;
  const Placement& placement_;
  Slices sources_;
  Slices targets_;
  std::int64_t summands_;
  std::vector<Bandwidth> device_;
  std::vector<Bandwidth> node_;
  std::vector<std::vector<std::int64_t>> cuts_;
  std::vector<CellDevices> cells_;
  LowerBound best_;
};

Status fault_in(const char* what, const Layout& layout, const TensorSpec& tensor,
                const Placement& placement) {
  const auto fault = [&](const std::string& why) {
    return Error{Error::Code::kInvalidInput, std::string(what) + ": " + why};
  };
  if (const auto why = foreshard::fault_in(layout, tensor.shape)) return fault(*why);
  if (const auto why = fault_in(placement, layout.mesh)) return fault(*why);
  return {};
}

double messages_of(const Plan& plan, const TensorSpec& tensor) {
  double messages = 0;
  for (const Step& step : plan.steps) {
    const auto ranks = static_cast<double>(step.to.mesh.size());
    if (step.primitive == Primitive::kTransfer)
      messages += count_moves(step, tensor);
    else if (step.primitive == Primitive::kAllToAll)
      messages += ranks * static_cast<double>(ways(step.axes, step.to.mesh.axes) - 1);
  }
  return messages;
}

// Sets the simulated time, or a remark that says why there is none.
Status simulate(Alternative& alternative, const TensorSpec& tensor, const CostModel& cost,
                const Placement& placement) {
  if (!(alternative.plan.estimate > 0_s)) {
    alternative.simulated = 0_s;
    return {};
  }
  const double messages = messages_of(alternative.plan, tensor);
  if (messages > kMostSimulatedMessages) {
    alternative.remark =
        fmt::format("{:.3g} messages are too many to simulate: closed form only", messages);
    return {};
  }
  FORESHARD_ASSIGN(const auto program, program_of(alternative.plan, tensor, placement));
  FORESHARD_ASSIGN(alternative.simulated, cost.program_time(program));
  return {};
}

std::string slower_text(Seconds time, Seconds best) {
  if (time <= best) return "as fast, simulated; ranked later";
  if (best <= 0_s) return "slower, simulated";
  return fmt::format("{:.1f} % slower, simulated", 100 * (time / best - 1));
}

// Number of alternatives, in the order of closed forms, that are simulated: `least`, and more if
// they are near ties.
std::size_t simulated_count(const std::vector<Alternative>& alternatives, std::size_t least) {
  const Seconds near = kNearTie * alternatives.front().plan.estimate;
  std::size_t count = std::min(least, alternatives.size());
  while (count < std::min(kMostNearTies * least, alternatives.size()) &&
         alternatives[count].plan.estimate <= near)
    ++count;
  return count;
}

void say_why_not(Choice& choice, std::size_t simulated) {
  const Alternative& best = choice.best();
  for (std::size_t i = 0; i < choice.alternatives.size(); ++i) {
    Alternative& other = choice.alternatives[i];
    if (i == choice.chosen) continue;
    const std::string already = other.remark.empty() ? "" : other.remark + "; ";
    if (other.simulated)
      other.remark = already + slower_text(other.time(), best.time());
    else if (!already.empty())
      other.remark = already + "not the fastest";
    else
      other.remark = fmt::format("closed form {}: number {}, only the best {} are simulated",
                                 format(other.plan.estimate), i + 1, simulated);
  }
}

}  // namespace

LowerBound lower_bound(const TensorSpec& tensor, const Layout& from, const Layout& to,
                       const Placement& placement) {
  return LowerBoundFinder(tensor, from, to, placement).run();
}

Plan gather_and_slice(const Layout& from, const Layout& to, std::size_t dimensions) {
  Plan plan;
  Layout at = from;
  const auto add = [&](Primitive primitive, Layout next, std::vector<Axis> axes) {
    if (next == at) return;
    plan.name += (plan.name.empty() ? "" : " + ") + std::string(name_of(primitive));
    for (std::size_t i = 0; i < axes.size(); ++i)
      plan.name += (i == 0 ? "(" : ",") + at.mesh.axes[static_cast<std::size_t>(axes[i])].name;
    if (!axes.empty()) plan.name += ")";
    plan.steps.push_back({.primitive = primitive, .from = at, .to = next, .axes = std::move(axes)});
    at = std::move(next);
  };
  const auto split_axes = [](const Attribute& attribute) {
    std::vector<Axis> axes;
    for (const auto& dim : attribute.dims) axes.insert(axes.end(), dim.begin(), dim.end());
    std::ranges::sort(axes);
    return axes;
  };
  Layout summed = from;
  summed.attribute.partial.clear();
  add(Primitive::kAllReduce, summed, axes_of(from.attribute.partial));
  add(Primitive::kAllGather, replicated_on(from.mesh, dimensions), split_axes(from.attribute));
  const std::set<std::int32_t> sources(from.mesh.ranks.begin(), from.mesh.ranks.end());
  if (!std::ranges::all_of(to.mesh.ranks, [&](std::int32_t r) { return sources.contains(r); }))
    add(Primitive::kTransfer, replicated_on(to.mesh, dimensions), {});
  Layout cut = to;
  cut.attribute.partial.clear();
  add(Primitive::kSlice, cut, at.mesh == to.mesh ? split_axes(to.attribute) : std::vector<Axis>{});
  add(Primitive::kPad, to, axes_of(to.attribute.partial));
  if (plan.name.empty()) plan.name = "nothing";
  return plan;
}

Result<Choice> choose(const TensorSpec& tensor, const Layout& from, const Layout& to,
                      const CostModel& cost, const Placement& placement,
                      const ChooseOptions& options) {
  if (options.keep < 1 || options.simulate < 0)
    return Error{Error::Code::kInvalidInput, "at least 1 plan must be kept, 0 simulated"};
  FORESHARD_TRY(fault_in("from", from, tensor, placement));
  FORESHARD_TRY(fault_in("to", to, tensor, placement));

  StepPricer price(tensor, cost, placement);
  FORESHARD_ASSIGN(Candidates found,
                   candidates(tensor, from, to, [&](const Step& step) { return price(step); },
                              {.keep = options.keep, .node_of_rank = nodes_of_ranks(placement)}));

  Choice choice;
  choice.rejected = std::move(found.rejected);
  Plan gather = gather_and_slice(from, to, tensor.shape.size());
  auto& plans = found.plans;
  if (std::ranges::find(plans, gather.steps, &Plan::steps) == plans.end()) {
    std::erase_if(choice.rejected, [&](const auto& other) { return other.name == gather.name; });
    plans.push_back(gather);
    if (std::ranges::count(plans, gather.name, &Plan::name) > 1) plans.back().name += " #2";
  }
  for (Plan& plan : plans) {
    plan.estimate = {};
    for (const Step& step : plan.steps) {
      FORESHARD_ASSIGN(const auto time, price(step));
      plan.estimate += time;
    }
    choice.alternatives.push_back({.plan = std::move(plan)});
  }
  std::ranges::stable_sort(choice.alternatives, {},
                           [](const Alternative& a) { return a.plan.estimate; });
  const std::size_t simulated =
      simulated_count(choice.alternatives, static_cast<std::size_t>(options.simulate));
  for (std::size_t i = 0; i < choice.alternatives.size(); ++i) {
    Alternative& alternative = choice.alternatives[i];
    if (alternative.plan.steps == gather.steps) choice.baseline = i;
    const bool is_transfer = alternative.plan.steps.size() == 1 &&
                             alternative.plan.steps.front().primitive == Primitive::kTransfer;
    const bool wanted = i < simulated || (simulated > 0 && (choice.baseline == i || is_transfer));
    if (!wanted) continue;
    FORESHARD_TRY(simulate(alternative, tensor, cost, placement));
    if (alternative.time() < choice.best().time()) choice.chosen = i;
  }
  choice.bound = lower_bound(tensor, from, to, placement);
  say_why_not(choice, simulated);
  return choice;
}

}  // namespace foreshard::reshard
