#include "strategies/program/lower/optimizer_block.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/block.h"
#include "strategies/program/lower/host_blocks.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/purpose.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::lower {
namespace {

using program::Communication;
using program::Task;

constexpr std::string_view kSquares = "gradient_norm";

// Adds up the ranks' sums of squares, and lets the host read the result.
void append_norm(program::Block& step, const std::vector<MeshAxis>& mesh,
                 std::vector<Axis> spread) {
  const auto squares = static_cast<std::int32_t>(step.tasks.size()) - 1;
  std::erase_if(spread, [&](Axis axis) { return mesh[static_cast<std::size_t>(axis)].size == 1; });
  if (!spread.empty()) {
    step.tasks.push_back(Task{.name = "all_reduce.gradient_norm",
                              .body = Communication{.kind = program::CollectiveKind::kAllReduce,
                                                    .group = program::AxisGroup{.axes = spread},
                                                    .bytes = size_of(DType::kFp32),
                                                    .dtype = DType::kFp32,
                                                    .purpose = purpose_of_states(spread, mesh),
                                                    .tag = "gradient_norm"},
                              .stream = stream(kTensorStream),
                              .after = {squares}});
  }
  const auto last = static_cast<std::int32_t>(step.tasks.size()) - 1;
  step.tasks.push_back(Task{.name = "read_norm", .body = program::Sync{}, .after = {last}});
}

// Appends an exchange as a series of tasks; the first waits for `after`. Returns the last task, or
// nothing if no communication is needed.
std::optional<std::int32_t> append_exchange(program::Block& block, const UpdateExchange& exchange,
                                            const std::vector<MeshAxis>& mesh,
                                            std::vector<std::int32_t> after) {
  Attribute from = replicated(1);
  if (exchange.sums) {
    from.partial = sums_over(exchange.axes);
  } else {
    from.dims[0] = exchange.axes;
  }
  const std::int64_t count =
      exchange.sums ? exchange.elements : padded(exchange.elements, exchange.axes, mesh);
  return append_reshard(block, std::string(exchange.name), {count}, exchange.dtype, from,
                        replicated(1), mesh, stream(kDataStream), std::move(after));
}

// append_exchange, with a buffer for what the exchange gathers.
std::optional<std::int32_t> append_with_room(program::Block& step, const UpdateExchange& exchange,
                                             const std::vector<MeshAxis>& mesh,
                                             const std::vector<std::int32_t>& after) {
  const std::string buffer(exchange.name);
  const bool gathers = !exchange.sums && ways(exchange.axes, mesh) > 1;
  const Bytes room = size_of(exchange.dtype) * static_cast<double>(exchange.elements);
  if (gathers)
    step.tasks.push_back(
        {.name = "keep", .body = program::Allocate{buffer, program::MemoryKind::kBuffers, room}});
  const auto last = append_exchange(step, exchange, mesh, after);
  if (gathers)
    step.tasks.push_back({.name = "forget", .body = program::Free{buffer}, .after = {*last}});
  return last;
}

// The tasks run one after another, across streams too.
void append_update(program::Block& step, const std::vector<UpdateStep>& update,
                   const std::vector<MeshAxis>& mesh) {
  std::vector<std::int32_t> exchanged;  // the last exchange, which the next kernel waits for
  std::vector<std::int32_t> computed;   // the last kernel, which the next exchange waits for
  for (const UpdateStep& one : update) {
    if (const auto* exchange = std::get_if<UpdateExchange>(&one)) {
      for (std::int64_t i = 0; i < exchange->times; ++i)
        if (const auto last = append_with_room(step, *exchange, mesh, computed))
          exchanged = {*last};
      continue;
    }
    const auto& kernel = std::get<UpdateKernel>(one);
    for (std::int64_t i = 0; i < kernel.times; ++i) {
      computed = {static_cast<std::int32_t>(step.tasks.size())};
      step.tasks.push_back({.name = std::string(kernel.name),
                            .body = kernel.kernel,
                            .stream = stream(kComputeStream),
                            .after = std::exchange(exchanged, {}),
                            .optimizer = true});
    }
  }
}

}  // namespace

std::vector<GradientPass> gradient_passes(const Strategy& strategy, std::int64_t count) {
  const Framework& framework = *strategy.framework;
  const DType gradients = framework.gradients_of(strategy.precision);
  const bool is_apart =
      !framework.fused_update && strategy.offload_optimizer != OptimizerOffload::kCpu;
  std::vector<GradientPass> passes;
  const auto add = [&](std::string_view name, PassKind kind, DType dtype) {
    passes.push_back({name, {.kind = kind, .rows = count, .dtype = dtype}});
  };
  if (is_apart && size_of(gradients) == 2_B && has_master(strategy.optimizer, strategy.precision))
    add("main_gradients", PassKind::kCast, gradients);
  if (is_apart && strategy.precision == DType::kFp16)
    add("unscale", PassKind::kUnary, DType::kFp32);
  if (!framework.gradient_clipping) return passes;
  add(kSquares, PassKind::kGradientNorm, DType::kFp32);
  if (is_apart) add("clip", PassKind::kUnary, DType::kFp32);
  return passes;
}

std::vector<UpdateStep> update_steps(const Strategy& strategy, const std::vector<MeshAxis>& mesh,
                                     const std::vector<plan::ParameterGroup>& groups) {
  Update update{.optimizer = strategy.optimizer,
                .kernels = strategy.framework->optimizer,
                .precision = strategy.precision,
                .mesh = mesh};
  const bool cuts = state_sharding(strategy).cuts_optimizer;
  for (const plan::ParameterGroup& group : groups)
    update.updated.push_back({.cut = cuts ? group.over : std::vector<Axis>{},
                              .elements = group.trained(),
                              .tensors = group.tensors,
                              .matrices = group.matrices});
  return rule_of(strategy.optimizer).steps(update);
}

program::Block optimizer_block(std::string name, const Strategy& strategy,
                               const std::vector<MeshAxis>& mesh, const std::vector<Axis>& spread,
                               const std::vector<UpdateStep>& update, const UpdatedShare& updated) {
  program::Block step{.name = std::move(name)};
  std::size_t behind_norm = 0;
  for (const GradientPass& one : gradient_passes(strategy, updated.count)) {
    step.tasks.push_back({.name = std::string(one.name),
                          .body = Kernel{one.pass},
                          .stream = stream(kComputeStream),
                          .optimizer = true});
    if (one.name != kSquares) continue;
    append_norm(step, mesh, spread);
    behind_norm = step.tasks.size();
  }
  switch (strategy.offload_optimizer) {
    case OptimizerOffload::kNone:
      append_update(step, update, mesh);
      break;
    case OptimizerOffload::kCpu:
      append_cpu_step(step, strategy, updated.count, updated.left);
      break;
    case OptimizerOffload::kFetch:
      append_fetched_step(step, strategy, updated.count,
                          [&] { append_update(step, update, mesh); });
      break;
  }
  const auto casts = static_cast<std::int32_t>(step.tasks.size());
  append_weight_casts(step, strategy, updated.quantized, kComputeStream, true);
  // Parameters that come from the host are cast after the copy.
  if (strategy.offload_optimizer == OptimizerOffload::kCpu &&
      casts < static_cast<std::int32_t>(step.tasks.size()))
    step.tasks[static_cast<std::size_t>(casts)].after.push_back(casts - 1);
  const auto first =
      std::find_if(step.tasks.begin() + static_cast<std::ptrdiff_t>(behind_norm), step.tasks.end(),
                   [](const program::Task& task) { return task.stream.valid(); });
  if (behind_norm > 0 && first != step.tasks.end())
    first->launches += strategy.framework->step_launches;
  return step;
}

}  // namespace foreshard::lower
