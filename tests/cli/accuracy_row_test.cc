// `foreshard accuracy --row`: one row of a table, and the study that it is predicted as.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli {
namespace {

using Json = nlohmann::json;

// Two rows of a small GPT on eight A100; what the second leaves open is settled by simulation.
constexpr const char* kRows =
    "id,source,framework,gpu,gpu_mem_gb,num_gpus,gpus_per_node,internode_gbps_per_gpu,model_name,"
    "layers,hidden,heads,kv_heads,ffn,vocab,seq,experts,tp,pp,vpp,cp,dp,ep,zero_stage,mbs,gbs,"
    "recompute,seq_parallel,precision,metric,value,unit,notes\n"
    "stated,SC21,Megatron-LM,A100,80,8,8,,GPT,4,1024,16,16,4096,50257,1024,,2,1,1,1,4,1,0,2,16,"
    "none,"
    "False,fp16,step_time,30,ms,\n"
    "open,SC21,Megatron-LM,A100,80,8,8,,GPT,4,1024,16,16,4096,50257,1024,,2,1,1,1,4,1,0,,16,,"
    "False,fp16,step_time,30,ms,\n";

class AccuracyRow : public testing::Test {
 protected:
  AccuracyRow() { std::ofstream(table_) << kRows; }
  Json row(const std::string& id) const {
    const Outcome outcome = foreshard("accuracy '" + table_ + "' --row " + id + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["rows"][0];
  }
  Json simulated(const std::string& id) const {
    const std::string study = (folder_.path() / "study.yaml").string();
    const Outcome written =
        foreshard("accuracy '" + table_ + "' --row " + id + " --as-study -o '" + study + "'");
    EXPECT_EQ(written.code, 0) << written.err;
    const Outcome outcome = foreshard("simulate '" + study + "' --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  TemporaryFolder folder_;
  std::string table_ = (folder_.path() / "table.csv").string();
};

TEST_F(AccuracyRow, IsWhatSimulateSaysOfItsStudy) {
  for (const char* id : {"stated", "open"}) {
    const Json measured = row(id);
    const Json step = simulated(id)["step"];
    EXPECT_EQ(measured["predicted"], step["time_s"]) << id;
    EXPECT_EQ(measured["low"], step["low_s"]) << id;
    EXPECT_EQ(measured["high"], step["high_s"]) << id;
  }
}

// Micro-batches of 1, 2 and 4, each with three ways to recompute: the slowest is in the interval.
TEST_F(AccuracyRow, LeavesOpenWhatNobodySays) {
  const Outcome study = foreshard("accuracy '" + table_ + "' --row open --as-study");
  EXPECT_THAT(study.out, HasSubstr("open: [micro_batch, recompute]"));
  EXPECT_THAT(study.out, HasSubstr("assumed: [micro_batch, recompute]"));
  const Json open = simulated("open");
  EXPECT_THAT(
      open["warnings"].dump(),
      HasSubstr("the fastest of 9 choices that fit in memory: micro_batch 4, recompute none"));
  const double step = open["step"]["time_s"];
  EXPECT_GT(open["step"]["high_s"].get<double>() / step, 1.3) << "one pass more is a third more";
  EXPECT_LT(step, simulated("stated")["step"]["time_s"].get<double>());
}

TEST_F(AccuracyRow, RefusesWhatIsNoRow) {
  const Outcome unknown = foreshard("accuracy '" + table_ + "' --row nobody");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--row nobody: no table given here has a row with this id"));
  const Outcome all = foreshard("accuracy '" + table_ + "' --as-study");
  EXPECT_EQ(all.code, 2);
  EXPECT_THAT(all.err, HasSubstr("give --row ID"));
}

}  // namespace
}  // namespace foreshard::cli
