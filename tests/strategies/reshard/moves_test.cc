
#include "tests/test.h"

#include "strategies/graph/layout.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard::moves_test {

Layout layout(const std::string& text, const Shape& shape) {
  return value_of(parse_layout(text, shape));
}

Step transfer(const std::string& from, const std::string& to, const Shape& shape) {
  return {.primitive = Primitive::kTransfer,
          .from = layout(from, shape),
          .to = layout(to, shape),
          .axes = {}};
}

Move move(std::int32_t from, std::int32_t to, std::int64_t begin, std::int64_t end) {
  return {.from = from, .to = to, .box = {.begin = {begin}, .end = {end}}};
}

// 12 rows, 4 each on ranks 0 to 2, then 3 each on ranks 2 to 5: rank 2 keeps nothing of rows 8 to
// 11, for its new rows are 0 to 2.
TEST(Moves, SendIntersectionsOnly) {
  const TensorSpec tensor{DType::kBf16, {12}};
  const Step step = transfer("p=3 [p]", "q=4 @2-5 [q]", tensor.shape);
  EXPECT_THAT(moves_of(step, tensor),
              ElementsAre(move(0, 2, 0, 3), move(0, 3, 3, 4), move(1, 3, 4, 6), move(1, 4, 6, 8),
                          move(2, 4, 8, 9), move(2, 5, 9, 12)));
  EXPECT_EQ(count_moves(step, tensor), 6);
  const Volume volume = volume_of(step, tensor);
  EXPECT_EQ(volume.patent_total, 24_B);
  EXPECT_EQ(volume.exact_total, 24_B);
}

// Overlap: rank 1 holds rows 4 to 7 and wants 3 to 5, so that two of them stay.
TEST(Moves, KeepWhatIsThereAlready) {
  const TensorSpec tensor{DType::kBf16, {12}};
  const Step step = transfer("p=3 [p]", "q=4 @0-3 [q]", tensor.shape);
  EXPECT_THAT(moves_of(step, tensor),
              ElementsAre(move(0, 0, 0, 3), move(0, 1, 3, 4), move(1, 1, 4, 6), move(1, 2, 6, 8),
                          move(2, 2, 8, 9), move(2, 3, 9, 12)));
  EXPECT_EQ(volume_of(step, tensor).exact_total, 12_B);
  EXPECT_EQ(volume_of(step, tensor).patent_total, 24_B);
}

// Four replicas serve four targets: one each. With nodes of two, each from its own node.
TEST(Moves, ReplicasShareTheSendingWithinNodes) {
  const TensorSpec tensor{DType::kBf16, {8}};
  const Step step = transfer("p=4 @0,1,4,5 [-]", "q=4 @2,3,6,7 [-]", tensor.shape);
  EXPECT_THAT(moves_of(step, tensor),
              ElementsAre(move(0, 2, 0, 8), move(1, 3, 0, 8), move(4, 6, 0, 8), move(5, 7, 0, 8)));
  EXPECT_THAT(moves_of(step, tensor, {1, 1, 0, 0, 0, 0, 1, 1}),
              ElementsAre(move(4, 2, 0, 8), move(5, 3, 0, 8), move(0, 6, 0, 8), move(1, 7, 0, 8)));
}

// Empty slices neither send nor receive.
TEST(Moves, PassOverEmptySlices) {
  const TensorSpec tensor{DType::kBf16, {5}};
  const Step step = transfer("p=4 [p{2,0,3,0}]", "q=3 @4-6 [q{0,4,1}]", tensor.shape);
  EXPECT_THAT(moves_of(step, tensor),
              ElementsAre(move(0, 5, 0, 2), move(2, 5, 2, 4), move(2, 6, 4, 5)));
  EXPECT_EQ(count_moves(step, tensor), 3);
}

// Columns over 64 ranks from rows over 64: all pairs, counted without listing them.
TEST(Moves, AreCountedWithoutBeingListed) {
  const TensorSpec tensor{DType::kBf16, {4096, 4096}};
  EXPECT_EQ(count_moves(transfer("p=64 [p, -]", "p=64 [-, p]", tensor.shape), tensor), 4096);
  EXPECT_EQ(count_moves(transfer("p=4096 [p, -]", "p=4096 [-, p]", tensor.shape), tensor),
            4096. * 4096);
}

// Mesh a = 2, b = 3: over b the ranks with the same a; a broadcast begins at the root.
TEST(Groups, AgreeOnTheOtherAxes) {
  const Shape shape{6};
  Step step{.primitive = Primitive::kAllGather,
            .from = layout("a=2,b=3 @10-15 [b]", shape),
            .to = layout("a=2,b=3 @10-15 [-]", shape),
            .axes = {1}};
  EXPECT_THAT(groups_of(step), ElementsAre(ElementsAre(10, 12, 14), ElementsAre(11, 13, 15)));
  step.axes = {0, 1};
  EXPECT_THAT(groups_of(step), ElementsAre(ElementsAre(10, 11, 12, 13, 14, 15)));
  step = {.primitive = Primitive::kBroadcast,
          .from = layout("a=2 @12,13 [-]", shape),
          .to = layout("a=2,b=3 @10-15 [-]", shape),
          .axes = {1}};
  EXPECT_THAT(groups_of(step), ElementsAre(ElementsAre(12, 10, 14), ElementsAre(13, 11, 15)));
}

// Slices of 3, 3, 2, 2 rows of 4 bytes are gathered as 3 each: T = 4 x 12 = 48 bytes of 40.
TEST(Volume, OfUnevenCollectivesIsPadded) {
  const TensorSpec tensor{DType::kFp32, {10}};
  const Volume volume = volume_of({.primitive = Primitive::kAllGather,
                                   .from = layout("p=4 [p~]", tensor.shape),
                                   .to = layout("p=4 [-]", tensor.shape),
                                   .axes = {0}},
                                  tensor);
  EXPECT_EQ(volume.logical, 48_B);
  EXPECT_EQ(volume.patent_total, 192_B);
  EXPECT_EQ(volume.exact_total, 144_B);
}

std::vector<std::string> names(const std::string& from, const std::string& to, const Shape& shape,
                               const CandidateOptions& options = {}) {
  const TensorSpec tensor{DType::kBf16, shape};
  const auto found = candidates(
      tensor, layout(from, shape), layout(to, shape),
      [&](const Step& step) -> Result<Seconds> {
        return 1_s * (1 + volume_of(step, tensor).exact_total / 1_B);
      },
      options);
  std::vector<std::string> result;
  if (!found) return {found.error().message};
  for (const Plan& plan : found->plans) result.push_back(plan.name);
  for (const auto& rejected : found->rejected)
    result.push_back(rejected.name + ": " + rejected.reason.substr(0, 6));
  return result;
}

// The three ways of the source documents and the collective, cheapest first: T = 512 bytes; 3/4 T,
// 3/4 T point to point, 3 T gathered, and by way of a root 3/4 T + 3 T. Every step takes 1 s more.
TEST(Candidates, AreRanked) {
  EXPECT_THAT(names("p=4 [p, -]", "p=4 [-, p]", {16, 16}, {.keep = 12, .slowest_ratio = 9}),
              ElementsAre("all_to_all(p)", "transfer", "all_gather(p) + slice(p)",
                          "transfer + broadcast(p) + slice(p)"));
  EXPECT_THAT(names("p=4 [p, -]", "p=4 [-, p]", {16, 16}),
              UnorderedElementsAre("all_to_all(p)", "transfer",
                                   StartsWith("all_gather(p) + slice(p): slower"),
                                   StartsWith("transfer + broadcast(p) + slice(p): slower")));
}

// Another mesh of the same ranks: what stays where it is costs nothing, in whatever order the
// target counts its ranks.
TEST(Candidates, ReadOneMeshAsAnother) {
  EXPECT_THAT(names("tp=8 [tp, -]", "tp=4,pp=2 [pp+tp, -]", {16, 16}), ElementsAre("nothing"));
  EXPECT_THAT(names("a=2,b=4 [a, b]", "b=4,a=2 @0,2,4,6,1,3,5,7 [a, b]", {16, 16}),
              ElementsAre("nothing"));
  EXPECT_EQ(names("tp=8 [tp, -]", "tp=4,pp=2 [pp, -]", {16, 16})[0], "all_gather(tp)");
}

}  // namespace foreshard::reshard::moves_test
