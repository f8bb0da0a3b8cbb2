// `foreshard calibrate` and what else takes measurements, as a shell would call them.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli {
namespace {

TEST(CalibrateCommand, PlansWhatStudiesNeed) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "micro.json").string();
  const Outcome outcome = foreshard(
      "calibrate --plan configs/studies/host-dp2.yaml configs/studies/host-pp2.yaml -o '" + file +
      "'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto program = nlohmann::json::parse(text_of(file));
  EXPECT_EQ(program["schema"], "foreshard.program/1");
  int kernels = 0;
  int transfers = 0;
  for (const auto& block : program["blocks"]) {
    const auto& task = block["tasks"][0];
    kernels += task.contains("gemm") || task.contains("attention") || task.contains("pass");
    transfers += task.contains("communication") && task["communication"]["kind"] == "send";
  }
  EXPECT_GT(kernels, 30);
  EXPECT_GT(transfers, 2);
}

// Eight GPUs of the golden file's machine; the operation and the ranks come from the file.
TEST(CalibrateCommand, TakesNcclTestsOutput) {
  const std::string file = "tests/golden/nccl_tests/all_reduce.txt";
  const Outcome scored = foreshard("accuracy " + file + " --machine two-dgx-h100 --format json");
  ASSERT_EQ(scored.code, 0) << scored.err;
  const auto report = nlohmann::json::parse(scored.out);
  EXPECT_EQ(report["rows"].size(), 4U);
  for (const auto& row : report["rows"]) EXPECT_EQ(row["status"], "ok") << row.dump();
  const Outcome usual = foreshard("accuracy tests/golden/nccl_tests/all_gather.json --format json");
  ASSERT_EQ(usual.code, 0) << usual.err;
  for (const auto& row : nlohmann::json::parse(usual.out)["rows"])
    EXPECT_EQ(row["status"], "ok") << row.dump();
  const Outcome fitted =
      foreshard("calibrate --collectives " + file + " --machine two-dgx-h100 --dry-run");
  EXPECT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_THAT(fitted.out, HasSubstr("ring"));
  const Outcome small = foreshard("accuracy " + file + " --machine host-2 --format json");
  ASSERT_EQ(small.code, 0) << small.err;
  EXPECT_THAT(small.out, HasSubstr("more than machine 'host-2' has"));
}

// A page goes to a file of its own, beside the result.
TEST(AccuracyCommand, WritesAPageBesideItsResult) {
  const TemporaryFolder folder;
  const std::string page = (folder.path() / "page.md").string();
  const std::string call =
      "accuracy tests/golden/nccl_tests/all_reduce.txt --machine two-dgx-h100 --summary --report ";
  const Outcome both = foreshard(call + "'" + page + "'");
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("error in percent"));
  EXPECT_THAT(text_of(page), HasSubstr("| all_reduce.txt | 4 | 4 |"));
  EXPECT_THAT(text_of(page), HasSubstr("`foreshard accuracy TABLE.csv ... --report FILE.md`"));
  const Outcome same = foreshard(call + "'" + page + "' -o '" + page + "'");
  EXPECT_EQ(same.code, 2);
  EXPECT_THAT(same.err, HasSubstr("--report and --output both name"));
  const Outcome nowhere = foreshard(call + "-");
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("a page goes to a file, not to stdout"));
}

TEST(CalibrateCommand, StudiesTakeTheFilesThatItWrites) {
  const Outcome own = foreshard("simulate configs/studies/host-dp2.yaml --format json");
  const Outcome given = foreshard(
      "simulate configs/studies/host-dp2.yaml --cluster host-2 --communication host --format json");
  ASSERT_EQ(own.code, 0) << own.err;
  ASSERT_EQ(given.code, 0) << given.err;
  EXPECT_EQ(nlohmann::json::parse(own.out)["step"], nlohmann::json::parse(given.out)["step"]);
  const Outcome missing =
      foreshard("simulate configs/studies/host-dp2.yaml --communication no-such");
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("no-such"));
}

}  // namespace
}  // namespace foreshard::cli
