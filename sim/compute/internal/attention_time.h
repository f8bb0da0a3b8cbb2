/// \file
/// Time of fused attention by work units; see operator_time.h for the formula.
#pragma once

#include "sim/compute/operator_time.h"

namespace foreshard::compute {

/// The efficiency parameters of the implementation that `attention` names. A device that does not
/// list that implementation uses its default one, chosen as PyTorch's scaled_dot_product_attention
/// and Transformer Engine choose among those that run.
const AttentionEfficiency& efficiency_of(const Attention& attention,
                                         const DeviceEfficiency& device);

OperatorTime attention_time(const Attention& attention, const DeviceType& device, Duty duty);

}  // namespace foreshard::compute
