// Experts over any division of the tensor-, context- and data-parallel ranks: sharded as serial.

#include "tests/strategies/execute/serial_is_sharded.h"
#include "tests/strategies/execute/tiny_models.h"
#include "tests/test.h"

namespace foreshard::execute {
namespace {

Model tiny_folded() {
  Model model = tiny_llama();
  model.name = "tiny folded";
  model.layers = 2;
  model.sequence = 16;
  model.experts = 8;
  model.experts_per_token = 2;
  model.expert_ffn = 8;
  return model;
}

struct Folding {
  std::int64_t tensor;
  std::int64_t context;
  std::int64_t data;
  std::int64_t expert;
  std::int64_t parts;  // of an expert
  std::int64_t heads = 1;
  std::int64_t replicas = 1;
};

TEST(SerialIsSharded, WithExpertsOverAnyDivisionOfTheRanks) {
  const std::vector<Folding> foldings{
      {4, 1, 1, 1, 1},        // copies on tensor-parallel ranks
      {4, 1, 2, 2, 1},        // over half of them
      {4, 1, 1, 2, 2},        // halves of experts, over half of them
      {4, 1, 2, 1, 2},        // halves, copies on the other two, and on replicas
      {2, 4, 1, 4, 1},        // over both tensor-parallel and half of the context-parallel ranks
      {2, 4, 1, 2, 2},        // over half of the context-parallel ones alone
      {1, 4, 2, 2, 1},        // likewise
      {2, 2, 2, 4, 2},        // over context- and data-parallel ranks
      {2, 2, 2, 8, 1},        // over all
      {4, 2, 2, 2, 2},        // over half of the tensor-parallel ranks, copies on all else
      {2, 4, 1, 2, 1, 2},     // over the tensor-parallel ranks, heads exchanged
      {1, 4, 2, 2, 1, 2},     // over those that exchange heads
      {2, 1, 4, 4, 1, 1, 2},  // within each of two sets of shards
      {4, 1, 4, 2, 1, 1, 2},  // copies within a set and in the other one
      {1, 4, 1, 2, 2},        // halves of experts on context-parallel ranks
      {1, 2, 4, 2, 4},        // quarters on context- and data-parallel ranks
      {2, 2, 2, 1, 4},        // quarters on tensor- and context-parallel ranks
  };
  Summary summary;
  std::size_t turn = 0;
  for (const Folding& folding : foldings) {
    for (const std::int64_t zero : {0, 1, 2, 3}) {
      if (zero == 0 && folding.replicas > 1) continue;
      Strategy s = tiny_strategy(folding.tensor, 1, folding.data, 2);
      s.sequence_parallel = folding.tensor > 1;
      s.context_parallel = folding.context;
      s.context_heads = folding.heads;
      if (folding.heads > 1) s.context_exchange = ContextExchange::kRing;
      s.expert_parallel = folding.expert;
      s.expert_tensor_parallel = folding.parts;
      s.shard_replicas = folding.replicas;
      s.zero_stage = zero;
      s.capacity_factor = 4;  // of 8 experts for 2: no token is dropped, whoever shares them
      s.recompute = std::array{Recompute::kNone, Recompute::kFull}[turn % 2];
      s.framework.value.weights_at_activation = turn % 3 == 0;
      s.framework.value.gradient_reduction =
          turn % 4 < 2 ? GradientReduction::kOverlapped : GradientReduction::kAfterBackward;
      if (turn % 5 == 0) s.rank_order = {"data", "tensor", "pipeline"};
      SCOPED_TRACE(fmt::format("context {}, experts {}, parts {}, replicas {}", folding.context,
                               folding.expert, folding.parts, folding.replicas));
      expect_serial_is_sharded(tiny_folded(), s, summary);
      if (HasFailure()) return;
      ++turn;
    }
  }
  EXPECT_EQ(summary.strategies, 66);
  print(summary);
}

}  // namespace
}  // namespace foreshard::execute
