// Files as the frameworks' users write them, and by hand what they must become.
#include "tests/strategies/launch/launches.h"
#include "tests/test.h"

namespace foreshard::launch {
namespace {

using testing::Field;

// 64 ranks / (tensor 4 x pipeline 4 x context 2) are 2 replicas. 80 layers on 4 stages are 20 each,
// in chunks of 4 are 5.
TEST(MegatronScript, IsReadAsItsOptionsSay) {
  const auto run = value_of(import_text(launch_file("pretrain-llama3-70b.sh"), 64));
  EXPECT_EQ(run.format, "megatron");
  EXPECT_EQ(in_braces(run.strategy),
            "{tensor_parallel: 4, pipeline_parallel: 4, data_parallel: 2, context_parallel: 2, "
            "context_exchange: ring, sequence_parallel: true, schedule: "
            "interleaved, virtual_stages: 5, micro_batch: 1, global_batch: 128, zero_stage: 1, "
            "recompute: selective, precision: bf16, quantization: fp8-current, framework: "
            "{extends: megatron-lm, fused_gradient_accumulation: true, fused_cross_entropy: true, "
            "gradient_dtype: fp32, gradient_reduction: overlapped, overlap_parameter_gather: true, "
            "vocabulary_multiple: 128}}");
  EXPECT_EQ(in_braces(run.model),
            "{name: \"run\", layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28672, "
            "vocabulary: 128256, sequence: 8192, norm: rms-norm, activation: swiglu, positions: "
            "rotary, bias: false, tied_embeddings: false, dropout: false}");
  EXPECT_THAT(run.missing, IsEmpty());
  EXPECT_THAT(run.idle, testing::IsSupersetOf({"--lr", "--save", "--tensorboard-dir"}));
  EXPECT_THAT(run.unmodelled, ElementsAre(Field(&Unmodelled::setting, "--tp-comm-overlap")));
  const auto strategy = loaded<Strategy>(run.strategy);
  EXPECT_EQ(strategy.devices(), 64);
  EXPECT_THAT(faults_in(strategy, loaded<Model>(run.model), 64), IsEmpty());
}

// 128 / (2 x 8) are 8 replicas; each of 8 expert ranks holds whole experts, so they reach over the
// 2 tensor ranks too.
TEST(MegatronArguments, HaveExperts) {
  const auto run = value_of(import_text(launch_file("mixtral.args"), 128));
  EXPECT_EQ(in_braces(run.strategy),
            "{tensor_parallel: 2, pipeline_parallel: 8, data_parallel: 8, expert_parallel: 8, "
            "expert_tensor_parallel: 1, sequence_parallel: true, micro_batch: 1, global_batch: "
            "256, zero_stage: 1, precision: bf16, framework: {extends: megatron-lm, "
            "fused_gradient_accumulation: true, fused_cross_entropy: false, gradient_dtype: fp32, "
            "gradient_reduction: after-backward, overlap_parameter_gather: false, "
            "pointwise: {permutation: eager}, vocabulary_multiple: "
            "128}}");
  const auto model = loaded<Model>(run.model);
  EXPECT_EQ(model.experts, 8);
  EXPECT_EQ(model.experts_per_token, 2);
  EXPECT_EQ(model.ffn, 16384);
  EXPECT_THAT(faults_in(loaded<Strategy>(run.strategy), model, 128), IsEmpty());
}

// 2 x 4 ranks of torchrun; 8 / 2 are 4 replicas; batches of 4 x 4 samples.
TEST(MegatronScript, PutsInTheValuesOfItsVariables) {
  const auto run = value_of(import_text(
      "#!/bin/bash\nexport TP=${TP:-2}\nMBS=1; GPUS=4\nSEQ=\"4096\"\nNODES=${1:-2}\n"
      "GBS=$((GPUS * ${NODES} * (1 + 1)))\n"
      "GPT_ARGS=\"\n  --num-layers 32 --hidden-size 4096\n  --num-attention-heads 32 "
      "--seq-length $SEQ --max-position-embeddings ${SEQ}\n\"\n"
      "ARGS=(\n  --micro-batch-size $MBS --global-batch-size ${GBS}\n"
      "  --tensor-model-parallel-size \"$TP\" --vocab-size 32000 --bf16\n)\n"
      "torchrun --nproc-per-node $GPUS --nnodes ${NODES} pretrain_gpt.py $GPT_ARGS ${ARGS[@]}\n"));
  const auto strategy = loaded<Strategy>(run.strategy);
  EXPECT_EQ(strategy.tensor_parallel, 2);
  EXPECT_EQ(strategy.data_parallel, 4);
  EXPECT_EQ(strategy.micro_batch, 1);
  EXPECT_EQ(strategy.global_batch, 16);
  const auto model = loaded<Model>(run.model);
  EXPECT_EQ(model.layers, 32);
  EXPECT_EQ(model.sequence, 4096);
  EXPECT_EQ(model.vocabulary, 32000);
}

// What a condition decides, and what the environment alone knows, nobody puts in.
TEST(MegatronScript, LeavesVariablesThatItDoesNotGive) {
  EXPECT_THAT(strategy_of("TP=1\nif [ $X = 1 ]; then\n  TP=2\nfi\n"
                          "x.py --micro-batch-size 1 --tensor-model-parallel-size $TP",
                          4),
              HasSubstr("'$TP' is a variable"));
  EXPECT_THAT(strategy_of("x.py --micro-batch-size ${MBS} --bf16", 4),
              HasSubstr("'${MBS}' is a variable"));
  EXPECT_THAT(strategy_of("M=$((1 / 0))\nx.py --micro-batch-size $M", 4),
              HasSubstr("is a variable"));
  EXPECT_THAT(strategy_of("A=$A$A$A\nx.py --micro-batch-size 1 --override key=value", 4),
              HasSubstr("micro_batch: 1"));
}

// A query sees the 1,023 tokens before it and itself; a window as long as the sequence is none.
TEST(MegatronArguments, HaveWindows) {
  const std::string model =
      "--micro-batch-size 1 --num-layers 2 --hidden-size 64 "
      "--num-attention-heads 2 --vocab-size 100 --max-position-embeddings "
      "4096 --seq-length ";
  const auto window_of = [&](const std::string& rest) {
    const auto run = import_text(model + rest, 1);
    EXPECT_TRUE(run) << run.error().message;
    return run ? loaded<Model>(run->model).window : -1;
  };
  EXPECT_EQ(window_of("4096 --window-size 1023,0"), 1024);
  EXPECT_EQ(window_of("4096 --window-size 4096,0"), 0);
  EXPECT_EQ(window_of("4096 --window-size 4095,0 --window-attn-skip-freq 2"), 0);
  EXPECT_EQ(window_of("4096 --window-size -1,0"), 0);
}

// What fuses the operators of a router and of the order of experts, and what CUDA graphs launch.
TEST(MegatronArguments, HaveFusionsAndGraphs) {
  const std::string fused = launch_file("mixtral.args") +
                            " --moe-router-fusion --moe-permute-fusion --cuda-graph-impl "
                            "transformer_engine --cuda-graph-scope attn moe_router moe_preprocess";
  const auto run = value_of(import_text(fused, 128));
  const auto strategy = loaded<Strategy>(run.strategy);
  EXPECT_EQ(strategy.framework->pointwise.routing, OtherKernels::kFused);
  EXPECT_EQ(strategy.framework->pointwise.permutation, OtherKernels::kFused);
  EXPECT_THAT(strategy.cuda_graphs, ElementsAre(Capture::kAttention, Capture::kRouter));
  const auto none =
      value_of(import_text(launch_file("mixtral.args") + " --cuda-graph-impl none", 128));
  EXPECT_THAT(loaded<Strategy>(none.strategy).cuda_graphs, IsEmpty());
  for (const char* scope : {"", " --cuda-graph-scope full"}) {
    const auto whole = value_of(import_text(
        launch_file("mixtral.args") + " --cuda-graph-impl transformer_engine" + scope, 128));
    EXPECT_THAT(loaded<Strategy>(whole.strategy).cuda_graphs, ElementsAre(Capture::kAttention));
  }
}

TEST(MegatronArguments, HavePredictionsOfMoreTokens) {
  const std::string arguments =
      "--micro-batch-size 1 --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length "
      "32 "
      "--max-position-embeddings 32 --vocab-size 256 --position-embedding-type rope";
  const auto run =
      value_of(import_text(arguments + " --mtp-num-layers 1 --mtp-loss-scaling-factor 0.3", 4));
  EXPECT_EQ(loaded<Model>(run.model).multi_token_prediction, 1);
  EXPECT_THAT(run.unmodelled, IsEmpty());
  EXPECT_EQ(loaded<Model>(value_of(import_text(arguments, 4)).model).multi_token_prediction, 0);
}

TEST(MegatronArguments, HaveLatents) {
  const auto run = value_of(import_text(
      "--micro-batch-size 1 --bf16 --num-layers 4 --hidden-size 64 --num-attention-heads 4 "
      "--seq-length 32 --max-position-embeddings 32 --vocab-size 256 --disable-bias-linear "
      "--position-embedding-type rope --multi-latent-attention --q-lora-rank 24 --kv-lora-rank 16 "
      "--qk-head-dim 12 --qk-pos-emb-head-dim 4 --v-head-dim 12",
      4));
  const auto model = loaded<Model>(run.model);
  EXPECT_EQ(model.query_rank, 24);
  EXPECT_EQ(model.key_value_rank, 16);
  EXPECT_EQ(model.head_size(), 16);
  EXPECT_EQ(model.rotary_dim, 4);
  EXPECT_EQ(model.value_dim, 12);
  EXPECT_THAT(run.unmodelled, IsEmpty());
}

// The options of NVIDIA's scripts for Nemotron-H 8B give the catalogue's model.
TEST(MegatronArguments, HaveStateSpaces) {
  const auto run = value_of(import_text(
      "--micro-batch-size 1 --bf16 --num-layers 52 --hidden-size 4096 --num-attention-heads 32 "
      "--group-query-attention --num-query-groups 8 --kv-channels 128 --ffn-hidden-size 21504 "
      "--seq-length 8192 --max-position-embeddings 8192 --vocab-size 131072 "
      "--disable-bias-linear --squared-relu --normalization RMSNorm "
      "--untie-embeddings-and-output-weights --position-embedding-type none --is-hybrid-model "
      "--hybrid-override-pattern M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M- "
      "--spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec "
      "--mamba-num-heads 128 --mamba-state-dim 128",
      8));
  EXPECT_EQ(parameter_count(loaded<Model>(run.model)), 8'100'852'736);
  EXPECT_THAT(run.unmodelled, IsEmpty());
}

TEST(MegatronArguments, MayBeginWithDenseLayers) {
  const std::string arguments =
      "--micro-batch-size 1 --bf16 --num-layers 4 --hidden-size 64 --num-attention-heads 4 "
      "--seq-length 32 --max-position-embeddings 32 --vocab-size 256 --num-experts 4 "
      "--position-embedding-type rope --disable-bias-linear --moe-layer-freq ";
  for (const auto& [frequency, dense] :
       {std::pair("1", 0), std::pair("'([0]+[1]*3)'", 1), std::pair("'([0]*2+[1]*2)'", 2)})
    EXPECT_EQ(loaded<Model>(value_of(import_text(arguments + frequency, 4)).model).dense_layers,
              dense)
        << frequency;
}

TEST(MegatronArguments, MayComputeInFp4) {
  const std::string arguments =
      "--micro-batch-size 1 --bf16 --num-layers 4 --hidden-size 64 --num-attention-heads 4 "
      "--seq-length 32 --max-position-embeddings 32 --vocab-size 256 --fp4-format e2m1";
  EXPECT_THAT(strategy_of(arguments + " --fp4-recipe nvfp4", 4), HasSubstr("quantization: nvfp4"));
  EXPECT_THAT(message_of(import_text(arguments + " --fp8-format hybrid", 4)),
              HasSubstr("in fp4 or in fp8, not in both"));
}

// One layer at each end where the number is not given; no layer where nothing computes in fp8.
TEST(MegatronArguments, MayLeaveLayersInSixteenBits) {
  const std::string arguments =
      "--micro-batch-size 1 --bf16 --num-layers 4 --hidden-size 64 --num-attention-heads 4 "
      "--seq-length 32 --max-position-embeddings 32 --vocab-size 256 --first-last-layers-bf16";
  const std::string fp8 = " --fp8-format hybrid --fp8-recipe blockwise";
  EXPECT_THAT(strategy_of(arguments + fp8, 4),
              HasSubstr("unquantized_layers: {first: 1, last: 1}"));
  const auto run = value_of(import_text(arguments + fp8 + " --num-layers-at-start-in-bf16 2", 4));
  EXPECT_THAT(in_braces(run.strategy), HasSubstr("unquantized_layers: {first: 2, last: 1}"));
  EXPECT_THAT(run.unmodelled, IsEmpty());
  EXPECT_THAT(strategy_of(arguments, 4), Not(HasSubstr("unquantized_layers")));
}

TEST(MegatronArguments, MayPackSamples) {
  const auto run = value_of(import_text(
      "--micro-batch-size 1 --bf16 --num-layers 4 --hidden-size 64 --num-attention-heads 4 "
      "--seq-length 32 --max-position-embeddings 32 --vocab-size 256 --reset-attention-mask",
      4));
  EXPECT_THAT(run.unmodelled, ElementsAre(Field(&Unmodelled::setting, "--reset-attention-mask")));
}

// What Megatron-LM fills in: the batch, the width of a gated layer (8/3 of 4096, down to a multiple
// of 64), dropout of 0.1, LayerNorm, learned positions, tied embeddings.
TEST(MegatronArguments, HaveTheDefaultsOfMegatron) {
  const auto run = value_of(import_text(
      "--num-layers 2 --hidden-size 4096 --num-attention-heads 32 --seq-length 128 --swiglu "
      "--max-position-embeddings 256 --vocab-size 100 --micro-batch-size 3",
      4));
  const auto strategy = loaded<Strategy>(run.strategy);
  EXPECT_EQ(strategy.global_batch, 12);
  EXPECT_EQ(strategy.precision, DType::kFp32);
  EXPECT_EQ(strategy.zero_stage, 0);
  const auto model = loaded<Model>(run.model);
  EXPECT_EQ(model.ffn, 10880);
  EXPECT_EQ(model.position_rows(), 256);
  EXPECT_TRUE(model.dropout);
  EXPECT_TRUE(model.tied_embeddings);
}

TEST(MegatronArguments, MayDivideLayersUnevenly) {
  const std::string rest = " --pipeline-model-parallel-size 4 --micro-batch-size 1 ";
  EXPECT_THAT(strategy_of("--num-layers 10 --decoder-first-pipeline-num-layers 1 "
                          "--decoder-last-pipeline-num-layers 3" +
                              rest,
                          4),
              HasSubstr("layers_per_stage: [1, 3, 3, 3]"));
  EXPECT_THAT(strategy_of("--num-layers 10 --account-for-embedding-in-pipeline-split "
                          "--account-for-loss-in-pipeline-split" +
                              rest,
                          4),
              HasSubstr("layers_per_stage: [2, 3, 3, 2]"));
}

// A precision-aware optimizer keeps of master copies in fp32 what bf16 parameters lack.
TEST(MegatronArguments, MayHaveAnotherOptimizer) {
  const std::string rest = " --micro-batch-size 1 --bf16 ";
  EXPECT_THAT(strategy_of("--optimizer adam" + rest, 8), Not(HasSubstr("optimizer: {rule")));
  EXPECT_THAT(strategy_of("--optimizer dist_muon --muon-tp-mode duplicated" + rest, 8),
              HasSubstr("optimizer: {rule: muon}"));
  EXPECT_THAT(strategy_of("--use-precision-aware-optimizer --exp-avg-dtype bf16 "
                          "--exp-avg-sq-dtype bf16 --main-grads-dtype bf16" +
                              rest,
                          8),
              AllOf(HasSubstr("optimizer: {first_moment: bf16, second_moment: bf16, remainders: "
                              "true}"),
                    HasSubstr("gradient_dtype: bf16")));
  EXPECT_THAT(strategy_of("--use-precision-aware-optimizer --exp-avg-dtype fp8 "
                          "--main-params-dtype fp16" +
                              rest,
                          8),
              HasSubstr("optimizer: {first_moment: fp8, master: fp16}"));
  // On the CPU the option is needed, and states are whole.
  EXPECT_THAT(strategy_of("--optimizer-cpu-offload --use-precision-aware-optimizer" + rest, 8),
              AllOf(HasSubstr("offload_optimizer: cpu"), Not(HasSubstr("remainders"))));
  const auto run = value_of(import_text("--optimizer muon --muon-tp-mode blockwise" + rest, 8));
  EXPECT_THAT(run.unmodelled, Contains(Field(&Unmodelled::setting, HasSubstr("--muon-tp-mode"))));
}

TEST(DeepSpeedFile, MayHaveAnotherOptimizer) {
  for (const auto& [type, rule] : {std::pair("Lamb", "lamb"), {"Muon", "muon"}})
    EXPECT_THAT(strategy_of(std::string(R"({"train_batch_size": 8, "optimizer": {"type": ")") +
                                type + R"("}, "bf16": {"enabled": true}})",
                            8),
                HasSubstr(std::string("optimizer: {rule: ") + rule + "}"));
}

TEST(MegatronArguments, MayShardByFsdp) {
  EXPECT_THAT(strategy_of("--micro-batch-size 1 --use-megatron-fsdp "
                          "--data-parallel-sharding-strategy optim_grads_params "
                          "--num-distributed-optimizer-instances 2",
                          8),
              HasSubstr("zero_stage: 3, shard_replicas: 2"));
  EXPECT_THAT(strategy_of("--micro-batch-size 1 --use-torch-fsdp2", 8), HasSubstr("zero_stage: 3"));
}

// 64 / (tensor 2 x 2 replicas) are 16 shards.
TEST(TorchtitanFile, IsReadAsItSays) {
  const auto run = value_of(import_text(launch_file("llama3-8b.toml"), 64));
  EXPECT_EQ(run.format, "torchtitan");
  EXPECT_EQ(in_braces(run.strategy),
            "{tensor_parallel: 2, data_parallel: 32, sequence_parallel: true, micro_batch: 2, "
            "global_batch: 256, zero_stage: 3, shard_replicas: 2, recompute: full, precision: "
            "bf16, quantization: fp8-current, quantized_parameters: true, framework: {extends: "
            "torchtitan, optimizer: fused}}");
  EXPECT_EQ(in_braces(run.model), "{extends: llama3-8b, sequence: 8192}");
  EXPECT_THAT(run.unmodelled, IsEmpty());
  EXPECT_THAT(faults_in(loaded<Strategy>(run.strategy), loaded<Model>(run.model), 64), IsEmpty());
}

// Two stages on each of 4 ranks; 16 sequences of a replica are 16 micro-batches of 1. Parameters
// stay whole in a pipeline. The file names all degrees: 8 x 4 x 2 x 2 ranks.
TEST(TorchtitanFile, HasPipelines) {
  const auto run = value_of(import_text(launch_file("pipeline.toml")));
  EXPECT_THAT(in_braces(run.strategy),
              HasSubstr("{tensor_parallel: 8, pipeline_parallel: 4, data_parallel: 2, "
                        "context_parallel: 2, context_exchange: overlapped-all-gather, "
                        "sequence_parallel: true, schedule: interleaved, virtual_stages: 2, "
                        "micro_batch: 1, global_batch: 32, zero_stage: 2, recompute: none"));
  EXPECT_THAT(in_braces(run.strategy), HasSubstr("pointwise: {norm: eager"));
  EXPECT_THAT(run.unmodelled,
              ElementsAre(Field(&Unmodelled::setting,
                                HasSubstr("parallelism.enable_async_tensor_parallel"))));
}

// Pairs of adjacent ranks exchange tokens for heads; four pairs are a ring.
TEST(MegatronOptions, HaveTwoLevelsOfContextParallelism) {
  const std::string options =
      "--micro-batch-size 1 --context-parallel-size 8 --cp-comm-type a2a+p2p ";
  const auto run = value_of(import_text(options + "--hierarchical-context-parallel-sizes 2 4", 8));
  EXPECT_THAT(in_braces(run.strategy),
              HasSubstr("context_parallel: 8, context_exchange: ring, context_heads: 2"));
  for (const char* sizes : {"", "--hierarchical-context-parallel-sizes 2 2",
                            "--hierarchical-context-parallel-sizes 8"}) {
    const auto refused = import_text(options + sizes, 8);
    ASSERT_FALSE(refused) << sizes;
    EXPECT_THAT(refused.error().message, HasSubstr("whose product is 8"));
    EXPECT_THAT(refused.error().message, HasSubstr("then those of the ring"));
  }
}

// 512 sequences / (64 ranks x 4 steps) are 2.
TEST(DeepSpeedFile, IsReadAsItSays) {
  const auto run = value_of(import_text(launch_file("zero3.json"), 64));
  EXPECT_EQ(run.format, "deepspeed");
  EXPECT_EQ(
      in_braces(run.strategy),
      "{data_parallel: 64, micro_batch: 2, global_batch: 512, zero_stage: 3, precision: bf16, "
      "framework: {extends: deepspeed-zero3, gradient_dtype: bf16, gradient_reduction: "
      "overlapped, shards: {gather_each: 100000}, gradient_clipping: true}}");
  EXPECT_THAT(run.model, IsEmpty());
  EXPECT_EQ(loaded<Strategy>(run.strategy).framework->shards.gather_each, 100000);
}

// The Trainer of Transformers fills in the sizes; tabs indent.
TEST(DeepSpeedFile, MayLeaveSizesToTheProgram) {
  EXPECT_THAT(strategy_of(launch_file("zero2-trainer.json"), 16),
              HasSubstr("give --set strategy.micro_batch=N and --set strategy.global_batch=N"));
  EXPECT_EQ(strategy_of(launch_file("zero2-trainer.json"), 16,
                        {{"strategy.micro_batch", "2"}, {"strategy.global_batch", "64"}}),
            "{data_parallel: 16, micro_batch: 2, global_batch: 64, zero_stage: 2, precision: fp16, "
            "framework: {extends: deepspeed-zero3, gradient_dtype: fp16, gradient_reduction: "
            "after-backward, gradient_clipping: false}}");
}

// What the file leaves to the program and does not follow from the rest is open; what is given
// with --set is not.
TEST(LaunchFile, LeavesMicroBatchesOpen) {
  for (const char* text : {"--tensor-model-parallel-size 2 --global-batch-size 64",
                           R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": "auto",
          "gradient_accumulation_steps": "auto"})"}) {
    const auto run = value_of(import_text(text, 8));
    EXPECT_THAT(run.open, ElementsAre("micro_batch")) << text;
    EXPECT_EQ(loaded<Strategy>(run.strategy).micro_batch, 1);
    EXPECT_EQ(loaded<Strategy>(run.strategy).global_batch, 64);
    const auto settled = value_of(import_launch(
        {.text = text, .name = "run", .devices = 8, .settled = {{"strategy.micro_batch", "4"}}}));
    EXPECT_THAT(settled.open, IsEmpty());
    EXPECT_EQ(loaded<Strategy>(settled.strategy).micro_batch, 4);
  }
}

// bf16 where both types are left to the program, fp16 where it alone is.
TEST(DeepSpeedFile, MayLeaveThePrecisionToTheProgram) {
  const auto precision = [](const std::string& types) {
    const auto run = value_of(import_text(
        R"({"train_batch_size": 8, "gradient_accumulation_steps": 1, "zero_optimization":
            {"stage": 3, "reduce_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"},)" +
            types + "}",
        8));
    const std::string strategy = in_braces(run.strategy);
    const std::size_t begin = strategy.find("precision: ") + 11;
    return strategy.substr(begin, 4) + (run.unmodelled.size() > 1 ? " with a word" : "");
  };
  EXPECT_EQ(precision(R"("bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"})"),
            "bf16 with a word");
  EXPECT_EQ(precision(R"("fp16": {"enabled": "auto"})"), "fp16 with a word");
  EXPECT_EQ(precision(R"("bf16": {"enabled": "auto"}, "fp16": {"enabled": true})"), "fp16");
  EXPECT_EQ(precision(R"("bf16": {"enabled": true}, "fp16": {"enabled": "auto"})"), "bf16");
}

// Attention, the results of reductions and every second product are kept: without tensor
// parallelism the output projection of attention is among those that are not.
TEST(TorchtitanFile, MayRecomputeOperators) {
  const std::string file =
      "[parallelism]\ntensor_parallel_degree = 1\n"
      "[activation_checkpoint]\nmode = \"selective\"\n";
  const auto run = value_of(import_text(file + "selective_ac_option = \"op\"\n", 8));
  EXPECT_THAT(in_braces(run.strategy),
              HasSubstr("recompute: selective, recompute_parts: [norm, rope, mlp-up, activation, "
                        "residual, attention-out]"));
  EXPECT_THAT(strategy_of(file + "selective_ac_option = \"4\"\n", 8),
              AllOf(HasSubstr("every 4th layer is recomputed whole"),
                    HasSubstr("--set strategy.recompute_layers=N")));
}

TEST(AccelerateFile, HasFsdp) {
  EXPECT_EQ(strategy_of(launch_file("fsdp.yaml"), {},
                        {{"strategy.micro_batch", "2"}, {"strategy.global_batch", "64"}}),
            "{data_parallel: 16, micro_batch: 2, global_batch: 64, zero_stage: 3, shard_replicas: "
            "2, recompute: full, precision: bf16, framework: {extends: pytorch-fsdp, shards: "
            "{forward_prefetch: post, backward_prefetch: post}}}");
  EXPECT_EQ(strategy_of(launch_file("fsdp2.yaml"), {},
                        {{"strategy.micro_batch", "1"}, {"strategy.global_batch", "64"}}),
            "{tensor_parallel: 2, data_parallel: 8, context_parallel: 2, context_exchange: "
            "overlapped-all-gather, micro_batch: 1, global_batch: 64, zero_stage: 3, "
            "shard_replicas: 2, precision: bf16, framework: pytorch-fsdp}");
}

// 16 ranks / (4 x 2) are 2 replicas, each with 8 micro-batches of 1.
TEST(AccelerateFile, HasMegatron) {
  EXPECT_EQ(
      strategy_of(launch_file("accelerate-megatron.yaml"), {}, {{"strategy.micro_batch", "1"}}),
      "{tensor_parallel: 4, pipeline_parallel: 2, data_parallel: 2, sequence_parallel: true, "
      "micro_batch: 1, global_batch: 16, zero_stage: 1, recompute: selective, precision: "
      "fp16, framework: megatron-lm}");
}

// 4 nodes of 8 are 32 ranks, / (4 x 2) are 4 replicas. References in braces are followed.
TEST(NemoFile, IsReadAsItSays) {
  const auto run = value_of(import_text(launch_file("nemo-gpt.yaml")));
  EXPECT_EQ(run.format, "nemo");
  EXPECT_EQ(in_braces(run.strategy),
            "{tensor_parallel: 4, pipeline_parallel: 2, data_parallel: 4, sequence_parallel: true, "
            "micro_batch: 2, global_batch: 128, zero_stage: 1, recompute: selective, precision: "
            "bf16, framework: {extends: megatron-lm, fused_gradient_accumulation: false, "
            "gradient_reduction: overlapped, overlap_parameter_gather: false}}");
  EXPECT_EQ(in_braces(run.model),
            "{name: \"run\", layers: 24, hidden: 2304, heads: 24, ffn: 9216, vocabulary: 51200, "
            "sequence: 2048, dropout: true}");
  EXPECT_THAT(run.unmodelled, IsEmpty());
}

TEST(BridgeFile, IsReadAsItSays) {
  const auto run = value_of(import_text(launch_file("bridge.yaml"), 64));
  EXPECT_EQ(run.format, "megatron-bridge");
  EXPECT_THAT(in_braces(run.strategy),
              HasSubstr("pipeline_parallel: 4, data_parallel: 16, context_parallel: 1, "
                        "expert_parallel: 8, sequence_parallel: false, schedule: interleaved, "
                        "virtual_stages: 12, micro_batch: 1, global_batch: 512, zero_stage: 1, "
                        "precision: bf16, quantization: mxfp8, quantized_parameters: true"));
  const auto model = loaded<Model>(run.model);
  EXPECT_EQ(model.experts, 128);
  EXPECT_EQ(model.expert_ffn, 768);
  EXPECT_EQ(model.qk_norm, QkNorm::kPerHead);
  EXPECT_THAT(run.unmodelled, IsEmpty());
  EXPECT_THAT(faults_in(loaded<Strategy>(run.strategy), model, 64), IsEmpty());
}

// An override of a recipe, in its older and its newer spelling.
TEST(BridgeFile, MayOverrideARecipe) {
  const std::string sections =
      "model_config: {tensor_model_parallel_size: 2}\n"
      "train_config: {global_batch_size: 256, micro_batch_size: 4}\n";
  EXPECT_THAT(strategy_of(sections, 8), HasSubstr("{tensor_parallel: 2, data_parallel: 4"));
  const auto run = value_of(import_text(
      "ConfigContainer:\n  model: {tensor_model_parallel_size: 2}\n  train: {micro_batch_size: 1}\n"
      "  mixed_precision: bf16_with_mxfp8_mixed\n",
      8));
  EXPECT_THAT(in_braces(run.strategy), HasSubstr("quantization: mxfp8"));
  EXPECT_THAT(run.unmodelled, ElementsAre(Field(&Unmodelled::setting, "the recipe")));
}

TEST(LaunchReport, ShowsWhatWasTakenAndWhatNot) {
  const auto run = value_of(import_text("--micro-batch-size 1 --lr 3 --tp-comm-overlap --bf17", 2));
  const auto lines = report(run);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0], HasSubstr("run (megatron) gives: data_parallel 2, micro_batch 1"));
  EXPECT_EQ(lines[1], "without meaning for a step: --lr");
  EXPECT_THAT(lines[2], HasSubstr("not in the prediction: --tp-comm-overlap: "));
  EXPECT_EQ(lines[3], "not in the prediction: --bf17: not known; did you mean '--bf16'?");
}

// Words that are refused elsewhere, where they switch nothing on.
TEST(DeepSpeedFile, IsSoundWhereWhatIsNotModelledIsSwitchedOff) {
  const auto run = value_of(import_text(R"({"train_batch_size": 4, "optimizer": {"type": "AdamW"},
      "zero_optimization": {"stage": 2, "zero_hpz_partition_size": 1,
                            "offload_optimizer": {"device": "none"}}})",
                                        4));
  EXPECT_THAT(run.idle, Contains("zero_optimization.zero_hpz_partition_size"));
}

}  // namespace
}  // namespace foreshard::launch
