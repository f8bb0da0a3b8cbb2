// foreshard reshard: what it prints, and what it refuses.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/test.h"

#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"

namespace foreshard::cli::reshard_test {

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
  EXPECT_TRUE(program::verify(value_of(program::program_from_json(text_of(file)))).ok());

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

TEST(Reshard, SetChangesWhatItNames) {
  const std::string move =
      "--tensor 'bf16[8192,8192]' --from 'tp=8 @0-7 [-, tp]' --to 'tp=8 @16-23 [tp, -]' "
      "--cluster two-dgx-h100";
  EXPECT_EQ(foreshard("reshard " + move + " --set cluster.nodes=3").code, 0);
}

}  // namespace foreshard::cli::reshard_test
