#include "strategies/graph/cuts.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace foreshard {
namespace {

constexpr std::int64_t kMostUnits = 10'000;

// Whether an exported operator belongs to this module by its name: "/encoder/layer.1/MatMul"
// belongs to "/encoder/layer.1".
bool is_module_of(std::string_view module, std::string_view op) {
  return op.size() > module.size() && op.starts_with(module) &&
         (op[module.size()] == '/' || op[module.size()] == '.');
}

// The operator that a cut names.
Result<std::size_t> operator_at(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find_if(graph.operators, [&](const Operator& op) {
    return op.name == name || is_module_of(name, op.name);
  });
  if (found != graph.operators.end())
    return static_cast<std::size_t>(found - graph.operators.begin());
  std::vector<std::string> names;
  for (const Operator& op : graph.operators) names.push_back(op.name);
  const auto near = nearest_name(name, names);
  const auto shown = std::min<std::ptrdiff_t>(std::ssize(names), 5);
  return Error{
      Error::Code::kInvalidInput,
      fmt::format("graph '{}' has no operator '{}'; {}", graph.name, name,
                  near ? fmt::format("did you mean '{}'?", *near)
                       : fmt::format("its {} operators begin with '{}'", names.size(),
                                     fmt::join(names.begin(), names.begin() + shown, "', '")))};
}

// Whether the operator is a loop whose iterations are like layers of a model: each has parameters
// of its own, and hands all its results to the next one.
bool is_stack(const Graph& graph, const Operator& op) {
  if (op.type != "loop" || !op.settings.flag("own_parameters")) return false;
  const std::size_t made = graph.bodies[static_cast<std::size_t>(op.bodies[0])].outputs.size();
  const std::int64_t carried = op.settings.integer("carried");
  return carried < 0 || std::cmp_equal(carried, made);
}

// Unrolls the stacks (is_stack) with which units begin: writes out their iterations one after
// another.
class Unroller {
 public:
  Unroller(const Graph& graph, const std::set<std::size_t>& begins)
      : from_(graph), begins_(begins) {}

  CutGraph run() {
    Graph& graph = cut_.graph;
    graph = from_;
    graph.operators.clear();
    for (std::size_t i = 0; i < from_.operators.size(); ++i) {
      Operator op = from_.operators[i];
      for (TensorId& id : op.inputs) id = now(id);
      const bool begins = begins_.contains(i);
      if (begins && is_stack(from_, op)) {
        unroll(op);
      } else {
        if (begins) begin();
        graph.operators.push_back(std::move(op));
      }
    }
    for (TensorId& id : graph.outputs) id = now(id);
    return std::move(cut_);
  }

 private:
  TensorId now(TensorId id) const {
    const auto found = now_.find(id);
    return found == now_.end() ? id : found->second;
  }
  void begin() {
    if (!cut_.graph.operators.empty()) cut_.begins.push_back(cut_.graph.operators.size());
  }

  void unroll(const Operator& loop) {
    const Graph& body = from_.bodies[static_cast<std::size_t>(loop.bodies[0])];
    std::vector<TensorId> inputs = loop.inputs;
    for (std::int64_t i = 0; i < loop.settings.integer("count"); ++i) {
      begin();
      const std::vector<TensorId> outputs =
          iteration(body, fmt::format("{}[{}].", loop.name, i), inputs);
      std::ranges::copy(outputs, inputs.begin());
    }
    for (std::size_t k = 0; k < loop.outputs.size(); ++k) now_[loop.outputs[k]] = inputs[k];
  }

  std::vector<TensorId> iteration(const Graph& body, const std::string& prefix,
                                  const std::vector<TensorId>& inputs) {
    Graph& graph = cut_.graph;
    std::vector<TensorId> ids(body.tensors.size());
    for (std::size_t k = 0; k < body.inputs.size(); ++k) ids[body.inputs[k].index()] = inputs[k];
    for (std::size_t t = 0; t < body.tensors.size(); ++t) {
      if (ids[t].valid()) continue;
      Tensor tensor = body.tensors[t];
      tensor.name = prefix + tensor.name;
      ids[t] = graph.add(std::move(tensor));
    }
    for (Operator op : body.operators) {
      op.name = prefix + op.name;
      for (TensorId& id : op.inputs) id = ids[id.index()];
      for (TensorId& id : op.outputs) id = ids[id.index()];
      for (std::int32_t& inner : op.bodies) {
        graph.bodies.push_back(body.bodies[static_cast<std::size_t>(inner)]);
        inner = static_cast<std::int32_t>(graph.bodies.size()) - 1;
      }
      graph.operators.push_back(std::move(op));
    }
    std::vector<TensorId> outputs;
    for (const TensorId id : body.outputs) outputs.push_back(ids[id.index()]);
    return outputs;
  }

  const Graph& from_;
  const std::set<std::size_t>& begins_;
  CutGraph cut_;
  std::map<TensorId, TensorId> now_;  // output of an unrolled loop -> the tensor that replaces it
};

}  // namespace

Result<std::int64_t> units_of(const Graph& graph, const std::vector<std::string>& cuts) {
  std::set<std::size_t> begins;
  std::int64_t units = 1;
  for (const std::string& name : cuts) {
    FORESHARD_ASSIGN(const std::size_t begin, operator_at(graph, name));
    const Operator& op = graph.operators[begin];
    const std::int64_t further =
        (is_stack(graph, op) ? op.settings.integer("count") : 1) - (begin == 0 ? 1 : 0);
    if (further == 0)
      return Error{Error::Code::kInvalidInput,
                   fmt::format("graph '{}' begins with operator '{}': nothing is before it",
                               graph.name, op.name)};
    if (!begins.insert(begin).second)
      return Error{Error::Code::kInvalidInput,
                   fmt::format("a unit begins with operator '{}' already", op.name)};
    units += std::min(further, kMostUnits);
  }
  if (units > kMostUnits)
    return Error{Error::Code::kInvalidInput,
                 fmt::format("graph '{}' would have more than {} units", graph.name, kMostUnits)};
  return units;
}

Result<CutGraph> with_cuts(const Graph& graph, const std::vector<std::string>& cuts) {
  FORESHARD_TRY(units_of(graph, cuts));
  std::set<std::size_t> begins;
  for (const std::string& name : cuts) begins.insert(*operator_at(graph, name));
  return Unroller(graph, begins).run();
}

}  // namespace foreshard
