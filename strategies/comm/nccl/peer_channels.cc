#include "strategies/comm/nccl/peer_channels.h"

#include <algorithm>
#include <bit>

namespace foreshard::comm::nccl {

std::int64_t peer_channels(const Communicator& communicator) {
  const auto sends = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, communicator.channels))));
  std::int64_t channels = 2;
  while (channels > 1 && channels * communicator.members > 4 * sends) channels /= 2;
  return channels;
}

}  // namespace foreshard::comm::nccl
