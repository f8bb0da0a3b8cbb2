// What `compare` puts beside what, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "tests/cli/program.h"

namespace foreshard::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kSmall = "gpt-1.7b-a100-8";

std::string compare(const std::string& arguments) {
  return std::string("compare ") + kSmall + " " + arguments;
}

// The schema may stand anywhere in the file.
TEST(Compare, KnowsAPredictionByItsSchema) {
  const TemporaryFolder folder;
  const Outcome made = foreshard(std::string("simulate ") + kSmall + " --format json");
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string late = "{\"note\": \"" + std::string(500, 'x') + "\"," + made.out.substr(1);
  const Outcome outcome =
      foreshard(compare("'" + folder.write("prediction.json", late).string() + "'"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(Compare, SaysWhatAnotherFileIs) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("found.json", R"({"schema": "foreshard.search/1"})").string();
  const Outcome outcome = foreshard(compare("'" + file + "'"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("found.json: its schema is 'foreshard.search/1'"));
  EXPECT_THAT(outcome.err, HasSubstr("foreshard.prediction/1"));
  EXPECT_THAT(outcome.err, HasSubstr("foreshard.measurement/1"));
}

TEST(Compare, RefusesOptionsThatWouldDoNothing) {
  for (const auto& [options, what] :
       {std::pair("--set-b strategy.zero_stage=1 --by time", "--by says what --break-even makes"),
        std::pair("--set-b strategy.zero_stage=1 --residuals 3",
                  "--residuals is of a study beside a measurement"),
        std::pair("run.json --by usd", "--by is of two studies; run.json is a measurement")}) {
    const Outcome outcome = foreshard(compare(options));
    EXPECT_EQ(outcome.code, 2) << options;
    EXPECT_THAT(outcome.err, HasSubstr(what));
  }
}

// One and a half nodes are no cluster.
TEST(Compare, BreaksEvenBetweenWholeNumbers) {
  const Outcome outcome =
      foreshard(compare(std::string(kSmall) +
                        " --set-b 'cluster.rent=1.5 USD/h' --break-even cluster.nodes=1..4 --by "
                        "usd --set 'cluster.rent=4 USD/h'"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("At no value: up to cluster.nodes = 2 B has less, from 3 on A"));
}

}  // namespace
}  // namespace foreshard::cli
