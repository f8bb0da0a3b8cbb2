// The report as text, JSON and CSV.
#include "validate/accuracy/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace foreshard::accuracy {
namespace {

using testing::HasSubstr;

Outcome row_of(std::string id, double measured, double predicted) {
  Outcome row;
  row.id = std::move(id);
  row.file = "a.csv";
  row.family = "source, with a comma";
  row.measured = measured;
  row.predicted = predicted;
  row.low = 0.9;
  row.high = 1.3;
  return row;
}

Report example() {
  Outcome assumed = row_of("two", 2, 1);
  assumed.assumed = {"network", "recompute"};
  Outcome unsupported = row_of("three", 1, 1);
  unsupported.predicted = {};
  unsupported.status = RowStatus::kUnsupported;
  unsupported.reason = "experts";
  Outcome memory = row_of("four", 100, 90);
  memory.quantity = Quantity::kMemory;
  return report_of({row_of("one", 1, 1.1), assumed, unsupported, memory});
}

TEST(Summaries, CountRowsAndKeepMemoryApart) {
  const Summary summary = example().overall;
  EXPECT_EQ(summary.rows, 4);
  EXPECT_EQ(summary.ok, 3);
  EXPECT_EQ(summary.assumed, 1);
  EXPECT_EQ(summary.unsupported, 1);
  EXPECT_EQ(summary.infeasible, 0);
  EXPECT_NEAR(*summary.time.mape_pct, 30, 1e-9);
  EXPECT_NEAR(*summary.time.bias_pct, -20, 1e-9);
  EXPECT_NEAR(*summary.memory.mape_pct, 10, 1e-9);
}

TEST(Json, HoldsTheContract) {
  const auto json = nlohmann::json::parse(to_json(example()));
  EXPECT_EQ(json["schema"], "foreshard.accuracy/1");
  ASSERT_EQ(json["rows"].size(), 4u);
  EXPECT_EQ(json["rows"][0]["id"], "one");
  EXPECT_NEAR(json["rows"][0]["error_pct"], 10, 1e-9);
  EXPECT_EQ(json["rows"][0]["status"], "ok");
  EXPECT_NEAR(json["rows"][0]["low"], 0.9, 1e-9);
  EXPECT_NEAR(json["rows"][0]["high"], 1.3, 1e-9);
  EXPECT_EQ(json["rows"][1]["assumed"], (std::vector<std::string>{"network", "recompute"}));
  EXPECT_EQ(json["rows"][2]["status"], "unsupported");
  EXPECT_EQ(json["rows"][2]["reason"], "experts");
  EXPECT_TRUE(json["rows"][2]["predicted"].is_null());
  EXPECT_TRUE(json["rows"][2]["error_pct"].is_null());
  const auto& all = json["summaries"]["overall"];
  for (const char* key :
       {"rows", "ok", "assumed", "unsupported", "infeasible", "mape_pct", "median_ape_pct",
        "p90_ape_pct", "bias_pct", "kendall_tau", "interval_coverage_pct", "memory_mape_pct"})
    EXPECT_TRUE(all.contains(key)) << key;
  EXPECT_EQ(json["summaries"]["files"]["a.csv"]["rows"], 4);
  EXPECT_EQ(json["summaries"]["families"].size(), 1u);
  EXPECT_TRUE(json["summaries"]["tiers"].empty());
}

TEST(Csv, QuotesWhatNeedsIt) {
  const std::string text = to_csv(example());
  EXPECT_THAT(text, HasSubstr("\none,a.csv,\"source, with a comma\",,time,1,1.1,0.9,1.3,"));
  EXPECT_THAT(text, HasSubstr(",network recompute,"));
}

TEST(Text, TellsTheWorstRowsAndTheReasons) {
  const std::string text = to_text(example());
  EXPECT_THAT(text, HasSubstr("a.csv"));
  EXPECT_THAT(text, HasSubstr("two"));
  EXPECT_THAT(text, HasSubstr("assumed: network, recompute"));
  EXPECT_THAT(text, HasSubstr("unsupported: experts"));
  EXPECT_LT(text.find("  two"), text.find("  one"));
}

TEST(Text, OfNothing) {
  EXPECT_THAT(to_text(report_of({})), HasSubstr("all"));
}

}  // namespace
}  // namespace foreshard::accuracy
