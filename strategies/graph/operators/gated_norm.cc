// The norm after a Mamba layer's scan: a gate, then a norm over each group of columns.
// Source: Dao and Gu, "Transformers are SSMs", arXiv 2405.21060, section 7.1; state-spaces/mamba,
// mamba_ssm/ops/triton/layernorm_gated.py (norm_before_gate=False, group_size).
#include <fmt/format.h>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

std::string gated_fault_in(const Settings& settings, const Shape& y, const Shape& z,
                           const Shape& weight) {
  if (y.size() != 3) return "needs [batch, sequence, columns], not " + text_of(y);
  if (z != y) return "gate " + text_of(z) + " and input " + text_of(y) + " differ in shape";
  const std::int64_t groups = settings.integer("groups");
  if (groups < 1 || y[2] % groups != 0)
    return fmt::format("{} columns do not divide into {} groups", y[2], groups);
  if (weight != Shape{y[2]})
    return fmt::format("scale must have shape [{}], not {}", y[2], text_of(weight));
  return {};
}

struct GatedParts {
  RuleMaker make;
  RuleMaker::Dimensions columns;
  RuleMaker::Dimensions weight;
};
GatedParts gated_parts_of(const Settings& settings, const Shape& y) {
  GatedParts p;
  p.columns = {{p.make.factor(y[0], false, "batch")}, {p.make.factor(y[1], false, "sequence")}, {}};
  p.weight = {{p.make.factor(settings.integer("groups"), false, "groups")}};
  p.columns[2] = p.weight[0];
  return p;
}

// y, z, scale -> x
Result<Inferred> infer_gated_norm(const Call& call) {
  const TensorType& y = call.inputs[0];
  if (const auto why =
          gated_fault_in(call.settings, y.shape, call.inputs[1].shape, call.inputs[2].shape);
      !why.empty())
    return wrong(why);
  GatedParts p = gated_parts_of(call.settings, y.shape);
  p.make.input(p.columns).input(p.columns).input(p.weight).output(p.columns);
  return Inferred{{y}, p.make.take()};
}

// dx, y, z, scale -> dy, dz, dscale
Result<Inferred> infer_gated_norm_gradient(const Call& call) {
  const TensorType& y = call.inputs[1];
  if (const auto why =
          gated_fault_in(call.settings, y.shape, call.inputs[2].shape, call.inputs[3].shape);
      !why.empty())
    return wrong(why);
  if (call.inputs[0].shape != y.shape) return wrong("gradient and input differ in shape");
  GatedParts p = gated_parts_of(call.settings, y.shape);
  p.make.input(p.columns).input(p.columns).input(p.columns).input(p.weight);
  p.make.output(p.columns).output(p.columns).output(p.weight);
  return Inferred{{y, call.inputs[2], call.inputs[3]}, p.make.take()};
}

// It moves as many bytes as a SwiGLU: forward two operands in and one out, backward three in and
// two out.
std::vector<Kernel> gated_norm_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kSwigluForward, local.outputs[0]);
}
std::vector<Kernel> gated_norm_gradient_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kSwigluBackward, local.outputs[0]);
}

void gated_norm_backward(Gradients& gradients) {
  if (!gradients.of_output(0).valid()) return;
  const auto parts = gradients.add(
      "gated_norm_gradient", "",
      {gradients.of_output(0), gradients.input(0), gradients.input(1), gradients.input(2)},
      gradients.op().settings);
  for (std::size_t i = 0; i < parts.size(); ++i) gradients.give(i, parts[i]);
}

std::vector<SettingDefinition> gated_norm_settings() {
  return {{.name = "groups",
           .fallback = std::int64_t{1},
           .doc = "Of equal width; the columns of each are normalised together."}};
}

}  // namespace

OperatorDefinition gated_norm() {
  return {.name = "gated_norm",
          .doc = "y silu(z), root mean square 1 in each group of columns, then scale (Mamba-2).",
          .inputs = "y, z, scale",
          .outputs = "x",
          .least_inputs = 3,
          .most_inputs = 3,
          .settings = gated_norm_settings(),
          .infer = infer_gated_norm,
          .kernels = gated_norm_kernels,
          .gradient = gated_norm_backward};
}

OperatorDefinition gated_norm_gradient() {
  return {.name = "gated_norm_gradient",
          .doc = "The gradients of `gated_norm`; that of scale is a sum over samples.",
          .inputs = "dx, y, z, scale",
          .outputs = "dy, dz, dscale",
          .least_inputs = 4,
          .most_inputs = 4,
          .settings = gated_norm_settings(),
          .infer = infer_gated_norm_gradient,
          .kernels = gated_norm_gradient_kernels};
}

}  // namespace foreshard::operators
