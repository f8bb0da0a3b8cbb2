/// \file
/// Random conversions, every candidate plan executed and compared bit by bit with the tensor.
#pragma once

#include "tests/oracle/reshard.h"
#include "tests/strategies/execute/random_layouts.h"
#include "tests/test.h"

namespace foreshard {

/// 5 us per step and 10 GB/s for what each rank sends on average, times the primitive's weight:
/// with other weights other plans are among the cheapest.
using Weights = std::array<double, 8>;
inline Result<Seconds> plain_price(const reshard::Step& step, const reshard::TensorSpec& tensor,
                                   const Weights& weights) {
  const double ranks = static_cast<double>(step.to.mesh.size());
  return weights[static_cast<std::size_t>(step.primitive)] *
         (5_us + volume_of(step, tensor).exact_total / (ranks * 10_GB_s));
}

struct Executions {
  int conversions = 0;
  int plans = 0;
  int refused = 0;
};

/// Values whose sums, maxima and minima over any split into summands are exact.
inline std::vector<std::int64_t> numbered(const Shape& shape) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(whole_of(shape).elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int64_t>((i * 2654435761U + 12345U) % 1000003U) - 500000;
  return values;
}

/// The summands of a partial layout are made random, so that a plan that forgets one is found.
inline execute::Shards<std::int64_t> random_shards(const Layout& layout, const Shape& shape,
                                                   RandomLayouts& random) {
  const Slices slices(layout, shape);
  execute::Shards<std::int64_t> shards;
  // Positions that agree on slice and summand are replicas and must agree on values.
  std::map<std::vector<std::int64_t>, std::size_t> known;
  for (std::int64_t i = 0; i < layout.mesh.size(); ++i) {
    std::vector<std::int64_t> key;
    for (std::size_t d = 0; d < shape.size(); ++d) key.push_back(slices.part_of(i, d));
    for (const Partial& partial : layout.attribute.partial)
      key.push_back(coordinate_of(layout.mesh, i, partial.axis));
    const auto [first, fresh] = known.emplace(key, shards.of_position.size());
    if (!fresh) {
      shards.of_position.push_back(shards.of_position[first->second]);
      continue;
    }
    auto& array =
        shards.of_position.emplace_back(static_cast<std::size_t>(slices.of(i).elements()));
    for (auto& value : array) value = random.below(2'000'001) - 1'000'000;
  }
  return shards;
}

inline void run_conversions(unsigned seed, int count, Executions& done) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomLayouts random(seed);
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    const reshard::TensorSpec tensor{.dtype = DType::kInt64, .shape = random.shape()};
    const Layout from = random.on(
        mesh_from(random.axes(), static_cast<std::int32_t>(random.below(3))), tensor.shape);
    const Layout to = random.on(random.mesh_after(from.mesh), tensor.shape);
    SCOPED_TRACE("conversion " + std::to_string(i) + ": " + describe(from) + "  ->  " +
                 describe(to));
    ASSERT_EQ(fault_in(from, tensor.shape), std::nullopt);
    ASSERT_EQ(fault_in(to, tensor.shape), std::nullopt);
    reshard::CandidateOptions options;
    if (random.one_in(2))
      for (std::int32_t rank = 0; rank < 64; ++rank) options.node_of_rank.push_back(rank / 4);
    if (random.one_in(2)) options.slowest_ratio = 1000;
    Weights weights;
    for (double& weight : weights) weight = static_cast<double>(1 + random.below(8));
    const auto found = reshard::candidates(
        tensor, from, to,
        [&](const reshard::Step& step) { return plain_price(step, tensor, weights); }, options);
    ++done.conversions;
    if (!found) {
      ++done.refused;
      ADD_FAILURE() << found.error().message;
      return;
    }
    const auto shards = random_shards(from, tensor.shape, random);
    const auto expected = gather(from, tensor.shape, shards);
    for (const reshard::Plan& plan : found->plans) {
      SCOPED_TRACE(plan.name);
      const auto result = execute::execute(plan, tensor, shards, options.node_of_rank);
      ++done.plans;
      if (plan.steps.empty()) {
        ASSERT_EQ(from, to);
      } else {
        ASSERT_EQ(plan.steps.front().from, from);
        ASSERT_EQ(plan.steps.back().to, to);
      }
      for (std::size_t s = 1; s < plan.steps.size(); ++s)
        ASSERT_EQ(plan.steps[s].from, plan.steps[s - 1].to);
      ASSERT_EQ(gather(to, tensor.shape, result.shards), expected);
      ASSERT_EQ(disagreement(to, tensor.shape, result.shards), std::nullopt);
      ASSERT_DOUBLE_EQ(result.crossed.in_base(), volume_of(plan, tensor).exact_total.in_base());
    }
  }
}

}  // namespace foreshard
