/// \file
/// Time of a memory-bound kernel; see operator_time.h for the formula.
#pragma once

#include "sim/compute/operator_time.h"

namespace foreshard::compute {

OperatorTime pass_time(const Pass& pass, const DeviceType& device);

}  // namespace foreshard::compute
