// From the columns of a row to cluster, model and strategy; what is assumed; what is unsupported.
#include "evidence/setting.h"

#include "tests/evidence/rows.h"
#include "tests/test.h"

namespace foreshard::accuracy {
namespace {

using study::choices_of;

TEST_F(SettingOf, ARowThatStatesEverything) {
  const Setting setting = of(full_row());
  EXPECT_THAT(setting.assumed, IsEmpty());
  EXPECT_EQ(setting.cluster.device, "A100-SXM-80GB");
  EXPECT_EQ(setting.cluster.gpus, 64);
  EXPECT_EQ(setting.cluster.internode_per_gpu, 200_Gbit_s);
  EXPECT_EQ(setting.model.hidden, 3072);
  EXPECT_TRUE(setting.model.bias);
  const Strategy& strategy = setting.strategy;
  EXPECT_EQ(strategy.tensor_parallel, 2);
  EXPECT_EQ(strategy.pipeline_parallel, 2);
  EXPECT_EQ(strategy.data_parallel, 16);
  EXPECT_EQ(strategy.micro_batch, 4);
  EXPECT_EQ(strategy.zero_stage, 1);
  EXPECT_EQ(strategy.recompute, Recompute::kFull);
  EXPECT_EQ(strategy.precision, DType::kFp16);
  EXPECT_FALSE(strategy.sequence_parallel);
  EXPECT_EQ(strategy.schedule, "1f1b");
  EXPECT_EQ(strategy.framework->name, "megatron-lm-sc21");
  EXPECT_THAT(setting.open, IsEmpty());
}

TEST_F(SettingOf, WhatIsUnstatedIsAssumed) {
  TrainingRow row = full_row(
      "internode_gbps_per_gpu= | gpu_mem_gb= | dp= | vocab= | zero_stage= | seq_parallel= | "
      "precision=fp16/bf16 (not stated)");
  const Setting setting = of(row);
  EXPECT_THAT(setting.assumed, ElementsAre("gpu_memory", "network", "precision", "seq_parallel",
                                           "vocabulary", "zero_stage"));
  EXPECT_EQ(setting.strategy.data_parallel, 16);
  EXPECT_EQ(setting.model.vocabulary, 50257);
  EXPECT_EQ(setting.strategy.zero_stage, 0);
}

TEST_F(SettingOf, OneNodeNeedsNoNetwork) {
  EXPECT_THAT(of(full_row("num_gpus=8 | dp=2 | internode_gbps_per_gpu=")).assumed, IsEmpty());
}

TEST_F(SettingOf, TheFrameworkIsThatOfRowAndSource) {
  TrainingRow row = full_row("framework=Megatron-DeepSpeed (BigScience fork)");
  EXPECT_EQ(of(row).strategy.framework->name, "megatron-deepspeed-bloom");
  row.framework = "Megatron-DeepSpeed";
  EXPECT_EQ(of(row).strategy.framework->name, "megatron-deepspeed");
}

// 32 sequences per replica: micro-batches of 1, 2, 4, 8, 16. Stages of 15 layers are also
// interleaved in chunks of one layer (two do not divide 15), since all five leave an even number of
// micro-batches for 2 stages. Each with three ways to recompute.
TEST_F(SettingOf, OpenKnobsAreTried) {
  TrainingRow row = full_row("mbs= | vpp= | recompute=");
  const Setting setting = of(row);
  EXPECT_THAT(setting.assumed, ElementsAre("micro_batch", "recompute", "virtual_stages"));
  const auto choices = choices_of(setting.strategy, setting.model, setting.open);
  EXPECT_EQ(choices.size(), 10u);
  EXPECT_EQ(choices[0].size(), 3u);
  EXPECT_EQ(choices[0][0].recompute, Recompute::kNone);
  EXPECT_EQ(choices[5][0].virtual_stages, 15);
  EXPECT_EQ(choices[5][0].schedule, "interleaved");
}

// 2 stages x 4 x 16 replicas x micro-batches of 4.
TEST_F(SettingOf, ABatchThatIsNotPrintedFillsThePipeline) {
  TrainingRow row = full_row("gbs=");
  EXPECT_EQ(of(row).strategy.global_batch, 512);
  EXPECT_THAT(of(row).assumed, ElementsAre("global_batch"));
}

TrainingRow row_of_experts(const std::string& changes = "") {
  return full_row(
      "source=MoE | framework=Megatron-Core | model_name=Mixtral | experts=8 | topk=2 | ep=8 | "
      "tp=1 | pp=1 | dp=64 | precision=bf16 | " +
      changes);
}

// Megatron-LM's reference mappings have micro-batches of 1; models without experts, and other
// frameworks, are tried with several.
TEST_F(SettingOf, MicroBatchesOfModelsWithExperts) {
  TrainingRow row = row_of_experts("mbs= | recompute=");
  const Setting setting = of(row);
  EXPECT_THAT(setting.assumed, ElementsAre("micro_batch", "recompute"));
  const auto choices = choices_of(setting.strategy, setting.model, setting.open);
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices[0][0].micro_batch, 1);
  EXPECT_THAT(choices[0][1].recompute_parts,
              ElementsAre(LayerPart::kRouting, LayerPart::kExpertsUp, LayerPart::kExpertActivation,
                          LayerPart::kExpertsDown));
  row.framework = "nanotron";
  const Setting other = of(row);
  // 512 sequences on 64 ranks: 1, 2, 4, 8
  EXPECT_EQ(choices_of(other.strategy, other.model, other.open).size(), 4u);
}

TEST_F(SettingOf, WhoWaitsForCountsOfTokens) {
  TrainingRow row = row_of_experts();
  EXPECT_TRUE(of(row).strategy.framework->counts_tokens_on_host);
  row.notes = "yaml: moe_pad_expert_input_to_capacity";
  EXPECT_FALSE(of(row).strategy.framework->counts_tokens_on_host);
  EXPECT_GT(of(row).strategy.framework->host_time, 0_s);
  row.notes = "cuda_graph_impl=full_iteration; x";
  EXPECT_THAT(of(row).strategy.cuda_graphs, ElementsAre(Capture::kStep));
  EXPECT_EQ(of(row).strategy.host_time(), 0_s);
}

// Recipes that drop tokens know the slots of their experts; on Blackwell the step is one graph.
TEST_F(SettingOf, RecipesThatDropTokens) {
  TrainingRow row =
      row_of_experts("framework=Megatron-Bridge (NeMo 25.09) | notes=variant: tokendrop");
  EXPECT_FALSE(of(row).strategy.framework->counts_tokens_on_host);
  EXPECT_GT(of(row).strategy.host_time(), 0_s);
  row.gpu = "B200";
  row.gpu_mem_gb = {};
  EXPECT_EQ(of(row).strategy.host_time(), 0_s);
}

// Of rows without their recipe: by the month of the container.
TEST_F(SettingOf, RecipesOfRacks) {
  TrainingRow row = row_of_experts(
      "gpu=GB200 | gpu_mem_gb= | gpus_per_node=4 | framework=Megatron-Bridge (NeMo) | "
      "source=summary, NeMo container 26.02.01");
  EXPECT_EQ(of(row).strategy.token_dispatcher, TokenDispatcher::kDeepEp);
  EXPECT_FALSE(of(row).strategy.overlap_experts);
  row.source = "summary, NeMo container 26.08";
  EXPECT_TRUE(of(row).strategy.overlap_experts);
  EXPECT_EQ(of(row).strategy.host_time(), 0_s);
  row.notes = "recompute from recipe 17a381f95";
  EXPECT_EQ(of(row).strategy.token_dispatcher, TokenDispatcher::kAllToAll);
  row.notes = "";
  row.source = "summary, NeMo container 25.11";
  EXPECT_EQ(of(row).strategy.token_dispatcher, TokenDispatcher::kAllToAll);
}

TEST_F(SettingOf, ABranchOfExpertsAlone) {
  TrainingRow row = row_of_experts(
      "layers=1 | heads= | kv_heads= | vocab= | gbs= | experts=32 | topk=8 | notes=one MoE layer "
      "only (router); shared expert 2048, group-limited routing 4 of 8 groups");
  const Model model = of(row).model;
  EXPECT_EQ(model.pattern, "E");
  EXPECT_EQ(model.heads, 0);
  EXPECT_EQ(model.shared_ffn, 2048);
  EXPECT_EQ(model.expert_groups, 8);
  EXPECT_EQ(model.groups_per_token, 4);
}

// Tokens to experts on tensor-parallel ranks and replicas, once per node.
TEST_F(SettingOf, DeepEpOverTensorRanksToo) {
  TrainingRow row =
      row_of_experts("tp=2 | dp=32 | seq_parallel=True | notes=dispatcher=DeepEP; ETP=1");
  EXPECT_EQ(of(row).strategy.token_dispatcher, TokenDispatcher::kDeepEp);
  row.notes = "dispatcher=A2A; ETP=1";
  EXPECT_EQ(of(row).strategy.token_dispatcher, TokenDispatcher::kAllToAll);
  row.notes = "dispatcher=DeepEP; ETP=1";
  row.ep = 2;  // tensor-parallel ranks alone
  EXPECT_EQ(of(row).strategy.token_dispatcher, TokenDispatcher::kDeepEp);
}

// Experts over a part of the tensor- and context-parallel ranks, as rows say: in their notes, in
// the name of the run, or by the framework that ran them.
TEST_F(SettingOf, ExpertsOverAnyDivisionOfTheRanks) {
  TrainingRow row = row_of_experts("tp=4 | cp=8 | dp=4 | num_gpus=128 | seq_parallel=True");
  EXPECT_EQ(of(row).strategy.expert_tensor_parallel, 0);
  row.notes = "ETP=1";
  EXPECT_EQ(of(row).strategy.expert_tensor_parallel, 1);
  row.notes.clear();
  row.framework = "Megatron-Bridge (NeMo 25.09)";
  EXPECT_EQ(of(row).strategy.expert_tensor_parallel, 1);
  row.framework = "Megatron-LM CI";
  row.model_name = "moe/gpt3_mcore_tp4_ep8_etp2";
  EXPECT_EQ(of(row).strategy.expert_tensor_parallel, 2);
}

TEST_F(SettingOf, Llama) {
  TrainingRow row = full_row("model_name=LLAMA3_70B | kv_heads=8");
  const Model model = of(row).model;
  EXPECT_EQ(model.norm, Norm::kRmsNorm);
  EXPECT_EQ(model.activation, Activation::kSwiglu);
  EXPECT_EQ(model.positions, Positions::kRotary);
  EXPECT_FALSE(model.bias);
  EXPECT_FALSE(model.tied_embeddings);
  EXPECT_FALSE(model.dropout);
  EXPECT_EQ(model.kv(), 8);
}

// 30 layers on 4 stages: one less on the first and the last (30 + 2 = 4 x 8). 30 on 7: the rest is
// spread.
TEST_F(SettingOf, UnevenStages) {
  TrainingRow row = full_row("pp=4 | dp=8");
  EXPECT_THAT(of(row).strategy.layers_per_stage, ElementsAre(7, 8, 8, 7));
  row.pp = 7;
  row.tp = 1;
  row.num_gpus = 56;
  EXPECT_THAT(of(row).strategy.layers_per_stage, ElementsAre(5, 5, 4, 4, 4, 4, 4));
  EXPECT_THAT(of(row).assumed, ElementsAre("layers_per_stage"));
}

// A layer has 16 x 3072^2 weights, the output projection 1.02 times as many: of 31.02 a stage's
// share is 7.76, and it takes the layer that goes beyond.
TEST_F(SettingOf, StagesOfNanotronGoByCost) {
  TrainingRow row = full_row("framework=nanotron | pp=4 | dp=8 | vpp=1");
  const Setting setting = of(row);
  EXPECT_THAT(setting.strategy.layers_per_stage, ElementsAre(8, 8, 8, 6));
  EXPECT_THAT(setting.assumed, IsEmpty());
}

TEST_F(SettingOf, ShardingInWords) {
  TrainingRow row = full_row();
  for (const auto& [text, stage] :
       std::vector<std::pair<std::string, std::int64_t>>{{"3(FSDP)", 3},
                                                         {"3(FSDP=16)", 3},
                                                         {"1 over all DP ranks", 1},
                                                         {"sharding16 stage2", 2},
                                                         {"FSDP2(zero3)", 3},
                                                         {"1 within groups of 16", 1},
                                                         {"DP", 0}}) {
    row.zero_stage = text;
    EXPECT_EQ(of(row).strategy.zero_stage, stage) << text;
    EXPECT_EQ(of(row).strategy.shard_replicas, 1) << text;
  }
  row.zero_stage = "1 within groups of 8";
  EXPECT_EQ(of(row).strategy.zero_stage, 1);
  EXPECT_EQ(of(row).strategy.shard_replicas, 2);
  row.zero_stage = "HSDP (shard within node, replicate across)";
  EXPECT_EQ(of(row).strategy.zero_stage, 3);
  EXPECT_EQ(of(row).strategy.shards(), *row.gpus_per_node / *row.tp);
  row.zero_stage = "3(FSDP=1)";
  EXPECT_EQ(of(row).strategy.zero_stage, 0);
  row.zero_stage = "3(FSDP=64)";
  EXPECT_THAT(refusal(row), HasSubstr("16 data-parallel ranks do not divide into groups of 64"));
  row.zero_stage = "HSDP";
  EXPECT_THAT(refusal(row), HasSubstr("does not state its groups"));
}

TEST_F(SettingOf, RecipesOfFp8) {
  TrainingRow row = full_row("gpu=H100 | gpu_mem_gb=80");
  const auto recipe = [&](const char* precision, const char* framework, const char* notes) {
    row.precision = precision;
    row.framework = framework;
    row.notes = notes;
    return of(row);
  };
  const std::string megatron = row.framework;
  for (const auto& [precision, expected] :
       {std::pair("FP8-CS", Quantization::kFp8Current),
        std::pair("float8 tensorwise", Quantization::kFp8Current),
        std::pair("float8 rowwise", Quantization::kFp8Rowwise),
        std::pair("MXFP8", Quantization::kMxFp8),
        std::pair("fp8 blockwise", Quantization::kFp8Block)}) {
    const Setting setting = recipe(precision, megatron.c_str(), "");
    EXPECT_EQ(setting.strategy.quantization, expected) << precision;
    EXPECT_EQ(setting.strategy.precision, DType::kBf16);
    EXPECT_THAT(setting.assumed, Not(Contains("quantization")));
  }
  const Setting stated = recipe("FP8", megatron.c_str(), "delayed scaling; fp8 params on");
  EXPECT_EQ(stated.strategy.quantization, Quantization::kFp8Delayed);
  EXPECT_TRUE(stated.strategy.quantized_parameters);
  EXPECT_THAT(stated.assumed, Not(Contains("quantization")));
  EXPECT_THAT(recipe("FP8", megatron.c_str(), "").assumed, Contains("quantization"));
  EXPECT_FALSE(recipe("FP8", megatron.c_str(), "").strategy.quantized_parameters);
  // Recipes of Megatron-Bridge, and of adapters, hold weights so unless they say otherwise.
  const char* bridge = "Megatron-Bridge (NeMo 26.02)";
  EXPECT_TRUE(recipe("FP8-CS", bridge, "").strategy.quantized_parameters);
  EXPECT_FALSE(recipe("FP8-CS", bridge, "fp8 params off").strategy.quantized_parameters);
  EXPECT_TRUE(recipe("FP8", "NeMo 25.04", "LoRA rank 16").strategy.quantized_parameters);
}

// Rows that NVIDIA's code for 8B of MLPerf Training 5.1 made.
TEST_F(SettingOf, Fp4WithoutRotation) {
  TrainingRow row = full_row("gpu=B200 | gpu_mem_gb= | precision=NVFP4 | framework=NeMo 25.09");
  EXPECT_EQ(of(row).strategy.quantization, Quantization::kNvFp4);
  row.source = "MLPerf Training v5.1 Dell";
  row.notes = "logged every 32nd step";
  EXPECT_EQ(of(row).strategy.quantization, Quantization::kNvFp4Unrotated);
}

TEST_F(SettingOf, WhatNotesSayOfKernels) {
  TrainingRow row = full_row("framework=NeMo 25.04");
  const Framework plain = *of(row).strategy.framework;
  EXPECT_FALSE(plain.fp8_attention || plain.fp8_activation_inputs || plain.overlap_tensor_products);
  row.framework = "NeMo AutoModel";
  row.notes = "TE + DeepEP";
  EXPECT_EQ(of(row).strategy.framework->attention, AttentionImplementation::kCudnn);
  row.notes = "TE + DeepEP + FlexAttn";
  EXPECT_EQ(of(row).strategy.framework->attention, AttentionImplementation::kFlash2);
  row.notes = "TE + DeepEP + TorchSDPA";
  EXPECT_EQ(of(row).strategy.framework->attention, AttentionImplementation::kFlash2);
  row.notes = "fp8 attention; fp8 stored activation input; TP comm overlap (userbuffers) on";
  const Framework said = *of(row).strategy.framework;
  EXPECT_TRUE(said.fp8_attention && said.fp8_activation_inputs && said.overlap_tensor_products);
}

TEST_F(SettingOf, ContextParallelism) {
  TrainingRow row = full_row();
  const std::int64_t replicas = of(row).strategy.data_parallel;
  row.cp = "2";
  row.dp = {};
  const Setting setting = of(row);
  EXPECT_EQ(setting.strategy.context_parallel, 2);
  EXPECT_EQ(setting.strategy.data_parallel, replicas / 2);
  EXPECT_THAT(setting.assumed, Contains("context_exchange"));
  const auto exchange_of = [&](const char* framework) {
    row.framework = framework;
    return of(row).strategy.context_exchange;
  };
  EXPECT_EQ(exchange_of("NeMo 25.04"), ContextExchange::kRing);
  EXPECT_EQ(exchange_of("torchtitan"), ContextExchange::kOverlappedAllGather);
}

TEST_F(SettingOf, RecomputationInTheWordsOfFrameworks) {
  const auto recomputed = [&](const std::string& words) {
    TrainingRow row = full_row();
    row.recompute = words;
    return of(row).strategy;
  };
  EXPECT_EQ(recomputed("none").recompute, Recompute::kNone);
  EXPECT_EQ(recomputed("full (uniform, every layer)").recomputation(),
            (Recomputation{Recompute::kFull, usual_recompute_parts()}));
  const Strategy partial = recomputed("full (block, 21 layers)");
  EXPECT_EQ(partial.recompute, Recompute::kFull);
  EXPECT_EQ(partial.recompute_layers, 21);
  const Recomputation usual{Recompute::kSelective, usual_recompute_parts()};
  EXPECT_EQ(recomputed("selective").recomputation(), usual);
  EXPECT_EQ(recomputed("selective (attention core)").recomputation(), usual);
  EXPECT_EQ(recomputed("norm, act").recompute_parts,
            (std::vector{LayerPart::kNorm, LayerPart::kActivation}));
  EXPECT_EQ(recomputed("selective:layernorm+mlp").recompute_parts,
            (std::vector{LayerPart::kNorm, LayerPart::kMlpUp, LayerPart::kActivation,
                         LayerPart::kMlpDown}));
}

TEST_F(SettingOf, AdaptersByTheSourcesRecipe) {
  TrainingRow row =
      full_row("source=MLPerf Training v5.0 | notes=LoRA rank 8 alpha 32, base frozen");
  Setting setting = of(row);
  ASSERT_TRUE(setting.model.adapters);
  EXPECT_EQ(setting.model.adapters->rank, 8);
  EXPECT_EQ(setting.model.adapters->targets,
            (std::vector{AdapterTarget::kQkv, AdapterTarget::kAttentionOut}));
  EXPECT_TRUE(setting.model.adapters->dropout);
  EXPECT_THAT(setting.assumed, Contains("adapters"));
  row.source = "NVIDIA";
  row.framework = "Megatron-Bridge (NeMo 26.06)";
  row.notes = "task=lora; derived step_time=2.6400s";
  setting = of(row);
  ASSERT_TRUE(setting.model.adapters);
  EXPECT_EQ(setting.model.adapters->rank, 16);
  EXPECT_EQ(setting.model.adapters->targets, std::vector{AdapterTarget::kQkv});
  row.notes = "finetuning SFT";
  EXPECT_FALSE(of(row).model.adapters);
}

// Words of types: states alone, or parameters and gradients, too; and a base in four bits.
TEST_F(SettingOf, TypesOfStatesInWords) {
  TrainingRow row = full_row("framework=PyTorch FSDP | notes=AdamW in bf16");
  Strategy strategy = of(row).strategy;
  EXPECT_EQ(strategy.optimizer.master, DType::kBf16);
  EXPECT_EQ(strategy.framework->gradient_dtype, DType::kFp32);
  row.notes = "packed; pure bf16";
  strategy = of(row).strategy;
  EXPECT_EQ(strategy.optimizer.first_moment, DType::kBf16);
  EXPECT_EQ(strategy.framework->gradient_dtype, DType::kBf16);
  EXPECT_FALSE(strategy.framework->shards.fp32);
  row.framework = "torchtune (PyTorch FSDP2)";
  row.notes = "QLoRA (nf4 base), lora rank 8";
  const Setting setting = of(row);
  EXPECT_EQ(setting.strategy.optimizer.master, DType::kBf16);
  EXPECT_EQ(setting.model.adapters->base, AdapterBase::kNf4);
}

// As NVIDIA's tables and SimuMax's write them.
TEST_F(SettingOf, WindowsAndLatents) {
  TrainingRow row = full_row(
      "model_name=GPT OSS 120B | hidden=2880 | heads=64 | kv_heads=8 | ffn=2880 | experts=128 | "
      "topk=4");
  row.notes =
      "head_dim=64, moe_ffn=2880, alternating sliding window 128/full attention, bias in "
      "linears; MoE: token distribution force-balanced, dropless";
  const Model oss = of(row).model;
  EXPECT_EQ(oss.window, 128);
  EXPECT_EQ(oss.full_interval, 2);
  EXPECT_TRUE(oss.sinks && oss.router_bias && oss.has_mlp_bias() && oss.has_qkv_bias());

  row = full_row();
  row.model_name = "deepseekv2-L4";
  row.kv_heads = 32;
  row.notes = "first layer dense, MLA q_lora 1536 kv_lora 512";
  const Setting setting = of(row);
  EXPECT_EQ(setting.model.query_rank, 1536);
  EXPECT_EQ(setting.model.key_value_rank, 512);
  EXPECT_EQ(setting.model.head_size(), 192);
  EXPECT_EQ(setting.model.value_size(), 128);
  EXPECT_THAT(setting.assumed, Contains("head_dim"));
}

TEST_F(SettingOf, HybridsAreTheCatalogues) {
  TrainingRow row = full_row(
      "model_name=Nemotron-H 8B | layers=52 | hidden=4096 | notes=hybrid Mamba2/attention");
  const Model hybrid = of(row).model;
  EXPECT_TRUE(hybrid.has_mixer(Mixer::kMamba));
  EXPECT_EQ(hybrid.sequence, 2048);
  row.layers = 50;
  EXPECT_THAT(refusal(row), HasSubstr("nemotron-h-8b has 52 layers of width 4096, not 50 of 4096"));
  row.model_name = "Zamba 7B";
  EXPECT_THAT(refusal(row),
              HasSubstr("state-space layers of a model that is not in the catalogue"));
}

TEST_F(SettingOf, WhatIsUnsupportedSaysWhy) {
  const auto changed = [](const auto& change) {
    TrainingRow row = full_row();
    change(row);
    return row;
  };
  EXPECT_THAT(refusal(changed([](TrainingRow& r) { r.experts = 8, r.topk = 9; })),
              HasSubstr("experts_per_token 9 is more than the 8 experts"));
  EXPECT_THAT(refusal(changed([](TrainingRow& r) { r.precision = "FP8"; })),
              HasSubstr("has no fp8 products"));
  EXPECT_THAT(refusal(changed([](TrainingRow& r) { r.precision = "NVFP4"; })),
              HasSubstr("has no fp4 products"));
  EXPECT_THAT(refusal(changed([](TrainingRow& r) { r.gpu = "TPUv4"; })), HasSubstr("TPUv4"));
  EXPECT_THAT(refusal(changed([](TrainingRow& r) { r.num_gpus = 63; })), HasSubstr("63 GPUs"));
  EXPECT_THAT(refusal(changed([](TrainingRow& r) {
                r.num_gpus = {};
                r.dp = {};
              })),
              HasSubstr("num_gpus"));
  EXPECT_THAT(refusal(changed([](TrainingRow& r) { r.seq = {}; })), HasSubstr("'seq'"));
  EXPECT_THAT(refusal(changed([](TrainingRow& r) { r.recompute = "custom remat"; })),
              HasSubstr("custom remat"));
  EXPECT_THAT(refusal(changed([](TrainingRow& r) { r.notes = "schedule=zigzag; m=24"; })),
              HasSubstr("zigzag"));
}

TEST_F(SettingOf, Schedules) {
  TrainingRow row = full_row("notes=schedule=ZB-2p; m=24");
  EXPECT_EQ(of(row).strategy.schedule, "zb-2p");
  EXPECT_THAT(of(row).assumed, Contains("optimizer_synchronization"));
  row.notes = "schedule=ZB-2p-sync; m=24";
  EXPECT_EQ(of(row).strategy.schedule, "zb-2p");
  EXPECT_THAT(of(row).assumed, Not(Contains("optimizer_synchronization")));
  row.notes = "text, schedule=zbv; the table prints VPP 2";
  EXPECT_EQ(of(row).strategy.schedule, "zb-v");
  EXPECT_EQ(of(row).strategy.virtual_stages, 2);
}

}  // namespace
}  // namespace foreshard::accuracy
