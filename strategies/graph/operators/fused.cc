// Operators that some frameworks fuse into one pass and others run as several (implementation.h).
#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

constexpr std::int64_t kGateAndUp = 2;

// Types and rule of a gated activation. `wide` has gate and value of each element of `narrow` side
// by side.
Result<Inferred> gated(const TensorType& wide, const TensorType& narrow, bool forward) {
  RuleMaker make;
  const auto factors = make.each(narrow.shape);
  if (!forward) make.input(factors);
  make.input(factors).output(factors);
  return Inferred{{forward ? narrow : wide}, make.take()};
}

// Types and rule with separate gate and up: element by element.
Inferred gate_and_up(const TensorType& type, std::size_t inputs, std::size_t outputs) {
  RuleMaker make;
  const auto factors = make.each(type.shape);
  for (std::size_t i = 0; i < inputs; ++i) make.input(factors);
  for (std::size_t i = 0; i < outputs; ++i) make.output(factors);
  return {std::vector<TensorType>(outputs, type), make.take(Linearity::kNone, true)};
}

// As `gated`, with a factor for each row: y = silu(gate) * up * factor.
Inferred gated_rows(const TensorType& wide, const TensorType& narrow, bool forward) {
  RuleMaker make;
  const auto factors = make.each(narrow.shape);
  auto rows = factors;
  rows.back().clear();
  TensorType row = narrow;
  row.shape.back() = 1;
  if (!forward) make.input(factors);
  make.input(factors).input(rows).output(factors);
  if (forward) return {{narrow}, make.take()};
  return {{wide, row}, make.output(rows).take()};
}

Result<Inferred> infer_weighted(const TensorType& wide, const TensorType& narrow,
                                const TensorType& weights, bool forward) {
  Shape rows = narrow.shape;
  rows.back() = 1;
  if (weights.shape != rows)
    return wrong("weights " + text_of(weights.shape) + " are not one for each row of " +
                 text_of(narrow.shape));
  return gated_rows(wide, narrow, forward);
}

Result<Inferred> infer_swiglu(const Call& call) {
  TensorType y = call.inputs[0];
  const bool weighted = call.settings.flag("weighted");
  if (weighted && call.inputs.size() != 2) return wrong("weighted needs a gate and weights");
  if (!weighted && call.inputs.size() == 2) {
    if (call.inputs[1].shape != y.shape)
      return wrong("gate " + text_of(y.shape) + " and up " + text_of(call.inputs[1].shape) +
                   " differ in shape");
    return gate_and_up(y, 2, 1);
  }
  if (y.shape.empty() || y.shape.back() % kGateAndUp != 0)
    return wrong("needs an even number of columns, not " + text_of(y.shape));
  y.shape.back() /= kGateAndUp;
  if (weighted) return infer_weighted(call.inputs[0], y, call.inputs[1], true);
  return gated(call.inputs[0], y, true);
}

Result<Inferred> infer_swiglu_gradient(const Call& call) {
  const TensorType& dy = call.inputs[0];
  const bool weighted = call.settings.flag("weighted");
  if (weighted && call.inputs.size() != 3) return wrong("weighted needs a gate and weights");
  if (!weighted && call.inputs.size() == 3) {
    if (call.inputs[1].shape != dy.shape || call.inputs[2].shape != dy.shape)
      return wrong("gradient, gate and up differ in shape");
    return gate_and_up(dy, 3, 2);
  }
  Shape wide = dy.shape;
  if (!wide.empty()) wide.back() *= kGateAndUp;
  if (wide.empty() || wide != call.inputs[1].shape)
    return wrong("gradient " + text_of(dy.shape) + " does not have half the columns of " +
                 text_of(call.inputs[1].shape));
  if (weighted) return infer_weighted(call.inputs[1], dy, call.inputs[2], false);
  return gated(call.inputs[1], dy, false);
}

std::vector<Kernel> eager_or_fused(PassKind kind, const TensorType& tensor, const Call& call) {
  return implemented(pass_over(kind, tensor), call.settings.flag("eager") ? "eager" : "fused");
}

std::vector<Kernel> swiglu_kernels(const Call& local, const Call&) {
  return eager_or_fused(PassKind::kSwigluForward, local.outputs[0], local);
}

std::vector<Kernel> swiglu_gradient_kernels(const Call& local, const Call&) {
  return eager_or_fused(PassKind::kSwigluBackward, local.inputs[0], local);
}

void swiglu_backward(Gradients& gradients) {
  std::vector<TensorId> inputs{gradients.of_output(0)};
  const auto& read = gradients.op().inputs;
  inputs.insert(inputs.end(), read.begin(), read.end());
  const auto parts =
      gradients.add("swiglu_gradient", "", std::move(inputs), gradients.op().settings);
  for (std::size_t i = 0; i < parts.size(); ++i) gradients.give(i, parts[i]);
}

// What is wrong with `bias` as a vector for the last dimension of `x`; empty if nothing is.
std::string vector_fault(const Shape& x, const Shape& bias) {
  if (!x.empty() && bias == Shape{x.back()}) return {};
  return "bias " + text_of(bias) + " does not fit the columns of " + text_of(x);
}

// `tensors` of one shape, then a bias of their last dimension -> outputs of that shape.
Rule columns_rule(const Shape& shape, std::size_t tensors, bool bias, std::size_t outputs) {
  RuleMaker make;
  const auto factors = make.each(shape);
  for (std::size_t i = 0; i < tensors; ++i) make.input(factors);
  if (bias) make.input({factors.back()});
  for (std::size_t i = 0; i < outputs; ++i) make.output(factors);
  return make.take(Linearity::kNone, true);
}

// x, bias -> y; dy, x, bias -> dx.
Result<Inferred> infer_bias_gelu(const Call& call) {
  const std::size_t tensors = call.inputs.size() - 1;
  const TensorType& x = call.inputs[tensors - 1];
  if (call.inputs[0].shape != x.shape) return wrong("gradient and input differ in shape");
  if (const auto why = vector_fault(x.shape, call.inputs[tensors].shape); !why.empty())
    return wrong(why);
  return Inferred{{x}, columns_rule(x.shape, tensors, true, 1)};
}

template <PassKind kind>
std::vector<Kernel> output_kernels(const Call& local, const Call&) {
  return one_pass(kind, local.outputs[0]);
}

void bias_gelu_backward(Gradients& gradients) {
  const TensorId dx =
      gradients.add("bias_gelu_gradient", "",
                    {gradients.of_output(0), gradients.input(0), gradients.input(1)})[0];
  gradients.give(0, dx);
  gradients.give(1, gradients.add("bias_gradient", "bias", {dx})[0]);
}

// x, residual[, bias] -> y, mask.
Result<Inferred> infer_bias_dropout_add(const Call& call) {
  const TensorType& x = call.inputs[0];
  const bool bias = call.inputs.size() > 2;
  if (call.inputs[1] != x) return wrong("branch and residual differ in shape or type");
  if (const auto why = bias ? vector_fault(x.shape, call.inputs[2].shape) : ""; !why.empty())
    return wrong(why);
  if (const auto why = rate_fault(call.settings); !why.empty()) return wrong(why);
  return Inferred{{x, {DType::kInt8, x.shape}}, columns_rule(x.shape, 2, bias, 2)};
}

Result<Inferred> infer_bias_dropout_add_gradient(const Call& call) {
  const TensorType& dy = call.inputs[0];
  if (dy.shape != call.inputs[1].shape) return wrong("gradient and mask differ in shape");
  if (const auto why = rate_fault(call.settings); !why.empty()) return wrong(why);
  return Inferred{{dy}, columns_rule(dy.shape, 2, false, 1)};
}

void bias_dropout_add_backward(Gradients& gradients) {
  const TensorId dy = gradients.of_output(0);
  if (!dy.valid()) return;
  const TensorId dx = gradients.add("bias_dropout_add_gradient", "", {dy, gradients.output(1)},
                                    gradients.op().settings)[0];
  gradients.give(0, dx);
  if (gradients.op().inputs.size() > 2)
    gradients.give(2, gradients.add("bias_gradient", "bias", {dx})[0]);
  gradients.give(1, dy);
}

// Dimensions of x [batch, sequence, width] and table [rows, width], where token s takes row s. The
// rows are whole if the table is longer than the sequence, or if ranks have parts of a sequence;
// the gradient of the rows is then partial.
struct Positions {
  RuleMaker make;
  RuleMaker::Dimensions tokens;
  RuleMaker::Dimensions table;
};
SettingDefinition in_parts_setting() {
  return {.name = "in_parts",
          .fallback = false,
          .doc = "Of tables of positions: sequences may be split, their rows are whole."};
}

Positions positions_of(const Shape& x, std::int64_t rows, const Settings& settings) {
  Positions p;
  p.tokens = p.make.each(x);
  p.table = {{}, p.tokens[2]};
  if (rows == x[1] && !settings.flag("in_parts")) p.table[0] = p.tokens[1];
  return p;
}

Result<Inferred> infer_add_positions(const Call& call) {
  const Shape& x = call.inputs[0].shape;
  const Shape& table = call.inputs[1].shape;
  if (x.size() != 3 || table.size() != 2 || table[0] < x[1] || table[1] != x[2])
    return wrong("table " + text_of(table) + " has no row for every token of " + text_of(x) +
                 ", [batch, sequence, width]");
  Positions p = positions_of(x, table[0], call.settings);
  p.make.input(p.tokens).input(p.table).output(p.tokens);
  return Inferred{{call.inputs[0]}, p.make.take()};
}

void add_positions_backward(Gradients& gradients) {
  const TensorId dy = gradients.of_output(0);
  gradients.give(1, gradients.add("bias_gradient", "", {dy},
                                  {{"rows", gradients.shape(gradients.input(1))[0]},
                                   {"in_parts", gradients.op().settings.flag("in_parts")}})[0]);
  gradients.give(0, dy);
}

Result<Inferred> infer_bias_gradient(const Call& call) {
  const TensorType& dy = call.inputs[0];
  const std::int64_t rows = call.settings.integer("rows");
  if (dy.shape.empty()) return wrong("needs at least one dimension");
  if (rows != 0 && (dy.shape.size() != 3 || rows < dy.shape[1]))
    return wrong("a table of " + std::to_string(rows) + " rows has none for every token of " +
                 text_of(dy.shape) + ", [batch, sequence, width]");
  if (rows != 0) {
    Positions p = positions_of(dy.shape, rows, call.settings);
    p.make.input(p.tokens).output(p.table);
    return Inferred{{{dy.dtype, {rows, dy.shape[2]}}}, p.make.take()};
  }
  RuleMaker make;
  const auto factors = make.each(dy.shape);
  make.input(factors).output({factors.back()});
  return Inferred{{{dy.dtype, {dy.shape.back()}}}, make.take(Linearity::kNone, true)};
}

std::vector<Kernel> bias_gradient_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kBiasGradient, local.inputs[0]);
}

Result<Inferred> infer_gradient_accumulate(const Call& call) {
  FORESHARD_ASSIGN(const auto to, dtype_named(call.settings.text("to")));
  RuleMaker make;
  const auto factors = make.each(call.inputs[0].shape);
  make.input(factors).output(factors);
  return Inferred{{{to, call.inputs[0].shape}}, make.take(Linearity::kJoint, true)};
}

// If gradient and buffer have one type, a plain addition; else one that converts the gradient.
std::vector<Kernel> gradient_accumulate_kernels(const Call& local, const Call&) {
  const bool same = local.inputs[0].dtype == local.outputs[0].dtype;
  return one_pass(same ? PassKind::kResidualAdd : PassKind::kGradientAccumulate, local.inputs[0]);
}

}  // namespace

static SettingDefinition weighted_setting() {
  return {.name = "weighted",
          .fallback = false,
          .doc = "In place of `up`, a factor for each row of the result."};
}

OperatorDefinition swiglu() {
  return {.name = "swiglu",
          .doc =
              "silu(gate) * up, of columns that alternate (gate 0, up 0, gate 1, up 1, ...) or of "
              "two tensors.",
          .inputs = "gate[, up]",
          .outputs = "y",
          .most_inputs = 2,
          .settings = {eager_setting(), weighted_setting()},
          .infer = infer_swiglu,
          .kernels = swiglu_kernels,
          .gradient = swiglu_backward};
}

OperatorDefinition swiglu_gradient() {
  return {.name = "swiglu_gradient",
          .doc = "The gradients of `swiglu`, from its inputs.",
          .inputs = "dy, gate[, up]",
          .outputs = "dgate[, dup]",
          .least_inputs = 2,
          .most_inputs = 3,
          .settings = {eager_setting(), weighted_setting()},
          .infer = infer_swiglu_gradient,
          .kernels = swiglu_gradient_kernels};
}

OperatorDefinition bias_gelu() {
  return {.name = "bias_gelu",
          .doc = "gelu(x + bias), by tanh, in one kernel.",
          .inputs = "x, bias",
          .outputs = "y",
          .least_inputs = 2,
          .most_inputs = 2,
          .infer = infer_bias_gelu,
          .kernels = output_kernels<PassKind::kGeluForward>,
          .gradient = bias_gelu_backward};
}

OperatorDefinition bias_gelu_gradient() {
  return {.name = "bias_gelu_gradient",
          .doc = "The gradient of `bias_gelu`, from its inputs.",
          .inputs = "dy, x, bias",
          .outputs = "dx",
          .least_inputs = 3,
          .most_inputs = 3,
          .infer = infer_bias_gelu,
          .kernels = output_kernels<PassKind::kGeluBackward>};
}

OperatorDefinition bias_dropout_add() {
  return {.name = "bias_dropout_add",
          .doc = "dropout(x + bias) + residual in one kernel; the mask is kept.",
          .inputs = "x, residual[, bias]",
          .outputs = "y, mask",
          .least_inputs = 2,
          .most_inputs = 3,
          .settings = {rate_setting()},
          .infer = infer_bias_dropout_add,
          .kernels = output_kernels<PassKind::kBiasDropoutAddForward>,
          .gradient = bias_dropout_add_backward};
}

OperatorDefinition bias_dropout_add_gradient() {
  return {.name = "bias_dropout_add_gradient",
          .doc = "The gradient of the branch of `bias_dropout_add`.",
          .inputs = "dy, mask",
          .outputs = "dx",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = {rate_setting()},
          .infer = infer_bias_dropout_add_gradient,
          .kernels = output_kernels<PassKind::kBiasDropoutAddBackward>};
}

OperatorDefinition add_positions() {
  return {.name = "add_positions",
          .doc = "Adds row s of a table to token s; the table may have more rows than tokens.",
          .inputs = "x, table",
          .outputs = "y",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = {in_parts_setting()},
          .infer = infer_add_positions,
          .kernels = output_kernels<PassKind::kBiasAdd>,
          .gradient = add_positions_backward};
}

OperatorDefinition bias_gradient() {
  return {.name = "bias_gradient",
          .doc = "The gradient of a bias: the sum over all but the last dimension.",
          .inputs = "dy",
          .outputs = "dbias",
          .settings = {{.name = "rows",
                        .fallback = std::int64_t{0},
                        .doc = "If not 0: of a table of positions with so many rows."},
                       in_parts_setting()},
          .infer = infer_bias_gradient,
          .kernels = bias_gradient_kernels};
}

OperatorDefinition gradient_accumulate() {
  return {.name = "gradient_accumulate",
          .doc = "Adds the gradient of a parameter to what earlier micro-batches left.",
          .inputs = "gradient",
          .outputs = "sum",
          .settings = {{.name = "to",
                        .fallback = std::string("fp32"),
                        .doc = "Type of the sum.",
                        .words = {"fp32", "tf32", "fp16", "bf16", "fp8"}}},
          .infer = infer_gradient_accumulate,
          .kernels = gradient_accumulate_kernels};
}

}  // namespace foreshard::operators
