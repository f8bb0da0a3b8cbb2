/// \file
/// Copies within a rank that a step needs. Communication sends and receives whole buffers, so data
/// that are not contiguous in the rank's slice are packed before it and unpacked after it.
#pragma once

#include <cstdint>

#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

/// Elements that a rank copies before and after the communication; the largest of any rank.
struct Repack {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

/// Copies of a step. Along the first dimension of which the rank has more than one index, a slice
/// of a row-major tensor is cut or joined without a copy. Along any other dimension it is copied:
/// the result of an all-gather, the operand of a reduce-scatter, both the cut and the joined slice
/// of an all-to-all or transfer. A local slice is a copy unless it is contiguous; a pad writes its
/// whole summand.
/// Not modelled: padding of uneven slices; packs that overlap earlier messages.
Repack repack_of(const Step& step, const TensorSpec& tensor);

}  // namespace foreshard::reshard
