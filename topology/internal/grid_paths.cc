// Every way on a grid is a box: a signed number of steps in each dimension, taken in any order.
#include <array>
#include <cmath>

#include "base/check.h"

#include "topology/internal/fabric_paths.h"

namespace foreshard::internal {
namespace {

class GridPaths final : public FabricPaths {
 public:
  GridPaths(const FabricGraph& graph, std::vector<std::int64_t> dims,
            const std::vector<std::int32_t>& at, bool wraps, bool adaptive)
      : dims_(std::move(dims)),
        wraps_(wraps),
        adaptive_(adaptive && wraps),
        otherwise_(graph.all_up ? nullptr : searched_paths(graph)),
        point_(graph.vertices, 0),
        links_(graph.vertices * dims_.size() * 2) {
    for (std::size_t i = 0; i < at.size(); ++i)
      point_[static_cast<std::size_t>(at[i])] = static_cast<std::int64_t>(i);
    for (const auto& edge : graph.edges) {
      const auto from = point_[static_cast<std::size_t>(edge.from)];
      const auto to = point_[static_cast<std::size_t>(edge.to)];
      hop_latency_ = std::max(hop_latency_, edge.latency);
      for (std::size_t d = 0; d < dims_.size(); ++d)
        for (const std::int64_t step : {1, -1})
          if (!(dims_[d] == 2 && place(from, d) + step != place(to, d)) &&
              moved(from, d, step) == to)
            link(from, d, step) = edge.link;
    }
  }

  Crossing measure(std::int32_t entry, std::int32_t exit) override {
    if (entry == exit) return {0, 1, Seconds()};
    const auto ways = ways_between(entry, exit);
    if (ways.empty()) return otherwise_ ? otherwise_->measure(entry, exit) : Crossing{};
    Crossing crossing{.distance = kUnreachable, .paths = 0, .latency = {}};
    for (const auto& way : ways) {
      Metric hops = 0;
      for (const auto steps : way.steps) hops += std::abs(steps);
      crossing.distance = std::min(crossing.distance, hops);
      crossing.latency = std::max(crossing.latency, static_cast<double>(hops) * hop_latency_);
      crossing.paths += way.paths;
    }
    return crossing;
  }

  void spread(std::int32_t entry, std::int32_t exit, double amount,
              std::vector<RoutedLink>& out) override {
    if (entry == exit) return;
    const auto ways = ways_between(entry, exit);
    if (ways.empty()) return otherwise_->spread(entry, exit, amount, out);
    double total = 0;
    for (const auto& way : ways) total += way.weight;
    for (const auto& way : ways) {
      const Box box(*this, point_[static_cast<std::size_t>(entry)], way.steps);
      const double part = amount * way.weight / total / way.paths;
      box.each_link([&](LinkId id, double before, double after) {
        if (before * after > 0) out.push_back({id, part * before * after});
      });
    }
  }

  void pick(std::int32_t entry, std::int32_t exit, double choice,
            std::vector<RoutedLink>& out) override {
    if (entry == exit) return;
    const auto ways = ways_between(entry, exit);
    if (ways.empty()) return otherwise_->pick(entry, exit, choice, out);
    for (const auto& way : ways) {
      if (choice < way.paths)
        return Box(*this, point_[static_cast<std::size_t>(entry)], way.steps).pick(choice, out);
      choice -= way.paths;
    }
    FORESHARD_CHECK(false && "choice is below the number of paths");
  }

 private:
  struct Way {
    std::vector<std::int64_t> steps;  ///< One per dimension, signed.
    double weight = 1;
    double paths = 0;
  };

  /// The points between two corners, numbered row-major, with the number of paths from the first
  /// corner to each point and from each point to the last corner, over links that are up.
  class Box {
   public:
    Box(const GridPaths& grid, std::int64_t start, const std::vector<std::int64_t>& steps)
        : grid_(grid), steps_(steps), strides_(steps.size()) {
      std::size_t size = 1;
      for (std::size_t d = steps.size(); d-- > 0;) {
        strides_[d] = size;
        size *= static_cast<std::size_t>(std::abs(steps[d])) + 1;
      }
      points_.assign(size, start);
      for (std::size_t i = 0; i < size; ++i)
        for (std::size_t d = 0; d < steps.size(); ++d)
          if (const auto k = taken(i, d); k > 0)
            points_[i] = grid.moved(points_[i], d, steps[d] > 0 ? k : -k);
      before_.assign(size, 0);
      after_.assign(size, 0);
      before_.front() = 1;
      after_.back() = 1;
      for (std::size_t i = 0; i < size; ++i)
        each_step(i, [&](LinkId, std::size_t next) { before_[next] += before_[i]; });
      for (std::size_t i = size; i-- > 0;)
        each_step(i, [&](LinkId, std::size_t next) { after_[i] += after_[next]; });
    }

    double paths() const { return before_.back(); }

    template <class F>
    void each_link(F use) const {
      for (std::size_t i = 0; i < points_.size(); ++i)
        each_step(i, [&](LinkId id, std::size_t next) { use(id, before_[i], after_[next]); });
    }

    void pick(double choice, std::vector<RoutedLink>& out) const {
      std::size_t i = 0;
      while (i + 1 < points_.size()) {
        std::size_t chosen = i;
        each_step(i, [&](LinkId id, std::size_t next) {
          if (chosen != i) return;
          if (choice < after_[next]) {
            chosen = next;
            out.push_back({id, 1.0});
          } else {
            choice -= after_[next];
          }
        });
        FORESHARD_CHECK(chosen != i);
        i = chosen;
      }
    }

   private:
    std::int64_t taken(std::size_t i, std::size_t d) const {
      return static_cast<std::int64_t>(i / strides_[d]) % (std::abs(steps_[d]) + 1);
    }
    template <class F>
    void each_step(std::size_t i, F use) const {
      for (std::size_t d = 0; d < steps_.size(); ++d) {
        if (taken(i, d) == std::abs(steps_[d])) continue;
        const LinkId id = grid_.link(points_[i], d, steps_[d] > 0 ? 1 : -1);
        if (id.valid()) use(id, i + strides_[d]);
      }
    }

    const GridPaths& grid_;
    const std::vector<std::int64_t>& steps_;
    std::vector<std::size_t> strides_;
    std::vector<std::int64_t> points_;  ///< Point of the box -> point of the grid.
    std::vector<double> before_;
    std::vector<double> after_;
  };

  std::int64_t stride(std::size_t d) const {
    std::int64_t result = 1;
    for (std::size_t i = d + 1; i < dims_.size(); ++i) result *= dims_[i];
    return result;
  }
  std::int64_t place(std::int64_t point, std::size_t d) const {
    return point / stride(d) % dims_[d];
  }
  /// The point `steps` further in dimension `d`, with wraparound.
  std::int64_t moved(std::int64_t point, std::size_t d, std::int64_t steps) const {
    const std::int64_t from = place(point, d);
    const std::int64_t to = ((from + steps) % dims_[d] + dims_[d]) % dims_[d];
    return point + (to - from) * stride(d);
  }
  LinkId& link(std::int64_t point, std::size_t d, std::int64_t step) {
    return links_[(static_cast<std::size_t>(point) * dims_.size() + d) * 2 + (step > 0 ? 0 : 1)];
  }
  const LinkId& link(std::int64_t point, std::size_t d, std::int64_t step) const {
    return links_[(static_cast<std::size_t>(point) * dims_.size() + d) * 2 + (step > 0 ? 0 : 1)];
  }

  /// Steps between two places of one dimension, with the weight of each choice: the shorter way
  /// round, or both ways if they are equal; adaptive: both ways, in inverse proportion to their
  /// length.
  std::vector<std::pair<std::int64_t, double>> choices(std::int64_t from, std::int64_t to,
                                                       std::int64_t size) const {
    if (from == to) return {{0, 1.0}};
    if (!wraps_ || size <= 2) return {{to - from, 1.0}};
    const std::int64_t ahead = (to - from + size) % size;
    const std::int64_t back = size - ahead;
    if (adaptive_) {
      const double whole = static_cast<double>(size);
      return {{ahead, static_cast<double>(back) / whole},
              {-back, static_cast<double>(ahead) / whole}};
    }
    if (ahead == back) return {{ahead, 1.0}, {-back, 1.0}};
    return {{ahead < back ? ahead : -back, 1.0}};
  }

  /// The ways that have a path.
  /// \pre entry != exit
  std::vector<Way> ways_between(std::int32_t entry, std::int32_t exit) const {
    const auto start = point_[static_cast<std::size_t>(entry)];
    const auto end = point_[static_cast<std::size_t>(exit)];
    std::vector<Way> ways{Way{}};
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      std::vector<Way> longer;
      for (const auto& way : ways)
        for (const auto& [steps, weight] : choices(place(start, d), place(end, d), dims_[d])) {
          longer.push_back(way);
          longer.back().steps.push_back(steps);
          longer.back().weight *= weight;
        }
      ways = std::move(longer);
    }
    std::erase_if(ways, [&](Way& way) {
      way.paths = otherwise_ ? Box(*this, start, way.steps).paths() : orders(way.steps);
      return way.paths == 0;
    });
    return ways;
  }

  /// The number of orders in which the steps can be taken: their multinomial.
  static double orders(const std::vector<std::int64_t>& steps) {
    double result = 1;
    std::int64_t taken = 0;
    for (const auto in_one : steps)
      for (std::int64_t i = 1; i <= std::abs(in_one); ++i)
        result = result * static_cast<double>(++taken) / static_cast<double>(i);
    return std::round(result);
  }

  std::vector<std::int64_t> dims_;
  bool wraps_ = true;
  bool adaptive_ = false;
  std::unique_ptr<FabricPaths> otherwise_;  ///< Fallback if cables are down; else null.
  std::vector<std::int64_t> point_;         ///< vertex -> point of the grid.
  std::vector<LinkId> links_;               ///< Index: point, dimension, direction.
  Seconds hop_latency_;
};

}  // namespace

std::unique_ptr<FabricPaths> grid_paths(const FabricGraph& graph, std::vector<std::int64_t> dims,
                                        const std::vector<std::int32_t>& at, bool wraps,
                                        bool adaptive) {
  return std::make_unique<GridPaths>(graph, std::move(dims), at, wraps, adaptive);
}

}  // namespace foreshard::internal
