// Tables of each kind in, outcomes out; bad tables and what is said about them.

#include "tests/evidence/tables.h"
#include "tests/test.h"

namespace foreshard::accuracy {
namespace {

class Score : public testing::Test {
 protected:
  Report of(const std::string& text) {
    return value_of(score({tables_.write("table.csv", text)}, options()));
  }
  std::string fault(const std::string& text) {
    return message_of(score({tables_.write("table.csv", text)}, options()), "no fault");
  }
  Tables tables_;
};

TEST_F(Score, TrainingRows) {
  std::string unknown = training_line("B", "60");
  unknown.replace(unknown.find("A100"), 4, "TPUv4");
  const Report report = of(kTrainingHeader + training_line("A", "60") + unknown +
                           training_line("C", "1.5", "", "layer"));
  ASSERT_EQ(report.rows.size(), 3u);
  const Outcome& a = report.rows[0];
  EXPECT_EQ(a.status, RowStatus::kOk) << a.reason;
  EXPECT_EQ(a.id, "A");
  EXPECT_EQ(a.file, "table.csv");
  EXPECT_EQ(a.family, "SC21");
  EXPECT_DOUBLE_EQ(*a.measured, 0.060);
  EXPECT_GT(*a.predicted, 0.005);
  EXPECT_LT(*a.predicted, 0.5);
  ASSERT_TRUE(a.breakdown);
  EXPECT_NEAR(a.breakdown->total() / 1_s, *a.predicted, 1e-9);
  EXPECT_EQ(report.rows[1].status, RowStatus::kUnsupported);
  EXPECT_THAT(report.rows[1].reason, HasSubstr("TPUv4"));
  EXPECT_EQ(report.rows[2].status, RowStatus::kUnsupported);
  EXPECT_EQ(report.overall.rows, 3);
  EXPECT_EQ(report.overall.ok, 1);
  EXPECT_EQ(report.overall.unsupported, 2);
}

// A layer forward and backward, and the backward pass in its two parts, which are as long.
TEST_F(Score, PartsOfAStep) {
  const auto line = [](const std::string& metric, const std::string& unit = "ms") {
    std::string text = training_line("A", "7", "", metric, unit);
    const std::string mesh = ",2,1,1,1,4,1,0,";  // tensor 2, data 4
    text.replace(text.find(mesh), mesh.size(), ",2,4,1,1,1,1,0,");
    return text;
  };
  const Report report = of(kTrainingHeader + line("layer_forward") + line("layer_backward") +
                           line("stage_T_B") + line("stage_T_W") + line("layer_forward", "s"));
  ASSERT_EQ(report.rows.size(), 5u);
  for (std::size_t i = 0; i < 4; ++i)
    ASSERT_EQ(report.rows[i].status, RowStatus::kOk) << report.rows[i].reason;
  EXPECT_DOUBLE_EQ(*report.rows[0].measured, 0.007);
  const auto predicted = [&](std::size_t i) { return *report.rows[i].predicted; };
  EXPECT_GT(predicted(1), 1.5 * predicted(0));
  EXPECT_LT(predicted(1), 2.5 * predicted(0));
  EXPECT_NEAR(predicted(2) + predicted(3), predicted(1), 0.05 * predicted(1));
  EXPECT_THAT(report.rows[4].reason, HasSubstr("unit 's' of metric 'layer_forward'"));
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

// 4096^3 in bf16 is 137 GFLOP: at 989 TFLOP/s 139 us. In fp8 with scales of blocks 69 us; what
// TensorRT-LLM casts before it are 4096^2 elements of 2 B in and 1 B out: 15 us at 3.35 TB/s.
TEST_F(Score, Products) {
  const Report report =
      of("source,gpu,kernel_source,dtype,m,n,k,time_us\n"
         "x@1:y,H100-SXM5-80GB,k,bfloat16,4096,4096,4096,190\n"
         "x@1:y,H100-SXM5-80GB,k,fp8_block,4096,4096,4096,100\n"
         "x@1:h100/trtllm/1,H100-SXM5-80GB,k,fp8_block,4096,4096,4096,120\n");
  EXPECT_EQ(report.rows[0].id, "table.csv:2");
  EXPECT_GT(*report.rows[0].predicted, 139e-6);
  EXPECT_LT(*report.rows[0].predicted, 280e-6);
  EXPECT_EQ(report.rows[1].status, RowStatus::kOk);
  EXPECT_GT(*report.rows[1].predicted, 69e-6);
  EXPECT_LT(*report.rows[1].predicted, *report.rows[0].predicted);
  EXPECT_GT(*report.rows[2].predicted, *report.rows[1].predicted + 15e-6);
}

TEST_F(Score, AttentionKernels) {
  const Report report =
      of("source,gpu,kernel_source,batch,seqlen,q_heads,kv_heads,head_dim,time_us\n"
         "x,A100-SXM4-80GB,k,1,4096,32,8,128,800\n");
  EXPECT_EQ(report.overall.ok, 1);
  EXPECT_GT(*report.rows[0].predicted, 200e-6);
}

// Its own kernels cast at 0.56 of the bandwidth: 2 + 1 bytes of 16,384^2 elements in 429 us, and
// the search for the largest reads 2 bytes in 286 us. Others cast as the device's usual kernels do.
TEST_F(Score, CastsOfServingLoadElementByElement) {
  const Report report =
      of("source,gpu,kernel_source,dtype,m,n,k,time_us\n"
         "x@1:y,H100-SXM5-80GB,torch_flow,fp8,16384,16,16384,800\n"
         "x@1:h100/trtllm/1,H100-SXM5-80GB,torch_flow,fp8,16384,16,16384,800\n"
         "x@1:h100/trtllm/1,H100-SXM5-80GB,deepgemm,fp8,16384,16,16384,800\n");
  const auto casts = [&](std::size_t row) {
    return *report.rows[row].predicted - *report.rows[0].predicted;
  };
  EXPECT_NEAR(casts(1), 715e-6 + 4 * 2.6e-6, 5e-6);
  EXPECT_LT(casts(2), 0.8 * casts(1));
}

// 0.26 s of attention are at the clocks that the power limit leaves, a quarter of it is not.
TEST_F(Score, KernelsThatLastMeetThePowerLimit) {
  const std::string head =
      "source,gpu,kernel_source,batch,seqlen,q_heads,kv_heads,head_dim,time_us\n";
  const Report report = of(head +
                           "x,B200,k,16,32768,32,32,128,260000\n"
                           "x,B200,k,4,32768,32,32,128,60000\n");
  ASSERT_EQ(report.overall.ok, 2);
  EXPECT_GT(*report.rows[0].predicted, 4.3 * *report.rows[1].predicted);
}

// vLLM first copies 4,096 x 8 x 256 elements into its cache: 34 MB in all, 16 us at 2.04 TB/s, by
// 4,096 blocks of 512 threads, of which 108 multiprocessors hold 432: 9.5 times 2 us.
TEST_F(Score, AttentionOfServingFillsItsCache) {
  const Report report =
      of("source,gpu,kernel_source,batch,seqlen,q_heads,kv_heads,head_dim,time_us\n"
         "x,A100-SXM4-80GB,k,1,4096,32,8,128,800\n"
         "x,A100-SXM4-80GB,vllm_flash_attn,1,4096,32,8,128,800\n");
  EXPECT_GT(*report.rows[1].predicted, *report.rows[0].predicted + 35e-6);
  EXPECT_LT(*report.rows[1].predicted, *report.rows[0].predicted + 45e-6);
}

// The same kernels in every format, by hand: 16 x 16 queries and keys have 4 x 16^2 x 64 FLOP a
// head forward, half of them with a mask, and 2.5 times as many backward.
TEST_F(Score, AttentionRatesCountBothDirections) {
  const std::string rates =
      "device,implementation,direction,dtype,head_dim_qk,head_dim_v,seq,batch,q_heads,kv_heads,"
      "causal,time_ms,tflops,note,source\n";
  const Report report = of(rates +
                           "NVIDIA H100,FA3,fwd,bfloat16,128,128,4096,2,32,8,1,,400,,s\n"
                           "NVIDIA H100,FA3,bwd,bfloat16,128,128,4096,2,32,8,1,2.5,,,s\n"
                           "NVIDIA H100,FA3,fwd+bwd,bfloat16,128,128,4096,2,32,8,0,,400,,s\n"
                           "NVIDIA H100,FA3,bwd,bfloat16,192,128,4096,2,32,8,1,2.5,,,s\n"
                           "NVIDIA H100,x,bwd,bfloat16,128,128,4096,2,32,8,1,2.5,,window 128,s\n");
  const double forward = 4.0 * 2 * 32 * 4096 * 4096 * 128;
  EXPECT_DOUBLE_EQ(*report.rows[0].measured, forward / 2 / 400e12);
  EXPECT_DOUBLE_EQ(*report.rows[1].measured, 2.5e-3);
  EXPECT_DOUBLE_EQ(*report.rows[2].measured, 3.5 * forward / 400e12);
  EXPECT_GT(*report.rows[1].predicted, *report.rows[0].predicted);
  EXPECT_EQ(report.rows[1].kernel, "attention_bwd on H100-SXM");
  // Heads of 192 and 128 have 832 / 640 of the products; a window of 128 of 4,096 keys few of them.
  EXPECT_GT(*report.rows[3].predicted, *report.rows[1].predicted);
  EXPECT_LT(*report.rows[4].predicted, 0.3 * *report.rows[1].predicted);
  EXPECT_EQ(report.kernels.at("attention_fwd+bwd on H100-SXM").ok, 1);
}

TEST_F(Score, NormsHaveTwoOutcomesALine) {
  const Report report = of(
      "device,backend,norm,dtype,rows,columns,bias,fwd_ms,bwd_ms,fwd_gbps,bwd_gbps,model,source\n"
      "NVIDIA H200,cudnn,rms_norm,bfloat16,8192,8192,False,0.07,0.15,,,m,s\n"
      "NVIDIA H200,cudnn,group_norm,bfloat16,8192,8192,False,0.07,0.15,,,m,s\n");
  ASSERT_EQ(report.rows.size(), 4u);
  EXPECT_EQ(report.rows[0].id, "table.csv:2:fwd");
  EXPECT_EQ(report.rows[1].kernel, "rms_norm_bwd on H200-SXM");
  EXPECT_GT(*report.rows[1].predicted, *report.rows[0].predicted);
  EXPECT_THAT(report.rows[2].reason, HasSubstr("'group_norm'"));
}

// A backward product has two of the forward one's FLOPs, at full clocks where the forward one has
// 0.84 of them; the head of a layer at mp 2 has half of them.
TEST_F(Score, LayersOfTraining) {
  const Report report =
      of("source,gpu,op,params,fwd_us,bwd_us\n"
         "s,A100-SXM4-80GB,linear1,mp=2;b=4;l=4096;dim=4096,1800,3600\n"
         "s,A100-SXM4-80GB,RoPE,mp=2;b=4;h=32;l=4096;dim=4096,1800,3600\n"
         "s,A100-SXM4-80GB,optimizer,num_layers=2;params=1.7e9,100000,\n"
         "s,GH200-120GB,gelu,mp=1;b=4;l=4096;dim=4096,180,360\n"
         "s,A100-SXM4-80GB,linear1,mp=2;b=4;l=none;dim=4096,1800,3600\n");
  ASSERT_EQ(report.rows.size(), 9u);
  EXPECT_NEAR(*report.rows[1].predicted / *report.rows[0].predicted, 2 * 0.84, 0.1);
  EXPECT_THAT(report.rows[2].reason, HasSubstr("chain"));
  EXPECT_THAT(report.rows[4].reason, HasSubstr("whole optimizer step"));
  EXPECT_EQ(report.rows[5].status, RowStatus::kOk);
  EXPECT_THAT(report.rows[6].reason, HasSubstr("doubtful"));
  EXPECT_THAT(report.rows[7].reason, HasSubstr("line 6: column 'params' has no whole number 'l'"));
}

// Of rows of 1,024 elements a warp reads each once; longer ones take a kernel of their own, which
// the fused one of masked scores is not.
TEST_F(Score, SoftmaxOfLongRowsIsAnotherKernel) {
  const Report report =
      of("source,gpu,op,params,fwd_us,bwd_us\n"
         "s,A100-SXM4-80GB,softmax,mp=1;b=4;h=16;l=1024,200,400\n"
         "s,A100-SXM4-80GB,softmax,mp=1;b=1;h=16;l=2048,200,400\n"
         "s,A100-SXM4-80GB,ScaledUpperTriangMaskedSoftmax,mp=1;b=1;h=16;l=2048,200,400\n");
  EXPECT_DOUBLE_EQ(*report.rows[4].predicted,
                   *report.rows[0].predicted);  // 67 million elements each
  EXPECT_GT(*report.rows[2].predicted, 1.5 * *report.rows[0].predicted);
  EXPECT_GT(*report.rows[3].predicted, 1.5 * *report.rows[1].predicted);
}

TEST_F(Score, OneTimeForBothDirectionsIsNone) {
  const Report report =
      of("source,gpu,op,params,fwd_us,bwd_us\n"
         "s,A100-SXM4-80GB,embedding,mp=1;b=4;l=4096;dim=4096,900,905\n"
         "s,A100-SXM4-80GB,embedding,mp=1;b=4;l=4096;dim=4096,900,1905\n"
         "s,A100-SXM4-80GB,res_add,b=4;l=4096;dim=4096,200,200\n");
  EXPECT_THAT(report.rows[0].reason, HasSubstr("one time for both directions"));
  EXPECT_THAT(report.rows[1].reason, HasSubstr("one time for both directions"));
  EXPECT_EQ(report.rows[2].status, RowStatus::kOk);
  EXPECT_EQ(report.rows[4].status, RowStatus::kOk);
}

// SwiGLU reads the up projection's width and writes half of it; rotary embedding turns queries and
// keys: of 12,288 columns at hidden size 4,096 the keys have 4,096.
TEST_F(Score, LayersOfServing) {
  const Report report =
      of("source,gpu,model,op,tp,tokens_m,n_or_hidden,k,time_us,tflops,eff_gbs\n"
         "s,A100-80GB,llama,mlp_up_proj,1,4096,22016,4096,3300,,\n"
         "s,A100-80GB,llama,mlp_act,1,4096,4096,,266,,\n"
         "s,A100-80GB,llama,attn_pre_proj,1,4096,12288,4096,1900,,\n"
         "s,A100-80GB,llama,attn_rope,1,4096,4096,,149,,\n"
         "s,A100-80GB,llama,mystery,1,4096,4096,,149,,\n");
  EXPECT_EQ(report.overall.ok, 4);
  EXPECT_NEAR(*report.rows[1].predicted, 266e-6, 80e-6);
  EXPECT_NEAR(*report.rows[3].predicted, 149e-6, 50e-6);
  EXPECT_THAT(report.rows[4].reason, HasSubstr("'mystery'"));
}

// 2 x 512 x 4096 x 4096 FLOP at 200 TFLOP/s: 85.9 us.
TEST_F(Score, Efficiencies) {
  const Report report =
      of("source,gpu,op,key,peak_tflops,efficiency,tflops,time_us_from_eff\n"
         "s,A100-PCIe-80GB,matmul,\"b=1, m=512, k=4096, n=4096, layout=NT, "
         "accumulate=True\",312,,200,\n"
         "s,A100-PCIe-80GB,default,default,312,,234,\n"
         "s,A100-PCIe-80GB,matmul,\"b=1, m=512, k=4096\",312,,200,\n");
  EXPECT_NEAR(*report.rows[0].measured, 85.9e-6, 0.1e-6);
  EXPECT_THAT(report.rows[1].reason, HasSubstr("no shape"));
  EXPECT_THAT(report.rows[2].reason, HasSubstr("no whole number 'n'"));
}

// The shape of experts' products is the forward one's: the gradient of 20 weights of 4,096 x 1,024
// adds to 84 million fp32 numbers, read and written in 0.33 ms at 2.04 TB/s.
TEST_F(Score, GroupedProductsByStage) {
  const auto row = [](std::string_view stage) {
    return "s,A100-PCIe-80GB,group_matmul,\"ng=20, M=64, N=4096, K=1024, main_grad_dtype=fp32, "
           "stage=" +
           std::string(stage) + ", accumulate=" + (stage == "bwd_grad_w" ? "True" : "False") +
           "\",312,,100,\n";
  };
  const Report report = of("source,gpu,op,key,peak_tflops,efficiency,tflops,time_us_from_eff\n" +
                           row("fwd") + row("bwd_grad_act") + row("bwd_grad_w"));
  EXPECT_EQ(report.overall.ok, 3);
  EXPECT_LT(*report.rows[0].predicted, 0.33e-3);
  EXPECT_LT(*report.rows[1].predicted, 0.33e-3);
  EXPECT_GT(*report.rows[2].predicted, 0.33e-3);
}

// A file beside the catalogue's own says how a table with other columns is read.
TEST_F(Score, AFormatOfKernelsIsAFile) {
  const auto format = tables_.write("mine.yaml",
                                    "name: mine\ncolumns: [what, out, in, ms]\n"
                                    "times: [{column: ms, unit: 1 ms}]\n"
                                    "operators: [{kernels: [{kernel: gemm, sizes: "
                                    "{m: 4096, n: out, k: in}}]}]\n");
  const auto folder = format.parent_path() / "tables/kernels";
  std::filesystem::create_directories(folder);
  std::filesystem::rename(format, folder / "mine.yaml");
  Options own = options();
  own.catalogue.insert(own.catalogue.begin(), format.parent_path());
  const auto table =
      tables_.write("table.csv", "gpu,what,out,in,ms\nH100-SXM5-80GB,dense,4096,4096,0.19\n");
  const auto report = score({table}, own);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_DOUBLE_EQ(*report->rows.at(0).measured, 190e-6);
  EXPECT_GT(*report->rows[0].predicted, 139e-6);
  EXPECT_FALSE(score({table}, options()));
}

TEST_F(Score, DataSheetsAreNoKernels) {
  const Report report = of("source,device,what,value\ns,H100,power W,700\n");
  EXPECT_EQ(report.overall.unsupported, 1);
  EXPECT_THAT(report.rows[0].reason, HasSubstr("data sheet"));
}

TEST_F(Score, BadTables) {
  EXPECT_THAT(fault("a,b\n1,2\n"),
              AllOf(HasSubstr("table.csv:1:"), HasSubstr("training"), HasSubstr("gemm")));
  EXPECT_THAT(fault(""), HasSubstr("table.csv"));
  EXPECT_THAT(fault("model_name,metric\nx,y\n"),
              AllOf(HasSubstr("table.csv:1:"), HasSubstr("lacks"), HasSubstr("'num_gpus'")));
  EXPECT_THAT(fault(kTrainingHeader + "A,too,short\n"), HasSubstr("table.csv:2:"));
}

// One good row, and one with the cell: it says which, and the good one is predicted.
TEST_F(Score, ABadCellCostsItsRowOnly) {
  const auto reason = [&](const std::string& table) {
    const Report report = of(table);
    EXPECT_EQ(report.overall.rows, 2);
    EXPECT_EQ(report.overall.ok, 1) << report.rows[0].reason;
    EXPECT_EQ(report.rows[1].status, RowStatus::kUnsupported);
    EXPECT_FALSE(report.rows[1].predicted);
    return report.rows[1].id + ": " + report.rows[1].reason;
  };
  const std::string training = kTrainingHeader + training_line("A", "60");
  EXPECT_EQ(reason(training + training_line("B", "sixty")),
            "B: line 3: 'sixty' in column 'value' is not a number above 0");
  EXPECT_EQ(reason(training + training_line("B", "-1")),
            "B: line 3: '-1' in column 'value' is not a number above 0");
  EXPECT_EQ(reason(training + training_line("B", "")), "B: line 3: column 'value' is empty");
  EXPECT_EQ(reason(training + training_line("", "60")),
            "table.csv:3: line 3: column 'id' is empty");
  const std::string collectives = kCollectives + "A,s,m,H100,8,1,8,,,2,all_reduce,float,8,9,,,,\n";
  EXPECT_EQ(reason(collectives + "B,s,m,H100,eight,1,8,,,2,all_reduce,float,8,9,,,,\n"),
            "B: line 3: 'eight' in column 'num_gpus' is not a whole number above 0");
  EXPECT_EQ(reason(collectives + "B,s,m,H100,8,1,8,,,2,all_reduce,float,8,,,,,\n"),
            "B: line 3: column 'time_us' is empty");
  const std::string products = "source,gpu,dtype,m,n,k,time_us\nx,H100,bf16,64,64,64,3\n";
  EXPECT_EQ(reason(products + "x,H100,bf16,1.5,1,1,1\n"),
            "table.csv:3: line 3: '1.5' in column 'm' is not a whole number above 0");
  EXPECT_EQ(reason(products + "x,H100,bf16,64,64,64,\n"),
            "table.csv:3: line 3: column 'time_us' is empty");
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
