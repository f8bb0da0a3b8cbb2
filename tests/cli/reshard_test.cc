// foreshard reshard: what it prints, and what it refuses.
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"

#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"

namespace foreshard::cli {
namespace reshard_test {

using testing::HasSubstr;

// Columns of 8 ranks of a node to rows of the other node's.
constexpr const char* kMove =
    "--tensor 'bf16[8192,8192]' --from 'tp=8 @0-7 [-, tp]' --to 'tp=8 @8-15 [tp, -]' "
    "--cluster two-dgx-h100";

TEST(Reshard, ShowsStepsBytesAlternativesAndLinks) {
  const Outcome outcome = foreshard(std::string("reshard ") + kMove);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"transfer", "R2.5 total", "alternatives", "(chosen)", "busiest of",
                           "no way is faster than", "gather and slice would take"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
}

TEST(Reshard, WritesJsonCsvAndAProgram) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "move.json";
  const Outcome json = foreshard(std::string("reshard ") + kMove + " --format json --program '" +
                                 file.string() + "'");
  ASSERT_EQ(json.code, 0) << json.err;
  const auto read = nlohmann::json::parse(json.out);
  EXPECT_EQ(read["schema"], "foreshard.reshard/1");
  EXPECT_EQ(read["cluster"], "two-dgx-h100");
  EXPECT_EQ(read["tensor"]["bytes"], 8192LL * 8192 * 2);
  EXPECT_TRUE(read["plan"]["simulated"]);
  // Every byte crosses once: it has to, and need not twice.
  EXPECT_EQ(read["plan"]["exact_total_bytes"], 8192LL * 8192 * 2);
  EXPECT_GT(read["plan"]["time_s"], read["lower_bound"]["time_s"]);
  const auto program = program::program_from_json(text_of(file));
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_TRUE(program::verify(*program).ok());

  const Outcome csv = foreshard(std::string("reshard ") + kMove + " --format csv");
  EXPECT_THAT(csv.out, HasSubstr("step,primitive,axes,groups"));
}

TEST(Reshard, OfWhatIsInPlaceIsDone) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "none.json";
  const Outcome outcome = foreshard(
      "reshard --tensor 'bf16[8192,8192]' --from 'tp=8 [-, tp]' --to 'tp=8 [-, tp]' "
      "--cluster two-dgx-h100 --program '" +
      file.string() + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("nothing moves"));
  EXPECT_THAT(outcome.err, HasSubstr("nothing moves: no Program is written to " + file.string()));
  EXPECT_FALSE(std::filesystem::exists(file));
}

void expect_refused(const std::string& arguments, const std::string& message) {
  const TemporaryFolder folder;
  const std::string result = (folder.path() / "result.json").string();
  const Outcome outcome = foreshard("reshard " + arguments + " --format json -o '" + result + "'");
  EXPECT_EQ(outcome.code, 2) << arguments;
  EXPECT_THAT(outcome.err, HasSubstr(message));
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(std::filesystem::exists(result));
}

TEST(Reshard, RefusesWithPlaceAndRemedy) {
  const std::string cluster = " --cluster two-dgx-h100";
  expect_refused("--tensor 'bf16[8,8]' --from 'x=8 [x,-]' --to 'x=8 @12-19 [x,-]'" + cluster,
                 "to: rank 16 is not in cluster 'two-dgx-h100', which has 16 devices: use ranks 0 "
                 "to 15 or a larger cluster");
  expect_refused("--tensor 'bf16[10,8]' --from 'x=8 [x,-]' --to 'x=8 [-,x]'" + cluster, "--from: ");
  expect_refused("--tensor 'bf17[8,8]' --from 'x=8 [x,-]' --to 'x=8 [-,x]'" + cluster,
                 "--tensor: ");
  expect_refused("--tensor 'bf16[8,8]' --from 'x=8 [x,x]' --to 'x=8 [-,x]'" + cluster, "twice");
  expect_refused("--tensor 'bf16[8,8]' --from 'x=8 [x,-]'" + cluster, "needs --to");
  expect_refused("--from 'x=8 [x,-]' --to 'x=8 [-,x]'" + cluster, "give a tensor");
  expect_refused("--tensor 'bf16[8,8]' --from 'x=8 [x,-]' --to 'x=8 [-,x]' --cluster no-such",
                 "no-such");
}

TEST(Reshard, RefusesOptionsOfOtherModes) {
  for (const char* option : {"--to-cluster two-dgx-h100", "--out there", "--force", "--down 3",
                             "--shards raw", "--max-memory '1 MiB'", "--model gpt-1.7b"})
    expect_refused(std::string(kMove) + " " + option, " does not apply with --tensor");
  expect_refused("--from-strategy fsdp-64 --to-strategy fsdp-64 --program plan.json",
                 "--program does not apply with --from-strategy");
  expect_refused("--from-strategy fsdp-64 --to-strategy fsdp-64 --from 'x=8 [x,-]'",
                 "--from does not apply with --from-strategy");
  expect_refused("--checkpoint here --out there --to 'x=1 [-]' --plans 3",
                 "--plans does not apply with --checkpoint");
  expect_refused("--checkpoint here --out there --to 'x=1 [-]' --cluster two-dgx-h100",
                 "it applies with '--tensor' or '--from-strategy'");
  expect_refused("--checkpoint here --out there --to 'x=1 [-]' --model gpt-1.7b",
                 "--model does not apply with --to");
}

TEST(Reshard, RefusesOneFileForTwoResults) {
  const Outcome outcome =
      foreshard(std::string("reshard ") + kMove + " --program one.json -o one.json");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--program and --output name one file"));
  EXPECT_FALSE(std::filesystem::exists("one.json"));
}

TEST(Reshard, SetChangesWhatItNames) {
  const std::string move =
      "--tensor 'bf16[8192,8192]' --from 'tp=8 @0-7 [-, tp]' --to 'tp=8 @16-23 [tp, -]' "
      "--cluster two-dgx-h100";
  expect_refused(move, "use ranks 0 to 15");
  EXPECT_EQ(foreshard("reshard " + move + " --set cluster.nodes=3").code, 0);
  expect_refused(move + " --set nodes=3", "begin with 'cluster' or 'communication'");
  expect_refused(move + " --set cluster.nodes=3 --set communication.nonsense=3",
                 "--set communication.nonsense=3: error: unknown key");
}

}  // namespace reshard_test
}  // namespace foreshard::cli
