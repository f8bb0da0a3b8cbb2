#include "strategies/program/ir/group.h"

#include "tests/test.h"

namespace foreshard::program {
namespace {

Program mesh_2_3_2() {
  Program program;
  program.mesh = {{"tensor", 2}, {"pipeline", 3}, {"data", 2}};
  return program;
}

// rank = t + 2 (p + 3 d): rank 9 is t = 1, p = 1, d = 1.
TEST(Group, CountsTheFirstAxisFastest) {
  const Program program = mesh_2_3_2();
  EXPECT_EQ(coordinate_of(program, 9, 0), 1);
  EXPECT_EQ(coordinate_of(program, 9, 1), 1);
  EXPECT_EQ(coordinate_of(program, 9, 2), 1);
  EXPECT_EQ(with_coordinate(program, 9, 1, 2), 11);
  EXPECT_THAT(members_of(program, AxisGroup{{0}, {}}, 9), ElementsAre(8, 9));
  EXPECT_THAT(members_of(program, AxisGroup{{1}, {}}, 9), ElementsAre(7, 9, 11));
  EXPECT_THAT(members_of(program, AxisGroup{{0, 2}, {}}, 9), ElementsAre(2, 3, 8, 9));
  EXPECT_EQ(size_of(program, AxisGroup{{0, 2}, {}}, 9), 4);
}

TEST(Group, TakesListedCoordinatesOnly) {
  const Program program = mesh_2_3_2();
  const AxisGroup ends{{1}, {0, 2}};
  EXPECT_THAT(members_of(program, ends, 7), ElementsAre(7, 11));
  EXPECT_EQ(size_of(program, ends, 7), 2);
  EXPECT_THAT(members_of(program, ends, 9), IsEmpty());
  EXPECT_EQ(size_of(program, ends, 9), 0);
}

TEST(Group, FindsPeersAndWrittenOutGroups) {
  const Program program = mesh_2_3_2();
  EXPECT_EQ(peer_of(program, AxisPeer{1, 0}, 9), 7);
  EXPECT_THAT(members_of(program, AxisPeer{1, 0}, 9), ElementsAre(7, 9));
  const RankGroups groups{{{0, 5}, {1, 2, 3}}};
  EXPECT_THAT(members_of(program, groups, 2), ElementsAre(1, 2, 3));
  EXPECT_THAT(members_of(program, groups, 4), IsEmpty());
  EXPECT_EQ(peer_of(program, groups, 2), std::nullopt);
}

TEST(RankRanges, AreShort) {
  std::vector<std::int32_t> all;
  all.reserve(1024);
  for (int i = 0; i < 1024; ++i) all.push_back(i);
  EXPECT_EQ(write_ranges(all), "0-1023");
  EXPECT_EQ(write_ranges({0, 8, 16, 24}), "0-24:8");
  EXPECT_EQ(write_ranges({3, 2, 1, 0}), "3-0:-1");
  EXPECT_EQ(write_ranges({5, 9, 10, 11, 20, 22}), "5,9-11,20,22");
  EXPECT_EQ(write_ranges({4, 4, 4}), "4,4,4");
  EXPECT_EQ(write_ranges({}), "");
}

TEST(RankRanges, NameWhatIsWrong) {
  const auto fault = [](std::string_view text) { return message_of(read_ranges(text, 100)); };
  EXPECT_THAT(fault("0-"), HasSubstr("'0-' is not a range"));
  EXPECT_THAT(fault("1,,2"), HasSubstr("'' is not a range"));
  EXPECT_THAT(fault("-3"), HasSubstr("is not a range"));
  EXPECT_THAT(fault("0-7:3"), HasSubstr("does not reach its end"));
  EXPECT_THAT(fault("7-0"), HasSubstr("does not reach its end"));
  EXPECT_THAT(fault("0-7:0"), HasSubstr("does not reach its end"));
  EXPECT_THAT(fault("0-2147483647"), HasSubstr("longer than 100"));
  EXPECT_THAT(fault("99999999999"), HasSubstr("is not a range"));
}

}  // namespace
}  // namespace foreshard::program
