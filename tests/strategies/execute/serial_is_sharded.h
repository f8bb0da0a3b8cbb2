/// \file
/// A step executed under a strategy against the same on one rank, in tests.
#pragma once

#include <fmt/format.h>
#include <iostream>

#include "tests/strategies/execute/compare.h"
#include "tests/test.h"

namespace foreshard::execute {

// Sums are taken in other orders; 1e-10 of a tensor's largest value is far above what that does to
// doubles and far below what any missing summand does.
inline constexpr double kTolerance = 1e-10;

inline StepResult executed(const Model& model, const Strategy& strategy,
                           const StepOptions& options = {}) {
  return value_of(execute_step(model, strategy, options));
}

struct Summary {
  std::int64_t strategies = 0;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  double worst = 0;
};

inline std::string describe(const Model& model, const Strategy& s) {
  return fmt::format(
      "{}: tensor {}{}, pipeline {} x {} {}, data {}, ZeRO {}, recompute {}, {} attention, "
      "reduction {}, {}-{}-{}",
      model.name, s.tensor_parallel, s.sequence_parallel ? " with sequence" : "",
      s.pipeline_parallel, s.virtual_stages, s.schedule, s.data_parallel, s.zero_stage,
      yaml::name_of(s.recompute), name_of(s.framework->attention),
      yaml::name_of(s.framework->gradient_reduction), s.rank_order[0], s.rank_order[1],
      s.rank_order[2]);
}

/// In each of `orders` (StepOptions::order).
inline void expect_serial_is_sharded(const Model& model, const Strategy& strategy, Summary& summary,
                                     const std::vector<std::uint64_t>& orders = {1}) {
  const std::string what = describe(model, strategy);
  ASSERT_THAT(faults_in(strategy, model, strategy.devices()), IsEmpty()) << what;
  const StepResult serial = executed(model, serial_of(strategy));
  for (const std::uint64_t order : orders) {
    const auto comparison =
        compare(serial, executed(model, strategy, {.order = order}), kTolerance);
    EXPECT_THAT(comparison.faults, IsEmpty()) << what << ", order " << order;
    summary.tensors += comparison.tensors;
    summary.elements += comparison.elements;
    summary.worst = std::max(summary.worst, comparison.worst);
  }
  ++summary.strategies;
}

inline void print(const Summary& summary) {
  std::cout << fmt::format(
      "serial = sharded: {} strategies, {} tensors, {} values on ranks, worst relative difference "
      "{:.2g}\n",
      summary.strategies, summary.tensors, summary.elements, summary.worst);
}

}  // namespace foreshard::execute
