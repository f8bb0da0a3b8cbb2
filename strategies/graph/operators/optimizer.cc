// The optimizer's update of one parameter.
#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

Result<Inferred> infer_update(const Call& call) {
  if (call.inputs[0].shape != call.inputs[1].shape)
    return wrong("parameter " + text_of(call.inputs[0].shape) + " and gradient " +
                 text_of(call.inputs[1].shape) + " differ in shape");
  RuleMaker make;
  const auto factors = make.each(call.inputs[0].shape);
  make.input(factors).input(factors).output(factors);
  return Inferred{{call.inputs[0]}, make.take(Linearity::kNone, true)};
}

// One elementwise pass over all elements.
std::vector<Kernel> update_kernels(const Call& local, const Call&) {
  const std::string& rule = local.settings.text("rule");
  const PassKind kind = rule == "adam"       ? PassKind::kAdam
                        : rule == "momentum" ? PassKind::kOptimizer
                                             : PassKind::kBinary;
  return {Pass{.kind = kind,
               .rows = product(local.inputs[0].shape),
               .columns = 1,
               .dtype = local.inputs[0].dtype}};
}

}  // namespace

OperatorDefinition optimizer_update() {
  return {.name = "optimizer_update",
          .doc =
              "The parameter after one step. Its fp32 state is read and written by the kernel, "
              "and lies as the parameter does.",
          .inputs = "parameter, gradient",
          .outputs = "updated",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = {{.name = "rule",
                        .fallback = std::string("adam"),
                        .doc = "adam has master weights and two moments, momentum master weights "
                               "and one, sgd no state.",
                        .words = {"adam", "momentum", "sgd"}}},
          .infer = infer_update,
          .kernels = update_kernels};
}

}  // namespace foreshard::operators
