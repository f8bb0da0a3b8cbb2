/// \file
/// Time of fused attention by work units; see operator_time.h for the formula.
#pragma once

#include "sim/compute/operator_time.h"

namespace foreshard::compute {

OperatorTime attention_time(const Attention& attention, const DeviceType& device, Duty duty);

}  // namespace foreshard::compute
