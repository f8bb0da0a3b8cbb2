/// \file
/// A resharding plan carried out on arrays in memory, rank by rank (R4.7). Values go from rank to
/// rank only as the plan's primitives say: a rank sees another's array in a message of the
/// collective or of the move at hand, and nowhere else.
///
/// Reductions add summands in the order of the group (the first axis fastest), so a result does not
/// depend on the run. Every element of a target slice must be written exactly once by a step that
/// moves; FORESHARD_CHECK sees to it.
///
/// Instantiated for float, double and std::int64_t.
#pragma once

#include "tests/oracle/shards.h"

#include "strategies/reshard/plan.h"

namespace foreshard::execute {

template <class T>
struct Executed {
  Shards<T> shards{};
  /// Elements sent between different ranks, padding too, in the size of the tensor's dtype: what
  /// `volume_of` states as exact_total.
  Bytes crossed{};
};

/// \pre `shards` lie as `step.from`. `node_of_rank` decides, as in `moves_of`, which replica sends.
template <class T>
Executed<T> execute(const reshard::Step& step, const reshard::TensorSpec& tensor,
                    const Shards<T>& shards, const std::vector<std::int32_t>& node_of_rank = {});

/// All steps of the plan in order.
/// \pre `shards` lie as the first step's `from`.
template <class T>
Executed<T> execute(const reshard::Plan& plan, const reshard::TensorSpec& tensor, Shards<T> shards,
                    const std::vector<std::int32_t>& node_of_rank = {});

}  // namespace foreshard::execute
