// The report as text, JSON and CSV.
#include "evidence/report.h"

#include <nlohmann/json.hpp>

#include "tests/test.h"

namespace foreshard::accuracy::report_test {

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

Outcome step_of(const std::string& id, double measured, double compute, double tensor) {
  Outcome row = row_of(id, measured, compute + tensor);
  row.kind = study::StepKind{.framework = "megatron-lm"};
  row.breakdown = sim::Breakdown{};
  row.breakdown->compute = compute * 1_s;
  row.breakdown->tensor = tensor * 1_s;
  return row;
}

// Steps that take twice the communication that was predicted: the error falls with its share.
std::vector<Outcome> steps_of_dear_communication() {
  std::vector<Outcome> rows;
  for (int i = 0; i < 8; ++i) {
    const double tensor = 0.05 * i;
    rows.push_back(step_of("row" + std::to_string(i), 1 + 2 * tensor, 1, tensor));
  }
  return rows;
}

TEST(Causes, ErrorsGrowWithThePartThatIsWrong) {
  const auto rows = steps_of_dear_communication();
  std::vector<const Outcome*> all;
  all.reserve(rows.size());
  for (const Outcome& row : rows) all.push_back(&row);
  const auto tendency = value_of(tendency_of(all));
  EXPECT_EQ(tendency.part->key, "tp_comm");
  EXPECT_GT(tendency.correlation, 0.99);
  EXPECT_THAT(
      in_words(tendency),
      HasSubstr("farthest off where the share of tensor-parallel communication is large (r = "));
  all.pop_back();
  EXPECT_FALSE(tendency_of(all)) << "seven rows are too few";
}

TEST(Causes, NameWhatTheRowLeavesOpen) {
  Outcome row = step_of("one", 2, 1, 0.25);
  row.assumed = {"micro_batch"};
  row.widened_low = 0.8;
  row.widened_high = 1.05;
  EXPECT_EQ(likely_causes(row, {}),
            "assumed: micro_batch; rates or links that nobody measured on its devices; 80 % "
            "computation, 20 % tensor-parallel communication");
  row.reason = "predicted not to fit";
  EXPECT_THAT(likely_causes(row, {}), StartsWith("predicted not to fit; assumed"));
}

TEST(Markdown, HasTablesFrameworksAndTheWorstRows) {
  auto rows = steps_of_dear_communication();
  for (Outcome& row : rows) row.tier = "core";
  Outcome aux = step_of("aux", 9, 1, 0);
  aux.tier = "aux";
  rows.push_back(aux);
  Outcome unsupported = rows[0];
  unsupported.predicted = {};
  unsupported.status = RowStatus::kUnsupported;
  unsupported.reason = "experts";
  rows.push_back(unsupported);
  const std::string page = to_markdown(report_of(rows));
  // Errors of 0, 4.5, 8.3, 11.5, 14.3, 16.7, 18.8, 20.6 %.
  EXPECT_THAT(page, HasSubstr("| a.csv | 9 | 8 | 12.9 % | 11.8 % | -11.8 % | 20.6 % | 1.00 |"));
  EXPECT_THAT(page, HasSubstr("Mean over 1 tables: of their medians 12.9 %"));
  EXPECT_THAT(page, HasSubstr("- a.csv: farthest off where the share of tensor-parallel"));
  EXPECT_THAT(page, HasSubstr("| megatron-lm | "));
  EXPECT_THAT(page, HasSubstr("| a.csv, tier aux | 1 | 1 |"));
  EXPECT_THAT(page, HasSubstr("## Farthest off\n\n"));
  EXPECT_THAT(page, HasSubstr("| row7 | a.csv | 1.70 s | 1.35 s | -20.6 % |"));
  EXPECT_THAT(page, HasSubstr("| 1 | unsupported: experts |"));
}

}  // namespace foreshard::accuracy::report_test
