#include "strategies/reshard/bound.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <set>
#include <vector>

#include "base/quantity.h"

namespace foreshard::reshard {
namespace {

constexpr double kMostCellVisits = 0x1p22;

// Bandwidth of all links into and out of one device or node.
struct Bandwidth {
  BytesPerSecond in{};
  BytesPerSecond out{};
};

struct Crossing {
  double in = 0;  // elements
  double out = 0;
};

class Bound {
 public:
  Bound(const TensorSpec& tensor, const Layout& from, const Layout& to, const Placement& placement)
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
  struct Parties {
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
  static void cross(const Parties& cell, bool each_differs, bool complete,
                    std::map<std::int32_t, Crossing>& at) {
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
    std::map<std::int32_t, Crossing> devices;
    std::map<std::int32_t, Crossing> nodes;
    const auto node_of = [&](std::int32_t device) {
      return placement_.cluster->devices()[DeviceId{device}.index()].node;
    };
    for (Parties& cell : cells_) {
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

  void consider(const char* what, std::int32_t which, const Crossing& crossing,
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
  std::vector<Parties> cells_;
  LowerBound best_;
};

}  // namespace

LowerBound lower_bound(const TensorSpec& tensor, const Layout& from, const Layout& to,
                       const Placement& placement) {
  return Bound(tensor, from, to, placement).run();
}

}  // namespace foreshard::reshard
