/// \file
/// A device whose times can be worked out by hand: 10 multiprocessors of 10 TFLOP/s each (bf16),
/// 1 TB/s, tiles of 100 x 100, no losses but the ones that a test sets.
#pragma once

#include "topology/device_type.h"

namespace foreshard::test {

DeviceType toy_device();

}  // namespace foreshard::test
