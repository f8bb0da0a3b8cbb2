// Turns choices into annotations of a graph, and back (annotations.h), for search.cc of this
// folder.
#include "sim/search/graph/annotations.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/yaml/quoted.h"

#include "strategies/graph/distribute.h"

namespace foreshard::search {
namespace {

// "tensor+data"; "-" for no axes.
std::string text_of(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh) {
  if (axes.empty()) return "-";
  std::vector<std::string> names;
  names.reserve(axes.size());
  for (const Axis axis : axes) names.push_back(mesh[static_cast<std::size_t>(axis)].name);
  return join(names, "+");
}

// Whether operators and tensors have the same layouts; the backward pass follows from them.
bool same(const ShardedGraph& a, const ShardedGraph& b) {
  if (!std::ranges::equal(a.bodies, b.bodies, same)) return false;
  const auto same_operator = [](const ShardedOperator& x, const ShardedOperator& y) {
    return x.operands == y.operands;
  };
  return a.attributes == b.attributes &&
         std::ranges::equal(a.operators, b.operators, same_operator);
}

// The graph as a study with these annotations shards it, for training.
Result<ShardedGraph> sharded(Graph& graph, const std::vector<MeshAxis>& mesh, std::int64_t batch,
                             const std::vector<Annotation>& annotations) {
  FORESHARD_TRY(annotate(graph, mesh, {.annotations = annotations, .batch = batch}));
  return distribute(graph, mesh, Flow::kBothWays, BackwardPass::kFollows);
}

// Largest graph whose redundant annotations are looked for: the time grows with the square of the
// operators.
constexpr std::size_t kMostOperators = 1000;

}  // namespace

std::vector<Annotation> annotations_of(const Graph& graph, const Tables& tables,
                                       const std::vector<std::size_t>& choice,
                                       const std::vector<MeshAxis>& mesh) {
  std::vector<Annotation> annotations;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    Annotation annotation{.op = op.name};
    const Splits& splits = tables.splits[i][choice[tables.variable_of[i]]];
    for (std::size_t f = 0; f < splits.size(); ++f)
      if (!splits[f].empty()) annotation.splits[op.rule.factors[f].name] = text_of(splits[f], mesh);
    annotations.push_back(std::move(annotation));
  }
  const auto annotate_tensor = [&](const Tensor& tensor, const Attribute& layout) {
    Annotation annotation{.tensor = tensor.name};
    for (const auto& axes : layout.dims) annotation.dims.push_back(text_of(axes, mesh));
    annotations.push_back(std::move(annotation));
  };
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (!tables.variable_of_tensor[t] || graph.tensors[t].role != TensorRole::kActivation) continue;
    annotate_tensor(graph.tensors[t],
                    tables.states[t][choice[*tables.variable_of_tensor[t]]].layout);
  }
  // A parameter whose layout the graph's file pins gets another: the one that its first reader
  // needs under this choice. (All readers of a parameter need the same layout.)
  std::set<TensorId> seen;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    const Signature signature =
        signature_of(op.rule, tables.splits[i][choice[tables.variable_of[i]]], mesh);
    for (std::size_t o = 0; o < op.inputs.size(); ++o) {
      const Tensor& tensor = graph[op.inputs[o]];
      if (tensor.role == TensorRole::kParameter && tensor.pinned &&
          seen.insert(op.inputs[o]).second)
        annotate_tensor(tensor, signature.inputs[o]);
    }
  }
  return annotations;
}

std::vector<Annotation> without_redundant(const Graph& graph, const std::vector<MeshAxis>& mesh,
                                          std::int64_t batch, std::vector<Annotation> annotations) {
  if (graph.operators.size() > kMostOperators) return annotations;
  Graph wanted_graph = graph;
  const auto wanted = sharded(wanted_graph, mesh, batch, annotations);
  if (!wanted) return annotations;
  for (std::size_t i = annotations.size(); i-- > 0;) {
    std::vector<Annotation> fewer = annotations;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    Graph other_graph = graph;
    const auto other = sharded(other_graph, mesh, batch, fewer);
    if (other && same(*wanted, *other)) annotations = std::move(fewer);
  }
  return annotations;
}

std::optional<std::vector<std::size_t>> choice_of(const Graph& graph, const Tables& tables,
                                                  const ShardedGraph& sharded) {
  std::vector<std::size_t> choice(tables.problem.variables.size());
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const auto& options = tables.splits[i];
    const auto& operands = sharded.operators[i].operands;
    const auto found = std::ranges::find_if(options, [&](const Splits& splits) {
      const Signature signature = signature_of(graph.operators[i].rule, splits, sharded.mesh);
      return std::ranges::equal(signature.inputs.begin(), signature.inputs.end(), operands.begin(),
                                operands.begin() + std::ssize(signature.inputs)) &&
             std::ranges::equal(signature.outputs.begin(), signature.outputs.end(),
                                operands.begin() + std::ssize(signature.inputs), operands.end());
    });
    if (found == options.end()) return std::nullopt;
    choice[tables.variable_of[i]] = static_cast<std::size_t>(found - options.begin());
  }
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (!tables.variable_of_tensor[t]) continue;
    // States with the sharded graph's layout differ only in how the tensor's gradient is added up
    // (TensorState::gradient), which the sharded graph does not say. The cheapest one with the
    // operators' choice is taken. For a pair of tensors (MeshOfGraph::alike), a later tensor counts
    // with its first option.
    std::optional<std::size_t> best;
    double least = kForbidden;
    const std::size_t variable = *tables.variable_of_tensor[t];
    for (std::size_t s = 0; s < tables.states[t].size(); ++s) {
      if (tables.states[t][s].layout != sharded.attributes[t]) continue;
      double cost = tables.problem.variables[variable].cost[s];
      for (const Pair& pair : tables.problem.pairs) {
        const std::size_t columns = tables.problem.variables[pair.b].cost.size();
        if (pair.a == variable) cost += pair.cost[s * columns + choice[pair.b]];
        if (pair.b == variable) cost += pair.cost[choice[pair.a] * columns + s];
      }
      if (best && cost >= least) continue;
      best = s;
      least = cost;
    }
    if (!best) return std::nullopt;
    choice[variable] = *best;
  }
  return choice;
}

std::string yaml_of(const std::vector<Annotation>& annotations, std::size_t indent,
                    const Graph* graph) {
  std::string text;
  for (const Annotation& one : annotations) {
    text += std::string(indent, ' ');
    std::vector<std::string> parts;
    if (!one.op.empty()) {
      for (const auto& [factor, axes] : one.splits)
        parts.push_back(yaml::quoted(factor) + ": " + yaml::quoted(axes));
      text += fmt::format("- {{operator: {}, splits: {{{}}}}}", yaml::quoted(one.op), join(parts));
      if (graph != nullptr) {
        const auto op = std::ranges::find(graph->operators, one.op, &Operator::name);
        if (op != graph->operators.end()) text += "  # " + describe(op->rule);
      }
      text += "\n";
      continue;
    }
    for (const std::string& axes : one.dims) parts.push_back(yaml::quoted(axes));
    text += fmt::format("- {{tensor: {}, dims: [{}]", yaml::quoted(one.tensor), join(parts));
    if (!one.partial.empty()) text += fmt::format(", partial: [{}]", join(one.partial));
    text += "}\n";
  }
  return text;
}

}  // namespace foreshard::search
