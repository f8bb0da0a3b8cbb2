// What `foreshard explain` says of results of `foreshard search`.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli::explain_test {

using nlohmann::json;

// Two A100 nodes, tensor 1 or 8 without recomputation: few strategies, the first by far the best.
const std::string kSpace = "tensor_parallel: [1, 8]\nrecompute: [none, full]\n";

class Explain : public testing::Test {
 protected:
  Explain() {
    const std::string space = folder_.write("space.yaml", kSpace).string();
    search_ =
        "search --cluster two-dgx-a100 --model gpt-1.7b --set strategy.global_batch=64 "
        "--level 1 --simulate 4 --certify 0 --front 0 --space '" +
        space + "' --format json";
  }

  // The file with a result, and what it says.
  std::string searched(const std::string& more = "") {
    const Outcome outcome = foreshard(search_ + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    found_ = json::parse(outcome.out);
    return folder_.write("found.json", outcome.out).string();
  }
  static json explained(const std::string& arguments) {
    const Outcome outcome = foreshard("explain " + arguments + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }

  TemporaryFolder folder_;
  std::string search_;
  json found_;
};

TEST_F(Explain, PutsTheTermsOfFirstAndSecondSideBySide) {
  const std::string file = searched();
  const json explanation = explained(file);
  double sum = 0;
  for (const auto& [key, term] : explanation["terms"].items()) {
    EXPECT_EQ(term["first_s"], found_["best"][0]["breakdown_s"][key]) << key;
    EXPECT_DOUBLE_EQ(term["second_loses_s"], found_["best"][1]["behind_s"][key]) << key;
    sum += double{term["second_loses_s"]};
  }
  // What the second loses, term by term, is what it is behind.
  const double first = explanation["first"]["time_s"];
  EXPECT_NEAR(sum, double{explanation["second"]["time_s"]} - first, 1e-9 * first);
  EXPECT_EQ(explanation["first"]["low_s"], found_["best"][0]["low_s"]);
  EXPECT_EQ(explanation["robustness"], found_["robustness"]);
  EXPECT_EQ(explanation["first"]["dominant_overhead"], found_["best"][0]["dominant_overhead"]);

  const Outcome text = foreshard("explain " + file);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("second loses"));
  EXPECT_THAT(text.out, HasSubstr("The second is "));
  EXPECT_THAT(text.out, HasSubstr("Of the first's step compute takes most, "));
  EXPECT_THAT(text.out, HasSubstr("With parameters drawn from their errors, the first is"));
}

// Asked later, the answer is that of the search itself.
TEST_F(Explain, SaysOfAnotherStrategyWhatTheSearchWouldHaveSaid) {
  for (const std::string words : {"tp8 mb1 full", "tp1 none", "tp3", "tp4"}) {
    const std::string file = searched(" --why-not '" + words + "'");
    const json explanation = explained(fmt::format("{} --why-not '{}'", file, words));
    EXPECT_EQ(explanation["why_not"], found_["why_not"]) << words;
  }
  const json slower = explained(searched() + " --why-not 'tp8 mb1 full'")["why_not"];
  EXPECT_THAT(std::string(slower["message"]), HasSubstr(" behind: "));
  EXPECT_THAT(std::string(slower["remedy"]), HasSubstr("it would have to "));
}

TEST_F(Explain, NamesThePartOfTheStudyThatHasChanged) {
  const std::string study =
      "cluster: two-dgx-a100\nmodel: gpt-1.7b\nstrategy: {data_parallel: 16, "
      "global_batch: 64}\n";
  const std::string path = folder_.write("study.yaml", study).string();
  const Outcome outcome =
      foreshard("search " + path + " --level 0 --simulate 2 --certify 0 --front 0 --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string file = folder_.write("found.json", outcome.out).string();
  EXPECT_EQ(foreshard("explain " + file + " --why-not tp8").code, 0);
  folder_.write("study.yaml", "# said anew\n" + study);  // nothing else
  EXPECT_EQ(foreshard("explain " + file + " --why-not tp8").code, 0);
  folder_.write("study.yaml", "cluster: two-dgx-h100\n" + study.substr(study.find('\n') + 1));
  const Outcome changed = foreshard("explain " + file + " --why-not tp8");
  EXPECT_EQ(changed.code, 2);
  EXPECT_THAT(changed.err, HasSubstr("the study has changed: its cluster is not what it was"));
  EXPECT_EQ(foreshard("explain " + file).code, 0);  // of the result alone
}

TEST_F(Explain, SaysWhatIsWrongWithItsArguments) {
  const std::string file = searched();
  const std::string other = folder_.write("other.json", R"({"schema": "foreshard.prediction/1"})");
  const std::string old = folder_.write("old.json", R"({"schema": "foreshard.search/1"})");
  const std::string none = folder_.write("none.json", "step: 1 s");
  for (const auto& [arguments, what] :
       {std::pair(other, "its schema is 'foreshard.prediction/1'"),
        std::pair(old, "it is not as this version writes it"),
        std::pair(none, "no JSON: line 1, column 1"),
        std::pair(file + " --why-not ''", "no strategy is named; write words such as tp8"),
        std::pair(file + " --why-not fast", "'fast' is no part of a strategy"),
        std::pair(std::string("nowhere.json"), "nowhere.json")}) {
    const Outcome outcome = foreshard("explain " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(what)) << arguments;
  }
}

TEST_F(Explain, ExplainsTheSearchOfAGraphToo) {
  const Outcome outcome = foreshard("search moe-layer-h100-8 --simulate 4 --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string file = folder_.write("graph.json", outcome.out).string();
  const json explanation = explained(file);
  double sum = 0;
  for (const auto& [key, term] : explanation["terms"].items()) sum += double{term["first_s"]};
  EXPECT_NEAR(sum, double{explanation["first"]["time_s"]}, 1e-9 * sum);
  const Outcome why = foreshard("explain " + file + " --why-not tp8");
  EXPECT_EQ(why.code, 2);
  EXPECT_THAT(why.err, HasSubstr("--why-not: is for the result of a study with a model"));
}

}  // namespace foreshard::cli::explain_test
