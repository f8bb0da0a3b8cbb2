
#include "tests/test.h"

#include "strategies/reshard/within_mesh.h"

namespace foreshard::reshard::direct_test {

const std::vector<MeshAxis> kMesh{{"tensor", 4}, {"data", 2}};
constexpr Axis kTensor = 0;
constexpr Axis kData = 1;

Attribute split(std::vector<std::vector<Axis>> dims, const std::vector<Axis>& partial = {}) {
  return {.dims = std::move(dims), .partial = sums_over(partial)};
}

// A tensor of 8 x 16 elements of 2 bytes: T = 256 bytes.
constexpr double kTensorBytes = 256;
std::vector<AxesStep> plan_of(const Attribute& from, const Attribute& to) {
  return direct_steps({8, 16}, 2_B, from, to, kMesh);
}

struct Row {
  const char* name;
  Attribute from;
  Attribute to;
  Primitive primitive;
  double patent;  ///< In units of T.
  double exact;
};

// The table of reshard.h with p = 4.
TEST(Reshard, IsWhatTheTableSays) {
  const Attribute whole = split({{}, {}});
  const Attribute rows = split({{kTensor}, {}});
  const Attribute columns = split({{}, {kTensor}});
  const Attribute summand = split({{}, {}}, {kTensor});
  const std::vector<Row> rows_of_table{
      {"all_reduce", summand, whole, Primitive::kAllReduce, 8, 6},
      {"reduce_scatter", summand, rows, Primitive::kReduceScatter, 4, 3},
      {"all_gather", rows, whole, Primitive::kAllGather, 4, 3},
      {"all_to_all", rows, columns, Primitive::kAllToAll, 1, 0.75},
      {"slice", whole, columns, Primitive::kSlice, 0, 0},
      {"pad", whole, summand, Primitive::kPad, 0, 0},
      {"pad", rows, summand, Primitive::kPad, 0, 0},
  };
  for (const Row& row : rows_of_table) {
    SCOPED_TRACE(row.name);
    const auto steps = plan_of(row.from, row.to);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(name_of(steps[0].primitive), row.name);
    EXPECT_EQ(steps[0].primitive, row.primitive);
    EXPECT_EQ(steps[0].axes, std::vector{kTensor});
    EXPECT_EQ(steps[0].volume.logical.in_base(), kTensorBytes);
    EXPECT_EQ(steps[0].volume.patent_total.in_base(), row.patent * kTensorBytes);
    EXPECT_EQ(steps[0].volume.exact_total.in_base(), row.exact * kTensorBytes);
    EXPECT_EQ(collective_of(row.primitive).has_value(), row.patent > 0);
    EXPECT_TRUE(plan_of(row.from, row.from).empty());
  }
}

// data splits the rows all the time, so a tensor-parallel group holds half of the tensor.
TEST(Reshard, CountsWhatTheGroupHolds) {
  const auto steps = plan_of(split({{kData}, {kTensor}}), split({{kData}, {}}));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].volume.logical.in_base(), kTensorBytes / 2);
  EXPECT_EQ(steps[0].volume.exact_total.in_base(), 3 * kTensorBytes / 2);
}

// Summands over tensor, rows in halves over data; wanted: columns over tensor, whole rows. First
// the reduce-scatter of the half that each group has (T/2), then the gather of what is left of the
// columns (T/4 per data group). The other order would move T and T.
TEST(Reshard, ShrinksBeforeItGrows) {
  const auto steps = plan_of(split({{kData}, {}}, {kTensor}), split({{}, {kTensor}}));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].primitive, Primitive::kReduceScatter);
  EXPECT_EQ(steps[0].axes, std::vector{kTensor});
  EXPECT_EQ(steps[0].volume.logical.in_base(), kTensorBytes / 2);
  EXPECT_EQ(steps[1].primitive, Primitive::kAllGather);
  EXPECT_EQ(steps[1].axes, std::vector{kData});
  EXPECT_EQ(steps[1].volume.logical.in_base(), kTensorBytes / 4);
}

// A slice makes the all-gather after it smaller.
TEST(Reshard, SlicesFirst) {
  const auto steps = plan_of(split({{kTensor}, {}}), split({{}, {kData}}));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].primitive, Primitive::kSlice);
  EXPECT_EQ(steps[0].axes, std::vector{kData});
  EXPECT_EQ(steps[1].primitive, Primitive::kAllGather);
  EXPECT_EQ(steps[1].volume.logical.in_base(), kTensorBytes / 2);
}

TEST(Reshard, OverOneRankIsNothing) {
  const std::vector<MeshAxis> single{{"tensor", 1}};
  EXPECT_TRUE(direct_steps({8}, 2_B, split({{}}, {0}), split({{}}), single).empty());
}

// Summands over both axes: all 8 ranks reduce at once, 2 (8 - 1) T and (8 - 1) T over links. Axis
// by axis, whole buffers would take 2 x 2 (4 - 1) + 4 x 2 (2 - 1) = 20 T.
TEST(Reshard, ReducesOverAllAxesAtOnce) {
  const Attribute summand = split({{}, {}}, {kTensor, kData});
  const auto all = plan_of(summand, split({{}, {}}));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].primitive, Primitive::kAllReduce);
  EXPECT_EQ(all[0].axes, (std::vector{kTensor, kData}));
  EXPECT_EQ(all[0].volume.exact_total.in_base(), 14 * kTensorBytes);
  for (const auto& dims : {std::vector<std::vector<Axis>>{{kData, kTensor}, {}},
                           std::vector<std::vector<Axis>>{{kTensor}, {kData}}}) {
    const auto cut = plan_of(summand, split(dims));
    ASSERT_EQ(cut.size(), 1u);
    EXPECT_EQ(cut[0].primitive, Primitive::kReduceScatter);
    EXPECT_EQ(cut[0].volume.exact_total.in_base(), 7 * kTensorBytes);
    const auto back = plan_of(split(dims), split({{}, {}}));
    ASSERT_EQ(back.size(), 1u);
    EXPECT_EQ(back[0].primitive, Primitive::kAllGather);
    EXPECT_EQ(back[0].volume.exact_total.in_base(), 7 * kTensorBytes);
  }
}

// What is cut over one axis and whole along the other takes a step each: hybrid sharding.
TEST(Reshard, ReducesWhatIsLeftAmongReplicas) {
  const auto steps = plan_of(split({{}, {}}, {kTensor, kData}), split({{kTensor}, {}}));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].primitive, Primitive::kReduceScatter);
  EXPECT_EQ(steps[0].axes, std::vector{kTensor});
  EXPECT_EQ(steps[0].volume.logical.in_base(), kTensorBytes);
  EXPECT_EQ(steps[1].primitive, Primitive::kAllReduce);
  EXPECT_EQ(steps[1].axes, std::vector{kData});
  EXPECT_EQ(steps[1].volume.logical.in_base(), kTensorBytes / 4);
}

// Two dimensions to a third, and back: one exchange, of which each of 8 ranks keeps an eighth. A
// transposition is none: the ranks on its diagonal would have nothing to send.
TEST(Reshard, ExchangesToOneDimensionAtOnce) {
  const Attribute apart = split({{kData}, {kTensor}, {}});
  const Attribute third = split({{}, {}, {kData, kTensor}});
  for (const auto& [from, to] : {std::pair{apart, third}, std::pair{third, apart}}) {
    const auto steps = direct_steps({8, 16, 8}, 2_B, from, to, kMesh);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].primitive, Primitive::kAllToAll);
    EXPECT_EQ(steps[0].axes, (std::vector{kTensor, kData}));
    EXPECT_EQ(steps[0].volume.logical.in_base(), 8 * 16 * 8 * 2);
    EXPECT_EQ(steps[0].volume.exact_total.in_base(), 8 * 16 * 8 * 2 * 7 / 8);
  }
  EXPECT_EQ(plan_of(split({{kData}, {kTensor}}), split({{kTensor}, {kData}})).size(), 2u);
}

// What the primitive makes of the axes; the dimensions that they split come from the target.
void apply(const AxesStep& step, const Attribute& target, Attribute& attribute) {
  for (const Axis axis : step.axes) {
    for (auto& dim : attribute.dims) std::erase(dim, axis);
    std::erase(attribute.partial, Partial{axis});
    const AxisState to = state_of(target, axis);
    switch (step.primitive) {
      case Primitive::kAllReduce:
      case Primitive::kAllGather:
        break;
      case Primitive::kReduceScatter:
      case Primitive::kAllToAll:
      case Primitive::kSlice:
        attribute.dims[static_cast<std::size_t>(to.dim)].push_back(axis);
        break;
      case Primitive::kPad:
        attribute.partial.push_back({axis});
        break;
      case Primitive::kBroadcast:
      case Primitive::kTransfer:
        FAIL() << "on one mesh no axis asks for it";
    }
  }
}

// Axes of one dimension as a set: which of two axes is the major one is not the plan's business.
Attribute sorted(Attribute attribute) {
  for (auto& dim : attribute.dims) std::ranges::sort(dim);
  std::ranges::sort(attribute.partial);
  return attribute;
}

TEST(Reshard, LeadsFromAnyAttributeToAnyOther) {
  constexpr unsigned kSeed = 20260101;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  const std::vector<MeshAxis> mesh{{"a", 2}, {"b", 3}, {"c", 4}};
  const auto draw = [&] {
    Attribute attribute = replicated(3);
    for (Axis axis = 0; axis < 3; ++axis) {
      const auto where = random() % 5;
      if (where < 3) attribute.dims[where].push_back(axis);
      if (where == 3) attribute.partial.push_back({axis});
    }
    return attribute;
  };
  for (int i = 0; i < 2000; ++i) {
    const Attribute from = draw();
    const Attribute to = draw();
    SCOPED_TRACE(describe(from, mesh) + " -> " + describe(to, mesh));
    Attribute at = from;
    bool grown = false;
    for (const AxesStep& step : direct_steps({24, 48, 24}, 1_B, from, to, mesh)) {
      // Of the whole tensor, what all other axes that split it now leave to the group.
      double held = 24. * 48 * 24;
      for (Axis other = 0; other < 3; ++other) {
        const bool is_other = std::ranges::find(step.axes, other) == step.axes.end();
        if (is_other && state_of(at, other).kind == AxisState::Kind::kSplit)
          held /= static_cast<double>(mesh[static_cast<std::size_t>(other)].size);
      }
      EXPECT_DOUBLE_EQ(step.volume.logical.in_base(), held);
      EXPECT_LE(step.volume.exact_total, step.volume.patent_total);
      const bool grows =
          step.primitive == Primitive::kAllGather || step.primitive == Primitive::kAllReduce;
      const bool shrinks =
          step.primitive == Primitive::kReduceScatter || step.primitive == Primitive::kSlice;
      grown = grown || grows;
      EXPECT_FALSE(grown && shrinks);
      apply(step, to, at);
    }
    EXPECT_EQ(sorted(at), sorted(to));
  }
}

}  // namespace foreshard::reshard::direct_test
