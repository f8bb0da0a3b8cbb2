/// \file
/// A step of a strategy against the same on one rank:
///
///     const auto sharded = execute_step(model, strategy);
///     const auto serial = execute_step(model, serial_of(strategy));
///     const Comparison c = compare(*serial, *sharded, 1e-10);    // c.faults is empty
#pragma once

#include <string>
#include <vector>

#include "tests/oracle/step.h"

namespace foreshard::execute {

/// The same training on one rank: micro-batches as large as those of all replicas, no
/// recomputation, the vocabulary padded alike.
Strategy serial_of(const Strategy& strategy);

struct Comparison {
  std::int64_t tensors = 0;   ///< Logical tensors compared.
  std::int64_t elements = 0;  ///< Values, copies too.
  /// Largest difference, relative to the largest value of the serial tensor. What is below 1e-15 of
  /// the largest gradient (moment, parameter) of all is rounding, and counts as none.
  double worst = 0;
  /// Of each tensor that differs the worst value, with rank and index: losses first, then
  /// gradients; at most 20.
  std::vector<std::string> faults{};
};

/// Every value that a rank of the sharded run holds against the serial run's, and whether every
/// value of the serial run is held by some rank. A relative difference, as in Comparison::worst,
/// beyond `tolerance`, or no number, is a fault.
Comparison compare(const StepResult& serial, const StepResult& sharded, double tolerance);

}  // namespace foreshard::execute
