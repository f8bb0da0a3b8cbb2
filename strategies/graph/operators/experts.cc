// Mixture of experts. Tokens come in groups, along one or more dimensions; each group has
// `capacity` slots with every expert. Dispatch puts tokens into slots, combine brings results back.
// If groups and experts are split over the same axis, the tensor of slots changes from one split to
// the other: the all-to-all of expert parallelism follows from the rules.
// Source: Lepikhin et al., "GShard", ICLR 2021, section 3.2 (dispatch and combine as einsums).
// Not modelled: that tokens dropped for lack of slots cost less; unequal loads.
#include <algorithm>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

std::string fault_in_route(const Shape& tokens, const Shape& indices) {
  if (tokens.size() >= 3 && indices.size() == tokens.size() &&
      std::equal(tokens.begin(), tokens.end() - 1, indices.begin()))
    return {};
  return "needs tokens [groups..., tokens, width] and a choice of experts [groups..., tokens, k], "
         "not " +
         text_of(tokens) + " and " + text_of(indices);
}

// The dimensions of groups in slots of shape [experts, groups..., capacity, width].
Shape groups_of(const Shape& slots) {
  return {slots.begin() + 1, slots.end() - 2};
}
Shape slots_of(std::int64_t experts, const Shape& tokens, std::int64_t capacity) {
  Shape slots{experts};
  slots.insert(slots.end(), tokens.begin(), tokens.end() - 2);
  slots.insert(slots.end(), {capacity, tokens.back()});
  return slots;
}

struct RoutingFactors {
  RuleMaker make;
  RuleMaker::Dimensions slots;   // [experts, groups..., capacity, width]
  RuleMaker::Dimensions tokens;  // [groups..., tokens, width]
  RuleMaker::Dimensions chosen;  // [groups..., tokens, k]
};

// The factors of a rule. The slot of a token depends on the earlier tokens of its group: the tokens
// of a group stay together.
RoutingFactors routing_factors(const Shape& slots, const Shape& tokens, const Shape& chosen) {
  RoutingFactors f;
  f.slots.push_back({f.make.factor(slots.front(), false, "expert")});
  for (const std::int64_t groups : groups_of(slots)) {
    const std::int32_t group = f.make.factor(groups, false, "group");
    for (auto* dimensions : {&f.slots, &f.tokens, &f.chosen}) dimensions->push_back({group});
  }
  const std::int32_t slot = f.make.factor(slots[slots.size() - 2], true, "slot");
  const std::int32_t width = f.make.factor(slots.back(), false, "width");
  const std::int32_t token = f.make.factor(tokens[tokens.size() - 2], true, "token");
  const std::int32_t k = f.make.factor(chosen.back(), true, "choice");
  f.slots.insert(f.slots.end(), {{slot}, {width}});
  f.tokens.insert(f.tokens.end(), {{token}, {width}});
  f.chosen.insert(f.chosen.end(), {{token}, {k}});
  return f;
}

// tokens, indices[, weights] -> slots.
Result<Inferred> infer_dispatch(const Call& call) {
  const TensorType& tokens = call.inputs[0];
  const Shape& indices = call.inputs[1].shape;
  if (const auto why = fault_in_route(tokens.shape, indices); !why.empty()) return wrong(why);
  if (call.inputs.size() > 2 && call.inputs[2].shape != indices)
    return wrong("weights and indices differ in shape");
  const std::int64_t experts = call.settings.integer("experts");
  const std::int64_t capacity = call.settings.integer("capacity");
  if (experts < 1 || capacity < 1) return wrong("experts and capacity must be at least 1");
  const Shape slots = slots_of(experts, tokens.shape, capacity);
  auto f = routing_factors(slots, tokens.shape, indices);
  f.make.input(f.tokens).input(f.chosen);
  if (call.inputs.size() > 2) f.make.input(f.chosen);
  f.make.output(f.slots);
  return Inferred{{{tokens.dtype, slots}}, f.make.take()};
}

// The fused permutation between slots and tokens. One side has a row per choice; the other has a
// row per token, which caches hold while its choices need it. The pass moves the mean of both
// numbers of rows.
std::vector<Kernel> permutation(const TensorType& slots, const TensorType& tokens) {
  Pass pass = std::get<Pass>(pass_over(PassKind::kTokenPermute, slots));
  const std::int64_t width = std::max<std::int64_t>(1, pass.columns);
  pass.rows = (pass.rows + product(tokens.shape) / width + 1) / 2;
  return {pass};
}

// PyTorch's operators that Megatron-LM calls without --moe-permute-fusion
// (megatron/core/transformer/moe/moe_utils.py: permute, unpermute), counted with the profiler on an
// H200, which also timed them (configs/measurements/h200/host.csv, pytorch-rates.csv). The choice
// becomes indices; rows are gathered by index_select, and brought back by scatter_add, in the
// backward pass by index_add. The last two add by atomic operations, at 0.54 and 0.25 TB/s of bf16
// whatever the memory: this takes 2.8 and 6 times as long as a gather on an H100, which has the
// same multiprocessors. Not modelled: their rates do not change with faster or slower memory.
constexpr double kScatterAdd = 2.8;
constexpr double kIndexAdd = 6;

enum class Eager : std::uint8_t { kDispatch, kDispatchGradient, kCombine, kCombineGradient };

std::vector<Kernel> eager_permutation(const TensorType& slots, const TensorType& tokens,
                                      Eager which, bool weighs) {
  const auto small = [](std::int64_t count) {
    const Pass one{.kind = PassKind::kUnary, .rows = 1, .columns = 1};
    return std::vector<Kernel>(static_cast<std::size_t>(count), one);
  };
  const auto over = [](PassKind kind, const TensorType& tensor) {
    return std::get<Pass>(pass_over(kind, tensor));
  };
  Pass moved = std::get<Pass>(permutation(slots, tokens).front());
  const auto slower = [&](double times) {
    moved.rows = static_cast<std::int64_t>(times * static_cast<double>(moved.rows));
    return moved;
  };
  std::vector<Kernel> kernels;
  switch (which) {
    case Eager::kDispatch:
      kernels = small(8);
      kernels.emplace_back(moved);
      break;
    case Eager::kDispatchGradient:
      kernels = small(1);
      kernels.emplace_back(over(PassKind::kZero, tokens));
      kernels.emplace_back(slower(kIndexAdd));
      break;
    case Eager::kCombine:
      kernels = small(8);
      if (weighs) kernels.emplace_back(over(PassKind::kUnary, slots));
      kernels.emplace_back(over(PassKind::kZero, tokens));
      kernels.emplace_back(slower(kScatterAdd));
      break;
    case Eager::kCombineGradient:
      kernels = small(6);
      kernels.emplace_back(moved);
      if (weighs) kernels.emplace_back(over(PassKind::kUnary, slots));
      break;
  }
  return kernels;
}

SettingDefinition gradient_setting() {
  return {.name = "gradient", .fallback = false, .doc = "It is the other operator's gradient."};
}

// The kernels of dispatch or combine. \param gradient  the kind of permutation if the operator is
// the gradient of the other one.
std::vector<Kernel> permutation_kernels(const Call& local, const TensorType& slots,
                                        const TensorType& tokens, Eager forward, Eager gradient) {
  if (!local.settings.flag("eager")) return permutation(slots, tokens);
  return eager_permutation(slots, tokens, local.settings.flag("gradient") ? gradient : forward,
                           local.inputs.size() > 2);
}

std::vector<Kernel> dispatch_kernels(const Call& local, const Call&) {
  return permutation_kernels(local, local.outputs[0], local.inputs[0], Eager::kDispatch,
                             Eager::kCombineGradient);
}

void dispatch_backward(Gradients& gradients) {
  std::vector<TensorId> inputs{gradients.of_output(0), gradients.input(1)};
  if (gradients.op().inputs.size() > 2) inputs.push_back(gradients.input(2));
  gradients.give(
      0, gradients.add("moe_combine", "", inputs,
                       {{"eager", gradients.op().settings.flag("eager")}, {"gradient", true}})[0]);
  if (gradients.op().inputs.size() > 2)
    gradients.give(
        2, gradients.add("moe_weight_gradient", "weights",
                         {gradients.input(0), gradients.of_output(0), gradients.input(1)}, {})[0]);
}

// weights, indices -> slots of one column.
Result<Inferred> infer_slot_weights(const Call& call) {
  const TensorType& weights = call.inputs[0];
  const Shape& indices = call.inputs[1].shape;
  if (weights.shape != indices) return wrong("weights and indices differ in shape");
  Shape ones = indices;
  ones.back() = 1;
  if (const auto why = fault_in_route(ones, indices); !why.empty()) return wrong(why);
  const std::int64_t experts = call.settings.integer("experts");
  const std::int64_t capacity = call.settings.integer("capacity");
  if (experts < 1 || capacity < 1) return wrong("experts and capacity must be at least 1");
  const Shape slots = slots_of(experts, ones, capacity);
  auto f = routing_factors(slots, ones, indices);
  f.make.input(f.chosen).input(f.chosen).output(f.slots);
  return Inferred{{{weights.dtype, slots}}, f.make.take()};
}

// No kernel: the kernel that puts tokens into slots puts their weights there, too.
std::vector<Kernel> slot_weights_kernels(const Call&, const Call&) {
  return {};
}

void slot_weights_backward(Gradients& gradients) {
  gradients.give(0, gradients.add("moe_weight_gradient", "",
                                  {gradients.of_output(0), gradients.input(1)}, {})[0]);
}

// slots, indices[, weights] -> tokens; the experts' results are summands of them.
Result<Inferred> infer_combine(const Call& call) {
  const TensorType& slots = call.inputs[0];
  const Shape& indices = call.inputs[1].shape;
  if (slots.shape.size() < 4 || indices.size() + 1 != slots.shape.size() ||
      !std::equal(indices.begin(), indices.end() - 2, slots.shape.begin() + 1))
    return wrong(
        "needs slots [experts, groups..., capacity, width] and a choice of experts [groups..., "
        "tokens, k], not " +
        text_of(slots.shape) + " and " + text_of(indices));
  if (call.inputs.size() > 2 && call.inputs[2].shape != indices)
    return wrong("weights and indices differ in shape");
  Shape tokens = indices;
  tokens.back() = slots.shape.back();
  auto f = routing_factors(slots.shape, tokens, indices);
  f.make.input(f.slots).input(f.chosen);
  if (call.inputs.size() > 2) f.make.input(f.chosen);
  f.make.output(f.tokens);
  return Inferred{{{slots.dtype, tokens}}, f.make.take()};
}

std::vector<Kernel> combine_kernels(const Call& local, const Call&) {
  return permutation_kernels(local, local.inputs[0], local.outputs[0], Eager::kCombine,
                             Eager::kDispatchGradient);
}

void combine_backward(Gradients& gradients) {
  const Shape& slots = gradients.shape(gradients.input(0));
  std::vector<TensorId> inputs{gradients.of_output(0), gradients.input(1)};
  if (gradients.op().inputs.size() > 2) inputs.push_back(gradients.input(2));
  gradients.give(0, gradients.add("moe_dispatch", "", inputs,
                                  {{"experts", slots[0]},
                                   {"capacity", slots[slots.size() - 2]},
                                   {"eager", gradients.op().settings.flag("eager")},
                                   {"gradient", true}})[0]);
  if (gradients.op().inputs.size() > 2)
    gradients.give(2,
                   gradients.add("moe_weight_gradient", "weights",
                                 {gradients.of_output(0), gradients.input(0), gradients.input(1)},
                                 {{"eager", gradients.op().settings.flag("eager")}})[0]);
}

// [tokens, ]slots, indices -> for each choice the inner product of token and slot; without tokens,
// the slot itself.
Result<Inferred> infer_weight_gradient(const Call& call) {
  const bool has_tokens = call.inputs.size() > 2;
  const Shape& slots = call.inputs[has_tokens ? 1 : 0].shape;
  const Shape& indices = call.inputs[has_tokens ? 2 : 1].shape;
  Shape tokens = has_tokens ? call.inputs[0].shape : indices;
  if (!has_tokens && !tokens.empty()) tokens.back() = 1;
  if (const auto why = fault_in_route(tokens, indices); !why.empty()) return wrong(why);
  if (slots.size() < 4 || slots != slots_of(slots[0], tokens, slots[slots.size() - 2]))
    return wrong("slots " + text_of(slots) + " do not fit tokens " + text_of(tokens));
  auto f = routing_factors(slots, tokens, indices);
  if (has_tokens) f.make.input(f.tokens);
  f.make.input(f.slots).input(f.chosen).output(f.chosen);
  return Inferred{{{call.inputs[0].dtype, indices}}, f.make.take()};
}

std::vector<Kernel> weight_gradient_kernels(const Call& local, const Call&) {
  const TensorType& slots = local.inputs[local.inputs.size() - 2];
  if (!local.settings.flag("eager")) return one_pass(PassKind::kReduce, slots);
  return {pass_over(PassKind::kBinary, slots), pass_over(PassKind::kReduce, slots)};
}

}  // namespace

OperatorDefinition moe_dispatch() {
  return {.name = "moe_dispatch",
          .doc =
              "Puts the tokens of each group into the slots of the experts chosen for them, "
              "times the weights if given.",
          .inputs = "tokens, indices[, weights]",
          .outputs = "slots",
          .least_inputs = 2,
          .most_inputs = 3,
          .settings = {{.name = "experts",
                        .fallback = std::int64_t{1},
                        .required = true,
                        .doc = "How many there are."},
                       {.name = "capacity",
                        .fallback = std::int64_t{1},
                        .required = true,
                        .doc = "Slots of one expert for one group."},
                       {.name = "counts_on_host",
                        .fallback = false,
                        .doc = "The host waits for the choice, to know how many tokens go where."},
                       eager_setting(),
                       gradient_setting()},
          .infer = infer_dispatch,
          .kernels = dispatch_kernels,
          .gradient = dispatch_backward};
}

OperatorDefinition moe_combine() {
  return {.name = "moe_combine",
          .doc =
              "Adds up, for every token, what its experts made of it, times the weights if "
              "given. A split of the experts leaves summands.",
          .inputs = "slots, indices[, weights]",
          .outputs = "tokens",
          .least_inputs = 2,
          .most_inputs = 3,
          .settings = {eager_setting(), gradient_setting()},
          .infer = infer_combine,
          .kernels = combine_kernels,
          .gradient = combine_backward};
}

OperatorDefinition moe_slot_weights() {
  OperatorDefinition dispatch = moe_dispatch();
  dispatch.settings.resize(2);  // "experts" and "capacity"; the others are for dispatch's kernel
  return {
      .name = "moe_slot_weights",
      .doc =
          "Puts the weights of each token's choices into the slots of the chosen experts, beside "
          "the tokens: the kernel of `moe_dispatch` does both.",
      .inputs = "weights, indices",
      .outputs = "slots",
      .least_inputs = 2,
      .most_inputs = 2,
      .settings = std::move(dispatch.settings),
      .infer = infer_slot_weights,
      .kernels = slot_weights_kernels,
      .gradient = slot_weights_backward};
}

OperatorDefinition moe_weight_gradient() {
  return {.name = "moe_weight_gradient",
          .doc =
              "The gradient of the weights of `moe_dispatch` and `moe_combine`; without tokens, of "
              "`moe_slot_weights`.",
          .inputs = "[tokens, ]slots, indices",
          .outputs = "dweights",
          .least_inputs = 2,
          .most_inputs = 3,
          .settings = {eager_setting()},
          .infer = infer_weight_gradient,
          .kernels = weight_gradient_kernels};
}

}  // namespace foreshard::operators
