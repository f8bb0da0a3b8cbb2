#include "strategies/graph/sharding.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"

#include "strategies/graph/distribute.h"

namespace foreshard {
namespace {

// Axes of every letter 'a'..'z' of one operator.
class LetterAxes {
 public:
  explicit LetterAxes(const std::string& whole) {
    for (const char letter : whole) fix(letter);
  }

  void give(char letter, const std::vector<Axis>& axes) {
    if (fixed_[index(letter)]) return;
    for (const Axis axis : axes) {
      if (std::ranges::find(used_, axis) != used_.end()) continue;
      axes_[index(letter)].push_back(axis);
      used_.push_back(axis);
    }
    if (!axes_[index(letter)].empty()) fix(letter);
  }
  void fix(char letter) { fixed_[index(letter)] = true; }
  const std::vector<Axis>& of(char letter) const { return axes_[index(letter)]; }

 private:
  static std::size_t index(char letter) {
    FORESHARD_CHECK(letter >= 'a' && letter <= 'z');
    return static_cast<std::size_t>(letter - 'a');
  }
  std::array<std::vector<Axis>, 26> axes_;
  std::array<bool, 26> fixed_{};
  std::vector<Axis> used_;
};

LetterAxes assign(const Operator& op, const std::vector<std::string>& letters,
                  const std::vector<TensorId>& operands, const Graph& graph,
                  const std::vector<Attribute>& attributes) {
  LetterAxes assignment(op.whole);
  const auto pinned_operands = [&](bool parameters, auto&& visit) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Tensor& tensor = graph[operands[i]];
      if (tensor.pinned && (tensor.role != TensorRole::kActivation) == parameters)
        visit(letters[i], *tensor.pinned);
    }
  };
  pinned_operands(true, [&](const std::string& operand, const Attribute& pinned) {
    for (std::size_t d = 0; d < operand.size(); ++d) assignment.give(operand[d], pinned.dims[d]);
  });
  pinned_operands(true, [&](const std::string& operand, const Attribute&) {
    for (const char letter : operand) assignment.fix(letter);
  });
  pinned_operands(false, [&](const std::string& operand, const Attribute& pinned) {
    for (std::size_t d = 0; d < operand.size(); ++d) assignment.give(operand[d], pinned.dims[d]);
  });
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const Attribute& attribute = attributes[op.inputs[i].index()];
    for (std::size_t d = 0; d < letters[i].size(); ++d)
      assignment.give(letters[i][d], attribute.dims[d]);
  }
  return assignment;
}

std::optional<Error> indivisible(const Tensor& tensor, const Attribute& attribute,
                                 const std::vector<MeshAxis>& mesh) {
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    const std::int64_t parts = ways(attribute.dims[d], mesh);
    if (tensor.shape[d] % parts == 0) continue;
    return Error{Error::Code::kInvalidInput,
                 "tensor '" + tensor.name + "': dimension " + std::to_string(d) + " of size " +
                     std::to_string(tensor.shape[d]) + " cannot be split evenly " +
                     std::to_string(parts) + " ways, " + describe(attribute, mesh)};
  }
  return std::nullopt;
}

class Sharder {
 public:
  Sharder(const Graph& graph, const std::vector<MeshAxis>& mesh) {
    sharded_.graph = &graph;
    sharded_.mesh = mesh;
    conversions_of_.resize(graph.tensors.size());
    for (const Tensor& tensor : graph.tensors)
      sharded_.attributes.push_back(tensor.pinned.value_or(replicated(tensor.shape.size())));
  }

  Result<ShardedGraph> run() {
    for (const Tensor& tensor : graph().tensors) {
      if (!tensor.pinned) continue;
      if (auto fault = indivisible(tensor, *tensor.pinned, sharded_.mesh)) return *fault;
    }
    for (const Operator& op : graph().operators) {
      if (auto fault = add(op)) return *fault;
    }
    return std::move(sharded_);
  }

 private:
  const Graph& graph() const { return *sharded_.graph; }

  std::optional<Error> add(const Operator& op) {
    const auto letters = operand_letters(op.equation);
    std::vector<TensorId> operands = op.inputs;
    operands.insert(operands.end(), op.outputs.begin(), op.outputs.end());
    FORESHARD_CHECK(letters.size() == operands.size());
    const LetterAxes assignment = assign(op, letters, operands, graph(), sharded_.attributes);

    ShardedOperator result;
    std::vector<std::int32_t> after;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      FORESHARD_CHECK(letters[i].size() == graph()[operands[i]].shape.size());
      Attribute attribute = replicated(letters[i].size());
      for (std::size_t d = 0; d < letters[i].size(); ++d)
        attribute.dims[d] = assignment.of(letters[i][d]);
      if (i < op.inputs.size()) {
        if (op.linear) attribute.partial = sharded_.attributes[operands[i].index()].partial;
      } else {
        attribute.partial = op.linear ? sharded_.attributes[op.inputs[0].index()].partial
                                      : sums_over(reduced_axes(op, letters, i, assignment));
        if (!op.linear) {
          for (Partial& partial : attribute.partial) partial.reduction = op.reduction;
        }
      }
      if (auto fault = indivisible(graph()[operands[i]], attribute, sharded_.mesh)) return fault;

      Attribute& lies = sharded_.attributes[operands[i].index()];
      if (i < op.inputs.size()) {
        if (lies != attribute) result.conversions.push_back(convert(operands[i], attribute));
      } else {
        lies = attribute;
        const auto& pinned = graph()[operands[i]].pinned;
        // Gradients of parameters stay partial: they are reduced with their bucket, later.
        if (pinned && *pinned != attribute &&
            graph()[operands[i]].role == TensorRole::kActivation) {
          after.push_back(convert(operands[i], *pinned));
          lies = *pinned;
        }
      }
      result.operands.push_back(std::move(attribute));
    }
    sharded_.operators.push_back(std::move(result));
    sharded_.after_operator.push_back(std::move(after));
    return std::nullopt;
  }

  // Axes of letters that some input has and output `operand` has not.
  std::vector<Axis> reduced_axes(const Operator& op, const std::vector<std::string>& letters,
                                 std::size_t operand, const LetterAxes& assignment) const {
    std::string reduced;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      for (const char letter : letters[i]) {
        if (letters[operand].find(letter) == std::string::npos &&
            reduced.find(letter) == std::string::npos)
          reduced += letter;
      }
    }
    std::vector<Axis> axes;
    for (const char letter : reduced)
      axes.insert(axes.end(), assignment.of(letter).begin(), assignment.of(letter).end());
    std::ranges::sort(axes);
    return axes;
  }

  std::int32_t convert(TensorId tensor, const Attribute& to) {
    const Attribute& from = sharded_.attributes[tensor.index()];
    auto& known = conversions_of_[tensor.index()];
    for (const std::int32_t index : known) {
      const Conversion& wish = sharded_.conversions[static_cast<std::size_t>(index)];
      if (wish.from == from && wish.to == to) return index;
    }
    known.push_back(static_cast<std::int32_t>(sharded_.conversions.size()));
    sharded_.conversions.push_back({tensor, from, to});
    return known.back();
  }

  ShardedGraph sharded_;
  std::vector<std::vector<std::int32_t>> conversions_of_;  // per tensor
};

}  // namespace

Result<ShardedGraph> shard(const Graph& graph, const std::vector<MeshAxis>& mesh) {
  const bool defined = std::ranges::any_of(
      graph.operators, [](const Operator& op) { return op.kind == OperatorKind::kDefined; });
  return defined ? distribute(graph, mesh) : Sharder(graph, mesh).run();
}

}  // namespace foreshard
