#include "sim/report/report.h"

#include <nlohmann/json.hpp>

#include "tests/golden/golden.h"
#include "tests/sim/report/example.h"
#include "tests/test.h"

#include "sim/report/csv.h"
#include "sim/report/json.h"
#include "sim/report/numbers.h"
#include "sim/report/text.h"

namespace foreshard::report {
namespace {

Report misfit() {
  Report report = example_report(100_GB);
  report.alternatives = {{.change = "recompute=full",
                          .peak = 50_GB,
                          .capacity = 80_GB,
                          .reserve = 1_GB,
                          .fits = true,
                          .step = 12_s},
                         {.change = "zero_stage=1",
                          .peak = 90_GB,
                          .capacity = 80_GB,
                          .reserve = 1_GB,
                          .fits = false,
                          .step = 0_s}};
  return report;
}

TEST(ReportText, IsWhatWasAccepted) {
  expect_golden("report/example.txt", to_text(example_report()));
}

// 64 samples in 10 s on 8 devices: 6.4 /s, 0.8 /s each.
TEST(ReportText, NamesSamplesThatHaveNoTokens) {
  Report report = example_report();
  report.subject.sample = "image";
  report.prediction.tokens = 0;
  EXPECT_THAT(to_text(report), AllOf(HasSubstr("throughput   6.4 images/s\n"),
                                     HasSubstr("each device  0.8 images/s, 156.0 TFLOP/s"),
                                     Not(HasSubstr("tokens"))));
  const auto json = nlohmann::json::parse(to_json(report))["throughput"];
  EXPECT_EQ(json["sample"], "image");
  EXPECT_DOUBLE_EQ(json["samples_per_s"].get<double>(), 6.4);
  EXPECT_TRUE(json["tokens_per_s"].is_null());
  EXPECT_TRUE(json["tokens_per_s_per_gpu"].is_null());
  EXPECT_THAT(to_csv(report), HasSubstr(",6.4,,156,"));
}

TEST(ReportText, SaysWhatWouldFit) {
  expect_golden("report/misfit.txt", to_text(misfit()));
}

TEST(ReportText, StaysWithinItsPaper) {
  for (const Report& report : {example_report(), misfit()})
    for (const std::size_t width : {80U, 100U, 140U}) {
      std::istringstream text(to_text(report, {.width = width}));
      for (std::string line; std::getline(text, line);) EXPECT_LE(columns(line), width) << line;
    }
}

TEST(ReportText, HasEscapesOnlyWhereColourIsWelcome) {
  EXPECT_THAT(to_text(example_report()), Not(HasSubstr("\x1b")));
  EXPECT_THAT(to_text(example_report(), {.colour = true}), HasSubstr("\x1b[1m"));
}

// Half of the devices have 40 GB: the heading names both, not that of the fullest device alone.
TEST(ReportText, NamesTheMemoryOfUnequalDevices) {
  Report report = example_report();
  EXPECT_THAT(to_text(report), Not(HasSubstr(" GiB to ")));
  report.prediction.classes.push_back(example_class("stage 2", 8, 10_GB));
  report.capacities.push_back(40_GB);
  EXPECT_THAT(to_text(report), HasSubstr("37.3 GiB to 74.5 GiB per device"));
}

// 40 roles do not make 40 lines: the fullest are shown and the others counted.
TEST(ReportText, SumsUpManyRoles) {
  Report report = example_report();
  for (int i = 2; i < 40; ++i) {
    report.prediction.classes.push_back(example_class("stage " + std::to_string(i), 4 * i, 50_GB));
    report.capacities.push_back(80_GB);
  }
  EXPECT_THAT(to_text(report), HasSubstr("and 24 more with more headroom"));
}

TEST(ReportJson, IsWhatWasAccepted) {
  expect_golden("report/example.json", to_json(example_report()));
}

TEST(ReportJson, KeepsTheContract) {
  const auto json = nlohmann::json::parse(to_json(misfit()));
  EXPECT_EQ(json["schema"], "foreshard.prediction/1");
  double sum = 0;
  for (const auto& [part, time] : json["breakdown_s"].items()) sum += time.get<double>();
  EXPECT_DOUBLE_EQ(sum, json["step"]["time_s"].get<double>());
  EXPECT_EQ(json["memory"]["worst_device"], 4);
  EXPECT_EQ(json["memory"]["fits"], false);
  EXPECT_EQ(json["alternatives"][0]["change"], "recompute=full");
  EXPECT_DOUBLE_EQ(json["cost"]["usd_per_step"].get<double>(), 0.0444);
  EXPECT_DOUBLE_EQ(json["cost"]["kwh_per_step"].get<double>(), 9);  // 32.4 MJ
  EXPECT_TRUE(json["cost"]["training"].is_null());
  EXPECT_FALSE(json.contains("timing"));
}

TEST(ReportJson, TellsTheWallTimeOnlyIfAsked) {
  Report report = example_report();
  report.wall = 0.25_s;
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["timing"]["wall_s"], 0.25);
}

// A step of 10 s (9 to 11.5), 9 kWh and 0.0444 USD, a hundred thousand times: 11.6 days (10.4 to
// 13.3), 900 MWh, 4,440 USD.
TEST(Report, TellsWhatATrainingCosts) {
  Report report = example_report();
  report.prediction.training = sim::Training{.length = "13B tokens", .steps = 1e5};
  EXPECT_THAT(to_text(report), HasSubstr("13B tokens   4.44k USD   900 MWh  11.6 d, "
                                         "10.4 d to 13.3 d\n"));
  const auto training = nlohmann::json::parse(to_json(report))["cost"]["training"];
  EXPECT_DOUBLE_EQ(training["days"].get<double>(), 1e6 / 86400);
  EXPECT_DOUBLE_EQ(training["high_days"].get<double>(), 1.15e6 / 86400);
  EXPECT_DOUBLE_EQ(training["usd"].get<double>(), 4440);
  EXPECT_DOUBLE_EQ(training["kwh"].get<double>(), 9e5);
}

TEST(Report, SaysWhyACostIsNotKnown) {
  Report report = example_report();
  report.prediction.expense = {};
  report.prediction.expense.without_power = {"toy"};
  report.prediction.expense.without_rent = {"toy", "other"};
  EXPECT_THAT(to_text(report),
              AllOf(HasSubstr("no price  no power"), HasSubstr("toy, other without a price"),
                    HasSubstr("toy without power or idle_power")));
  const auto cost = nlohmann::json::parse(to_json(report))["cost"];
  EXPECT_TRUE(cost["usd_per_step"].is_null());
  EXPECT_TRUE(cost["kwh_per_step"].is_null());
  EXPECT_EQ(cost["devices_without_price"].size(), 2u);
}

TEST(ReportCsv, IsAHeaderAndALine) {
  expect_golden("report/example.csv", to_csv(example_report()));
}

TEST(CriticalShares, AreSummedByTask) {
  const auto shares = critical_shares(example_report().prediction, example_program());
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].what, "layer forward / qkv");
  EXPECT_DOUBLE_EQ(shares[0].time / 1_s, 7);
  EXPECT_EQ(shares[0].tasks, 2);
}

TEST(Numbers, AreWrittenForPeople) {
  EXPECT_EQ(scaled(174.6e9), "175B");
  EXPECT_EQ(scaled(999.9e6), "1.00B");
  EXPECT_EQ(scaled(1234), "1.23k");
  EXPECT_EQ(watt_hours(3600_J), "1.00 Wh");
  EXPECT_EQ(watt_hours(999.6 * 3.6e6 * 1_J), "1.00 MWh");
  EXPECT_EQ(watt_hours(36_J), "0.01 Wh");
  EXPECT_EQ(percent(0.4456), "44.6 %");
}

TEST(Page, BreaksLinesAtSpaces) {
  EXPECT_EQ(wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("", 7), (std::vector<std::string>{""}));
}

TEST(Page, DrawsStretchesOfOneBar) {
  EXPECT_EQ(stretch(0, 0.5, 8), "████    ");
  EXPECT_EQ(stretch(0.5, 1, 8), "    ████");
  EXPECT_EQ(stretch(0.5, 0.501, 8), "    ▏   ");
  EXPECT_EQ(stretch(0.5, 0.5, 8), "        ");
  // Ends of a short part may round to different cells: it is a sliver all the same.
  EXPECT_EQ(stretch(0.9999, 1, 8), "       ▏");
  EXPECT_EQ(stretch(0.4374, 0.4376, 8), "   ▏    ");
}

}  // namespace
}  // namespace foreshard::report
