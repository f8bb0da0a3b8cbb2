// Operators that pick rows by index: embedding, gather and scatter, cross-entropy, top-k.
#include <algorithm>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

bool is_index(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64;
}

RuleMaker::Dimensions joined(const RuleMaker::Dimensions& a, const RuleMaker::Dimensions& b) {
  RuleMaker::Dimensions all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

Result<Inferred> infer_embedding(const Call& call) {
  const TensorType& ids = call.inputs[0];
  const TensorType& table = call.inputs[1];
  if (!is_index(ids.dtype)) return wrong("indices must be int32 or int64");
  if (table.shape.size() != 2)
    return wrong("the table must be [rows, width], not " + text_of(table.shape));
  RuleMaker make;
  const auto tokens = make.each(ids.shape);
  const auto rows = make.each(table.shape);
  Shape out = ids.shape;
  out.push_back(table.shape[1]);
  // A rank with a part of the rows yields zeros for the other rows: the results are summands.
  make.input(tokens).input(rows).output(joined(tokens, {rows[1]}));
  return Inferred{{{table.dtype, std::move(out)}}, make.take()};
}

std::vector<Kernel> embedding_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kEmbeddingForward, local.outputs[0]);
}

void embedding_backward(Gradients& gradients) {
  if (gradients.tensor(gradients.input(1)).updated_by_rows) {
    gradients.add("row_update", "",
                  {gradients.input(1), gradients.input(0), gradients.of_output(0)});
    return;
  }
  gradients.give(1, gradients.add("scatter_add", "", {gradients.of_output(0), gradients.input(0)},
                                  {{"axis", std::int64_t{0}},
                                   {"size", gradients.shape(gradients.input(1))[0]},
                                   {"every_row", gradients.op().settings.flag("every_row")}})[0]);
}

SettingDefinition every_row_setting() {
  return {.name = "every_row",
          .fallback = false,
          .doc =
              "A rank with part of the table goes over the gradients of all rows that were "
              "looked up; else, on average, over that part of them."};
}

Result<Inferred> infer_gather(const Call& call) {
  const TensorType& data = call.inputs[0];
  const TensorType& indices = call.inputs[1];
  FORESHARD_ASSIGN(const auto axis, axis_in(call.settings.integer("axis"), data.shape.size()));
  if (!is_index(indices.dtype)) return wrong("indices must be int32 or int64");
  RuleMaker make;
  auto whole = make.each(data.shape, {axis});
  const auto picked = make.each(indices.shape);
  TensorType y{data.dtype, {}};
  RuleMaker::Dimensions out;
  for (std::size_t d = 0; d < data.shape.size(); ++d) {
    if (d == axis) {
      y.shape.insert(y.shape.end(), indices.shape.begin(), indices.shape.end());
      out.insert(out.end(), picked.begin(), picked.end());
    } else {
      y.shape.push_back(data.shape[d]);
      out.push_back(whole[d]);
    }
  }
  make.input(std::move(whole)).input(picked).output(std::move(out));
  return Inferred{{std::move(y)}, make.take()};
}

std::vector<Kernel> gather_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kEmbeddingForward, local.outputs[0]);
}

void gather_backward(Gradients& gradients) {
  const std::size_t dimensions = gradients.shape(gradients.input(0)).size();
  const std::size_t axis = *axis_in(gradients.op().settings.integer("axis"), dimensions);
  if (!gradients.wants(0)) return;
  gradients.give(0, gradients.add("scatter_add", "", {gradients.of_output(0), gradients.input(1)},
                                  {{"axis", static_cast<std::int64_t>(axis)},
                                   {"size", gradients.shape(gradients.input(0))[axis]}})[0]);
}

// updates [before, indices, after] -> [before, size, after].
Result<Inferred> infer_scatter(const Call& call) {
  const TensorType& updates = call.inputs[0];
  const TensorType& indices = call.inputs[1];
  if (!is_index(indices.dtype)) return wrong("indices must be int32 or int64");
  const std::size_t width = indices.shape.size();
  const std::int64_t start = call.settings.integer("axis");
  const std::int64_t size = call.settings.integer("size");
  if (size < 0) return wrong("size must not be negative");
  if (start < 0 || static_cast<std::size_t>(start) + width > updates.shape.size())
    return wrong("indices " + text_of(indices.shape) + " do not fit updates " +
                 text_of(updates.shape) + " from axis " + std::to_string(start));
  const auto axis = static_cast<std::size_t>(start);
  RuleMaker make;
  const auto factors = make.each(updates.shape);
  RuleMaker::Dimensions picked;
  for (std::size_t d = 0; d < width; ++d) {
    if (updates.shape[axis + d] != indices.shape[d])
      return wrong("indices " + text_of(indices.shape) + " do not fit updates " +
                   text_of(updates.shape) + " from axis " + std::to_string(start));
    picked.push_back(factors[axis + d]);
  }
  TensorType y{updates.dtype, {}};
  RuleMaker::Dimensions out;
  for (std::size_t d = 0; d < updates.shape.size(); ++d) {
    if (d == axis) {
      // A rank may hold a part of the rows, and skips updates of other rows.
      y.shape.push_back(size);
      out.push_back({make.factor(size, false, "rows")});
    }
    if (d >= axis && d < axis + width) continue;
    y.shape.push_back(updates.shape[d]);
    out.push_back(factors[d]);
  }
  if (axis == updates.shape.size()) {
    y.shape.push_back(size);
    out.push_back({make.factor(size, false, "rows")});
  }
  make.input(factors).input(std::move(picked)).output(std::move(out));
  return Inferred{{std::move(y)}, make.take()};
}

// A rank with `mine` of `all` rows adds that fraction of the updates on average.
std::vector<Kernel> added_to_rows(const TensorType& updates, std::int64_t mine, std::int64_t all) {
  return {Pass{.kind = PassKind::kEmbeddingBackward,
               .rows = all == 0 ? 0 : (product(updates.shape) * mine + all - 1) / all,
               .columns = 1,
               .dtype = updates.dtype}};
}

std::vector<Kernel> scatter_kernels(const Call& local, const Call& whole) {
  if (local.settings.flag("every_row"))
    return one_pass(PassKind::kEmbeddingBackward, local.inputs[0]);
  const auto axis = static_cast<std::size_t>(local.settings.integer("axis"));
  return added_to_rows(local.inputs[0], local.outputs[0].shape[axis], whole.outputs[0].shape[axis]);
}

// Each rank needs the gradients of all tokens for the rows and columns that it holds.
Result<Inferred> infer_row_update(const Call& call) {
  const TensorType& table = call.inputs[0];
  const TensorType& ids = call.inputs[1];
  const TensorType& gradient = call.inputs[2];
  if (table.shape.size() != 2)
    return wrong("the table must be [rows, width], not " + text_of(table.shape));
  if (!is_index(ids.dtype)) return wrong("indices must be int32 or int64");
  Shape looked_up = ids.shape;
  looked_up.push_back(table.shape[1]);
  if (gradient.shape != looked_up)
    return wrong("gradients " + text_of(gradient.shape) + " do not fit rows " + text_of(looked_up));
  RuleMaker make;
  const RuleMaker::Dimensions tokens(ids.shape.size());  // whole
  const auto rows = make.each(table.shape);
  make.input(rows).input(tokens).input(joined(tokens, {rows[1]})).output(rows);
  return Inferred{{table}, make.take()};
}

std::vector<Kernel> row_update_kernels(const Call& local, const Call& whole) {
  return added_to_rows(local.inputs[2], local.inputs[0].shape[0], whole.inputs[0].shape[0]);
}

void scatter_backward(Gradients& gradients) {
  gradients.give(0, gradients.add("gather", "", {gradients.of_output(0), gradients.input(1)},
                                  {{"axis", gradients.op().settings.integer("axis")}})[0]);
}

// logits [..., classes], targets [...] -> loss [...], softmax.
Result<Inferred> infer_cross_entropy(const Call& call) {
  const TensorType& logits = call.inputs[0];
  const TensorType& targets = call.inputs[1];
  if (!is_index(targets.dtype)) return wrong("targets must be int32 or int64");
  if (logits.shape.empty() || Shape(logits.shape.begin(), logits.shape.end() - 1) != targets.shape)
    return wrong("targets " + text_of(targets.shape) + " do not fit logits " +
                 text_of(logits.shape) + ", [..., classes]");
  RuleMaker make;
  const auto factors = make.each(logits.shape, {logits.shape.size() - 1});
  const RuleMaker::Dimensions tokens(factors.begin(), factors.end() - 1);
  make.input(factors).input(tokens).output(tokens).output(factors);
  return Inferred{{{DType::kFp32, targets.shape}, {DType::kFp32, logits.shape}}, make.take()};
}

std::vector<Kernel> cross_entropy_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kCrossEntropyForward, local.inputs[0]);
}

void cross_entropy_backward(Gradients& gradients) {
  const TensorId dloss = gradients.of_output(0);
  if (!dloss.valid()) return;
  const std::string dtype(name_of(gradients.tensor(gradients.input(0)).dtype));
  gradients.give(
      0, gradients.add("cross_entropy_gradient", "",
                       {dloss, gradients.output(1), gradients.input(1)}, {{"to", dtype}})[0]);
}

Result<Inferred> infer_cross_entropy_gradient(const Call& call) {
  const TensorType& softmax = call.inputs[1];
  if (softmax.shape.empty() || call.inputs[0].shape != call.inputs[2].shape ||
      Shape(softmax.shape.begin(), softmax.shape.end() - 1) != call.inputs[0].shape)
    return wrong("gradient, softmax and targets do not fit");
  const std::string& to = call.settings.text("to");
  const DType dtype = find_dtype(to).value_or(DType::kFp32);
  RuleMaker make;
  const auto factors = make.each(softmax.shape);
  const RuleMaker::Dimensions tokens(factors.begin(), factors.end() - 1);
  make.input(tokens).input(factors).input(tokens).output(factors);
  return Inferred{{{dtype, softmax.shape}}, make.take()};
}

std::vector<Kernel> cross_entropy_gradient_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kCrossEntropyBackward, local.outputs[0]);
}

Result<Inferred> infer_top_k(const Call& call) {
  TensorType values = call.inputs[0];
  if (values.shape.empty()) return wrong("needs at least one dimension");
  const std::int64_t k = call.settings.integer("k");
  if (k < 1 || k > values.shape.back())
    return wrong("k must be between 1 and " + std::to_string(values.shape.back()) + ", not " +
                 std::to_string(k));
  const std::int64_t groups = call.settings.integer("groups");
  const std::int64_t chosen_groups = call.settings.integer("groups_of_k");
  if (groups < 1 || values.shape.back() % groups != 0)
    return wrong(std::to_string(values.shape.back()) + " elements do not divide into " +
                 std::to_string(groups) + " groups");
  if (chosen_groups < 1 || chosen_groups > groups ||
      k > values.shape.back() / groups * chosen_groups)
    return wrong(std::to_string(chosen_groups) + " of " + std::to_string(groups) +
                 " groups have no " + std::to_string(k) + " elements");
  RuleMaker make;
  const std::size_t last = values.shape.size() - 1;
  auto factors = make.each(values.shape, {last});
  auto chosen = factors;
  chosen[last].clear();
  make.input(factors).output(chosen).output(chosen);
  values.shape.back() = k;
  TensorType indices{DType::kInt32, values.shape};
  return Inferred{{std::move(values), std::move(indices)}, make.take()};
}

// With groups, another pass first scores the groups.
std::vector<Kernel> top_k_kernels(const Call& local, const Call&) {
  const bool eager = local.settings.flag("eager");
  const Kernel choice = pass_over(PassKind::kTopK, local.inputs[0]);
  std::vector<Kernel> passes = implemented(choice, eager ? "eager" : "fused");
  if (local.settings.integer("groups") > 1) passes.push_back(choice);
  return passes;
}

void top_k_backward(Gradients& gradients) {
  if (!gradients.of_output(0).valid()) return;
  gradients.give(0,
                 gradients.add("top_k_gradient", "", {gradients.of_output(0), gradients.output(1)},
                               {{"size", gradients.shape(gradients.input(0)).back()},
                                {"eager", gradients.op().settings.flag("eager")}})[0]);
}

Result<Inferred> infer_top_k_gradient(const Call& call) {
  TensorType x = call.inputs[0];
  if (x.shape.empty() || x.shape != call.inputs[1].shape)
    return wrong("gradient and indices differ in shape");
  const std::int64_t size = call.settings.integer("size");
  if (size < x.shape.back()) return wrong("size is less than k");
  RuleMaker make;
  auto factors = make.each(x.shape);
  factors.back().clear();
  make.input(factors).input(factors).output(factors);
  x.shape.back() = size;
  return Inferred{{std::move(x)}, make.take()};
}

std::vector<Kernel> top_k_gradient_kernels(const Call& local, const Call&) {
  return implemented(pass_over(PassKind::kZero, local.outputs[0]),
                     local.settings.flag("eager") ? "eager" : "fused");
}

}  // namespace

OperatorDefinition embedding() {
  return {.name = "embedding",
          .doc = "Rows of a table. A table split by rows leaves summands.",
          .inputs = "indices, table",
          .outputs = "y",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = {every_row_setting()},
          .infer = infer_embedding,
          .kernels = embedding_kernels,
          .gradient = embedding_backward};
}

OperatorDefinition row_update() {
  return {.name = "row_update",
          .doc =
              "The table less the gradients of the rows that were looked up, in place: its "
              "optimizer's step, of these rows alone.",
          .inputs = "table, indices, dy",
          .outputs = "updated",
          .least_inputs = 3,
          .most_inputs = 3,
          .in_place = true,
          .infer = infer_row_update,
          .kernels = row_update_kernels};
}

OperatorDefinition gather() {
  return {.name = "gather",
          .doc = "Slices of a dimension, which must be whole, by index.",
          .inputs = "data, indices",
          .outputs = "y",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = {{.name = "axis", .fallback = std::int64_t{0}, .doc = "The dimension."}},
          .infer = infer_gather,
          .kernels = gather_kernels,
          .gradient = gather_backward};
}

OperatorDefinition scatter_add() {
  return {.name = "scatter_add",
          .doc = "Adds slices to those that the indices name, of a tensor of zeroes.",
          .inputs = "updates, indices",
          .outputs = "y",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = {{.name = "axis",
                        .fallback = std::int64_t{0},
                        .doc = "First dimension of the updates that the indices stand for."},
                       {.name = "size",
                        .fallback = std::int64_t{0},
                        .required = true,
                        .doc = "Extent of the dimension that takes their place."},
                       every_row_setting()},
          .infer = infer_scatter,
          .kernels = scatter_kernels,
          .gradient = scatter_backward};
}

OperatorDefinition cross_entropy() {
  return {.name = "cross_entropy",
          .doc =
              "Loss of every token, and the softmax, kept for the backward pass. The classes "
              "must be whole; to split them, write it as `reduce`, `unary` and `binary`.",
          .inputs = "logits, targets",
          .outputs = "loss, softmax",
          .least_inputs = 2,
          .most_inputs = 2,
          .infer = infer_cross_entropy,
          .kernels = cross_entropy_kernels,
          .gradient = cross_entropy_backward};
}

OperatorDefinition cross_entropy_gradient() {
  return {.name = "cross_entropy_gradient",
          .doc = "The gradient of the logits of `cross_entropy`.",
          .inputs = "dloss, softmax, targets",
          .outputs = "dlogits",
          .least_inputs = 3,
          .most_inputs = 3,
          .settings = {{.name = "to",
                        .fallback = std::string("fp32"),
                        .doc = "Type of the logits.",
                        .words = {"fp32", "tf32", "fp16", "bf16", "fp8"}}},
          .infer = infer_cross_entropy_gradient,
          .kernels = cross_entropy_gradient_kernels};
}

OperatorDefinition top_k() {
  return {
      .name = "top_k",
      .doc =
          "The largest elements of the last dimension, which must be whole, and where they "
          "are: how a mixture of experts routes.",
      .inputs = "x",
      .outputs = "values, indices",
      .settings = {{.name = "k", .fallback = std::int64_t{1}, .required = true, .doc = "How many."},
                   {.name = "groups",
                    .fallback = std::int64_t{1},
                    .doc = "Equal groups of neighbours, some of which alone are looked at."},
                   {.name = "groups_of_k",
                    .fallback = std::int64_t{1},
                    .doc = "How many: those whose two largest elements add up to most."},
                   eager_setting()},
      .infer = infer_top_k,
      .kernels = top_k_kernels,
      .gradient = top_k_backward};
}

OperatorDefinition top_k_gradient() {
  return {.name = "top_k_gradient",
          .doc = "The gradient of `top_k`: that of the values, where they came from.",
          .inputs = "dvalues, indices",
          .outputs = "dx",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = {{.name = "size",
                        .fallback = std::int64_t{1},
                        .required = true,
                        .doc = "Extent of the last dimension of `x`."},
                       eager_setting()},
          .infer = infer_top_k_gradient,
          .kernels = top_k_gradient_kernels};
}

}  // namespace foreshard::operators
