// Batch normalisation in two steps, so that only a small, separate tensor is reduced over the
// batch: the statistics first, then the elementwise rest. x is [batch, channels, ...]; statistics
// are fp32 [2, channels]: sum and sum of squares forward; sum of dy and of dy x^ backward.
#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

std::string fault_in_sample(const Call& call, std::size_t x) {
  if (call.inputs[x].shape.size() < 2)
    return "needs [batch, channels, ...], not " + text_of(call.inputs[x].shape);
  return {};
}

std::string fault_in_small(const TensorType& tensor, const Shape& expected, const char* what) {
  if (tensor.shape == expected) return {};
  return std::string(what) + " must have shape " + text_of(expected) + ", not " +
         text_of(tensor.shape);
}

Result<Inferred> infer_statistics(const Call& call) {
  if (const auto why = fault_in_sample(call, 0); !why.empty()) return wrong(why);
  const Shape& x = call.inputs[0].shape;
  RuleMaker make;
  const auto factors = make.each(x);
  make.input(factors).output({{}, factors[1]});
  Inferred inferred{{{DType::kFp32, {2, x[1]}}}, make.take()};
  if (call.settings.text("scope") == "replica") inferred.rule.local_outputs = {1};
  return inferred;
}

std::vector<Kernel> statistics_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kStatistics, local.inputs[0]);
}

Result<Inferred> infer_batch_norm(const Call& call) {
  if (const auto why = fault_in_sample(call, 0); !why.empty()) return wrong(why);
  const Shape& x = call.inputs[0].shape;
  for (const std::size_t i : {1U, 2U})
    if (const auto why = fault_in_small(call.inputs[i], {x[1]}, "scale and shift"); !why.empty())
      return wrong(why);
  if (const auto why = fault_in_small(call.inputs[3], {2, x[1]}, "statistics"); !why.empty())
    return wrong(why);
  RuleMaker make;
  const auto factors = make.each(x);
  make.input(factors).input({factors[1]}).input({factors[1]}).input({{}, factors[1]});
  make.output(factors);
  return Inferred{{call.inputs[0]}, make.take(Linearity::kNone, true)};
}

std::vector<Kernel> batch_norm_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kUnary, local.outputs[0]);
}

// dy, x, statistics -> sums over all samples, which dx needs and which are the gradients of shift
// and scale, too. With statistics per replica there are two outputs: dx needs the sums of its
// replica, the parameters need the sums of all replicas.
Result<Inferred> infer_gradient_statistics(const Call& call) {
  if (const auto why = fault_in_sample(call, 1); !why.empty()) return wrong(why);
  const Shape& x = call.inputs[1].shape;
  if (call.inputs[0].shape != x) return wrong("gradient and input differ in shape");
  if (const auto why = fault_in_small(call.inputs[2], {2, x[1]}, "statistics"); !why.empty())
    return wrong(why);
  const TensorType sums{DType::kFp32, {2, x[1]}};
  RuleMaker make;
  const auto factors = make.each(x);
  const RuleMaker::Dimensions small{{}, factors[1]};
  make.input(factors).input(factors).input(small).output(small);
  if (call.settings.text("scope") == "global") return Inferred{{sums}, make.take()};
  make.output(small);
  Inferred inferred{{sums, sums}, make.take()};
  inferred.rule.local_outputs = {3};
  return inferred;
}

std::vector<Kernel> gradient_statistics_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kStatistics, local.inputs[1]);
}

Result<Inferred> infer_batch_norm_gradient(const Call& call) {
  if (const auto why = fault_in_sample(call, 1); !why.empty()) return wrong(why);
  const Shape& x = call.inputs[1].shape;
  if (call.inputs[0].shape != x) return wrong("gradient and input differ in shape");
  if (const auto why = fault_in_small(call.inputs[2], {x[1]}, "scale"); !why.empty())
    return wrong(why);
  for (const std::size_t i : {3U, 4U})
    if (const auto why = fault_in_small(call.inputs[i], {2, x[1]}, "statistics"); !why.empty())
      return wrong(why);
  RuleMaker make;
  const auto factors = make.each(x);
  const RuleMaker::Dimensions sums{{}, factors[1]};
  make.input(factors).input(factors).input({factors[1]}).input(sums).input(sums).output(factors);
  return Inferred{{call.inputs[1]}, make.take(Linearity::kNone, true)};
}

std::vector<Kernel> batch_norm_gradient_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kBinary, local.outputs[0]);
}

void batch_norm_backward(Gradients& gradients) {
  const TensorId dy = gradients.of_output(0);
  const TensorId x = gradients.input(0);
  const TensorId statistics = gradients.input(3);
  const auto sums = gradients.add("batch_norm_gradient_sums", "sums", {dy, x, statistics},
                                  {{"scope", gradients.op().settings.text("scope")}});
  gradients.give(0, gradients.add("batch_norm_gradient", "",
                                  {dy, x, gradients.input(1), statistics, sums[0]})[0]);
  const Shape channels = gradients.shape(gradients.input(1));
  for (std::size_t i = 1; i <= 2; ++i) {  // row 1 is the scale's gradient, row 0 the shift's
    const std::int64_t row = i == 1 ? 1 : 0;
    const std::string part = i == 1 ? "scale" : "shift";
    TensorId gradient =
        gradients.add("slice", part + ".row", {sums.back()},
                      {{"axis", std::int64_t{0}}, {"start", row}, {"end", row + 1}})[0];
    gradients.give(i,
                   gradients.add("reshape", part + ".shape", {gradient}, {{"shape", channels}})[0]);
  }
}

}  // namespace

OperatorDefinition batch_statistics() {
  return {.name = "batch_statistics",
          .doc =
              "Sum and sum of squares of every channel over batch and space. Nothing flows back "
              "through it: `batch_norm`'s gradient counts its part.",
          .inputs = "x",
          .outputs = "statistics",
          .settings = {{.name = "scope",
                        .fallback = std::string("global"),
                        .doc = "Whose samples: of all ranks (synchronised batch norm, the same as "
                               "on one device), or of each replica, as PyTorch's default.",
                        .words = {"global", "replica"}}},
          .infer = infer_statistics,
          .kernels = statistics_kernels};
}

OperatorDefinition batch_norm() {
  return {.name = "batch_norm",
          .doc =
              "Normalises every channel of [batch, channels, ...] by statistics from "
              "`batch_statistics`, then scales and shifts.",
          .inputs = "x, scale, shift, statistics",
          .outputs = "y",
          .least_inputs = 4,
          .most_inputs = 4,
          .settings = {{.name = "scope",
                        .fallback = std::string("global"),
                        .doc = "As that of the statistics; for the backward pass.",
                        .words = {"global", "replica"}}},
          .infer = infer_batch_norm,
          .kernels = batch_norm_kernels,
          .gradient = batch_norm_backward};
}

OperatorDefinition batch_norm_gradient_sums() {
  return {.name = "batch_norm_gradient_sums",
          .doc = "Sums over batch and space that the gradients of `batch_norm` need.",
          .inputs = "dy, x, statistics",
          .outputs = "sums[, parameter_sums]",
          .least_inputs = 3,
          .most_inputs = 3,
          .settings = {{.name = "scope",
                        .fallback = std::string("global"),
                        .doc = "As that of the statistics.",
                        .words = {"global", "replica"}}},
          .infer = infer_gradient_statistics,
          .kernels = gradient_statistics_kernels};
}

OperatorDefinition batch_norm_gradient() {
  return {.name = "batch_norm_gradient",
          .doc = "The gradient of the input of `batch_norm`.",
          .inputs = "dy, x, scale, statistics, sums",
          .outputs = "dx",
          .least_inputs = 5,
          .most_inputs = 5,
          .infer = infer_batch_norm_gradient,
          .kernels = batch_norm_gradient_kernels};
}

}  // namespace foreshard::operators
