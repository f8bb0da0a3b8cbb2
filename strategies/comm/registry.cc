// The table of all collective algorithms; a new one gets a line here, near the others of its
// operation. Null stands for an algorithm that is not made of messages between members.
#include <array>

#include "strategies/comm/algorithms.h"

namespace foreshard::comm {

std::span<const Algorithm> algorithms() {
  using enum program::CollectiveKind;
  static constexpr std::array kAlgorithms{
      Algorithm{"ring", kAllReduce, ring_all_reduce, ring_all_reduce_steps},
      Algorithm{"tree", kAllReduce, tree_all_reduce, tree_all_reduce_steps},
      Algorithm{"nvls", kAllReduce, nvls_all_reduce, nullptr, false, true},
      Algorithm{"nvls_tree", kAllReduce, nvls_tree_all_reduce, nullptr, true, true},
      Algorithm{"collnet_chain", kAllReduce, collnet_chain_all_reduce, nullptr, true},
      Algorithm{"collnet_direct", kAllReduce, collnet_direct_all_reduce, nullptr, true},
      Algorithm{"halving_doubling", kAllReduce, halving_doubling_all_reduce,
                halving_doubling_all_reduce_steps},
      Algorithm{"hierarchical", kAllReduce, hierarchical_all_reduce, hierarchical_all_reduce_steps,
                true},
      Algorithm{"ring", kAllGather, ring_all_gather, ring_all_gather_steps},
      Algorithm{"nvls", kAllGather, nvls_all_gather, nullptr, false, true},
      Algorithm{"pat", kAllGather, pat_all_gather, pat_all_gather_steps, true, true},
      Algorithm{"recursive_doubling", kAllGather, recursive_doubling_all_gather,
                recursive_doubling_all_gather_steps},
      Algorithm{"ring", kReduceScatter, ring_reduce_scatter, ring_reduce_scatter_steps},
      Algorithm{"nvls", kReduceScatter, nvls_reduce_scatter, nullptr, false, true},
      Algorithm{"pat", kReduceScatter, pat_reduce_scatter, pat_reduce_scatter_steps, true, true},
      Algorithm{"recursive_halving", kReduceScatter, recursive_halving_reduce_scatter,
                recursive_halving_reduce_scatter_steps},
      Algorithm{"chain", kBroadcast, chain_broadcast, chain_broadcast_steps},
      Algorithm{"pairwise", kAllToAll, pairwise_all_to_all, pairwise_all_to_all_steps},
      Algorithm{"hierarchical", kAllToAll, hierarchical_all_to_all, nullptr, true},
      Algorithm{"once_per_node", kTokenExchange, once_per_node_exchange, nullptr},
      Algorithm{"pairwise", kExchange, pairwise_exchange, pairwise_exchange_steps},
      Algorithm{"direct", kShift, direct_shift, direct_shift_steps},
      Algorithm{"direct", kSend, direct_transfer, direct_transfer_steps},
      Algorithm{"direct", kReceive, direct_transfer, direct_transfer_steps},
  };
  return kAlgorithms;
}

}  // namespace foreshard::comm
