// Whatever of a study changes what is predicted differs when two studies are put side by side.
#include "sim/study/inputs.h"

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

namespace foreshard::study::inputs_test {

constexpr const char* kGraph = R"(name: two
tensors:
  - {name: x, role: input, dtype: bf16, shape: [16, 64]}
  - {name: w, role: parameter, dtype: bf16, shape: [64, %]}
operators:
  - {op: matmul, name: y, inputs: [x, w]}
  - {op: unary, name: z, inputs: [y], settings: {operation: gelu}}
outputs: [z]
)";

LoadedStudy graph_study(const std::string& in_graph, const std::string& more = "",
                        const std::string& columns = "64") {
  const TemporaryFolder folder;
  std::string graph = kGraph;
  graph.replace(graph.find('%'), 1, columns);
  folder.write("graph.yaml", graph);
  return value_of(load_study({.study = folder.write("study.yaml",
                                                    "cluster: {name: box, node: dgx-h100}\n"
                                                    "graph: {file: graph.yaml" +
                                                        in_graph +
                                                        "}\n"
                                                        "strategy: {data_parallel: 2, "
                                                        "global_batch: 16, micro_batch: 8}\n" +
                                                        more)},
                             shipped_options()));
}

std::vector<std::string> keys(const LoadedStudy& a, const LoadedStudy& b) {
  std::vector<std::string> found;
  for (const InputDifference& one : differences(a, b)) found.push_back(one.key);
  return found;
}

TEST(Inputs, OfEqualStudiesAreTheSame) {
  EXPECT_THAT(keys(graph_study(""), graph_study("")), ElementsAre());
}

TEST(Inputs, OfAGraphAreAllThatItsStudySays) {
  const LoadedStudy plain = graph_study("");
  EXPECT_THAT(keys(plain, graph_study(", axes: {expert: 2}")), ElementsAre("graph.axes.expert"));
  EXPECT_THAT(keys(plain, graph_study(", annotations: [{tensor: w, dims: [-, tensor]}]")),
              Contains("graph.annotations.0.dims"));
  EXPECT_THAT(keys(plain, graph_study(", cuts: [z]")), Contains("graph.cuts"));
  EXPECT_THAT(keys(plain, graph_study(", seed: 7")), ElementsAre("graph.seed"));
  EXPECT_THAT(keys(plain, graph_study(", tokens_per_sample: 3")),
              ElementsAre("graph.tokens_per_sample"));
  EXPECT_THAT(keys(plain, graph_study("", "", "128")), ElementsAre("graph.file"));
}

TEST(Inputs, AreDevicesDisturbancesAndErrorsToo) {
  const LoadedStudy plain = graph_study("");
  const auto used = differences(plain, graph_study("", "use: [node0/gpu3, node0/gpu1]\n"));
  ASSERT_EQ(used.size(), 1U);
  EXPECT_EQ(used[0].key, "use");
  EXPECT_EQ(used[0].b, "[3, 1]");
  const auto slow = keys(
      plain, graph_study("", "disturbances: {stragglers: [{devices: node0/gpu0, speed: 0.5}]}\n"));
  EXPECT_THAT(slow, Contains(HasSubstr("disturbances.stragglers")));
  LoadedStudy surer = graph_study("");
  surer.errors.memory.high += 1;
  EXPECT_THAT(keys(plain, surer), ElementsAre("parameter_errors.memory.high"));
}

}  // namespace foreshard::study::inputs_test
