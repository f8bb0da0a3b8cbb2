#include "strategies/program/lower/optimizer_block.h"

#include <algorithm>
#include <utility>

#include "strategies/program/lower/block.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/quantized_weights.h"

namespace foreshard::lower {
namespace {

using program::Communication;
using program::Purpose;
using program::Task;

// Booked under the outermost axis that it crosses.
Purpose purpose_of_norm(const std::vector<Axis>& axes, const std::vector<MeshAxis>& mesh) {
  Purpose outermost = Purpose::kTensor;
  for (const Axis axis : axes)
    outermost = std::max(outermost, purpose_of(mesh[static_cast<std::size_t>(axis)]));
  return outermost;
}

void append_norm(program::Block& step, const std::vector<MeshAxis>& mesh, std::vector<Axis> spread,
                 std::int64_t count) {
  step.tasks.push_back(Task{
      .name = "gradient_norm",
      .body = Kernel{Pass{.kind = PassKind::kGradientNorm, .rows = count, .dtype = DType::kFp32}},
      .stream = stream(kComputeStream),
      .optimizer = true});
  std::erase_if(spread, [&](Axis axis) { return mesh[static_cast<std::size_t>(axis)].size == 1; });
  if (!spread.empty()) {
    step.tasks.push_back(Task{.name = "all_reduce.gradient_norm",
                              .body = Communication{.kind = program::CollectiveKind::kAllReduce,
                                                    .group = program::AxisGroup{.axes = spread},
                                                    .bytes = size_of(DType::kFp32),
                                                    .dtype = DType::kFp32,
                                                    .purpose = purpose_of_norm(spread, mesh),
                                                    .tag = "gradient_norm"},
                              .stream = stream(kTensorStream),
                              .after = {0}});
  }
  const auto last = static_cast<std::int32_t>(step.tasks.size()) - 1;
  step.tasks.push_back(Task{.name = "read_norm", .body = program::Sync{}, .after = {last}});
}

}  // namespace

program::Block optimizer_block(std::string name, const Strategy& strategy,
                               const std::vector<MeshAxis>& mesh, const std::vector<Axis>& spread,
                               std::int64_t count, std::int64_t quantized) {
  program::Block step{.name = std::move(name)};
  if (strategy.framework->gradient_clipping) append_norm(step, mesh, spread, count);
  append_optimizer(step, strategy.framework->optimizer, count, strategy.precision);
  append_weight_casts(step, strategy, quantized, kComputeStream, true);
  return step;
}

}  // namespace foreshard::lower
