// Operators that work element by element: their operands only need slices that line up. A further
// operator is declared in internal/families.h and registered in table.cc; a further operation of
// `unary` or `binary` is a word of kUnary or kBinary.
#include <algorithm>
#include <array>
#include <tuple>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

const std::vector<std::string_view> kUnary{
    "abs",        "ceil",  "clip",    "cos",          "elu",        "erf",
    "exp",        "floor", "gelu",    "hard_sigmoid", "hard_swish", "identity",
    "leaky_relu", "log",   "neg",     "not",          "reciprocal", "relu",
    "round",      "scale", "sigmoid", "sign",         "silu",       "sin",
    "softplus",   "sqrt",  "square",  "squared_relu", "tanh"};
const std::vector<std::string_view> kBinary{"add", "and", "div", "equal", "greater", "less", "max",
                                            "min", "mod", "mul", "or",    "pow",     "sub"};

bool compares(const std::string& operation) {
  return operation == "equal" || operation == "greater" || operation == "less" ||
         operation == "and" || operation == "or";
}

Rule same_shape(const Shape& shape, std::size_t inputs, std::size_t outputs, Linearity linearity) {
  RuleMaker make;
  const auto factors = make.each(shape);
  for (std::size_t i = 0; i < inputs; ++i) make.input(factors);
  for (std::size_t i = 0; i < outputs; ++i) make.output(factors);
  return make.take(linearity, true);
}

Status check_halves(const Call& call) {
  if (!call.settings.flag("halves")) return {};
  const std::string& operation = call.settings.text("operation");
  if (operation != "clip") return wrong("halves are of clip, not of " + operation);
  const Shape& shape = call.inputs[0].shape;
  if (shape.empty() || shape.back() % 2 != 0)
    return wrong("halves need an even number of columns, not " + text_of(shape));
  return {};
}

Result<Inferred> infer_unary(const Call& call) {
  FORESHARD_TRY(check_halves(call));
  const std::string& operation = call.settings.text("operation");
  const bool linear = operation == "neg" || operation == "scale" || operation == "identity";
  return Inferred{
      {call.inputs[0]},
      same_shape(call.inputs[0].shape, 1, 1, linear ? Linearity::kJoint : Linearity::kNone)};
}

// One kernel for each half of the columns, and one that concatenates the results: where gate and up
// come from one product, PyTorch clamps each half separately and then concatenates. Not modelled:
// the memory of the halves until then.
std::vector<Kernel> by_halves(PassKind kind, const TensorType& tensor) {
  const Pass whole = std::get<Pass>(pass_over(PassKind::kUnary, tensor));
  Pass half = std::get<Pass>(pass_over(kind, tensor));
  half.columns = (whole.columns + 1) / 2;  // rounded up: a rank may have one column
  return {half, half, whole};
}

std::vector<Kernel> unary_kernels(const Call& local, const Call&) {
  if (local.settings.text("operation") == "identity") return {};
  if (local.settings.flag("halves")) return by_halves(PassKind::kUnary, local.outputs[0]);
  return one_pass(
      local.settings.text("operation") == "gelu" ? PassKind::kGeluForward : PassKind::kUnary,
      local.outputs[0]);
}

// Step functions have no slope: nothing flows back through them.
void unary_backward(Gradients& gradients) {
  static constexpr std::array<std::string_view, 5> kSteps{"ceil", "floor", "not", "round", "sign"};
  const Settings& settings = gradients.op().settings;
  const std::string operation = settings.text("operation");
  if (std::ranges::find(kSteps, operation) != kSteps.end()) return;
  const TensorId dy = gradients.of_output(0);
  if (operation == "identity") return gradients.give(0, dy);
  if (operation == "neg" || operation == "scale") {
    return gradients.give(0, gradients.add("unary", "", {dy}, settings)[0]);
  }
  gradients.give(0, gradients.add("unary_gradient", "", {dy, gradients.input(0)},
                                  {{"operation", operation},
                                   {"value", settings.number("value")},
                                   {"halves", settings.flag("halves")}})[0]);
}

Result<Inferred> infer_unary_gradient(const Call& call) {
  FORESHARD_TRY(check_halves(call));
  if (call.inputs[0].shape != call.inputs[1].shape)
    return wrong("gradient " + text_of(call.inputs[0].shape) + " and input " +
                 text_of(call.inputs[1].shape) + " differ in shape");
  // Linear in the gradient only, which Linearity cannot express; so summands are not taken.
  return Inferred{{call.inputs[0]}, same_shape(call.inputs[0].shape, 2, 1, Linearity::kNone)};
}

std::vector<Kernel> unary_gradient_kernels(const Call& local, const Call&) {
  if (local.settings.flag("halves")) return by_halves(PassKind::kBinary, local.outputs[0]);
  return one_pass(
      local.settings.text("operation") == "gelu" ? PassKind::kGeluBackward : PassKind::kBinary,
      local.outputs[0]);
}

Result<Inferred> infer_broadcast(const Call& call, Linearity linearity, DType dtype) {
  Shape whole = call.inputs[0].shape;
  for (const TensorType& input : call.inputs) {
    FORESHARD_ASSIGN(whole, broadcast(whole, input.shape));
  }
  RuleMaker make;
  const auto factors = make.each(whole);
  for (const TensorType& input : call.inputs) make.input(inside(factors, whole, input.shape));
  make.output(factors);
  return Inferred{{{dtype, whole}}, make.take(linearity, true)};
}

Result<Inferred> infer_binary(const Call& call) {
  const std::string& operation = call.settings.text("operation");
  if (call.inputs[0].dtype != call.inputs[1].dtype)
    return wrong("types " + std::string(name_of(call.inputs[0].dtype)) + " and " +
                 std::string(name_of(call.inputs[1].dtype)) + " differ; cast one of them");
  const auto linearity = operation == "add" || operation == "sub" ? Linearity::kJoint
                         : operation == "mul"                     ? Linearity::kSeparate
                                                                  : Linearity::kNone;
  return infer_broadcast(call, linearity,
                         compares(operation) ? DType::kInt8 : call.inputs[0].dtype);
}

std::vector<Kernel> binary_kernels(const Call& local, const Call& whole) {
  const std::string& operation = local.settings.text("operation");
  const bool same = whole.inputs[0].shape == whole.inputs[1].shape;
  // The smaller operand of a broadcast stays in the cache: only one large read.
  TensorType over = local.outputs[0];
  over.dtype = local.inputs[0].dtype;
  if (operation == "add" && same) return one_pass(PassKind::kResidualAdd, over);
  return one_pass(same ? PassKind::kBinary : PassKind::kUnary, over);
}

void binary_backward(Gradients& gradients) {
  const std::string operation = gradients.op().settings.text("operation");
  if (compares(operation) || operation == "mod") return;
  const TensorId dy = gradients.of_output(0);
  const TensorId a = gradients.input(0);
  const TensorId b = gradients.input(1);
  const auto binary = [&](const std::string& part, const char* with, TensorId x, TensorId y) {
    return gradients.add("binary", part, {x, y}, {{"operation", std::string(with)}})[0];
  };
  const auto negative = [&](TensorId x) {
    return gradients.add("unary", "input1.negative", {x}, {{"operation", std::string("neg")}})[0];
  };
  if (gradients.wants(0)) {
    TensorId gradient = dy;
    if (operation == "mul") gradient = binary("input0", "mul", dy, b);
    if (operation == "div") gradient = binary("input0", "div", dy, b);
    if (operation == "pow") {  // y / a is a^(b-1)
      const TensorId ratio = binary("input0.ratio", "div", gradients.output(0), a);
      gradient = binary("input0", "mul", binary("input0.slope", "mul", dy, b), ratio);
    }
    if (operation == "max" || operation == "min") {
      const TensorId chosen = binary("input0.chosen", "equal", gradients.output(0), a);
      gradient = gradients.add("cast", "input0.mask", {chosen},
                               {{"to", std::string(name_of(gradients.tensor(dy).dtype))}})[0];
      gradient = binary("input0", "mul", dy, gradient);
    }
    give_unbroadcast(gradients, 0, gradient);
  }
  if (gradients.wants(1)) {
    TensorId gradient = dy;
    if (operation == "sub") gradient = negative(dy);
    if (operation == "mul") gradient = binary("input1", "mul", dy, a);
    if (operation == "div")
      gradient = negative(
          binary("input1", "mul", dy, binary("input1.ratio", "div", gradients.output(0), b)));
    if (operation == "pow") {
      const TensorId logarithm =
          gradients.add("unary", "input1.log", {a}, {{"operation", std::string("log")}})[0];
      gradient = binary("input1", "mul", dy,
                        binary("input1.slope", "mul", gradients.output(0), logarithm));
    }
    if (operation == "max" || operation == "min") {
      const TensorId chosen = binary("input1.chosen", "equal", gradients.output(0), b);
      gradient = gradients.add("cast", "input1.mask", {chosen},
                               {{"to", std::string(name_of(gradients.tensor(dy).dtype))}})[0];
      gradient = binary("input1", "mul", dy, gradient);
    }
    give_unbroadcast(gradients, 1, gradient);
  }
}

Result<Inferred> infer_where(const Call& call) {
  if (call.inputs[1].dtype != call.inputs[2].dtype)
    return wrong("the two alternatives differ in type");
  return infer_broadcast(call, Linearity::kNone, call.inputs[1].dtype);
}

std::vector<Kernel> where_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kTernary, local.outputs[0]);
}

// The gradients are dy times the condition, and the rest of dy.
void where_backward(Gradients& gradients) {
  const TensorId dy = gradients.of_output(0);
  const TensorId mask =
      gradients.add("cast", "mask", {gradients.input(0)},
                    {{"to", std::string(name_of(gradients.tensor(dy).dtype))}})[0];
  const TensorId first =
      gradients.add("binary", "input1", {dy, mask}, {{"operation", std::string("mul")}})[0];
  if (gradients.wants(1)) give_unbroadcast(gradients, 1, first);
  if (gradients.wants(2)) {
    const TensorId second =
        gradients.add("binary", "input2", {dy, first}, {{"operation", std::string("sub")}})[0];
    give_unbroadcast(gradients, 2, second);
  }
}

Result<Inferred> infer_cast(const Call& call) {
  FORESHARD_ASSIGN(const auto to, dtype_named(call.settings.text("to")));
  // Not linear: rounded summands do not add up to the rounded sum. Frameworks accept that only for
  // gradients, which are reduced in their own type.
  return Inferred{{{to, call.inputs[0].shape}},
                  same_shape(call.inputs[0].shape, 1, 1, Linearity::kNone)};
}

// A kCast pass names one type and counts fp32 as the other, so it is given the narrower. A cast
// from fp8 or fp4 to 16 bits moves the same bytes as the reverse (kQuantize).
std::vector<Kernel> cast_kernels(const Call& local, const Call&) {
  const TensorType& in = local.inputs[0];
  const TensorType& out = local.outputs[0];
  if (in.dtype == out.dtype) return {};
  const auto& [narrow, wide] =
      size_of(in.dtype) < size_of(out.dtype) ? std::tie(in, out) : std::tie(out, in);
  if (size_of(narrow.dtype) >= 2_B || size_of(wide.dtype) != 2_B)
    return one_pass(PassKind::kCast, narrow);
  const bool is_fp4 = narrow.dtype == DType::kFp4;
  return one_pass(is_fp4 ? PassKind::kQuantizeFp4 : PassKind::kQuantize, wide);
}

// If the input has fewer than 16 bits, its gradient keeps the type of the result's gradient.
void cast_backward(Gradients& gradients) {
  const DType own = gradients.tensor(gradients.input(0)).dtype;
  const TensorId gradient = gradients.of_output(0);
  if (!gradients.wants(0)) return;
  if (size_of(own) < 2_B) return gradients.give(0, gradient);
  gradients.give(0, gradients.add("cast", "", {gradient}, {{"to", std::string(name_of(own))}})[0]);
}

Result<Inferred> infer_dropout(const Call& call) {
  if (const auto why = rate_fault(call.settings); !why.empty()) return wrong(why);
  return Inferred{{call.inputs[0], {DType::kInt8, call.inputs[0].shape}},
                  same_shape(call.inputs[0].shape, 1, 2, Linearity::kNone)};
}

std::vector<Kernel> dropout_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kDropoutForward, local.inputs[0]);
}

void dropout_backward(Gradients& gradients) {
  const TensorId dy = gradients.of_output(0);
  const double rate = gradients.op().settings.number("rate");
  if (gradients.op().settings.flag("fused"))
    return gradients.give(
        0, gradients.add("dropout_gradient", "", {dy, gradients.output(1)}, {{"rate", rate}})[0]);
  const TensorId mask =
      gradients.add("cast", "mask", {gradients.output(1)},
                    {{"to", std::string(name_of(gradients.tensor(dy).dtype))}})[0];
  const TensorId kept =
      gradients.add("binary", "", {dy, mask}, {{"operation", std::string("mul")}})[0];
  gradients.give(
      0, gradients.add("unary", "scale", {kept},
                       {{"operation", std::string("scale")}, {"value", 1.0 / (1.0 - rate)}})[0]);
}

Result<Inferred> infer_dropout_gradient(const Call& call) {
  if (call.inputs[0].shape != call.inputs[1].shape)
    return wrong("gradient and mask differ in shape");
  return Inferred{{call.inputs[0]}, same_shape(call.inputs[0].shape, 2, 1, Linearity::kNone)};
}

std::vector<Kernel> dropout_gradient_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kDropoutBackward, local.outputs[0]);
}

std::vector<SettingDefinition> unary_settings() {
  return {
      {.name = "operation",
       .fallback = std::string{},
       .required = true,
       .doc = "What it does to an element.",
       .words = kUnary},
      {.name = "value",
       .fallback = 1.0,
       .doc = "The factor of scale, the slope of leaky_relu, elu and hard_sigmoid, the bound of "
              "clip."},
      {.name = "halves",
       .fallback = false,
       .doc = "Of clip: each half of a rank's columns has a kernel of its own, and one more puts "
              "both side by side."}};
}

}  // namespace

OperatorDefinition unary() {
  return {.name = "unary",
          .doc = "One operation on every element.",
          .inputs = "x",
          .outputs = "y",
          .settings = unary_settings(),
          .infer = infer_unary,
          .kernels = unary_kernels,
          .gradient = unary_backward};
}

OperatorDefinition unary_gradient() {
  return {.name = "unary_gradient",
          .doc = "The gradient of `unary`: that of its output times the slope at its input.",
          .inputs = "dy, x",
          .outputs = "dx",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = unary_settings(),
          .infer = infer_unary_gradient,
          .kernels = unary_gradient_kernels};
}

OperatorDefinition binary() {
  return {.name = "binary",
          .doc =
              "One operation on every pair of elements; dimensions of size 1 and missing leading "
              "ones are repeated.",
          .inputs = "a, b",
          .outputs = "y",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = {{.name = "operation",
                        .fallback = std::string{},
                        .required = true,
                        .doc = "Comparisons and logic yield int8.",
                        .words = kBinary}},
          .infer = infer_binary,
          .kernels = binary_kernels,
          .gradient = binary_backward};
}

OperatorDefinition where() {
  return {.name = "where",
          .doc = "Elements of `a` where the condition is not zero, of `b` elsewhere; broadcasts.",
          .inputs = "condition, a, b",
          .outputs = "y",
          .least_inputs = 3,
          .most_inputs = 3,
          .infer = infer_where,
          .kernels = where_kernels,
          .gradient = where_backward};
}

OperatorDefinition cast() {
  return {
      .name = "cast",
      .doc = "The same numbers in another type.",
      .inputs = "x",
      .outputs = "y",
      .settings = {{.name = "to",
                    .fallback = std::string{},
                    .required = true,
                    .doc = "The type wanted.",
                    .words = {"fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int32", "int64"}}},
      .infer = infer_cast,
      .kernels = cast_kernels,
      .gradient = cast_backward};
}

OperatorDefinition dropout() {
  return {
      .name = "dropout",
      .doc =
          "Zeroes elements at random and scales the others; the mask is kept for the "
          "backward pass.",
      .inputs = "x",
      .outputs = "y, mask",
      .settings = {rate_setting(),
                   {.name = "fused",
                    .fallback = false,
                    .doc = "The backward pass is one kernel; else it is a cast, a product and a "
                           "scaling."}},
      .infer = infer_dropout,
      .kernels = dropout_kernels,
      .gradient = dropout_backward};
}

OperatorDefinition dropout_gradient() {
  return {.name = "dropout_gradient",
          .doc = "The gradient of `dropout` in one kernel.",
          .inputs = "dy, mask",
          .outputs = "dx",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = {rate_setting()},
          .infer = infer_dropout_gradient,
          .kernels = dropout_gradient_kernels};
}

}  // namespace foreshard::operators
