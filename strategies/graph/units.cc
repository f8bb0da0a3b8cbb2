#include "strategies/graph/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <string>
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

bool is_in(const std::vector<TensorId>& list, TensorId id) {
  return std::ranges::find(list, id) != list.end();
}

std::set<TensorId> made_by(const Graph& graph) {
  std::set<TensorId> made;
  for (const Operator& op : graph.operators) made.insert(op.outputs.begin(), op.outputs.end());
  return made;
}

class Cutter {
 public:
  Cutter(const ShardedGraph& whole, const std::vector<std::size_t>& begins)
      : sharded_(whole), whole_(*whole.graph), made_(made_by(whole_)) {
    begins_.insert(begins_.end(), begins.begin(), begins.end());
    begins_.push_back(whole_.operators.size());
    for (std::size_t unit = 0; unit + 1 < begins_.size(); ++unit) {
      for (std::size_t i = begins_[unit]; i < begins_[unit + 1]; ++i) {
        for (const TensorId id : whole_.operators[i].inputs) last_[id] = unit;
        for (const TensorId id : whole_.operators[i].outputs) last_[id] = unit;
      }
    }
  }

  GraphUnit unit(std::size_t index) {
    unit_ = {};
    local_.clear();
    unit_.graph.gradients_apart = whole_.gradients_apart;
    unit_.graph.name = whole_.operators[begins_[index]].name;
    for (std::size_t i = begins_[index]; i < begins_[index + 1]; ++i) add(whole_.operators[i]);
    if (index == 0) add_unread_parameters();
    const std::set<TensorId> made = made_by(unit_.graph);
    for (std::size_t t = 0; t < unit_.graph.tensors.size(); ++t) {
      const TensorId id{static_cast<std::int64_t>(t)};
      const TensorId in_whole = unit_.whole[t];
      if (whole_[in_whole].role == TensorRole::kParameter) {
        pin(id);
        continue;
      }
      const bool enters = !made.contains(id);
      const bool leaves = made_.contains(in_whole) &&
                          (last_.at(in_whole) > index || is_in(whole_.outputs, in_whole));
      if (enters) unit_.graph.inputs.push_back(id);
      if (leaves) unit_.graph.outputs.push_back(id);
      if (enters || leaves) pin(id);
    }
    return std::move(unit_);
  }

 private:
  TensorId local(TensorId id) {
    const auto [found, is_new] = local_.try_emplace(id);
    if (is_new) {
      found->second = unit_.graph.add(whole_[id]);
      unit_.whole.push_back(id);
    }
    return found->second;
  }

  void add(Operator op) {
    for (TensorId& id : op.inputs) id = local(id);
    for (TensorId& id : op.outputs) id = local(id);
    for (std::int32_t& body : op.bodies) {
      unit_.graph.bodies.push_back(whole_.bodies[static_cast<std::size_t>(body)]);
      body = static_cast<std::int32_t>(unit_.graph.bodies.size()) - 1;
    }
    unit_.graph.operators.push_back(std::move(op));
  }

  void add_unread_parameters() {
    for (std::size_t t = 0; t < whole_.tensors.size(); ++t) {
      const TensorId id{static_cast<std::int64_t>(t)};
      if (whole_[id].role == TensorRole::kParameter && !last_.contains(id)) local(id);
    }
  }

  void pin(TensorId id) {
    Tensor& tensor = unit_.graph[id];
    tensor.pinned = sharded_.attributes[unit_.whole[id.index()].index()];
    tensor.pinned->partial.clear();
    tensor.open.clear();
  }

  const ShardedGraph& sharded_;
  const Graph& whole_;
  std::set<TensorId> made_;               // tensors that operators make
  std::vector<std::size_t> begins_{0};    // begins of the units, then the end of the last one
  std::map<TensorId, std::size_t> last_;  // tensor -> last unit that makes or reads it
  GraphUnit unit_;
  std::map<TensorId, TensorId> local_;
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

std::vector<GraphUnit> cut(const ShardedGraph& whole, const std::vector<std::size_t>& begins) {
  const Graph& graph = *whole.graph;
  if (begins.empty()) {
    GraphUnit unit{.graph = graph};
    for (std::size_t t = 0; t < graph.tensors.size(); ++t)
      unit.whole.emplace_back(static_cast<std::int64_t>(t));
    return {std::move(unit)};
  }
  Cutter cutter(whole, begins);
  std::vector<GraphUnit> units;
  std::set<std::string> names;
  for (std::size_t unit = 0; unit <= begins.size(); ++unit) {
    units.push_back(cutter.unit(unit));
    std::string& name = units.back().graph.name;
    while (!names.insert(name).second) name += "'";
  }
  return units;
}

std::vector<TensorId> handed_over(const std::vector<GraphUnit>& units, std::size_t unit) {
  std::set<TensorId> made;
  for (std::size_t u = 0; u < unit; ++u)
    for (const TensorId id : made_by(units[u].graph)) made.insert(units[u].whole[id.index()]);
  std::set<TensorId> handed;
  for (std::size_t u = unit; u < units.size(); ++u) {
    for (const TensorId id : units[u].graph.inputs) {
      const TensorId in_whole = units[u].whole[id.index()];
      if (made.contains(in_whole)) handed.insert(in_whole);
    }
  }
  return {handed.begin(), handed.end()};
}

std::vector<UnitGradients> gradients_of(const Graph& whole, const std::vector<GraphUnit>& units,
                                        const std::vector<ShardedGraph>& forward,
                                        const BackwardOptions& options) {
  const std::set<TensorId> wanted = trained(whole);
  std::vector<UnitGradients> all(units.size());
  std::set<TensorId> handed;  // tensors of the whole graph whose gradients later units hand back
  std::set<TensorId> read_later;  // tensors of the whole graph that later units read
  for (std::size_t u = units.size(); u-- > 0;) {
    const auto in_whole = [&](TensorId id) { return units[u].whole[id.index()]; };
    Graph graph = units[u].graph;
    std::erase_if(graph.outputs, [&](TensorId id) {
      return read_later.contains(in_whole(id)) && !handed.contains(in_whole(id));
    });
    ShardedGraph sharded = forward[u];
    sharded.graph = &graph;
    GradientsOfEnds ends;
    UnitGradients& unit = all[u];
    unit.backward = backward_graph(sharded, options, &ends);
    for (const auto& [output, gradient] : ends.outputs)
      if (!handed.contains(in_whole(output))) unit.seeds.insert(gradient);
    std::erase_if(ends.inputs,
                  [&](const auto& entry) { return !wanted.contains(in_whole(entry.first)); });
    unit.backward.outputs.clear();
    for (const auto& [input, gradient] : ends.inputs) unit.backward.outputs.push_back(gradient);
    prune(unit.backward);
    for (const TensorId id : graph.inputs) read_later.insert(in_whole(id));
    for (const TensorId id : made_by(graph)) handed.erase(in_whole(id));
    for (const auto& [input, gradient] : ends.inputs) handed.insert(in_whole(input));
    unit.handed = handed;
  }
  return all;
}

bool equivalent(const Graph& a, const Graph& b) {
  const auto same_tensor = [](const Tensor& x, const Tensor& y) {
    return x.dtype == y.dtype && x.shape == y.shape && x.role == y.role && x.pinned == y.pinned &&
           x.open == y.open && x.gradient_of == y.gradient_of && x.frozen == y.frozen &&
           x.updated_by_rows == y.updated_by_rows;
  };
  const auto same_operator = [](const Operator& x, const Operator& y) {
    return x.type == y.type && x.inputs == y.inputs && x.outputs == y.outputs &&
           x.settings == y.settings && x.bodies == y.bodies && x.accumulates == y.accumulates &&
           x.part == y.part && x.capture == y.capture && x.splits == y.splits;
  };
  return a.inputs == b.inputs && a.outputs == b.outputs && a.gradients_apart == b.gradients_apart &&
         std::ranges::equal(a.tensors, b.tensors, same_tensor) &&
         std::ranges::equal(a.operators, b.operators, same_operator) &&
         std::ranges::equal(a.bodies, b.bodies, equivalent);
}

}  // namespace foreshard
