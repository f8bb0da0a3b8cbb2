// What `compare` puts beside what, and what it refuses.
#include <fmt/format.h>

#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli::compare_test {

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
      folder.write("found.json", R"({"schema": "foreshard.catalog/1"})").string();
  const Outcome outcome = foreshard(compare("'" + file + "'"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("found.json: its schema is 'foreshard.catalog/1'"));
  EXPECT_THAT(outcome.err, HasSubstr("foreshard.prediction/1"));
  EXPECT_THAT(outcome.err, HasSubstr("foreshard.measurement/1"));
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

// A cluster is one of A's parts, or takes the place of A's.
TEST(Compare, PutsClustersBesideEachOther) {
  const std::string parts =
      " --model gpt-1.7b --strategy '{tensor_parallel: 8, data_parallel: 2, global_batch: 16}'";
  const Outcome both = foreshard("compare two-dgx-a100 two-dgx-h100" + parts);
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("A100-SXM-80GB -> H100-SXM"));
  const Outcome other = foreshard(compare("two-dgx-h100 --format json"));
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("\"cluster.node.device\""));
  EXPECT_EQ(other.out, foreshard(compare("--set-b cluster=two-dgx-h100 --format json")).out);
  const Outcome alone = foreshard("compare two-dgx-a100 two-dgx-h100");
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("missing: --model, --strategy"));
  const Outcome twice = foreshard("compare two-dgx-a100 two-dgx-h100 --cluster two-dgx-1v" + parts);
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("two-dgx-a100 is a cluster, and --cluster names one too"));
}

// Two grids that differ in a price, one kept in a file and one as JSON.
TEST(Compare, PutsResultsOfStudiesBesideEachOther) {
  const TemporaryFolder folder;
  const auto kept = [&](const std::string& name, const std::string& rent,
                        const std::string& options) {
    const auto sweep = folder.write(
        name + ".yaml", std::string("study: ") + kSmall +
                            "\naxes: [{key: strategy.micro_batch, values: [1, 2]}]\nrank: usd\n"
                            "train: 1B tokens\nset: {cluster.rent: " +
                            rent + " USD/h}\n");
    const Outcome run = foreshard("study '" + sweep.string() + "' " + options);
    EXPECT_EQ(run.code, 0) << run.err;
  };
  const std::string a = "'" + (folder.path() / "a.db").string() + "'";
  const std::string b = "'" + (folder.path() / "b.json").string() + "'";
  kept("one", "2", "--results " + a);
  kept("two", "3", "--format json -o " + b);
  const Outcome both = foreshard("compare " + a + " " + b);
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("set.cluster.rent: 2 USD/h -> 3 USD/h"));
  EXPECT_THAT(both.out, testing::ContainsRegex("\\+50.0 % +micro_batch 1"));
  for (const auto& [arguments, what] :
       {std::pair(a, "name the other ones"),
        std::pair(a + " no.db", "no.db: there is no such file"),
        std::pair(a + " " + kSmall, "there is no such file"),
        std::pair(a + " README.md", "README.md does not; foreshard study SWEEP.yaml --results"),
        std::pair(fmt::format("{} {} --set x=1", a, b), "--set is of studies")}) {
    const Outcome refused = foreshard("compare " + arguments);
    EXPECT_EQ(refused.code, 2) << arguments;
    EXPECT_THAT(refused.err, HasSubstr(what));
  }
}

}  // namespace foreshard::cli::compare_test
