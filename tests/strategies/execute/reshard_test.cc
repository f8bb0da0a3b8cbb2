#include "tests/oracle/reshard.h"

#include "tests/test.h"

#include "strategies/graph/layout.h"

namespace foreshard::execute::reshard_test {

using reshard::Primitive;
using Arrays = std::vector<std::vector<double>>;

Layout layout(const std::string& text, const Shape& shape) {
  return value_of(parse_layout(text, shape));
}

const reshard::TensorSpec kTensor{DType::kFp32, {2, 4}};
const std::vector<double> kValues{1, 2, 3, 4, 5, 6, 7, 8};

Executed<double> run(Primitive primitive, const std::string& from, const std::string& to,
                     const Arrays& arrays, const std::vector<Axis>& axes = {0}) {
  return execute({.primitive = primitive,
                  .from = layout(from, kTensor.shape),
                  .to = layout(to, kTensor.shape),
                  .axes = axes},
                 kTensor, Shards<double>{arrays});
}

TEST(Shards, AreSlicesAndGatherAgain) {
  const Layout columns = layout("p=2 [-, p{3,1}]", kTensor.shape);
  const auto shards = scatter(columns, kTensor.shape, kValues);
  EXPECT_THAT(shards.of_position, ElementsAre(ElementsAre(1, 2, 3, 5, 6, 7), ElementsAre(4, 8)));
  EXPECT_EQ(gather(columns, kTensor.shape, shards), kValues);

  const Layout sums = layout("p=2 [p, -]  ", kTensor.shape);
  EXPECT_EQ(gather(sums, kTensor.shape, scatter(sums, kTensor.shape, kValues)), kValues);
  const Layout least = layout("p=2 [-, -] min(p)", kTensor.shape);
  EXPECT_EQ(scatter(least, kTensor.shape, kValues).of_position[1][0],
            std::numeric_limits<double>::infinity());
  EXPECT_EQ(gather(least, kTensor.shape, scatter(least, kTensor.shape, kValues)), kValues);
}

TEST(Shards, SayWhereReplicasDiffer) {
  const Layout replicas = layout("p=2 @4,5 [-, -]", kTensor.shape);
  auto shards = scatter(replicas, kTensor.shape, kValues);
  EXPECT_EQ(disagreement(replicas, kTensor.shape, shards), std::nullopt);
  shards.of_position[1][6] = 0;
  EXPECT_EQ(disagreement(replicas, kTensor.shape, shards),
            "ranks 4 and 5 hold the same slice but differ at its element 6");
}

// Two ranks, 8 elements of 4 bytes: T = 32 bytes.
TEST(Execute, CarriesOutEachPrimitive) {
  const Arrays rows{{1, 2, 3, 4}, {5, 6, 7, 8}};
  const Arrays columns{{1, 2, 5, 6}, {3, 4, 7, 8}};
  const Arrays whole{kValues, kValues};
  const Arrays summands{{1, 0, 3, 0, 5, 0, 7, 0}, {0, 2, 0, 4, 0, 6, 0, 8}};
  const Arrays padded{{1, 2, 3, 4, 0, 0, 0, 0}, {0, 0, 0, 0, 5, 6, 7, 8}};
  const Arrays root{kValues};
  struct Case {
    Primitive primitive;
    const char* from;
    const char* to;
    const Arrays& before;
    const Arrays& after;
    double crossed;
    std::vector<Axis> axes = {0};
  };
  const std::vector<Case> cases{
      {Primitive::kAllReduce, "p=2 [-, -] sum(p)", "p=2 [-, -]", summands, whole, 64},
      {Primitive::kReduceScatter, "p=2 [-, -] sum(p)", "p=2 [p, -]", summands, rows, 32},
      {Primitive::kAllGather, "p=2 [p, -]", "p=2 [-, -]", rows, whole, 32},
      {Primitive::kAllToAll, "p=2 [p, -]", "p=2 [-, p]", rows, columns, 16},
      {Primitive::kBroadcast, "@0 [-, -]", "p=2 [-, -]", root, whole, 32},
      {Primitive::kTransfer, "p=2 [p, -]", "p=2 [-, p]", rows, columns, 16, {}},
      {Primitive::kTransfer, "p=2 [p, -]", "p=2 @2,3 [-, p]", rows, columns, 32, {}},
      {Primitive::kSlice, "p=2 [-, -]", "p=2 [-, p]", whole, columns, 0},
      {Primitive::kPad, "p=2 [p, -]", "p=2 [-, -] sum(p)", rows, padded, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(name_of(c.primitive));
    const auto result = run(c.primitive, c.from, c.to, c.before, c.axes);
    EXPECT_EQ(result.shards.of_position, c.after);
    EXPECT_EQ(result.crossed.in_base(), c.crossed);
  }
}

// Two pads by hand: of replicas only the first rank keeps its values.
TEST(Execute, PadsReplicasWithTheIdentity) {
  const double lowest = -std::numeric_limits<double>::infinity();
  const auto result = run(Primitive::kPad, "p=2 [-, -]", "p=2 [-, -] max(p)", {kValues, kValues});
  EXPECT_EQ(result.shards.of_position, (Arrays{kValues, std::vector<double>(8, lowest)}));
}

// Floats round, but the same way on every rank and in every run: 1e8 + 1 - 1e8, in this order.
TEST(Execute, ReducesInTheOrderOfTheGroup) {
  const reshard::TensorSpec one{DType::kFp32, {1}};
  const reshard::Step step{.primitive = Primitive::kAllReduce,
                           .from = layout("p=3 [-] sum(p)", one.shape),
                           .to = layout("p=3 [-]", one.shape),
                           .axes = {0}};
  const auto result = execute(step, one, Shards<float>{{{1e8F}, {1.F}, {-1e8F}}});
  const float expected = (1e8F + 1.F) + -1e8F;
  EXPECT_THAT(result.shards.of_position,
              ElementsAre(ElementsAre(expected), ElementsAre(expected), ElementsAre(expected)));
}

}  // namespace foreshard::execute::reshard_test
