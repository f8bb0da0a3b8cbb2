/// \file
/// Time of fused attention by work units; see operator_time.h for the formula.
#pragma once

#include <cstdint>

#include "sim/compute/operator_time.h"

namespace foreshard::compute {

inline double count(std::int64_t n) {
  return static_cast<double>(n);
}
/// Number of pieces of size `part` that cover `whole`.
inline std::int64_t parts(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

/// The efficiency parameters of the implementation that `attention` names. A device that does not
/// list that implementation uses its default one, chosen as PyTorch's scaled_dot_product_attention
/// and Transformer Engine choose among those that run.
const AttentionEfficiency& efficiency_of(const Attention& attention,
                                         const DeviceEfficiency& device);

OperatorTime attention_time(const Attention& attention, const DeviceType& device, Duty duty);

}  // namespace foreshard::compute
