
#include "evidence/words.h"
#include "tests/test.h"

namespace foreshard::accuracy {
namespace {

// What CUDA graphs launch, in the words of frameworks and benchmarks; of what the model has.
TEST(Setting, CudaGraphs) {
  const auto graphs = [](const std::string& notes, const std::string& gpu = "A100") {
    TrainingRow row;
    row.notes = notes;
    row.gpu = gpu;
    std::vector<std::string> assumed;
    return graphs_of(row, Model{.name = "dense", .layers = 2, .source = ""}, false, assumed);
  };
  EXPECT_THAT(graphs(""), IsEmpty());
  EXPECT_THAT(graphs("CUDA graphs off"), IsEmpty());
  EXPECT_THAT(graphs("CUDA graphs mcore; rank order"),
              ElementsAre(Capture::kAttention, Capture::kMlp));
  EXPECT_THAT(graphs("CUDA graphs mcore+full"), ElementsAre(Capture::kStep));
  EXPECT_THAT(graphs("cuda_graph_impl=transformer_engine; cuda_graph_scope=mlp"),
              ElementsAre(Capture::kMlp));
  EXPECT_THAT(graphs("cuda_graph_scope=['attn', 'moe_router', 'moe_preprocess']; attn"),
              ElementsAre(Capture::kAttention));  // no experts
}

// Recipes of Megatron-Bridge for racks capture parts of layers with experts, where a row says
// nothing.
TEST(Setting, CudaGraphsOfRacks) {
  TrainingRow row;
  row.framework = "Megatron-Bridge";
  row.gpu = "GB200";
  const Model model{.name = "mixture", .layers = 2, .experts = 8, .source = ""};
  std::vector<std::string> assumed;
  EXPECT_THAT(graphs_of(row, model, false, assumed),
              ElementsAre(Capture::kAttention, Capture::kRouter));
  EXPECT_THAT(assumed, ElementsAre("cuda_graphs"));
  EXPECT_THAT(graphs_of(row, model, true, assumed), ElementsAre(Capture::kStep));
  row.gpu = "H100";
  EXPECT_THAT(graphs_of(row, model, false, assumed), IsEmpty());
}

}  // namespace
}  // namespace foreshard::accuracy
