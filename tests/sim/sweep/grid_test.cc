// What a sweep's file says: its axes, its points.
#include "sim/sweep/grid.h"

#include "tests/sim/sweep/sweeps.h"
#include "tests/test.h"

namespace foreshard::sweep::grid_test {

std::vector<std::string> texts(const std::vector<yaml::Override>& overrides) {
  std::vector<std::string> lines;
  lines.reserve(overrides.size());
  for (const auto& each : overrides) lines.push_back(each.path + "=" + each.value);
  return lines;
}

constexpr const char* kTwoAxes =
    "set: {strategy.zero_stage: 1}\n"
    "axes:\n"
    "  - {key: strategy.micro_batch, values: [1, 2]}\n"
    "  - name: machine\n"
    "    choices:\n"
    "      - {name: one, set: {cluster.nodes: 1}}\n"
    "      - {name: two, set: {cluster.nodes: 2, cluster: {name: pair, node: dgx-h100}}}\n"
    "train: 1B tokens\n";

TEST(Grid, IsTheProductOfTheAxesTheLastFastest) {
  const TemporaryFolder folder;
  const auto sweep = value_of(sweep_of(folder, kTwoAxes));
  const auto axes = names_of(sweep.sweep);
  EXPECT_EQ(size_of(axes), 4);
  EXPECT_EQ(label_of(0, axes), "micro_batch 1, machine one");
  EXPECT_EQ(label_of(1, axes), "micro_batch 1, machine two");
  EXPECT_EQ(label_of(2, axes), "micro_batch 2, machine one");
}

// Outer keys come before inner ones, whatever the order in the file.
TEST(Grid, SetsOuterKeysFirst) {
  const TemporaryFolder folder;
  const auto sweep = value_of(sweep_of(folder, kTwoAxes));
  EXPECT_THAT(
      texts(overrides_of(sweep, 3)),
      ElementsAre("strategy.zero_stage=1", "strategy.micro_batch=2",
                  "cluster={name: pair, node: dgx-h100}", "cluster.nodes=2", "train=1B tokens"));
}

TEST(Grid, SeesPathsInsideBraces) {
  const auto seen = [](const char* text) { return seen_from_here({text}, "sub"); };
  EXPECT_EQ(seen("my.yaml"), "sub/my.yaml");
  EXPECT_EQ(seen("{node: my.yaml, gpus: 8}"), "{node: \"sub/my.yaml\", gpus: 8}");
  EXPECT_EQ(seen("[{node: \"my, own.yaml\"}, dgx-h100]"),
            "[{node: \"sub/my, own.yaml\"}, dgx-h100]");
  EXPECT_EQ(seen("{bandwidth: 400 Gbit/s, source: \"a: \\\"b\\\"\"}"),
            "{bandwidth: 400 Gbit/s, source: \"a: \\\"b\\\"\"}");
}

TEST(Grid, TakesNamesOutOfTheirQuotes) {
  EXPECT_EQ(unquoted("\"gpt-1.7b\""), "gpt-1.7b");
  EXPECT_EQ(unquoted("gpt-1.7b"), "gpt-1.7b");
  EXPECT_EQ(unquoted("{name: \"x\"}"), "{name: \"x\"}");
}

TEST(Grid, TakesTheLengthOfTheTrainingFromTheStudy) {
  const TemporaryFolder folder;
  folder.write("trained.yaml", std::string(kStudy) + "train: 3B tokens\n");
  const auto file = folder.write(
      "s.yaml", "study: trained.yaml\naxes: [{key: a, values: [1]}]\ngoal: {within: 1 d}\n");
  EXPECT_EQ(value_of(load_sweep(file.string(), shipped_options())).sweep.train, "3B tokens");
}

TEST(Grid, TakesValuesOfEveryShape) {
  const TemporaryFolder folder;
  const auto sweep =
      value_of(sweep_of(folder,
                        "axes:\n"
                        "  - {key: a, values: [[1, 2], {b: [x, \"y, z\"]}, \"5\", 400 "
                        "Gbit/s, true, my/file.yaml]}\n"));
  std::vector<std::string> values;
  for (std::int64_t i = 0; i < 6; ++i) values.push_back(overrides_of(sweep, i).back().value);
  EXPECT_THAT(values, ElementsAre("[1, 2]", "{b: [x, \"y, z\"]}", "\"5\"", "400 Gbit/s", "true",
                                  (folder.path() / "my/file.yaml").string()));
}

TEST(Sweep, HasNotTooManyPoints) {
  std::string many = "axes:\n";
  for (const char* key : {"a", "b", "c"}) {
    many += std::string("  - {key: ") + key + ", values: [0";
    for (int i = 1; i < 100; ++i) many += ", " + std::to_string(i);
    many += "]}\n";
  }
  const TemporaryFolder folder;
  EXPECT_THAT(message_of(sweep_of(folder, many)), HasSubstr("more than 100,000 points"));
}

TEST(Sweep, IsNoStudyOfTheCatalogue) {
  const auto sweep = load_sweep("gpt-1.7b-a100-8", shipped_options());
  EXPECT_THAT(sweep.error().message, HasSubstr("foreshard simulate gpt-1.7b-a100-8 predicts it"));
}

}  // namespace foreshard::sweep::grid_test
