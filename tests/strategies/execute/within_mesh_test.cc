// What a graph's conversion is lowered to can be run: collectives along axes of the mesh, one after
// another, lead from any attribute to any other.
#include "strategies/reshard/within_mesh.h"

#include "tests/strategies/execute/conversions.h"
#include "tests/test.h"

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

// The steps chain, and what they leave is the tensor as `to` has it.
void expect_they_lead(const std::vector<MeshStep>& steps, const reshard::TensorSpec& tensor,
                      const Layout& from, const Layout& to, RandomLayouts& random) {
  const auto source = random_shards(from, tensor.shape, random);
  auto shards = source;
  Attribute at = from.attribute;
  for (const MeshStep& step : steps) {
    ASSERT_EQ(step.from, at);
    shards = execute::execute(reshard::Step{.primitive = step.primitive,
                                            .from = {from.mesh, step.from},
                                            .to = {from.mesh, step.to},
                                            .axes = step.axes},
                              tensor, shards)
                 .shards;
    at = step.to;
  }
  ASSERT_EQ(execute::gather(to, tensor.shape, shards), execute::gather(from, tensor.shape, source));
  ASSERT_EQ(execute::disagreement(to, tensor.shape, shards), std::nullopt);
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
    expect_they_lead(reshard::steps_within(tensor, from.attribute, to.attribute, mesh.axes), tensor,
                     from, to, random);
    if (testing::Test::HasFailure()) return;
  }
}

// An all-reduce that takes ten times as long as its bytes say loses to its two halves; a price that
// is not known changes nothing.
TEST(FastestWithinAMesh, FollowsThePrice) {
  const reshard::TensorSpec tensor{DType::kFp32, {12, 6}};
  const Attribute from{.dims = {{}, {}}, .partial = sums_over({0})};
  const ProcessMesh mesh = mesh_from({{"x", 2}});
  const auto by = [&](double all_reduce) {
    return primitives(
        reshard::fastest_within(tensor, from, replicated(2), mesh, [&](const reshard::Step& step) {
          const double factor = step.primitive == Primitive::kAllReduce ? all_reduce : 1;
          return Result<Seconds>(
              Seconds::from_base(factor * reshard::volume_of(step, tensor).exact_total.in_base()));
        }));
  };
  EXPECT_EQ(by(1), std::vector{Primitive::kAllReduce});
  EXPECT_EQ(by(10), (std::vector{Primitive::kReduceScatter, Primitive::kAllGather}));
  const auto unknown = reshard::fastest_within(tensor, from, replicated(2), mesh,
                                               [](const reshard::Step&) -> Result<Seconds> {
                                                 return Error{Error::Code::kInfeasible, "no route"};
                                               });
  EXPECT_EQ(primitives(unknown), std::vector{Primitive::kAllReduce});
}

// Whatever primitives cost, the series is right and no dearer than the one by bytes.
TEST(FastestWithinAMesh, LeadsFromAnyAttributeToAnyOther) {
  constexpr unsigned kSeed = 20261123;
  RandomLayouts random(kSeed);
  std::mt19937 costs(kSeed);
  int others = 0;
  for (int i = 0; i < 1000; ++i) {
    const reshard::TensorSpec tensor{.dtype = DType::kFp32, .shape = random.shape()};
    const ProcessMesh mesh = mesh_from(random.axes());
    const Layout from = random.on(mesh, tensor.shape);
    const Layout to = random.on(mesh, tensor.shape);
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", case " + std::to_string(i) + ": " +
                 describe(from) + " -> " + describe(to));
    std::array<double, 8> latency{};
    std::array<double, 8> per_byte{};
    for (std::size_t p = 0; p < latency.size(); ++p) {
      latency[p] = std::uniform_real_distribution(0.0, 100.0)(costs);
      per_byte[p] = std::uniform_real_distribution(0.1, 10.0)(costs);
    }
    const auto price = [&](const reshard::Step& step) {
      const auto p = static_cast<std::size_t>(step.primitive);
      return Result<Seconds>(Seconds::from_base(
          latency[p] + per_byte[p] * reshard::volume_of(step, tensor).exact_total.in_base()));
    };
    const auto total = [&](const std::vector<MeshStep>& steps) {
      double sum = 0;
      for (const MeshStep& step : steps)
        sum += price({.primitive = step.primitive,
                      .from = {mesh, step.from},
                      .to = {mesh, step.to},
                      .axes = step.axes})
                   ->in_base();
      return sum;
    };
    const auto usual = reshard::steps_within(tensor, from.attribute, to.attribute, mesh.axes);
    const auto fastest = reshard::fastest_within(tensor, from.attribute, to.attribute, mesh, price);
    ASSERT_LE(total(fastest), total(usual));
    if (total(fastest) < total(usual)) ++others;
    expect_they_lead(fastest, tensor, from, to, random);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(others, 100);
}

}  // namespace
}  // namespace foreshard
