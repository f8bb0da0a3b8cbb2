#include <array>

#include "strategies/comm/algorithms.h"

namespace foreshard::comm {

std::span<const Algorithm> algorithms() {
  using enum program::CollectiveKind;
  static constexpr std::array kAlgorithms{
      Algorithm{"ring", kAllReduce, ring_all_reduce, ring_all_reduce_steps},
      Algorithm{"tree", kAllReduce, tree_all_reduce, tree_all_reduce_steps},
      Algorithm{"nvls", kAllReduce, nvls_all_reduce, nvls_all_reduce_steps},
      Algorithm{"ring", kAllGather, ring_all_gather, ring_all_gather_steps},
      Algorithm{"ring", kReduceScatter, ring_reduce_scatter, ring_reduce_scatter_steps},
      Algorithm{"chain", kBroadcast, chain_broadcast, chain_broadcast_steps},
      Algorithm{"pairwise", kAllToAll, pairwise_all_to_all, pairwise_all_to_all_steps},
      Algorithm{"pairwise", kExchange, pairwise_exchange, pairwise_exchange_steps},
      Algorithm{"direct", kSend, direct_transfer, direct_transfer_steps},
      Algorithm{"direct", kReceive, direct_transfer, direct_transfer_steps},
  };
  return kAlgorithms;
}

}  // namespace foreshard::comm
