/// \file
/// Copies within a rank that a step needs: communication sends and receives whole buffers, so what
/// is not contiguous in the rank's slice is packed before it, and unpacked after it.
#pragma once

#include <cstdint>

#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

/// Elements that the rank with most of them copies.
struct Repack {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

/// A slice of a row-major tensor is cut, or put together, in one piece along the first dimension of
/// which the rank has more than one index; along another it is copied: of an all-gather the result,
/// of a reduce-scatter the operand, of all-to-all and transfer what is cut and what is joined. A
/// local slice is a copy where it is not a contiguous part; a pad writes the whole of its summand.
/// Not modelled: padding of uneven slices; that a pack may overlap the messages before it.
Repack repack_of(const Step& step, const TensorSpec& tensor);

}  // namespace foreshard::reshard
