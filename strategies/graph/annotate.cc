#include "strategies/graph/annotate.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>

#include "base/glob.h"
#include "base/text.h"

#include "strategies/graph/distribute.h"
#include "strategies/graph/operators/build.h"

namespace foreshard {
namespace {

Error invalid(std::string why) {
  return {Error::Code::kInvalidInput, std::move(why)};
}

Result<Axis> axis_of(const std::string& name, const std::vector<MeshAxis>& mesh) {
  const auto it = std::ranges::find(mesh, name, &MeshAxis::name);
  if (it != mesh.end()) return static_cast<Axis>(it - mesh.begin());
  std::vector<std::string> names;
  names.reserve(mesh.size());
  for (const MeshAxis& axis : mesh) names.push_back(axis.name);
  return invalid(fmt::format("no mesh axis is called '{}'; there are {}", name, join(names)));
}

Result<std::vector<Axis>> axes_of(const std::string& text, const std::vector<MeshAxis>& mesh) {
  std::vector<Axis> axes;
  if (text == "-") return axes;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    FORESHARD_ASSIGN(const auto axis, axis_of(text.substr(begin, end - begin), mesh));
    axes.push_back(axis);
    begin = end + 1;
  }
  return axes;
}

// The attribute that `annotation` gives a tensor.
Result<Attribute> attribute_for(const Annotation& annotation, const Tensor& tensor,
                                const std::vector<MeshAxis>& mesh) {
  if (annotation.dims.size() != tensor.shape.size())
    return invalid(fmt::format("annotation '{}' has {} dimensions, but tensor '{}' has {}: [{}]",
                               annotation.tensor, annotation.dims.size(), tensor.name,
                               tensor.shape.size(), fmt::join(tensor.shape, ", ")));
  Attribute attribute = replicated(tensor.shape.size());
  for (std::size_t d = 0; d < annotation.dims.size(); ++d) {
    const auto axes = axes_of(annotation.dims[d], mesh);
    if (!axes)
      return invalid(fmt::format("annotation '{}': {}", annotation.tensor, axes.error().message));
    for (const Axis axis : *axes)  // an axis of one rank splits nothing
      if (mesh[static_cast<std::size_t>(axis)].size > 1) attribute.dims[d].push_back(axis);
  }
  std::vector<Axis> partial;
  for (const std::string& name : annotation.partial) {
    const auto axis = axis_of(name, mesh);
    if (!axis)
      return invalid(fmt::format("annotation '{}': {}", annotation.tensor, axis.error().message));
    if (mesh[static_cast<std::size_t>(*axis)].size > 1) partial.push_back(*axis);
  }
  std::ranges::sort(partial);
  attribute.partial = sums_over(partial);
  return attribute;
}

// The splits that `annotation` gives an operator.
Result<Splits> splits_for(const Annotation& annotation, const Operator& op,
                          const std::vector<MeshAxis>& mesh) {
  Splits splits(op.rule.factors.size());
  const std::string rule = describe(op.rule);
  for (const auto& [name, text] : annotation.splits) {
    const auto factor = std::ranges::find(op.rule.factors, name, &Factor::name);
    if (factor == op.rule.factors.end())
      return invalid(fmt::format("annotation '{}': operator '{}' has no factor '{}' (rule {})",
                                 annotation.op, op.name, name, rule));
    const auto axes = axes_of(text, mesh);
    if (!axes)
      return invalid(fmt::format("annotation '{}': {}", annotation.op, axes.error().message));
    for (const Axis axis : *axes)
      if (mesh[static_cast<std::size_t>(axis)].size > 1)
        splits[static_cast<std::size_t>(factor - op.rule.factors.begin())].push_back(axis);
  }
  if (!is_legal(op.rule, splits, mesh))
    return invalid(
        fmt::format("annotation '{}': operator '{}' cannot be split so (rule {}): an axis splits "
                    "one factor, and divides it; a minor factor of a dimension is split where the "
                    "major one is split to the last",
                    annotation.op, op.name, rule));
  return splits;
}

void collect_names(const Graph& graph, bool operators, std::vector<std::string>& names) {
  if (operators) {
    for (const Operator& op : graph.operators) names.push_back(op.name);
  } else {
    for (const Tensor& tensor : graph.tensors) names.push_back(tensor.name);
  }
  for (const Graph& body : graph.bodies) collect_names(body, operators, names);
}

// The dimension of a tensor that the tensor-parallel axis splits; nothing: none.
using Split = std::optional<std::size_t>;

class TensorParallel {
 public:
  TensorParallel(const std::vector<MeshAxis>& mesh, Axis axis, std::vector<std::string>& remarks)
      : mesh_(mesh),
        axis_(axis),
        ways_(mesh[static_cast<std::size_t>(axis)].size),
        remarks_(remarks) {}

  // Visits the operators of a graph. `splits` are the splits of its inputs (for a body: as the
  // operator around it leaves them; may be empty). Returns the splits of the outputs.
  std::vector<Split> run(Graph& graph, const std::vector<Split>& splits) {
    std::vector<Split> of(graph.tensors.size());
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) of[t] = pinned(graph.tensors[t]);
    for (std::size_t i = 0; i < splits.size() && i < graph.inputs.size(); ++i) {
      if (splits[i]) of[graph.inputs[i].index()] = splits[i];
    }
    for (const Operator& op : graph.operators) visit(graph, op, of);
    std::vector<Split> results;
    for (const TensorId id : graph.outputs) results.push_back(of[id.index()]);
    return results;
  }

 private:
  Split pinned(const Tensor& tensor) const {
    if (!tensor.pinned) return std::nullopt;
    const AxisState state = state_of(*tensor.pinned, axis_);
    if (state.kind != AxisState::Kind::kSplit) return std::nullopt;
    return static_cast<std::size_t>(state.dim);
  }

  void visit(Graph& graph, const Operator& op, std::vector<Split>& of) {
    if (!op.bodies.empty()) {
      std::vector<Split> inputs;
      for (const TensorId id : op.inputs) inputs.push_back(of[id.index()]);
      for (const std::int32_t body : op.bodies) {
        const auto results = run(graph.bodies[static_cast<std::size_t>(body)], inputs);
        for (std::size_t i = 0; i < results.size() && i < op.outputs.size(); ++i)
          of[op.outputs[i].index()] = results[i];
      }
      return;
    }
    const Rule& rule = op.rule;
    std::int32_t factor = op.splits ? split_by(*op.splits) : arriving(rule, op, of);
    for (std::size_t i = 0; !op.splits && i < op.inputs.size(); ++i) {
      Tensor& tensor = graph[op.inputs[i]];
      if (tensor.role != TensorRole::kParameter || tensor.pinned || !contracts(rule, i)) continue;
      const std::int32_t rows = rows_of(rule, i);
      if (rows >= 0 && few_rows(rule.factors[static_cast<std::size_t>(rows)].size, tensor))
        continue;  // fewer rows than columns: token types, positions
      const std::int32_t chosen = choose(rule, i, factor);
      if (chosen < 0) {
        remark(tensor);
        continue;
      }
      const auto dim = dimension_of(rule, i, chosen);
      Attribute attribute = replicated(tensor.shape.size());
      attribute.dims[*dim] = {axis_};
      tensor.pinned = std::move(attribute);
      of[op.inputs[i].index()] = dim;
      factor = chosen;
    }
    for (std::size_t o = 0; o < op.outputs.size(); ++o)
      of[op.outputs[o].index()] =
          factor < 0 ? std::nullopt : dimension_of(rule, rule.inputs + o, factor);
  }

  // The factor that an annotation splits over the axis, or -1.
  std::int32_t split_by(const Splits& splits) const {
    for (std::size_t f = 0; f < splits.size(); ++f)
      if (std::ranges::find(splits[f], axis_) != splits[f].end())
        return static_cast<std::int32_t>(f);
    return -1;
  }

  bool splittable(const Rule& rule, std::int32_t factor) const {
    const Factor& f = rule.factors[static_cast<std::size_t>(factor)];
    return !f.whole && f.size % ways_ == 0;
  }

  // The factor along which inputs arrive split, or -1.
  std::int32_t arriving(const Rule& rule, const Operator& op, const std::vector<Split>& of) const {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const Split& split = of[op.inputs[i].index()];
      if (!split || rule.operands[i][*split].empty()) continue;
      const std::int32_t factor = rule.operands[i][*split].front();
      if (splittable(rule, factor)) return factor;
    }
    return -1;
  }

  static bool has(const Rule& rule, std::size_t operand, std::int32_t factor) {
    return std::ranges::any_of(rule.operands[operand], [&](const auto& dimension) {
      return std::ranges::find(dimension, factor) != dimension.end();
    });
  }
  static bool in_outputs(const Rule& rule, std::int32_t factor) {
    for (std::size_t o = rule.inputs; o < rule.operands.size(); ++o)
      if (has(rule, o, factor)) return true;
    return false;
  }
  static bool in_other_inputs(const Rule& rule, std::size_t input, std::int32_t factor) {
    for (std::size_t i = 0; i < rule.inputs; ++i)
      if (i != input && has(rule, i, factor)) return true;
    return false;
  }

  // The dimension that begins with the factor: splitting the factor splits this dimension.
  static Split dimension_of(const Rule& rule, std::size_t operand, std::int32_t factor) {
    const auto& dimensions = rule.operands[operand];
    for (std::size_t d = 0; d < dimensions.size(); ++d)
      if (!dimensions[d].empty() && dimensions[d].front() == factor) return d;
    return std::nullopt;
  }

  // Whether the operator sums over a factor of this input: a matrix, a filter, a table.
  static bool contracts(const Rule& rule, std::size_t input) {
    if (rule.operands[input].size() < 2) return false;
    return std::ranges::any_of(rule.operands[input], [&](const auto& dimension) {
      return std::ranges::any_of(dimension,
                                 [&](std::int32_t factor) { return !in_outputs(rule, factor); });
    });
  }

  static bool few_rows(std::int64_t rows, const Tensor& table) {
    return rows < elements(table) / std::max<std::int64_t>(rows, 1);
  }

  // The factor of rows, if this input is a lookup table: only this input has the factor that is
  // summed, and it shares no factor with another input.
  static std::int32_t rows_of(const Rule& rule, std::size_t input) {
    std::int32_t rows = -1;
    for (const auto& dimension : rule.operands[input]) {
      for (const std::int32_t factor : dimension) {
        if (in_other_inputs(rule, input, factor)) return -1;
        if (rows < 0 && !in_outputs(rule, factor)) rows = factor;
      }
    }
    return rows;
  }

  // The factor to split this input along, or -1.
  std::int32_t choose(const Rule& rule, std::size_t input, std::int32_t arrives) const {
    if (arrives >= 0 && dimension_of(rule, input, arrives)) return arrives;
    const std::int32_t rows = rows_of(rule, input);
    if (rows >= 0) return splittable(rule, rows) && dimension_of(rule, input, rows) ? rows : -1;
    for (const auto& dimension : rule.operands[input]) {
      if (dimension.empty() || !splittable(rule, dimension.front())) continue;
      if (in_outputs(rule, dimension.front())) return dimension.front();
    }
    return -1;
  }

  void remark(const Tensor& tensor) {
    remarks_.push_back(
        fmt::format("parameter '{}' [{}] has no dimension that {} ways of '{}' can split: it is "
                    "whole on every rank",
                    tensor.name, fmt::join(tensor.shape, ", "), ways_,
                    mesh_[static_cast<std::size_t>(axis_)].name));
  }

  const std::vector<MeshAxis>& mesh_;
  Axis axis_;
  std::int64_t ways_;
  std::vector<std::string>& remarks_;
};

class Annotator {
 public:
  Annotator(const std::vector<MeshAxis>& mesh, const AnnotateOptions& options)
      : mesh_(mesh), options_(options) {}

  Result<std::vector<std::string>> run(Graph& graph) {
    for (std::size_t i = 0; i < options_.annotations.size(); ++i) {
      const Annotation& annotation = options_.annotations[i];
      const bool of_operators = !annotation.op.empty();
      FORESHARD_ASSIGN(auto pinned,
                       of_operators ? split(graph, annotation) : pin(graph, annotation));
      if (pinned > 0) continue;
      std::vector<std::string> names;
      collect_names(graph, of_operators, names);
      const std::string& wanted = of_operators ? annotation.op : annotation.tensor;
      const auto near = nearest_name(wanted, names);
      return invalid(fmt::format("annotation '{}' matches no {}{}", wanted,
                                 of_operators ? "operator" : "tensor",
                                 near ? fmt::format("; did you mean '{}'?", *near) : ""));
    }
    split_batch(graph);
    const auto tensor = std::ranges::find(mesh_, options_.tensor, &MeshAxis::name);
    if (tensor != mesh_.end() && tensor->size > 1)
      TensorParallel(mesh_, static_cast<Axis>(tensor - mesh_.begin()), remarks_).run(graph, {});
    return std::move(remarks_);
  }

 private:
  Result<std::int64_t> pin(Graph& graph, const Annotation& annotation) {
    std::int64_t count = 0;
    for (Tensor& tensor : graph.tensors) {
      if (!matches(annotation.tensor, tensor.name)) continue;
      FORESHARD_ASSIGN(tensor.pinned, attribute_for(annotation, tensor, mesh_));
      ++count;
    }
    for (Graph& body : graph.bodies) {
      FORESHARD_ASSIGN(const auto inner, pin(body, annotation));
      count += inner;
    }
    return count;
  }

  Result<std::int64_t> split(Graph& graph, const Annotation& annotation) {
    std::int64_t count = 0;
    for (Operator& op : graph.operators) {
      if (!matches(annotation.op, op.name)) continue;
      FORESHARD_ASSIGN(op.splits, splits_for(annotation, op, mesh_));
      ++count;
    }
    for (Graph& body : graph.bodies) {
      FORESHARD_ASSIGN(const auto inner, split(body, annotation));
      count += inner;
    }
    return count;
  }

  void split_batch(Graph& graph) {
    const auto data = std::ranges::find(mesh_, options_.data, &MeshAxis::name);
    if (data == mesh_.end() || data->size == 1) return;
    for (const TensorId id : graph.inputs) {
      Tensor& tensor = graph[id];
      if (tensor.pinned || tensor.shape.empty()) continue;
      if (tensor.shape[0] != options_.batch || tensor.shape[0] % data->size != 0) {
        remarks_.push_back(
            fmt::format("input '{}' [{}] is whole on every rank: its first dimension "
                        "is not the batch of {}",
                        tensor.name, fmt::join(tensor.shape, ", "), options_.batch));
        continue;
      }
      Attribute attribute = replicated(tensor.shape.size());
      attribute.dims[0] = {static_cast<Axis>(data - mesh_.begin())};
      tensor.pinned = std::move(attribute);
      for (std::size_t d = 0; d < tensor.shape.size(); ++d)
        tensor.open.push_back(static_cast<std::int32_t>(d));
    }
  }

  const std::vector<MeshAxis>& mesh_;
  const AnnotateOptions& options_;
  std::vector<std::string> remarks_;
};

}  // namespace

const yaml::Table<Annotation>& yaml_table(const Annotation*) {
  static const auto table =
      yaml::Table<Annotation>("annotation",
                              "How tensors of a graph lie on the mesh, or how operators are split.")
          .optional("tensor", &Annotation::tensor,
                    "Name of a tensor; '*' matches any text: encoder.*.weight.")
          .optional("dims", &Annotation::dims,
                    "Of the tensor: per dimension '-' or the axes that split it, major to minor: "
                    "data+tensor.")
          .optional("partial", &Annotation::partial,
                    "Axes over which the tensor is partial: each rank holds a summand.")
          .optional("operator", &Annotation::op,
                    "Name of an operator, instead of a tensor; '*' matches any text.")
          .optional(
              "splits", &Annotation::splits,
              "Of the operator: factors of its rule and the axes that split them: {x: data, z: "
              "tensor} of a product xy,yz->xz. Those left out are whole.")
          .check("tensor",
                 [](const Annotation& one) {
                   return one.tensor.empty() == one.op.empty()
                              ? "give 'tensor' and 'dims', or 'operator' and 'splits'"
                              : "";
                 })
          .check("splits",
                 [](const Annotation& one) {
                   return one.op.empty() && !one.splits.empty()
                              ? "a tensor has no factors; give 'dims'"
                              : "";
                 })
          .check("dims", [](const Annotation& one) {
            return !one.op.empty() && !(one.dims.empty() && one.partial.empty())
                       ? "an operator has no dimensions; give 'splits'"
                       : "";
          });
  return table;
}

bool matches(std::string_view pattern, std::string_view name) {
  return matches_glob(pattern, name, [](auto rest, auto text) { return letter_step(rest, text); });
}

Result<std::vector<std::string>> annotate(Graph& graph, const std::vector<MeshAxis>& mesh,
                                          const AnnotateOptions& options) {
  return Annotator(mesh, options).run(graph);
}

}  // namespace foreshard
