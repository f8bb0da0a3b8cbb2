#include "strategies/program/lower/ring.h"

#include <algorithm>
#include <string>
#include <utility>

#include "strategies/graph/layout.h"
#include "strategies/program/lower/block.h"
#include "strategies/program/lower/purpose.h"
#include "strategies/reshard/within_mesh.h"

namespace foreshard::lower {
namespace {

using program::Communication;
using program::Task;

// The axes of a conversion that is a single primitive, and the bytes of the tensor on one rank.
struct RingTensor {
  std::vector<Axis> axes;
  Bytes bytes;
};
std::optional<RingTensor> share_of(const ShardedGraph& sharded, std::int32_t index,
                                   reshard::Primitive primitive) {
  const Conversion& wish = sharded.conversions[static_cast<std::size_t>(index)];
  const Tensor& tensor = (*sharded.graph)[wish.tensor];
  const auto steps =
      reshard::steps_within({tensor.dtype, tensor.shape}, wish.from, wish.to, sharded.mesh);
  if (steps.size() != 1 || steps.front().primitive != primitive) return std::nullopt;
  const auto ranks = static_cast<double>(ways(steps.front().axes, sharded.mesh));
  return RingTensor{
      steps.front().axes,
      reshard::communication_bytes(primitive, steps.front().volume.logical, ranks) / ranks};
}

std::ptrdiff_t readers_of(const ShardedGraph& sharded, std::int32_t conversion) {
  return std::ranges::count_if(sharded.operators, [&](const ShardedOperator& op) {
    return std::ranges::find(op.conversions, conversion) != op.conversions.end();
  });
}

// Whether keys are cut evenly, over these axes only, as queries are, and are needed whole.
bool go_round(const ShardedGraph& sharded, std::size_t op, std::int32_t keys,
              const std::vector<Axis>& axes) {
  const Conversion& wish = sharded.conversions[static_cast<std::size_t>(keys)];
  std::vector<Axis> cut = wish.from.dims[1];
  const bool as_queries = cut == sharded.operators[op].operands[0].dims[1];
  std::ranges::sort(cut);
  return as_queries && cut == axes && wish.to.dims[1].empty() &&
         (*sharded.graph)[wish.tensor].shape[1] % ways(axes, sharded.mesh) == 0;
}

// The conversion of the tensor; nothing if there is none or more than one.
std::optional<std::int32_t> conversion_of(const ShardedGraph& sharded, TensorId tensor) {
  std::optional<std::int32_t> found;
  for (std::size_t c = 0; c < sharded.conversions.size(); ++c) {
    if (sharded.conversions[c].tensor != tensor) continue;
    if (found) return std::nullopt;
    found = static_cast<std::int32_t>(c);
  }
  return found;
}

}  // namespace

std::optional<Ring> ring_of(const ShardedGraph& sharded, std::size_t i) {
  const Operator& op = sharded.graph->operators[i];
  if (!op.settings.has("ring") || !op.settings.flag("ring")) return std::nullopt;
  const auto& needs = sharded.operators[i].conversions;
  const auto keys = std::ranges::find_if(needs, [&](std::int32_t c) {
    return sharded.conversions[static_cast<std::size_t>(c)].tensor == op.inputs[1];
  });
  if (keys == needs.end() || readers_of(sharded, *keys) != 1) return std::nullopt;
  const auto gathered = share_of(sharded, *keys, reshard::Primitive::kAllGather);
  if (!gathered || !go_round(sharded, i, *keys, gathered->axes)) return std::nullopt;
  Ring ring{.axes = gathered->axes, .keys = *keys, .key_bytes = gathered->bytes};
  if (op.type != "context_attention_gradient") return ring;
  ring.gradients = conversion_of(sharded, op.outputs[1]);
  if (!ring.gradients) return std::nullopt;
  const auto summed = share_of(sharded, *ring.gradients, reshard::Primitive::kReduceScatter);
  if (!summed || summed->axes != ring.axes) return std::nullopt;
  ring.gradient_bytes = summed->bytes;
  return ring;
}

std::int32_t append_ring(program::Block& block, const ShardedGraph& sharded, std::size_t i,
                         const Ring& ring, const std::vector<Kernel>& kernels,
                         std::vector<std::int32_t> before_kernels,
                         std::vector<std::int32_t> before_transfers) {
  const Operator& op = sharded.graph->operators[i];
  const Tensor& keys = (*sharded.graph)[op.inputs[1]];
  const std::int64_t steps = ways(ring.axes, sharded.mesh);
  const auto add = [&](Task task) {
    block.tasks.push_back(std::move(task));
    return static_cast<std::int32_t>(block.tasks.size()) - 1;
  };
  std::int32_t kernel = -1;
  std::int32_t arrived = -1;  // transfer that brought the keys of this step
  std::int32_t sent = -1;     // transfer of this step
  std::int64_t step = 0;
  const auto send = [&] {
    const Bytes bytes =
        (step + 1 < steps ? ring.key_bytes : 0_B) + (step > 0 ? ring.gradient_bytes : 0_B);
    if (!(bytes > 0_B)) return;
    std::vector<std::int32_t> after = step == 0 ? std::exchange(before_transfers, {})
                                                : std::vector{ring.gradients ? kernel : arrived};
    sent = add({.name = "shift." + keys.name + (step == 0 ? "" : "." + std::to_string(step)),
                .body = Communication{.kind = program::CollectiveKind::kShift,
                                      .group = program::AxisGroup{.axes = ring.axes},
                                      .bytes = bytes,
                                      .dtype = keys.dtype,
                                      .purpose = purpose_of(ring.axes, sharded.mesh),
                                      .tag = tag_of(ring.axes, sharded.mesh)},
                .stream = stream(after.empty() ? kComputeStream : kTensorStream),
                .after = after});
  };
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const bool attends = std::holds_alternative<Attention>(kernels[k]);
    std::vector<std::int32_t> after;
    if (attends) {
      arrived = sent;
      send();
      after = step == 0 ? std::exchange(before_kernels, {}) : std::vector{arrived};
      ++step;
    } else if (step == 0) {
      after = std::exchange(before_kernels, {});
    } else if (ring.gradients) {
      after = {sent};
    }
    kernel = add({.name = k == 0 ? op.name : op.name + "." + std::to_string(k),
                  .body = kernels[k],
                  .stream = stream(kComputeStream),
                  .after = std::move(after)});
    if (step == 0) before_transfers = {kernel};
  }
  return kernel;
}

}  // namespace foreshard::lower
