
#include "tests/strategies/execute/random_layouts.h"
#include "tests/test.h"

#include "strategies/graph/layout.h"

namespace foreshard::layout_text_test {

Layout read(const std::string& text, const Shape& shape) {
  return value_of(parse_layout(text, shape));
}

TEST(LayoutText, ReadsWhatItsHeaderShows) {
  const Layout columns = read("tp=4,dp=2 @0-7 [-, dp+tp]", {16, 64});
  EXPECT_EQ(columns.mesh, mesh_from({{"tp", 4}, {"dp", 2}}));
  EXPECT_EQ(columns.attribute, (Attribute{.dims = {{}, {1, 0}}}));

  const Layout uneven = read(" tp = 4 [tp{3, 3,2,2} , -]", {10, 5});
  EXPECT_EQ(uneven.mesh.ranks, (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(uneven.attribute, (Attribute{.dims = {{0}, {}}, .sizes = {{3, 3, 2, 2}, {}}}));
  EXPECT_EQ(read("tp=4 [tp~, -]", {10, 5}), uneven);
  EXPECT_EQ(read("tp=4 @0,8,16-17 [tp~, -]", {10, 5}).mesh.ranks,
            (std::vector<std::int32_t>{0, 8, 16, 17}));

  EXPECT_EQ(read("tp=4,dp=2 [-] sum(dp,tp)", {3}).attribute.partial, sums_over({0, 1}));
  EXPECT_EQ(read("tp=4 [-] max(tp)", {3}).attribute.partial,
            (std::vector<Partial>{{0, Reduction::kMax}}));
  EXPECT_EQ(read("@5 []", {}).mesh.ranks, std::vector<std::int32_t>{5});
}

TEST(LayoutText, DescriptionsReadBack) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomLayouts random(kSeed);
  for (int i = 0; i < 2000; ++i) {
    const Shape shape = random.shape();
    const Layout layout = random.on(random.mesh_after(mesh_from(random.axes())), shape);
    ASSERT_EQ(read(describe(layout), shape), layout) << describe(layout);
  }
}

std::string fault(const std::string& text) {
  return message_of(parse_layout(text, {12, 64}));
}

TEST(LayoutText, ShowsThePlaceOfAFault) {
  EXPECT_EQ(fault("tp=4 [tp x]"),
            "layout: expected ',' or ']', found 'x'\n"
            "  tp=4 [tp x]\n"
            "           ^");
  EXPECT_EQ(fault("tp=4 [-, dp]"),
            "layout: no axis is named 'dp': declared is 'tp'; add dp=SIZE before the dimensions\n"
            "  tp=4 [-, dp]\n"
            "           ^");
}

TEST(LayoutVerifier, ChecksWhatTextCannotSay) {
  const Shape shape{12, 64};
  Layout layout = replicated_on(mesh_from({{"tp", 2}}), 2);
  EXPECT_EQ(fault_in(layout, shape), std::nullopt);
  layout.attribute.dims[1] = {3};
  EXPECT_THAT(*fault_in(layout, shape), HasSubstr("dimension 1 uses axis 3, but the mesh has 1"));
  layout.attribute.dims = {{0}, {0}};
  EXPECT_THAT(*fault_in(layout, shape),
              HasSubstr("axis 'tp' is used twice, by dimension 0 and by dimension 1"));
  layout = replicated_on(mesh_from({{"a", 2}, {"b", 2}}), 2);
  layout.attribute.partial = {{1}, {0}};
  EXPECT_THAT(*fault_in(layout, shape), HasSubstr("not in ascending order"));
  layout = replicated_on({}, 2);
  EXPECT_THAT(*fault_in(layout, shape), HasSubstr("no rank"));
  layout = replicated_on(mesh_from({{"a", 2}, {"a", 2}}), 2);
  EXPECT_THAT(*fault_in(layout, shape), HasSubstr("two axes are named 'a'"));
  layout = replicated_on({.axes = {{"a", 2}}, .ranks = {-1, 0}}, 2);
  EXPECT_THAT(*fault_in(layout, shape), HasSubstr("rank -1 is negative"));
  layout = replicated_on(mesh_from({{"a", 2}}), 2);
  layout.attribute.sizes = {{12}};
  EXPECT_THAT(*fault_in(layout, shape), HasSubstr("sizes are given for 1 dimensions"));
  layout.attribute.sizes = {{13, -1}, {}};
  layout.attribute.dims = {{0}, {}};
  EXPECT_THAT(*fault_in(layout, shape), HasSubstr("negative size -1"));
  EXPECT_THAT(*fault_in(layout, {12, -1}), HasSubstr("negative extent -1"));
}

// Mesh 2 x 3 (a fastest), rows over b then a: six slices, b the major digit. Position 4 is at
// a = 0, b = 2, so its slice is the fifth: with sizes 3,3,2,2,1,1 rows 10 to 11.
TEST(Layout, SlicesCountMajorToMinor) {
  const Layout layout = read("a=2,b=3 @10-15 [b+a{3,3,2,2,1,1}, -]", {12, 5});
  EXPECT_EQ(coordinate_of(layout.mesh, 4, 0), 0);
  EXPECT_EQ(coordinate_of(layout.mesh, 4, 1), 2);
  EXPECT_EQ(slice_of(layout, {12, 5}, 4), (Box{.begin = {10, 0}, .end = {11, 5}}));
  EXPECT_EQ(slice_of(layout, {12, 5}, 1), (Box{.begin = {3, 0}, .end = {6, 5}}));
  EXPECT_EQ(Slices(layout, {12, 5}).largest(), 15);
  EXPECT_EQ(balanced_sizes(10, 4), (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(describe_ranks({0, 1, 2, 5, 7, 8}), "0-2,5,7,8");
}

}  // namespace foreshard::layout_text_test
