#include <algorithm>

#include "strategies/schedule/internal/fill.h"
#include "strategies/schedule/internal/stages.h"
#include "strategies/schedule/schedules.h"

namespace foreshard::schedule {
namespace {

Table automatic(const PipelineShape& shape, std::int32_t ahead) {
  const Table passes = each_stage(shape, [&](std::int32_t stage, Passes& of_stage) {
    const std::int32_t m = shape.micro_batches;
    of_stage.forward(0, std::min(ahead * (shape.stages - 1 - stage), m));
    for (std::int32_t i = 0; i < m; ++i) {
      if (of_stage.forwards(0) < m) of_stage.forward(0);
      of_stage.input(0);
    }
  });
  return with_weight_gradients(passes, shape, StagePlacement::kWrap, ahead * shape.stages);
}

}  // namespace

Result<Table> zb_1p(const PipelineShape& shape) {
  return automatic(shape, 1);
}

Result<Table> zb_2p(const PipelineShape& shape) {
  return automatic(shape, 2);
}

}  // namespace foreshard::schedule
