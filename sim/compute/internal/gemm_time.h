/// \file
/// Time of a matrix product by tiles and waves; see operator_time.h for the formula.
#pragma once

#include "sim/compute/operator_time.h"

namespace foreshard::compute {

OperatorTime gemm_time(const Gemm& gemm, const DeviceType& device, Duty duty);

}  // namespace foreshard::compute
