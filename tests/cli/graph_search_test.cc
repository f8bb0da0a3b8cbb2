// The options of a search of a graph.

#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli {
namespace {

// A study of a graph that is searched in a moment.
std::string study_in(const TemporaryFolder& folder) {
  return "'" +
         folder
             .write("study.yaml", "cluster: {name: box, node: dgx-h100}\ngraph: {file: " +
                                      std::string(FORESHARD_SOURCE_DIR) +
                                      "/configs/graphs/mlp.yaml}\n"
                                      "strategy: {global_batch: 4096}\n")
             .string() +
         "'";
}

TEST(GraphSearchCommand, RefusesOptionsThatWouldDoNothing) {
  const TemporaryFolder folder;
  for (const char* option : {"--certify 20", "--front 6"}) {
    const Outcome outcome = foreshard("search " + study_in(folder) + " " + option);
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr("is for a study with a model, not a graph"));
  }
}

TEST(GraphSearchCommand, SaysWhatIsWrongWithRules) {
  const TemporaryFolder folder;
  const auto searched = [&](const std::string& rules) {
    return foreshard("search " + study_in(folder) +
                     " --simulate 1 --level 1 --format json --rules '" +
                     folder.write("rules.yaml", "rules:\n" + rules).string() + "'");
  };
  for (const auto& [rules, what] :
       {std::pair("  - {name: megatron, annotations: [{operator: up, splits: {}}]}\n",
                  "there is another rule 'megatron'"),
        std::pair("  - {name: operators, annotations: [{operator: up, splits: {}}]}\n",
                  "there is another rule 'operators'"),
        std::pair("  - {name: a, annotations: [{operator: up, splits: {}}]}\n"
                  "  - {name: a, annotations: [{operator: up, splits: {}}]}\n",
                  "rules.yaml:3:12: error: there is another rule 'a'"),
        std::pair("  - {name: a, annotations: [{operator: up, splits: {q: tensor}}]}\n",
                  "operator 'up' has no factor 'q' (rule "),
        std::pair("  - {name: a, annotations: [{operator: up, splits: {x: no}}]}\n",
                  "no mesh axis is called 'no'; there are ")}) {
    const Outcome outcome = searched(rules);
    EXPECT_EQ(outcome.code, 2) << rules;
    EXPECT_THAT(outcome.err, HasSubstr(what));
    EXPECT_THAT(outcome.err, HasSubstr("rules.yaml:")) << rules;
  }
  const Outcome nowhere =
      searched("  - {name: a, annotations: [{operator: no.such, splits: {}}]}\n");
  EXPECT_EQ(nowhere.code, 0) << nowhere.err;
  const char* remark = "rule 'a': the graph has no operator 'no.such'; the rule is not tried";
  EXPECT_THAT(nowhere.err, HasSubstr(remark));
  EXPECT_THAT(nowhere.out, HasSubstr(remark));
}

}  // namespace
}  // namespace foreshard::cli
