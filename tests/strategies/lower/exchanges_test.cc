// Exchanges with experts beside passes of other micro-batches: cut and woven, by hand.
#include "strategies/program/lower/exchanges.h"

#include "tests/strategies/graph/written_model.h"
#include "tests/strategies/lower/counts.h"
#include "tests/test.h"

#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower::exchanges_test {

using program::Block;
using program::Program;
using program::Task;

Task kernel(std::vector<std::int32_t> after = {}) {
  return {.name = "k", .body = Kernel{Gemm{.m = 1, .n = 1, .k = 1}}, .after = std::move(after)};
}
Task exchange(std::vector<std::int32_t> after) {
  return {.name = "x",
          .body = program::Communication{.kind = program::CollectiveKind::kAllToAll,
                                         .group = program::AxisGroup{.axes = {0}},
                                         .purpose = program::Purpose::kExpert},
          .stream = stream(kTensorStream),
          .after = std::move(after)};
}

// Attention; dispatch; an expert that waits and one that does not; combine; the sum, which waits
// for the combine and for the other expert's kernel.
TEST(Exchanges, CutABlockWhereItWaits) {
  const Block block{.name = "layer",
                    .tasks = {kernel(), exchange({0}), kernel(), kernel({1}), kernel(),
                              exchange({4}), kernel({2, 5}), kernel()}};
  const std::vector<BlockPart> parts = cut_at_exchanges(block);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].block.tasks, (std::vector<Task>{kernel(), exchange({0}), kernel()}));
  EXPECT_EQ(parts[1].block.tasks, (std::vector<Task>{kernel(), kernel(), exchange({1})}));
  EXPECT_EQ(parts[2].block.tasks, (std::vector<Task>{kernel(), kernel()}));
  EXPECT_TRUE(parts[0].after.empty());
  EXPECT_THAT(parts[1].after, ElementsAre(EarlierTask{0, 1}));
  EXPECT_THAT(parts[2].after, ElementsAre(EarlierTask{0, 2}, EarlierTask{1, 2}));
  EXPECT_EQ(parts[1].block.name, "layer.1");

  // A gather over the ranks of an expert stands between the exchange and its reader.
  Task gather = exchange({1});
  std::get<program::Communication>(gather.body).purpose = program::Purpose::kTensor;
  const Block split{.name = "split", .tasks = {kernel(), exchange({0}), gather, kernel({2})}};
  ASSERT_EQ(cut_at_exchanges(split).size(), 2u);
  EXPECT_THAT(cut_at_exchanges(split)[1].after, ElementsAre(EarlierTask{0, 2}));

  const Block alone{.name = "dense", .tasks = {kernel(), kernel()}};
  ASSERT_EQ(cut_at_exchanges(alone).size(), 1u);
  EXPECT_EQ(cut_at_exchanges(alone)[0].block, alone);
}

Model model() {
  return written_model(
      "name: tiny mixture, layers: 2, hidden: 8, heads: 4, vocabulary: 12, sequence: 16, "
      "activation: swiglu, bias: false, tied_embeddings: false, dropout: false, experts: 8, "
      "experts_per_token: 2, expert_ffn: 12");
}

Strategy strategy(std::int64_t stages, std::int64_t micro_batches) {
  Strategy s = degrees(1, stages, 4, 1, micro_batches);
  s.expert_parallel = 4;
  s.zero_stage = 1;
  s.overlap_experts = true;
  return s;
}

Program lowered(const Strategy& of) {
  EXPECT_THAT(faults_in(of, model(), of.devices()), IsEmpty());
  auto program = value_of(lower(model(), of, {.launch_time = 5_us}));
  EXPECT_EQ(message_of(program::verify(program)), "accepted");
  return program;
}

// "F1" of a part of a forward pass of micro-batch 1, "B0" of a backward pass; others left out.
std::vector<std::string> passes(const Program& program) {
  std::vector<std::string> list;
  for (const program::Call& call : program.roles[0].calls) {
    const std::string& name = program.blocks[call.block.index()].name;
    if (!name.starts_with("expert_layer.")) continue;
    const bool is_forward = name.find("forward") != std::string::npos;
    if (is_forward || name.find("backward") != std::string::npos)
      list.push_back((is_forward ? "F" : "B") + std::to_string(call.micro_batch));
  }
  return list;
}

// Two layers on one stage, three micro-batches: the first forward pass runs alone, one call for
// both layers, and so does the last backward pass, a call for each, as their gradients are then
// reduced; the others take turns, three parts a layer.
TEST(Exchanges, AreWovenWithThePassBeside) {
  EXPECT_THAT(passes(lowered(strategy(1, 3))),
              ElementsAre("F0",                                                        //
                          "F1", "B0", "F1", "B0", "F1", "F1", "B0", "B0", "F1", "B0",  //
                          "F1", "B0", "F2", "B1", "F2", "B1", "F2", "F2", "B1", "B1",  //
                          "F2", "B1", "F2", "B1", "B2", "B2"));
}

// All kernels and operations are there, whoever runs beside whom.
TEST(Exchanges, ChangeTheOrderAlone) {
  const auto tasks = [](const Program& program) {
    std::map<std::string, int> counts;
    for (const program::Role& role : program.roles)
      for (const program::Call& call : role.calls)
        for (const Task& task : program.blocks[call.block.index()].tasks)
          if (!std::holds_alternative<program::Free>(task.body) &&
              !std::holds_alternative<program::Allocate>(task.body))
            counts[role.name + task.name] += call.repeat;
    return counts;
  };
  for (const std::int64_t stages : {1, 2}) {
    Strategy beside = strategy(stages, 6);
    if (stages == 2) {
      beside.schedule = "dualpipe-v";
      beside.virtual_stages = 2;
      beside.layers_per_stage = {1, 0, 1, 0};
    }
    Strategy alone = beside;
    alone.overlap_experts = false;
    EXPECT_EQ(tasks(lowered(beside)), tasks(lowered(alone)));
  }
}

}  // namespace foreshard::lower::exchanges_test
