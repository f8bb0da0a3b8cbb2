// Adds the bias of each expert, times the weight of each of its tokens, with PyTorch's operators:
// expert by expert, in fp32.
// Source: Megatron-LM core_v0.14.0, megatron/core/transformer/moe/experts.py, TEGroupedMLP
// (_apply_bias): split, for each expert the product and the sum, concatenate, round.
// Not modelled: the sum reads its rows in 16 bits; the arithmetic of adding a bias's gradient; the
// weights of a frozen router have no gradient.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

struct BiasFactors {
  RuleMaker make;
  RuleMaker::Dimensions slots;    // [experts, groups..., capacity, width]
  RuleMaker::Dimensions bias;     // [experts, width]
  RuleMaker::Dimensions weights;  // [experts, groups..., capacity, 1]
};

// Inputs: slots or their gradient, bias, weights.
Result<BiasFactors> factors_of(const Call& call) {
  const Shape& slots = call.inputs[0].shape;
  if (slots.size() < 4)
    return wrong("needs slots [experts, groups..., capacity, width], not " + text_of(slots));
  if (call.inputs[1].shape != Shape{slots.front(), slots.back()})
    return wrong("bias " + text_of(call.inputs[1].shape) + " is not one for each expert of " +
                 text_of(slots));
  Shape weights = slots;
  weights.back() = 1;
  if (call.inputs[2].shape != weights)
    return wrong("weights " + text_of(call.inputs[2].shape) + " are not one for each slot of " +
                 text_of(slots));
  BiasFactors f;
  f.slots = f.make.each(slots);
  f.bias = {f.slots.front(), f.slots.back()};
  f.weights = f.slots;
  f.weights.back() = {};
  f.make.input(f.slots).input(f.bias).input(f.weights);
  return f;
}

Result<Inferred> infer_expert_bias(const Call& call) {
  FORESHARD_ASSIGN(auto f, factors_of(call));
  f.make.output(f.slots);
  return Inferred{{call.inputs[0]}, f.make.take()};
}

Result<Inferred> infer_expert_bias_gradient(const Call& call) {
  FORESHARD_ASSIGN(auto f, factors_of(call));
  f.make.output(f.slots).output(f.bias).output(f.weights);
  return Inferred{{call.inputs[0], call.inputs[1], call.inputs[2]}, f.make.take()};
}

// The passes `before` over all slots of the rank, then `each` over the slots of every expert in
// turn, then `behind` over all slots.
std::vector<Kernel> by_expert(const Call& local, const std::vector<Pass>& before,
                              const std::vector<Pass>& each, const std::vector<Pass>& behind) {
  const Shape& slots = local.inputs[0].shape;
  std::vector<Kernel> kernels;
  const auto add = [&](const std::vector<Pass>& passes, std::int64_t rows) {
    for (Pass pass : passes) {
      if (pass.rows == 0) pass.rows = rows;
      pass.columns = slots.back();
      kernels.emplace_back(pass);
    }
  };
  const std::int64_t experts = slots.front();
  const std::int64_t rows = product(slots) / std::max<std::int64_t>(1, slots.back());
  add(before, rows);
  for (std::int64_t expert = 0; expert < experts; ++expert) add(each, rows / experts);
  add(behind, rows);
  return kernels;
}

// bias * weights; the sum; concatenation; to(dtype).
std::vector<Kernel> expert_bias_kernels(const Call& local, const Call&) {
  const DType own = local.inputs[0].dtype;
  return by_expert(
      local, {},
      {{.kind = PassKind::kExpand, .dtype = DType::kFp32},
       {.kind = PassKind::kBinary, .dtype = DType::kFp32}},
      {{.kind = PassKind::kUnary, .dtype = DType::kFp32}, {.kind = PassKind::kCast, .dtype = own}});
}

// To fp32. For each expert: the gradient of its slots; if the bias is trained, the bias's gradient,
// summed over rows, rounded and added to the existing gradient; the gradient of its weights, summed
// over columns. At the end, the gradients of slots are concatenated.
std::vector<Kernel> expert_bias_gradient_kernels(const Call& local, const Call&) {
  const DType own = local.inputs[0].dtype;
  const Pass product{.kind = PassKind::kUnary, .dtype = DType::kFp32};
  const Pass sum{.kind = PassKind::kReduce, .dtype = DType::kFp32};
  const Pass of_bias{.kind = PassKind::kCast, .rows = 1, .dtype = own};
  std::vector<Pass> each{{.kind = PassKind::kCast, .dtype = own}};
  if (local.settings.flag("trained")) each.insert(each.end(), {product, sum, of_bias, of_bias});
  each.insert(each.end(), {product, sum});
  return by_expert(local, {{.kind = PassKind::kCast, .dtype = own}}, each,
                   {{.kind = PassKind::kUnary, .dtype = own}});
}

void expert_bias_backward(Gradients& gradients) {
  const auto parts = gradients.add("expert_bias_gradient", "",
                                   {gradients.of_output(0), gradients.input(1), gradients.input(2)},
                                   {{"trained", gradients.wants(1)}});
  for (std::size_t i = 0; i < parts.size(); ++i) gradients.give(i, parts[i]);
}

}  // namespace

OperatorDefinition expert_bias() {
  return {.name = "expert_bias",
          .doc =
              "Adds to the slots of each expert its bias times their weights, expert by expert "
              "with kernels of PyTorch.",
          .inputs = "slots, bias, weights",
          .outputs = "y",
          .least_inputs = 3,
          .most_inputs = 3,
          .infer = infer_expert_bias,
          .kernels = expert_bias_kernels,
          .gradient = expert_bias_backward};
}

OperatorDefinition expert_bias_gradient() {
  return {
      .name = "expert_bias_gradient",
      .doc = "The gradients of `expert_bias`.",
      .inputs = "dy, bias, weights",
      .outputs = "dslots, dbias, dweights",
      .least_inputs = 3,
      .most_inputs = 3,
      .settings = {{.name = "trained", .fallback = true, .doc = "Whether the bias is trained."}},
      .infer = infer_expert_bias_gradient,
      .kernels = expert_bias_gradient_kernels};
}

}  // namespace foreshard::operators
