#include "tests/test.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard {
namespace {

std::vector<MeshAxis> mesh(std::int64_t tensor, std::int64_t context, std::int64_t data,
                           std::int64_t experts, std::int64_t parts, std::int64_t heads = 1) {
  Strategy s;
  s.tensor_parallel = tensor;
  s.context_parallel = context;
  s.context_heads = heads;
  s.data_parallel = data;
  s.expert_parallel = experts;
  s.expert_tensor_parallel = parts;
  return mesh_of(s);
}

// Ranks are numbered tensor first, then context, then data; 2 x 2 = 4 neighbours hold all experts.
TEST(ExpertGroups, CutAxesWhereTheyEnd) {
  const MeshAxis pipeline{"pipeline", 1};
  const MeshAxis data{"data", 2};
  EXPECT_THAT(mesh(4, 2, 2, 1, 0),
              ElementsAre(MeshAxis{"tensor", 4}, MeshAxis{"context", 2}, data, pipeline));
  EXPECT_THAT(mesh(4, 2, 2, 2, 2), ElementsAre(MeshAxis{"tensor", 2}, MeshAxis{"tensor_experts", 2},
                                               MeshAxis{"context", 2}, data, pipeline));
  EXPECT_THAT(mesh(8, 1, 2, 2, 2), ElementsAre(MeshAxis{"tensor", 2}, MeshAxis{"tensor_experts", 2},
                                               MeshAxis{"tensor_copies", 2}, data, pipeline));
  // As Megatron-LM's own recipe of long contexts: 8 of 4 x 8 ranks, four times.
  EXPECT_THAT(mesh(4, 8, 1, 8, 1),
              ElementsAre(MeshAxis{"tensor_experts", 4}, MeshAxis{"context_experts", 2},
                          MeshAxis{"context", 4}, MeshAxis{"data", 1}, pipeline));
  EXPECT_THAT(mesh(2, 4, 4, 16, 1),
              ElementsAre(MeshAxis{"tensor_experts", 2}, MeshAxis{"context_experts", 4},
                          MeshAxis{"expert", 2}, data, pipeline));
  EXPECT_THAT(mesh(1, 4, 2, 2, 2, 2),
              ElementsAre(MeshAxis{"tensor", 1}, MeshAxis{"context_heads_parts", 2},
                          MeshAxis{"context_experts", 2}, data, pipeline));
  EXPECT_THAT(mesh(1, 1, 8, 2, 2), ElementsAre(MeshAxis{"tensor", 1}, MeshAxis{"expert_parts", 2},
                                               MeshAxis{"expert", 2}, data, pipeline));
}

// The major axis first: of experts the slowest, of sequences the ranks that differ in it most.
TEST(ExpertGroups, HaveTheirAxesInTheOrderOfTheirRanks) {
  const auto ranks = mesh(8, 4, 2, 4, 2);  // tensor 2 x 4, context 4, data 2
  EXPECT_THAT(tensor_axes(ranks), ElementsAre(1, 0));
  EXPECT_THAT(expert_tensor_axes(ranks), ElementsAre(0));
  EXPECT_THAT(expert_axes(ranks), ElementsAre(1));
  EXPECT_THAT(expert_axes(mesh(2, 4, 4, 16, 1)), ElementsAre(2, 1, 0));
  const auto copies = mesh(4, 1, 2, 2, 1);  // tensor 2 x 2, data 2
  EXPECT_THAT(copy_axes(copies), ElementsAre(2));
  EXPECT_THAT(copy_axes(copies, Parameters::kExperts), ElementsAre(1, 2));
  const auto parts = mesh(1, 4, 2, 1, 2);  // tensor 1, context 2 x 2, data 2
  EXPECT_THAT(copy_axes(parts), ElementsAre(1, 2, 3));
  EXPECT_THAT(copy_axes(parts, Parameters::kExperts), ElementsAre(2, 3));
}

}  // namespace
}  // namespace foreshard
