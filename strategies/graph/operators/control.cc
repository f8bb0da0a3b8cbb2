// Loops and conditions: operators whose bodies are graphs.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "strategies/graph/operators/build.h"
#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

// Checks that the body's inputs have the types of the operator's inputs.
std::string fault_in_inputs(const Call& call, const Graph& body) {
  if (body.inputs.size() != call.inputs.size())
    return "body '" + body.name + "' has " + std::to_string(body.inputs.size()) +
           " inputs, the operator " + std::to_string(call.inputs.size());
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    const Tensor& inside = body[body.inputs[i]];
    if (inside.shape != call.inputs[i].shape || inside.dtype != call.inputs[i].dtype)
      return "input " + std::to_string(i) + " is " + text_of(call.inputs[i].shape) +
             ", but body '" + body.name + "' takes " + text_of(inside.shape) +
             (inside.dtype == call.inputs[i].dtype ? "" : " of another type");
  }
  return {};
}

// Sets of dimensions of a body's tensors that its operators split together, because they have a
// common factor.
class LinkedDimensions {
 public:
  explicit LinkedDimensions(const Graph& body) : body_(body) {
    for (const Tensor& tensor : body.tensors) {
      first_.push_back(of_.size());
      for (std::size_t d = 0; d < tensor.shape.size(); ++d) of_.push_back(of_.size());
    }
    for (const Operator& op : body.operators) join(op);
  }

  void join(TensorId a, TensorId b) {
    for (std::size_t d = 0; d < body_[a].shape.size(); ++d) join(place(a, d), place(b, d));
  }
  std::size_t set_of(TensorId tensor, std::size_t dim) { return root(place(tensor, dim)); }

 private:
  std::size_t place(TensorId tensor, std::size_t dim) const { return first_[tensor.index()] + dim; }
  std::size_t root(std::size_t place) {
    while (of_[place] != place) place = of_[place] = of_[of_[place]];
    return place;
  }
  void join(std::size_t a, std::size_t b) { of_[root(b)] = root(a); }

  void join(const Operator& op) {
    const Rule& rule = op.rule;
    std::vector<TensorId> operands = op.inputs;
    operands.insert(operands.end(), op.outputs.begin(), op.outputs.end());
    std::vector<std::optional<std::size_t>> place_of(rule.factors.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      for (std::size_t d = 0; d < rule.operands[i].size(); ++d) {
        const auto& factors = rule.operands[i][d];
        if (factors.size() != 1) continue;
        auto& known = place_of[static_cast<std::size_t>(factors.front())];
        if (known) join(*known, place(operands[i], d));
        known = place(operands[i], d);
      }
    }
  }

  const Graph& body_;
  std::vector<std::size_t> first_;  // tensor -> place of its first dimension
  std::vector<std::size_t> of_;     // place -> another place of its set, or itself
};

// The rule of a loop or condition: dimensions that all bodies split together have one factor.
// \param carried  number of outputs that a loop carries; each lies as the input of the same index.
Rule rule_over(const Call& call, std::size_t carried) {
  std::vector<LinkedDimensions> sets;
  for (const Graph* body : call.bodies) {
    sets.emplace_back(*body);
    for (std::size_t i = 0; i < carried; ++i) sets.back().join(body->inputs[i], body->outputs[i]);
  }
  RuleMaker make;
  std::map<std::vector<std::size_t>, std::int32_t> factors;
  const auto dimensions = [&](const auto& tensor_in, const Shape& shape) {
    RuleMaker::Dimensions result;
    std::set<std::int32_t> used;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      std::vector<std::size_t> key;
      for (std::size_t b = 0; b < sets.size(); ++b)
        key.push_back(sets[b].set_of(tensor_in(*call.bodies[b]), d));
      const auto known = factors.find(key);
      const std::int32_t factor = known == factors.end() || used.contains(known->second)
                                      ? make.factor(shape[d])
                                      : known->second;
      if (known == factors.end()) factors[key] = factor;
      used.insert(factor);
      result.push_back({factor});
    }
    return result;
  };
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    make.input(dimensions([&](const Graph& body) { return body.inputs[i]; }, call.inputs[i].shape));
  const Graph& first = *call.bodies[0];
  for (std::size_t i = 0; i < first.outputs.size(); ++i)
    make.output(dimensions([&](const Graph& body) { return body.outputs[i]; },
                           first[first.outputs[i]].shape));
  return make.take();
}

Result<Inferred> infer_loop(const Call& call) {
  const Graph& body = *call.bodies[0];
  if (call.settings.integer("count") < 1) return wrong("count must be at least 1");
  if (const auto why = fault_in_inputs(call, body); !why.empty()) return wrong(why);
  const std::int64_t given = call.settings.integer("carried");
  const std::size_t most = std::min(body.inputs.size(), body.outputs.size());
  const std::size_t carried = given < 0 ? body.outputs.size() : static_cast<std::size_t>(given);
  if (carried > most)
    return wrong("carries " + std::to_string(carried) +
                 " tensors from one iteration to the next, "
                 "but body '" +
                 body.name + "' has " + std::to_string(body.inputs.size()) + " inputs and " +
                 std::to_string(body.outputs.size()) + " outputs");
  Inferred inferred;
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    const Tensor& out = body[body.outputs[i]];
    if (i < carried && (out.shape != call.inputs[i].shape || out.dtype != call.inputs[i].dtype))
      return wrong("output " + std::to_string(i) + " of body '" + body.name + "' is " +
                   text_of(out.shape) + ", but the next iteration takes " +
                   text_of(call.inputs[i].shape));
    inferred.outputs.push_back({out.dtype, out.shape});
  }
  inferred.rule = rule_over(call, carried);
  return inferred;
}

std::vector<std::size_t> differentiable(const Graph& body, const std::vector<TensorId>& list) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (is_float(body[list[i]].dtype)) found.push_back(i);
  return found;
}

// Gradients of the outputs; zeros for outputs into which nothing flows back.
std::vector<TensorId> gradients_of(Gradients& gradients, const std::vector<std::size_t>& outputs) {
  std::vector<TensorId> all;
  for (const std::size_t i : outputs) {
    TensorId gradient = gradients.of_output(i);
    if (!gradient.valid())
      gradient = gradients.add("unary", "zero" + std::to_string(i), {gradients.output(i)},
                               {{"operation", std::string("scale")}, {"value", 0.0}})[0];
    all.push_back(gradient);
  }
  return all;
}

// Adds the backward loop. It carries the gradients of carried tensors and adds up the gradients of
// its other inputs over the iterations. Outputs that the forward loop adds up have one gradient,
// which every iteration reads. The body reads the forward tensors of the same iteration.
void loop_backward(Gradients& gradients) {
  const Graph& body = gradients.body(0);
  const auto outputs = differentiable(body, body.outputs);
  const auto inputs = differentiable(body, body.inputs);
  const Settings& forward = gradients.op().settings;
  const std::int64_t given = forward.integer("carried");
  const std::size_t carried = given < 0 ? body.outputs.size() : static_cast<std::size_t>(given);
  const auto seeds = std::ranges::count_if(outputs, [&](std::size_t i) { return i < carried; });
  const auto back = gradients.add_with("loop", "", gradients_of(gradients, outputs),
                                       {{"count", forward.integer("count")},
                                        {"carried", static_cast<std::int64_t>(seeds)},
                                        {"own_parameters", forward.flag("own_parameters")}},
                                       {gradients.backward_of(body)});
  for (std::size_t i = 0; i < inputs.size(); ++i) gradients.give(inputs[i], back[i]);
}

Result<Inferred> infer_condition(const Call& call) {
  const double probability = call.settings.number("probability");
  if (!(probability >= 0 && probability <= 1)) return wrong("probability must be between 0 and 1");
  const Graph& first = *call.bodies[0];
  const Graph& second = *call.bodies[1];
  for (const Graph* body : call.bodies)
    if (const auto why = fault_in_inputs(call, *body); !why.empty()) return wrong(why);
  if (first.outputs.size() != second.outputs.size())
    return wrong("the branches have " + std::to_string(first.outputs.size()) + " and " +
                 std::to_string(second.outputs.size()) + " outputs");
  Inferred inferred;
  for (std::size_t i = 0; i < first.outputs.size(); ++i) {
    const Tensor& a = first[first.outputs[i]];
    const Tensor& b = second[second.outputs[i]];
    if (a.shape != b.shape || a.dtype != b.dtype)
      return wrong("output " + std::to_string(i) + " is " + text_of(a.shape) +
                   " of the first branch and " + text_of(b.shape) + " of the second");
    inferred.outputs.push_back({a.dtype, a.shape});
  }
  inferred.rule = rule_over(call, 0);
  return inferred;
}

void condition_backward(Gradients& gradients) {
  const Graph& first = gradients.body(0);
  const auto inputs = differentiable(first, first.inputs);
  const auto back = gradients.add_with(
      "condition", "", gradients_of(gradients, differentiable(first, first.outputs)),
      {{"probability", gradients.op().settings.number("probability")}},
      {gradients.backward_of(first), gradients.backward_of(gradients.body(1))});
  for (std::size_t i = 0; i < inputs.size(); ++i) gradients.give(inputs[i], back[i]);
}

}  // namespace

OperatorDefinition loop() {
  return {.name = "loop",
          .doc =
              "Runs its body again and again: the first outputs are the next iteration's first "
              "inputs, the other inputs are the same every time, the other outputs are added "
              "up.",
          .inputs = "x, ...",
          .outputs = "y, ...",
          .most_inputs = OperatorDefinition::kMany,
          .settings = {{.name = "count",
                        .fallback = std::int64_t{1},
                        .required = true,
                        .doc = "Iterations."},
                       {.name = "carried",
                        .fallback = std::int64_t{-1},
                        .doc = "Outputs that the next iteration takes; -1: all."},
                       {.name = "own_parameters",
                        .fallback = true,
                        .doc = "Each iteration has its own copy of the body's parameters (layers "
                               "of a model); else all share them."}},
          .bodies = 1,
          .infer = infer_loop,
          .gradient = loop_backward};
}

OperatorDefinition condition() {
  return {.name = "condition",
          .doc = "Runs one of two bodies.",
          .inputs = "x, ...",
          .outputs = "y, ...",
          .most_inputs = OperatorDefinition::kMany,
          .settings = {{.name = "probability",
                        .fallback = 0.5,
                        .required = true,
                        .doc = "Of the first body."}},
          .bodies = 2,
          .infer = infer_condition,
          .gradient = condition_backward};
}

}  // namespace foreshard::operators
