// What the host does to launch the tasks of a layer.
#include <fmt/format.h>

#include "tests/strategies/lower/counts.h"
#include "tests/strategies/lower/models.h"
#include "tests/test.h"

#include "strategies/program/lower/lower.h"

namespace foreshard::lower::launches_test {

using program::Program;

// One device, one micro-batch of two sequences.
Strategy strategy() {
  return degrees(1, 1, 1, 2);
}

Program lowered(const Strategy& of) {
  return value_of(lower(tiny_gpt(), of, {.launch_time = 5_us}));
}

// "name launches" of what a block launches with another weight than 1.
std::vector<std::string> weighed(const Program& program, const std::string& block) {
  std::vector<std::string> found;
  for (const program::Block& one : program.blocks)
    for (const program::Task& task : one.tasks)
      if (one.name == block && task.launches != 1)
        found.push_back(fmt::format("{} {}", task.name, task.launches));
  return found;
}

double launches_in(const Program& program, const std::string& block) {
  double sum = 0;
  for (const program::Block& one : program.blocks)
    for (const program::Task& task : one.tasks)
      if (one.name == block && task.stream.valid()) sum += task.launches;
  return sum;
}

// A graph launches attention with its norm and its sum; the host launches the first of these.
TEST(Launches, CudaGraphsLaunchWhatTheyCapture) {
  Strategy of = strategy();
  EXPECT_THAT(weighed(lowered(of), "layer.forward"), IsEmpty());
  of.cuda_graphs = {Capture::kAttention};
  EXPECT_THAT(weighed(lowered(of), "layer.forward"),
              ElementsAre("qkv 0", "attention 0", "attention_out 0", "attention_residual 0"));
  const auto backward = weighed(lowered(of), "layer.backward");
  EXPECT_THAT(backward, Contains("d.attention 0"));
  EXPECT_THAT(backward, Not(Contains("d.mlp_up.data 0")));
  of.cuda_graphs = {Capture::kAttention, Capture::kMlp};
  of.framework.value.product_launches = 3;  // of graphs, nothing weighs more
  EXPECT_EQ(launches_in(lowered(of), "layer.forward"), 2);
  EXPECT_EQ(launches_in(lowered(of), "layer.backward"), 2);
  const auto both = weighed(lowered(of), "layer.forward");
  EXPECT_THAT(both, Contains("mlp_residual 0"));
  EXPECT_THAT(both, Not(Contains("mlp_norm 0")));  // the second graph begins there
}

// The whole step: the host launches no kernel of a layer, and does nothing else for them.
TEST(Launches, OneCudaGraphLaunchesTheStep) {
  Strategy of = strategy();
  of.framework.value.host_time = 30_us;
  of.cuda_graphs = {Capture::kStep};
  const Program program = lowered(of);
  EXPECT_EQ(program.launch_time, 5_us);
  for (const program::Block& block : program.blocks) {
    if (!block.name.starts_with("layer.")) continue;
    for (const program::Task& task : block.tasks) {
      if (std::holds_alternative<Kernel>(task.body)) {
        EXPECT_EQ(task.launches, 0) << task.name;
      }
    }
  }
}

// Modules prepare products, and those of quantized operands at greater length; a graph that has
// them launches them all the same.
TEST(Launches, ProductsTakeTheirHostLonger) {
  Strategy of = strategy();
  of.framework.value.product_launches = 3;
  of.framework.value.quantized_product_launches = 6;
  EXPECT_THAT(weighed(lowered(of), "layer.forward"),
              ElementsAre("qkv 3", "attention_out 3", "mlp_up 3", "mlp_down 3"));
  of.quantization = Quantization::kFp8Current;
  EXPECT_THAT(weighed(lowered(of), "layer.forward"),
              ElementsAre("qkv 6", "attention_out 6", "mlp_up 6", "mlp_down 6"));
  of.cuda_graphs = {Capture::kAttention};
  EXPECT_THAT(weighed(lowered(of), "layer.forward"), Contains("qkv 0"));
}

// Of an operator that goes into several kernels each weighs less; products of activations are no
// modules.
TEST(Launches, KernelsOfOneOperatorWeighLess) {
  Strategy of = strategy();
  of.framework.value.attention = AttentionImplementation::kUnfused;
  of.framework.value.product_launches = 3;
  EXPECT_THAT(weighed(lowered(of), "layer.forward"),
              ElementsAre("qkv 3", "attention_out 3", "mlp_up 3", "mlp_down 3"));
  of.framework.value.eager_launches = 0.5;
  of.framework.value.pointwise.cross_entropy = LossKernels::kEager;
  const auto head = weighed(lowered(of), "head.forward");
  EXPECT_THAT(head, Contains("loss 0.5"));
  EXPECT_THAT(head, Contains("loss.1 0.5"));
  EXPECT_THAT(head, Contains("logits 3"));
}

}  // namespace foreshard::lower::launches_test
