// What a graph's conversion is lowered to can be run: collectives along axes of the mesh, one after
// another, lead from any attribute to any other.
#include "strategies/reshard/within_mesh.h"

#include <gtest/gtest.h>

#include "tests/strategies/execute/conversions.h"

namespace foreshard {
namespace {

using reshard::MeshStep;
using reshard::Primitive;

std::vector<Primitive> primitives(const std::vector<MeshStep>& steps) {
  std::vector<Primitive> list;
  list.reserve(steps.size());
  for (const MeshStep& step : steps) list.push_back(step.primitive);
  return list;
}

const std::vector<MeshAxis> kMesh{{"a", 2}, {"b", 3}};

// 12 elements of 4 bytes by [a, b]: position a * 3 + b has 2 of them. By [b] alone it is to have 4,
// which lie apart while a still cuts: all 48 bytes are gathered on 6 ranks, 5 of which lack each
// byte, and b cuts again. One axis after the other would move as much: 2 x 24 in each of 2 groups
// and 1 x 48 in each of 3.
TEST(StepsWithinAMesh, GoThroughSlicesOnly) {
  const Attribute from{.dims = {{0, 1}}};
  const Attribute to{.dims = {{1}}};
  const auto steps = reshard::steps_within({DType::kFp32, {12}}, from, to, kMesh);
  ASSERT_EQ(steps.back().to, to);
  ASSERT_EQ(steps.back().primitive, Primitive::kSlice);
  double crossing = 0;
  for (const MeshStep& step : steps) crossing += step.volume.exact_total / 1_B;
  EXPECT_DOUBLE_EQ(crossing, 5 * 48);
  EXPECT_EQ(primitives(steps), (std::vector{Primitive::kAllGather, Primitive::kSlice}));
}

TEST(StepsWithinAMesh, AreTheDirectOnesWhereTheseCanBeTaken) {
  const Attribute from{.dims = {{0}, {}}, .partial = sums_over({1})};
  const Attribute to{.dims = {{}, {1}}};
  EXPECT_EQ(primitives(reshard::steps_within({DType::kFp32, {12, 6}}, from, to, kMesh)),
            (std::vector{Primitive::kReduceScatter, Primitive::kAllGather}));
}

TEST(StepsWithinAMesh, LeadFromAnyAttributeToAnyOther) {
  constexpr unsigned kSeed = 20261121;
  RandomLayouts random(kSeed);
  for (int i = 0; i < 1500; ++i) {
    const reshard::TensorSpec tensor{.dtype = DType::kFp32, .shape = random.shape()};
    const ProcessMesh mesh = mesh_from(random.axes());
    const Layout from = random.on(mesh, tensor.shape);
    const Layout to = random.on(mesh, tensor.shape);
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", case " + std::to_string(i) + ": " +
                 describe(from) + " -> " + describe(to));
    const auto source = random_shards(from, tensor.shape, random);
    auto shards = source;
    Attribute at = from.attribute;
    for (const MeshStep& step :
         reshard::steps_within(tensor, from.attribute, to.attribute, mesh.axes)) {
      ASSERT_EQ(step.from, at);
      shards = execute::execute(reshard::Step{.primitive = step.primitive,
                                              .from = {mesh, step.from},
                                              .to = {mesh, step.to},
                                              .axes = step.axes},
                                tensor, shards)
                   .shards;
      at = step.to;
    }
    ASSERT_EQ(execute::gather(to, tensor.shape, shards),
              execute::gather(from, tensor.shape, source));
    ASSERT_EQ(execute::disagreement(to, tensor.shape, shards), std::nullopt);
  }
}

}  // namespace
}  // namespace foreshard
