// Tensors in fewer than 16 bits.
#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"
#include "strategies/graph/quantization.h"

namespace foreshard::operators {
namespace {

constexpr std::size_t kTokenDimensions = 3;  // batch, sequence, width

Result<Inferred> infer_quantize(const Call& call) {
  const TensorType& x = call.inputs[0];
  FORESHARD_ASSIGN(const auto recipe, recipe_in(call.settings));
  if (recipe == Quantization::kNone) return wrong("recipe 'none' quantizes nothing");
  const bool again = x.dtype == dtype_of(recipe);
  if (!again && x.dtype != DType::kBf16 && x.dtype != DType::kFp16 && x.dtype != DType::kFp32)
    return wrong("takes bf16, fp16 or fp32, or what is quantized already, not " +
                 std::string(foreshard::name_of(x.dtype)));
  if (again && call.settings.flag("both"))
    return wrong(
        "of a quantized tensor makes the copy along the other dimension alone: set both: "
        "false");
  RuleMaker make;
  // The maximum of a column is over all tokens that a product reads: ranks gather a sequence before
  // they quantize it.
  const bool is_gathered = recipe == Quantization::kFp8Rowwise && call.settings.flag("both") &&
                           x.shape.size() == kTokenDimensions;
  const auto factors =
      make.each(x.shape, is_gathered ? std::vector<std::size_t>{1} : std::vector<std::size_t>{});
  make.input(factors).output(factors);
  return Inferred{{{dtype_of(recipe), x.shape}}, make.take()};
}

std::vector<Kernel> quantize_kernels_of(const Call& local, const Call&) {
  const TensorType& x = local.inputs[0];
  const bool is_fp4 = local.outputs[0].dtype == DType::kFp4;
  const PassKind kind = is_fp4 ? PassKind::kQuantizeFp4 : PassKind::kQuantize;
  if (x.dtype == local.outputs[0].dtype) return one_pass(kind, x);  // its scales exist already
  const auto pass = std::get<Pass>(pass_over(PassKind::kQuantize, x));
  const auto passes = quantize_kernels(*recipe_in(local.settings), pass.rows, pass.columns,
                                       pass.dtype, local.settings.flag("both"),
                                       local.settings.flag("apart") ? x.shape.front() : 1);
  return {passes.begin(), passes.end()};
}

Result<Inferred> infer_dequantize(const Call& call) {
  const TensorType& x = call.inputs[0];
  if (x.dtype != DType::kBf16 && x.dtype != DType::kFp16)
    return wrong("makes bf16 or fp16, not " + std::string(foreshard::name_of(x.dtype)));
  RuleMaker make;
  const auto factors = make.each(x.shape);
  make.input(factors).output(factors);
  return Inferred{{x}, make.take()};
}

// Not modelled: the two short kernels that first convert the scales, 1/64 as many, to fp32.
std::vector<Kernel> dequantize_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kDequantizeNf4, local.outputs[0]);
}

// The gradient of the quantized tensor is taken as the gradient of the original.
void quantize_backward(Gradients& gradients) {
  const TensorId gradient = gradients.of_output(0);
  const DType own = gradients.tensor(gradients.input(0)).dtype;
  if (gradients.tensor(gradient).dtype == own || size_of(own) < 2_B)
    return gradients.give(0, gradient);
  gradients.give(
      0, gradients.add("cast", "widened", {gradient}, {{"to", std::string(name_of(own))}})[0]);
}

}  // namespace

Result<Quantization> recipe_in(const Settings& settings) {
  const std::string& name = settings.text("recipe");
  if (const auto recipe = yaml_names(static_cast<const Quantization*>(nullptr)).find(name))
    return *recipe;
  return wrong("'" + name + "' is no recipe; see `foreshard describe strategy`");
}

OperatorDefinition dequantize() {
  return {.name = "dequantize",
          .doc =
              "A weight that is held in 4 bits (nf4), in the type of the products that read it. It "
              "is not kept for the backward pass, but made again.",
          .inputs = "weight",
          .outputs = "y",
          .infer = infer_dequantize,
          .kernels = dequantize_kernels};
}

OperatorDefinition quantize() {
  return {.name = "quantize",
          .doc =
              "A tensor for products in fewer than 16 bits, with its copy along the other "
              "dimension; of a quantized one, that copy. Counts as one tensor.",
          .inputs = "x",
          .outputs = "q",
          .settings = {{.name = "recipe",
                        .fallback = std::string{"fp8-current"},
                        .doc = "As `quantization` of a strategy."},
                       {.name = "both",
                        .fallback = true,
                        .doc = "There is that copy, which gradients of weights read."},
                       {.name = "apart",
                        .fallback = false,
                        .doc = "Each index of the first dimension, an expert, is a tensor of its "
                               "own with kernels of its own."},
                       {.name = "kept",
                        .fallback = false,
                        .doc = "Operators of the backward pass that read x read this in its place, "
                               "and bring it to the type of x first."}},
          .infer = infer_quantize,
          .kernels = quantize_kernels_of,
          .gradient = quantize_backward};
}

}  // namespace foreshard::operators
