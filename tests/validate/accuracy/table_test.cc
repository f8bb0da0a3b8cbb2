// Tables of each kind in, outcomes out; bad tables and what is said about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/validate/accuracy/tables.h"

namespace foreshard::accuracy {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Score : public testing::Test {
 protected:
  Report of(const std::string& text) {
    auto report = score({tables_.write("table.csv", text)}, options());
    EXPECT_TRUE(report) << (report ? "" : report.error().message);
    return report ? *std::move(report) : Report{};
  }
  std::string fault(const std::string& text) {
    const auto report = score({tables_.write("table.csv", text)}, options());
    return report ? "no fault" : report.error().message;
  }
  Tables tables_;
};

TEST_F(Score, TrainingRows) {
  const Report report = of(kTrainingHeader + training_line("A", "60") +
                           training_line("B", "60", "8") + training_line("C", "1.5", "", "layer"));
  ASSERT_EQ(report.rows.size(), 3u);
  const Outcome& a = report.rows[0];
  EXPECT_EQ(a.status, Status::kOk) << a.reason;
  EXPECT_EQ(a.id, "A");
  EXPECT_EQ(a.file, "table.csv");
  EXPECT_EQ(a.family, "SC21");
  EXPECT_DOUBLE_EQ(*a.measured, 0.060);
  EXPECT_GT(*a.predicted, 0.005);
  EXPECT_LT(*a.predicted, 0.5);
  ASSERT_TRUE(a.breakdown);
  EXPECT_NEAR(a.breakdown->total() / 1_s, *a.predicted, 1e-9);
  EXPECT_EQ(report.rows[1].status, Status::kUnsupported);
  EXPECT_THAT(report.rows[1].reason, HasSubstr("experts"));
  EXPECT_EQ(report.rows[2].status, Status::kUnsupported);
  EXPECT_EQ(report.overall.rows, 3);
  EXPECT_EQ(report.overall.ok, 1);
  EXPECT_EQ(report.overall.unsupported, 2);
}

TEST_F(Score, PeakMemoryIsApartFromTime) {
  const Report report = of(kTrainingHeader + training_line("A", "60") +
                           training_line("M", "10", "", "peak_memory", "GiB"));
  EXPECT_EQ(report.overall.time.pairs, 1);
  EXPECT_EQ(report.overall.memory.pairs, 1);
  EXPECT_DOUBLE_EQ(*report.rows[1].measured, 10 * 0x1p30);
  EXPECT_GT(*report.rows[1].predicted, 0x1p29);
}

TEST_F(Score, TiersLieBesideTheTable) {
  tables_.write("TIERS.csv", "id,tier,completeness\nA,core,A\nB,aux,A\n");
  const Report report = of(kTrainingHeader + training_line("A", "60") + training_line("B", "30"));
  EXPECT_EQ(report.rows[0].tier, "core");
  EXPECT_EQ(report.tiers.at("aux").rows, 1);
  EXPECT_EQ(&report.score(), &report.tiers.at("core"));
}

TEST_F(Score, RowsKeepTheirOrderOverThreads) {
  std::string text = kTrainingHeader;
  for (int i = 0; i < 12; ++i)
    text += training_line("R" + std::to_string(i), std::to_string(50 + i));
  const auto path = tables_.write("table.csv", text);
  const auto one = score({path}, options(1));
  const auto four = score({path}, options(4));
  ASSERT_TRUE(one && four);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(four->rows[i].id, "R" + std::to_string(i));
    EXPECT_EQ(*one->rows[i].predicted, *four->rows[i].predicted);
  }
}

const std::string kCollectives =
    "id,source,machine,gpu,num_gpus,nodes,gpus_per_node,intra_link,inter_net,nccl_version,op,dtype,"
    "bytes,time_us,algbw_gbs,busbw_gbs,algo_hint,notes\n";

TEST_F(Score, Collectives) {
  tables_.write("machines.csv",
                "machine,gpus_per_node,gpu,intra_node,nics_per_node,nic_gbps,source,comment\n"
                "Box,8,H100,,8,400,,\n");
  const Report report =
      of(kCollectives +
         "one,src@1:a/b,HGX,H100-SXM5-80GB,8,1,8,,,2,all_reduce,float,536870912,2110,,,,\n"
         "two,src@1:a/c,Box one,H100-SXM5-80GB,16,2,8,,,2,all_gather,float,536870912,1400,,,,\n"
         "far,src@1:a/c,Other,H100-SXM5-80GB,16,2,8,,,2,all_gather,float,536870912,1400,,,,\n"
         "nil,src@1:a/c,HGX,H100-SXM5-80GB,8,1,8,,,2,all_reduce,float,0,9,,,,\n"
         "odd,src@1:a/c,HGX,H100-SXM5-80GB,8,1,8,,,2,scan,float,8,9,,,,\n");
  ASSERT_EQ(report.rows.size(), 5u);
  EXPECT_EQ(report.rows[0].id, "one");
  EXPECT_EQ(report.rows[0].family, "src@1");
  EXPECT_GT(*report.rows[0].predicted, 1.2e-3);  // 445 GB/s of bus bandwidth would be 2.1 ms
  EXPECT_LT(*report.rows[0].predicted, 4e-3);
  EXPECT_TRUE(report.rows[1].assumed.empty());
  EXPECT_EQ(report.rows[2].assumed, std::vector<std::string>{"network"});
  EXPECT_GT(*report.rows[3].predicted, 1e-6);  // no bytes: the latency alone
  EXPECT_THAT(report.rows[4].reason, HasSubstr("'scan'"));
}

// 4096^3 in bf16 is 137 GFLOP: at 989 TFLOP/s 139 us.
TEST_F(Score, Products) {
  const Report report =
      of("source,gpu,kernel_source,dtype,m,n,k,time_us\n"
         "x@1:y,H100-SXM5-80GB,k,bfloat16,4096,4096,4096,190\n"
         "x@1:y,H100-SXM5-80GB,k,fp8_block,4096,4096,4096,100\n");
  EXPECT_EQ(report.rows[0].id, "table.csv:2");
  EXPECT_GT(*report.rows[0].predicted, 139e-6);
  EXPECT_LT(*report.rows[0].predicted, 280e-6);
  EXPECT_THAT(report.rows[1].reason, HasSubstr("fp8_block"));
}

TEST_F(Score, AttentionKernels) {
  const Report report =
      of("source,gpu,kernel_source,batch,seqlen,q_heads,kv_heads,head_dim,time_us\n"
         "x,A100-SXM4-80GB,k,1,4096,32,8,128,800\n");
  EXPECT_EQ(report.overall.ok, 1);
  EXPECT_GT(*report.rows[0].predicted, 200e-6);
}

TEST_F(Score, BadTables) {
  EXPECT_THAT(fault("a,b\n1,2\n"),
              AllOf(HasSubstr("table.csv:1:"), HasSubstr("training"), HasSubstr("gemm")));
  EXPECT_THAT(fault(""), HasSubstr("table.csv"));
  EXPECT_THAT(fault("model_name,metric\nx,y\n"),
              AllOf(HasSubstr("table.csv:1:"), HasSubstr("lacks"), HasSubstr("'num_gpus'")));
  EXPECT_THAT(fault(kTrainingHeader + training_line("A", "60") + training_line("B", "sixty")),
              AllOf(HasSubstr("table.csv:3:"), HasSubstr("'sixty'"), HasSubstr("'value'")));
  EXPECT_THAT(fault(kTrainingHeader + training_line("A", "-1")), HasSubstr("table.csv:2:"));
  EXPECT_THAT(fault(kTrainingHeader + training_line("A", "")),
              AllOf(HasSubstr("table.csv:2:"), HasSubstr("'value' is empty")));
  EXPECT_THAT(fault(kTrainingHeader + training_line("", "60")), HasSubstr("'id' is empty"));
  EXPECT_THAT(fault(kTrainingHeader + "A,too,short\n"), HasSubstr("table.csv:2:"));
  EXPECT_THAT(fault(kCollectives + "x,s,m,H100,eight,1,8,,,2,all_reduce,float,8,9,,,,\n"),
              AllOf(HasSubstr("table.csv:2:"), HasSubstr("'eight'"), HasSubstr("'num_gpus'")));
  EXPECT_THAT(fault("source,gpu,dtype,m,n,k,time_us\nx,H100,bf16,1.5,1,1,1\n"),
              AllOf(HasSubstr("table.csv:2:"), HasSubstr("'1.5'"), HasSubstr("'m'")));
}

TEST_F(Score, AFaultOfTheCatalogueEndsTheRun) {
  const auto table = tables_.write("table.csv", kTrainingHeader + training_line("A", "60"));
  const auto report = score({table}, {.catalogue = {"/nowhere"}});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Error::Code::kInvalidInput);
}

TEST_F(Score, AFileThatIsNotThere) {
  const auto report = score({"/nowhere/table.csv"}, options());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Error::Code::kIo);
}

}  // namespace
}  // namespace foreshard::accuracy
