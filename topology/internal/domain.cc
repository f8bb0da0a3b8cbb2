#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <boost/range/iterator_range.hpp>
#include <cmath>
#include <utility>

#include "base/check.h"

#include "topology/internal/fabric_paths.h"

namespace foreshard::internal {
namespace {

/// An edge's property: its index in Domain::edges_.
using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, std::int32_t,
                                                 boost::no_property, std::uint32_t, std::uint32_t>;
using VertexDescriptor = boost::graph_traits<Graph>::vertex_descriptor;
using EdgeDescriptor = boost::graph_traits<Graph>::edge_descriptor;

/// Keeps the edges that leave the start or a vertex that may be passed through.
struct LeavesPassable {
  bool operator()(const EdgeDescriptor& edge) const {
    const auto from = source(edge, *graph);
    return from == start || (*passable)[from];
  }
  const Graph* graph = nullptr;
  const std::vector<bool>* passable = nullptr;
  VertexDescriptor start = 0;
};

/// Notes the order in which vertices get their final distance.
struct OrderRecorder : boost::default_dijkstra_visitor {
  explicit OrderRecorder(std::vector<VertexDescriptor>* vertices) : order(vertices) {}
  template <class AnyGraph>
  void examine_vertex(VertexDescriptor vertex, const AnyGraph&) {
    order->push_back(vertex);
  }
  std::vector<VertexDescriptor>* order;
};

Graph make_graph(std::size_t vertices, const std::vector<Domain::Edge>& edges, bool reverse) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
  std::vector<std::int32_t> indices;
  ends.reserve(edges.size());
  indices.reserve(edges.size());
  for (const auto& edge : edges) {
    const auto from = static_cast<std::uint32_t>(reverse ? edge.to : edge.from);
    const auto to = static_cast<std::uint32_t>(reverse ? edge.from : edge.to);
    indices.push_back(static_cast<std::int32_t>(ends.size()));
    ends.emplace_back(from, to);
  }
  return Graph(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), indices.begin(),
               static_cast<std::uint32_t>(vertices));
}

}  // namespace

struct Domain::Graphs {
  Graph forward;
  Graph backward;
};

Domain::Domain(std::vector<bool> passable, std::vector<Edge> edges)
    : passable_(std::move(passable)),
      edges_(std::move(edges)),
      graphs_(std::make_unique<Graphs>(Graphs{make_graph(passable_.size(), edges_, false),
                                              make_graph(passable_.size(), edges_, true)})) {
  for (const auto& edge : edges_) FORESHARD_CHECK(edge.metric > 0);
}
Domain::~Domain() = default;
Domain::Domain(Domain&&) noexcept = default;

Search Domain::search_from(std::int32_t start) const {
  return search(false, start);
}
Search Domain::search_to(std::int32_t start) const {
  return search(true, start);
}

Search Domain::search(bool reverse, std::int32_t start) const {
  const Graph& graph = reverse ? graphs_->backward : graphs_->forward;
  const auto first = static_cast<VertexDescriptor>(start);
  Search found{std::vector<Metric>(passable_.size(), kUnreachable),
               std::vector<double>(passable_.size(), 0.0), std::vector<Seconds>(passable_.size())};
  std::vector<VertexDescriptor> order;

  const LeavesPassable filter{&graph, &passable_, first};
  const boost::filtered_graph<Graph, LeavesPassable> open(graph, filter);
  const auto weight =
      boost::make_function_property_map<EdgeDescriptor>([&](const EdgeDescriptor& edge) {
        return edges_[static_cast<std::size_t>(graph[edge])].metric;
      });
  const auto index = get(boost::vertex_index, graph);
  boost::dijkstra_shortest_paths(
      open, first,
      boost::vertex_index_map(index)
          .weight_map(weight)
          .distance_map(boost::make_iterator_property_map(found.distance.begin(), index))
          .distance_inf(kUnreachable)
          .visitor(OrderRecorder(&order)));

  // Every link's tail is final before its head, so one pass in that order counts the paths.
  found.paths[first] = 1;
  for (const auto from : order) {
    if (from != first && !passable_[from]) continue;
    for (const auto& edge : boost::make_iterator_range(out_edges(from, graph))) {
      const auto to = target(edge, graph);
      const auto& data = edges_[static_cast<std::size_t>(graph[edge])];
      if (found.distance[from] + data.metric != found.distance[to]) continue;
      found.paths[to] += found.paths[from];
      found.latency[to] = std::max(found.latency[to], found.latency[from] + data.latency);
    }
  }
  return found;
}

void Domain::spread(const Search& search, bool reverse, std::int32_t other, double amount,
                    std::vector<RoutedLink>& out) const {
  const Graph& back = reverse ? graphs_->forward : graphs_->backward;
  // The farthest vertex is last and comes next: what reaches a vertex is complete before it goes
  // on.
  struct Waiting {
    std::pair<Metric, VertexDescriptor> place;
    double carried;
  };
  std::vector<Waiting> waiting;
  const auto last = static_cast<VertexDescriptor>(other);
  FORESHARD_CHECK(search.distance[last] != kUnreachable);
  waiting.push_back({{search.distance[last], last}, amount});
  while (!waiting.empty()) {
    const auto [place, carried] = waiting.back();
    waiting.pop_back();
    const auto [distance, at] = place;
    for (const auto& edge : boost::make_iterator_range(out_edges(at, back))) {
      const auto from = target(edge, back);
      const auto& data = edges_[static_cast<std::size_t>(back[edge])];
      if (search.paths[from] == 0 || search.distance[from] + data.metric != distance) continue;
      if (search.distance[from] > 0 && !passable_[from]) continue;
      const double part = carried * search.paths[from] / search.paths[at];
      out.push_back({data.link, part});
      if (search.distance[from] == 0) continue;
      const std::pair next{search.distance[from], from};
      const auto known = std::ranges::lower_bound(waiting, next, {}, &Waiting::place);
      if (known != waiting.end() && known->place == next)
        known->carried += part;
      else
        waiting.insert(known, {next, part});
    }
  }
}

void Domain::pick(const Search& search, bool reverse, std::int32_t other, double choice,
                  std::vector<RoutedLink>& out) const {
  const Graph& back = reverse ? graphs_->forward : graphs_->backward;
  auto at = static_cast<VertexDescriptor>(other);
  FORESHARD_CHECK(search.distance[at] != kUnreachable && choice < search.paths[at]);
  while (search.distance[at] > 0) {
    bool moved = false;
    for (const auto& edge : boost::make_iterator_range(out_edges(at, back))) {
      const auto from = target(edge, back);
      const auto& data = edges_[static_cast<std::size_t>(back[edge])];
      if (search.paths[from] == 0 || search.distance[from] + data.metric != search.distance[at])
        continue;
      if (search.distance[from] > 0 && !passable_[from]) continue;
      if (choice >= search.paths[from]) {
        choice -= search.paths[from];
        continue;
      }
      out.push_back({data.link, 1.0});
      at = from;
      moved = true;
      break;
    }
    FORESHARD_CHECK(moved);
  }
}

}  // namespace foreshard::internal
