/// \file
/// A CUDA runtime without a device: memory is the host's, streams run what they are given at once,
/// events note the host's clock. What it says of itself can be set.
#pragma once

#include <cstddef>

namespace foreshard::replay::gpu {

struct FakeDevice {
  int count = 1;                              ///< What cudaGetDeviceCount says.
  int current = -1;                           ///< What cudaSetDevice was last given.
  unsigned char uuid = 0;                     ///< First byte of each device's.
  std::size_t memory = std::size_t{1} << 30;  ///< Bytes; allocations beyond fail.
  std::size_t used = 0;
  std::size_t events = 0;  ///< That live.
  std::size_t streams = 0;
  std::size_t records = 0;  ///< Events recorded so far.
};
FakeDevice& fake_device();

}  // namespace foreshard::replay::gpu
