// What frameworks fuse into one pass, or leave to several (implementation.h).
#include "strategies/graph/implementation.h"
#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

constexpr std::int64_t kGateAndUp = 2;

// `wide` has the gate and the value of each element of `narrow`, side by side.
Result<Inferred> gated(const TensorType& wide, const TensorType& narrow, bool forward) {
  RuleMaker make;
  const auto factors = make.each(narrow.shape);
  if (!forward) make.input(factors);
  make.input(factors).output(factors);
  return Inferred{{forward ? narrow : wide}, make.take()};
}

Result<Inferred> infer_swiglu(const Call& call) {
  TensorType y = call.inputs[0];
  if (y.shape.empty() || y.shape.back() % kGateAndUp != 0)
    return wrong("needs an even number of columns, not " + text_of(y.shape));
  y.shape.back() /= kGateAndUp;
  return gated(call.inputs[0], y, true);
}

Result<Inferred> infer_swiglu_gradient(const Call& call) {
  const TensorType& dy = call.inputs[0];
  Shape wide = dy.shape;
  if (!wide.empty()) wide.back() *= kGateAndUp;
  if (wide.empty() || wide != call.inputs[1].shape)
    return wrong("gradient " + text_of(dy.shape) + " does not have half the columns of " +
                 text_of(call.inputs[1].shape));
  return gated(call.inputs[1], dy, false);
}

std::vector<Kernel> implemented(PassKind kind, const TensorType& tensor, const Call& call) {
  return foreshard::kernels_of(
      std::get<Pass>(pass_over(kind, tensor)),
      call.settings.flag("eager") ? Implementation::kEager : Implementation::kFused);
}

std::vector<Kernel> swiglu_kernels(const Call& local, const Call&) {
  return implemented(PassKind::kSwigluForward, local.outputs[0], local);
}

std::vector<Kernel> swiglu_gradient_kernels(const Call& local, const Call&) {
  return implemented(PassKind::kSwigluBackward, local.inputs[0], local);
}

void swiglu_backward(Gradients& gradients) {
  gradients.give(0,
                 gradients.add("swiglu_gradient", "", {gradients.of_output(0), gradients.input(0)},
                               gradients.op().settings)[0]);
}

std::vector<SettingDefinition> settings() {
  return {{.name = "eager", .fallback = false, .doc = "A kernel for each operator of PyTorch."}};
}

}  // namespace

OperatorDefinition swiglu() {
  return {.name = "swiglu",
          .doc = "silu(gate) * up, of columns that alternate: gate 0, up 0, gate 1, up 1, ...",
          .inputs = "x",
          .outputs = "y",
          .settings = settings(),
          .infer = infer_swiglu,
          .kernels = swiglu_kernels,
          .gradient = swiglu_backward};
}

OperatorDefinition swiglu_gradient() {
  return {.name = "swiglu_gradient",
          .doc = "The gradient of `swiglu`, from its input.",
          .inputs = "dy, x",
          .outputs = "dx",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = settings(),
          .infer = infer_swiglu_gradient,
          .kernels = swiglu_gradient_kernels};
}

}  // namespace foreshard::operators
