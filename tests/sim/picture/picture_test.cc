// Scales, SVG and messages of sim/picture. tests/cli/plot_test.py reads the marks of real results
// back.
#include "tests/test.h"

#include "sim/picture/chart.h"
#include "sim/picture/from_result.h"
#include "sim/picture/scale.h"
#include "sim/picture/svg.h"

namespace foreshard::picture_test {

using picture::Scale;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(PictureScale, LaysNumbersInProportion) {
  const Scale scale = Scale::linear(10, 20, 100, 300);
  EXPECT_DOUBLE_EQ(scale(10), 100);
  EXPECT_DOUBLE_EQ(scale(12.5), 150);
  EXPECT_DOUBLE_EQ(Scale::logarithmic(1, 10000, 0, 400)(100), 200);
}

TEST(PictureScale, HasRoundTicks) {
  EXPECT_THAT(Scale::linear(0, 10, 0, 1).ticks(6), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(Scale::linear(0.9, 2.1, 0, 1).ticks(3), ElementsAre(1, 1.5, 2));
  EXPECT_THAT(Scale::logarithmic(1, 1e6, 0, 1).ticks(3), ElementsAre(1, 1e2, 1e4, 1e6));
  EXPECT_THAT(Scale::logarithmic(1.5, 12, 0, 1).ticks(6), ElementsAre(2, 5, 10));
}

TEST(PictureScale, HasFewTicksWhateverItsRange) {
  for (const auto& [low, high] : {std::pair(1e15, 1e15 + 0.25), std::pair(0.0, 1.7e308),
                                  std::pair(0.0, 5e-324), std::pair(-1e308, 1e308)})
    EXPECT_LE(Scale::linear(low, high, 0, 1).ticks(6).size(), 13U);
  EXPECT_LE(Scale::logarithmic(1e-300, 1e300, 0, 1).ticks(6).size(), 8U);
}

TEST(Picture, HoldsAnyNumbers) {
  const picture::Curve tiny{.points = {{5e-324, 5e-324, ""}, {1e308, 1e308, ""}}};
  EXPECT_THAT(draw(tiny), HasSubstr("</svg>"));
  EXPECT_THAT(draw(picture::Curve{.points = {{5e-324, 1.7e308, ""}}}), HasSubstr("</svg>"));
  const picture::Agreement::Point point{
      .measured = 5e-324, .predicted = 1.7e308, .low = 5e-324, .high = 1.7e308};
  for (const std::string& svg :
       {draw(picture::Agreement{.points = {point}}), draw(picture::Agreement{}),
        draw(picture::Distributions{.series = {{.values = {0}}, {.values = {}}}})})
    EXPECT_THAT(svg, AllOf(HasSubstr("</svg>"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(Picture, EscapesTexts) {
  const picture::Waterfall chart{
      .title = "<script>alert(1)</script> & \"x\"\x1b[31m",
      .whole = "peak",
      .lost = {{.name = "a", .style = "host", .share = 0.25, .value = "1 s"}},
      .left = {.name = "b", .style = "rest", .share = 0.75, .value = "3 s"}};
  const std::string svg = draw(chart);
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;x&quot;\\x1b[31m"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  // What is lost begins where what is left ends: at three quarters of the first bar.
  EXPECT_THAT(svg, HasSubstr("data-name=\"a\" data-value=\"0.25\"><title>a: 25.0 %, 1 s</title>"));
}

TEST(Picture, StacksAreasByHand) {
  const picture::StackedAreas chart{
      .title = "Memory",
      .x_axis = "s",
      .unit = "GiB",
      .times = {0, 1, 3},
      .end = 4,
      .areas = {{"a", "parameters", {2, 2, 2}}, {"b", "activations", {0, 4, 1}}},
      .limits = {{"capacity", 10}}};
  const std::string svg = draw(chart);
  // The frame is 70 to 740 by 384 to 70 pixels; 10.5 GiB are 314 pixels, 4 s are 670.
  // 2 GiB: 384 - 314 * 2 / 10.5 = 324.19, from 0 to 4 s in one line.
  EXPECT_THAT(svg, HasSubstr("d=\"M70 324.19H740V384H70Z\""));
  // 6 GiB from 1 s (237.5) to 3 s (572.5): 384 - 314 * 6 / 10.5 = 204.57; 3 GiB: 294.29.
  EXPECT_THAT(svg, HasSubstr("d=\"M70 324.19H237.5V204.57H572.5V294.29H740V324.19H70Z\""));
  EXPECT_THAT(svg, HasSubstr("data-name=\"b\" data-value=\"4\""));
}

TEST(Picture, LanesJoinNarrowBoxes) {
  picture::Lanes chart{.title = "Passes", .x_axis = "s", .end = 67};  // 10 pixels a second
  chart.lanes.push_back({.name = "stage 0",
                         .boxes = {{"forward", 0, 2, "0", "forward of 0"},
                                   {"backward", 2, 0.25, "1", ""},
                                   {"backward", 3, 0.3, "2", ""}}});
  const std::string svg = draw(chart);
  EXPECT_THAT(svg, HasSubstr("data-name=\"stage 0\" data-value=\"2\"><title>forward of 0<"));
  EXPECT_THAT(svg, HasSubstr("d=\"M90 72h2.5v18h-2.5zM100 72h3v18h-3z\""));
  EXPECT_THAT(svg, HasSubstr("<title>stage 0: 2 times backward, together 550 ms<"));
}

TEST(Picture, OfEmptyChartsIsAnEmptyChart) {
  EXPECT_THAT(draw(picture::StackedAreas{}), HasSubstr("</svg>"));
  EXPECT_THAT(draw(picture::Lanes{}), HasSubstr("</svg>"));
  EXPECT_THAT(draw(picture::Scatter{}), HasSubstr("</svg>"));
  EXPECT_THAT(draw(picture::Curve{}), HasSubstr("</svg>"));
  EXPECT_THAT(draw(picture::StackedBars{}), HasSubstr("</svg>"));
  EXPECT_THAT(draw(picture::Bars{}), HasSubstr("</svg>"));
}

TEST(Picture, ColoursWhatNothingBeats) {
  const auto point = [](const char* name, double x, std::optional<double> y) {
    return picture::Scatter::Point{.name = name, .x = x, .x_low = x, .x_high = x, .y = y};
  };
  const picture::Scatter chart{.points = {point("slow", 2, 2), point("fast", 1, 3),
                                          point("cheap", 3, 1), point("beaten", 2, 3),
                                          point("unpriced", 0.5, std::nullopt)}};
  const std::string svg = draw(chart);
  for (const char* name : {"slow", "fast", "cheap"})
    EXPECT_THAT(svg, HasSubstr(std::string("class=\"front\" data-name=\"") + name));
  EXPECT_THAT(svg, HasSubstr("class=\"dot\" data-name=\"beaten"));
  EXPECT_THAT(svg, HasSubstr("class=\"hollow\" data-name=\"unpriced"));
}

// Of 0, 1, 2, 4, half are at most 1: half of the frame's height, from 384 up to 70. The axis goes
// from -0.2 to 4.2, over 670 pixels from 70 on.
TEST(Picture, LaysAMarkOfADistributionOnItsCurve) {
  const picture::Distributions chart{
      .series = {{.name = "wait", .values = {0, 1, 2, 4}, .marks = {{"median", 1, "1 day"}}}}};
  EXPECT_THAT(draw(chart), HasSubstr("<circle cx=\"252.73\" cy=\"227\" r=\"4.5\" class=\"series0\" "
                                     "data-name=\"median\" data-value=\"1\">"));
}

// The frame is 670 wide and 314 high: what agrees lies as far up as to the right, in parts of it.
TEST(Picture, LaysWhatAgreesOnTheDiagonal) {
  picture::Agreement chart{.groups = {"a"}};
  for (const double value : {1.0, 10.0, 100.0})
    chart.points.push_back({.measured = value,
                            .predicted = value,
                            .low = value,
                            .high = value,
                            .meaning = {"point", value, ""}});
  const std::string svg = draw(chart);
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"405\" cy=\"227\" r=\"4.5\" class=\"series0\" "
                             "data-name=\"point\" data-value=\"10\">"));
}

TEST(Picture, IsRefusedWithTheRemedy) {
  const auto refused = [](std::string_view json, std::string_view kind = {}) {
    return message_of(picture::picture_of(json, kind));
  };
  EXPECT_THAT(refused("[]"), HasSubstr("no result of foreshard: write one with --format json"));
  EXPECT_THAT(refused(R"({"schema": "foreshard.plan/1"})"),
              HasSubstr("a result of the kind 'plan' has no picture: those of simulate, search"));
  EXPECT_THAT(refused(R"({"schema": "foreshard.search/1"})", "curve"),
              HasSubstr("a result of the kind 'search' has no picture 'curve': use 'pareto'"));
  EXPECT_THAT(refused(R"({"schema": "foreshard.prediction/1"})"),
              HasSubstr("it is no whole 'prediction': key 'step' is missing"));
  EXPECT_THAT(refused(R"({"schema": "foreshard.collectives/1", "operation": "shift", "ranks": 2,
                          "cluster": "c", "rows": [{"bytes": -1, "busbw_bytes_per_s": 1}]})"),
              HasSubstr("it cannot be drawn: 'bytes' is -1"));
}

}  // namespace foreshard::picture_test
