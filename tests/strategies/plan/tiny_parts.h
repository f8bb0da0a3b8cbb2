/// \file
/// Sharded models as planners take them, without a model: an embedding, layers and a head.
#pragma once

#include <fmt/format.h>

#include "tests/test.h"

#include "strategies/parallelism/pipeline.h"
#include "strategies/plan/step_plan.h"

namespace foreshard::plan {

/// `layers` of 100 elements between an embedding and a head of 50 each, cut into the strategy's
/// stages, the first ones longer where that does not divide.
inline PlannedModel tiny_parts(const Strategy& strategy, std::int32_t layers) {
  PlannedModel parts{.name = "tiny",
                     .mesh = {{"tensor", strategy.tensor_parallel},
                              {"data", strategy.data_parallel},
                              {"pipeline", strategy.pipeline_parallel}},
                     .blocks = {{"embedding", {{.over = {1}, .elements = 50}}},
                                {"layer", {{.over = {1}, .elements = 100}}},
                                {"head", {{.over = {1}, .elements = 50}}}},
                     .boundaries = {"layer_out"}};
  // Nothing flows back through the embedding.
  parts.blocks[1].splits = parts.blocks[2].splits = splits_backward(strategy);
  parts.units.push_back({.name = "embedding", .block = 0});
  for (std::int32_t layer = 0; layer < layers; ++layer)
    parts.units.push_back(
        {.name = fmt::format("layer {}", layer), .block = 1, .layer = layer, .is_layer = true});
  parts.units.push_back({.name = "head", .block = 2});
  const auto pieces = static_cast<std::int32_t>(strategy.stages());
  std::int32_t next = 0;
  for (std::int32_t piece = 0; piece < pieces; ++piece) {
    std::int32_t count = layers / pieces + (piece < layers % pieces ? 1 : 0);
    count += (piece == 0 ? 1 : 0) + (piece + 1 == pieces ? 1 : 0);
    parts.pieces.push_back({next, count});
    next += count;
  }
  return parts;
}

/// One data-parallel rank on each stage unless the test says otherwise.
inline Strategy tiny_strategy(std::int64_t stages, std::int64_t micro_batches) {
  Strategy strategy;
  strategy.pipeline_parallel = stages;
  strategy.micro_batch = 1;
  strategy.global_batch = micro_batches;
  return strategy;
}

inline void set_data(Strategy& strategy, std::int64_t ranks, std::int64_t zero_stage) {
  strategy.global_batch *= ranks;
  strategy.data_parallel = ranks;
  strategy.zero_stage = zero_stage;
}

inline StepPlan planned(const PlannedModel& parts, const Strategy& strategy) {
  auto plan = value_of(make_plan(parts, strategy));
  EXPECT_EQ(message_of(verify(plan)), "accepted");
  return plan;
}

}  // namespace foreshard::plan
