// Unfolds loops and conditions of a graph (flat.h), for search.cc of this folder. A count is the
// expected number of runs in a pass, so it need not be whole.
#include "sim/search/graph/flat.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>

#include "strategies/graph/operators/build.h"

namespace foreshard::search {
namespace {

class Flattener {
 public:
  Result<FlatGraph> run(const Graph& graph) {
    flat_.graph.name = graph.name;
    flat_.graph.gradients_apart = graph.gradients_apart;
    std::vector<TensorId> ids(graph.tensors.size());
    for (const TensorId id : graph.inputs) flat_.graph.inputs.push_back(add(graph, id, ids));
    top_ = &graph;
    add_body(graph, ids, 1, 1);
    for (const TensorId id : graph.outputs) flat_.graph.outputs.push_back(ids[id.index()]);
    if (!twice_.empty())
      return Error{
          Error::Code::kInvalidInput,
          fmt::format("'{}' stands in two bodies of graph '{}', and a search could not say "
                      "how either is split; give them other names",
                      twice_, graph.name)};
    return std::move(flat_);
  }

 private:
  TensorId add(const Graph& from, TensorId id, std::vector<TensorId>& ids) {
    const Tensor& tensor = from[id];
    if (!names_.insert(tensor.name).second) twice_ = tensor.name;
    return ids[id.index()] = flat_.graph.add(tensor);
  }

  // Adds the operators of a graph whose inputs are in `ids` already.
  void add_body(const Graph& graph, std::vector<TensorId>& ids, double runs, double copies) {
    for (std::size_t t = 0; t < graph.tensors.size(); ++t)
      if (!ids[t].valid() && graph.tensors[t].role == TensorRole::kParameter)
        add(graph, TensorId{static_cast<std::int64_t>(t)}, ids);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      const Operator& op = graph.operators[i];
      if (&graph == top_) from_ = i;
      if (!op.bodies.empty()) {
        add_nested(graph, op, ids, runs, copies);
        continue;
      }
      Operator copy = op;
      for (TensorId& id : copy.inputs) id = known(graph, id, ids);
      for (TensorId& id : copy.outputs) id = add(graph, id, ids);
      if (!operators_.insert(op.name).second) twice_ = op.name;
      flat_.graph.operators.push_back(std::move(copy));
      flat_.from.push_back(from_);
      flat_.runs.push_back(runs);
      flat_.copies.push_back(copies);
    }
  }

  // The flat tensor of a graph's tensor. Constants, which no operator makes, are added when first
  // read.
  TensorId known(const Graph& graph, TensorId id, std::vector<TensorId>& ids) {
    return ids[id.index()].valid() ? ids[id.index()] : add(graph, id, ids);
  }

  void add_nested(const Graph& graph, const Operator& op, std::vector<TensorId>& ids, double runs,
                  double copies) {
    const bool is_loop = op.type == "loop";
    const auto count = is_loop ? static_cast<double>(op.settings.integer("count")) : 1.0;
    const bool own = is_loop && op.settings.flag("own_parameters");
    for (std::size_t b = 0; b < op.bodies.size(); ++b) {
      const Graph& body = graph.bodies[static_cast<std::size_t>(op.bodies[b])];
      std::vector<TensorId> inner(body.tensors.size());
      for (std::size_t i = 0; i < body.inputs.size(); ++i)
        inner[body.inputs[i].index()] = known(graph, op.inputs[i], ids);
      add_body(body, inner, runs * body_weight(op, b), own ? copies * count : copies);
      const std::int64_t given = is_loop ? op.settings.integer("carried") : 0;
      const std::size_t carried = given < 0 ? body.outputs.size() : static_cast<std::size_t>(given);
      for (std::size_t o = 0; o < body.outputs.size(); ++o) {
        const TensorId made = inner[body.outputs[o].index()];
        if (is_loop && o < carried && made != ids[op.inputs[o].index()])
          flat_.alike.emplace_back(ids[op.inputs[o].index()], made);
        TensorId& outside = ids[op.outputs[o].index()];
        if (b == 0)
          outside = made;
        else if (made != outside)
          flat_.alike.emplace_back(outside, made);
        // Nothing reads the result here, but it is read where the branch is taken.
        if (b > 0) flat_.graph.outputs.push_back(made);
      }
    }
  }

  FlatGraph flat_;
  const Graph* top_ = nullptr;
  std::size_t from_ = 0;
  std::set<std::string> names_;
  std::set<std::string> operators_;
  std::string twice_;
};

}  // namespace

Result<FlatGraph> flat(const Graph& graph) {
  if (!graph.bodies.empty()) return Flattener().run(graph);
  FlatGraph same{.graph = graph};
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    same.from.push_back(i);
    same.runs.push_back(1);
    same.copies.push_back(1);
  }
  return same;
}

}  // namespace foreshard::search
