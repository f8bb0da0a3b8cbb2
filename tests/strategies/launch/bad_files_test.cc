// What is wrong with a launch file, and what to do about it.
#include "tests/strategies/launch/launches.h"

namespace foreshard::launch {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(BadLaunchFile, IsOfAnotherTool) {
  EXPECT_THAT(strategy_of("cluster: x\nstrategy: {global_batch: 1}\n"),
              AllOf(StartsWith("run: error: this is a study of foreshard"), HasSubstr("help: ")));
  EXPECT_THAT(strategy_of(R"({"model_type": "llama"})"), HasSubstr("give it as --model"));
  EXPECT_THAT(strategy_of("hello"),
              AllOf(HasSubstr("no known framework writes such a file"), HasSubstr("'torchtitan'")));
  // Other frameworks have sections of the same names (do_train: is no train:).
  EXPECT_THAT(strategy_of("model_name_or_path: some/model\nstage: sft\ndo_train: true\n"
                          "finetuning_type: full\ndeepspeed: ds_z3.json\ncutoff_len: 4096\n"
                          "per_device_train_batch_size: 1\n"),
              AllOf(StartsWith("run: error: this is a configuration of LLaMA-Factory"),
                    HasSubstr("import the DeepSpeed")));
  EXPECT_THAT(strategy_of("work_group: amd\nmodules:\n  pre_trainer:\n    framework: megatron\n"
                          "    config: pre_trainer.yaml\n    model: llama3.1_70B.yaml\n"
                          "    overrides:\n      micro_batch_size: 1\n      global_batch_size: 8\n"
                          "      train_iters: 50\n      tensor_model_parallel_size: 4\n"
                          "      use_torch_fsdp2: true\n      use_distributed_optimizer: false\n"),
              AllOf(HasSubstr("this is a configuration of Primus"),
                    HasSubstr("--megatron \"--bf16 --micro-batch-size 1 --global-batch-size 8 "
                              "--tensor-model-parallel-size 4 --use-torch-fsdp2\"")));
  EXPECT_THAT(strategy_of("base_model: some/model\nsequence_len: 4096\nmicro_batch_size: 1\n"),
              HasSubstr("this is a configuration of Axolotl"));
  EXPECT_THAT(strategy_of("step_scheduler: {global_batch_size: 256}\nmodel: {x: 1}\n"),
              HasSubstr("this is a configuration of NeMo Automodel"));
  EXPECT_THAT(strategy_of("trainer: {max_epochs: 3}\nmodel: {class_path: mine.Module}\n"),
              HasSubstr("no known framework writes such a file"));
  EXPECT_THAT(strategy_of("train: {epochs: 3}\nmodel: {depth: 50}\n"),
              HasSubstr("no known framework writes such a file"));
  EXPECT_THAT(strategy_of("hello", 1, {}, "pytorch"), HasSubstr("there is no format 'pytorch'"));
}

TEST(BadLaunchFile, CannotBeCut) {
  EXPECT_THAT(strategy_of("--num-layers '3", 1), HasSubstr("the quote ' is not closed"));
  EXPECT_THAT(strategy_of("[parallelism]\ntensor_parallel_degree = [1", 1), StartsWith("run:2:"));
  EXPECT_THAT(strategy_of("{\"zero_optimization\": {", 1), StartsWith("run:"));
  EXPECT_THAT(strategy_of("distributed_type: FSDP\ndistributed_type: NO\n", 1),
              StartsWith("run:2:1: error: "));
}

TEST(BadLaunchFile, HasAnUnknownWord) {
  EXPECT_THAT(strategy_of("distributed_type: FSPD\n", 1),
              AllOf(StartsWith("run:1:19: error: distributed_type: 'FSPD' is not understood"),
                    HasSubstr("did you mean 'FSDP'?")));
  EXPECT_THAT(strategy_of("[parallelism]\npipeline_parallel_degree = 2\n"
                          "pipeline_parallel_schedule = \"ZBVZeroBubble\"\n",
                          2),
              AllOf(StartsWith("run:3:30: error: parallelism.pipeline_parallel_schedule: "),
                    HasSubstr("use '1F1B', 'GPipe' or 'Interleaved1F1B'")));
  EXPECT_THAT(strategy_of("--micro-batch-size one", 1),
              HasSubstr("--micro-batch-size: expected a whole number, found 'one'"));
  EXPECT_THAT(strategy_of("--micro-batch-size $MBS", 1),
              AllOf(HasSubstr("'$MBS' is a variable"), HasSubstr("write its value")));
  EXPECT_THAT(strategy_of("--micro-batch-size 1 2", 1), HasSubstr("expected one value, found 2"));
}

TEST(BadLaunchFile, ContradictsItself) {
  EXPECT_THAT(strategy_of("--micro-batch-size 1 --tensor-model-parallel-size 8 "
                          "--pipeline-model-parallel-size 4",
                          48),
              AllOf(HasSubstr("48 ranks do not divide by tensor 8 x pipeline 4 x context 1 = 32"),
                    HasSubstr("use 32 or 64 ranks")));
  EXPECT_THAT(strategy_of("--micro-batch-size 2 --global-batch-size 10", 4),
              AllOf(HasSubstr("a batch of 10 does not divide into data-parallel 4 x micro-batch 2"),
                    HasSubstr("use 8")));
  EXPECT_THAT(strategy_of(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
                              "gradient_accumulation_steps": 4})",
                          16),
              AllOf(HasSubstr("micro-batch 2 x accumulation 4 x data-parallel 16 are 128"),
                    HasSubstr("8 ranks would do")));
  EXPECT_THAT(strategy_of(R"({"train_batch_size": 4, "bf16": {"enabled": true},
                              "fp16": {"enabled": true}})",
                          4),
              HasSubstr("bf16 is on too"));
  EXPECT_THAT(strategy_of("distributed_type: FSDP\nnum_processes: 8\nparallelism_config:\n"
                          "  parallelism_config_dp_shard_size: 4\n",
                          {}, {{"strategy.micro_batch", "1"}, {"strategy.global_batch", "8"}}),
              HasSubstr("4 data-parallel ranks are not the 8 that the others leave"));
  EXPECT_THAT(strategy_of("[parallelism]\ndata_parallel_shard_degree = 16\n"
                          "[activation_checkpoint]\nmode = \"none\"\n",
                          8),
              HasSubstr("16 ranks, but there are 8"));
  EXPECT_THAT(strategy_of("--micro-batch-size 1 --overlap-param-gather", 2),
              HasSubstr("add --use-distributed-optimizer"));
}

// Also where the product of what is given is more than fits.
TEST(BadLaunchFile, IsOutOfRange) {
  EXPECT_THAT(strategy_of("--micro-batch-size 1 --tensor-model-parallel-size 0", 4),
              HasSubstr("--tensor-model-parallel-size 0: out of range"));
  EXPECT_THAT(strategy_of("--micro-batch-size 1e400", 4), HasSubstr("expected a whole number"));
  EXPECT_THAT(strategy_of("trainer: {num_nodes: 4000000000, devices: 4000000000}\n"
                          "model: {micro_batch_size: 1}\n"),
              HasSubstr("ranks are out of range"));
  EXPECT_THAT(strategy_of("[parallelism]\ntensor_parallel_degree = 1048576\n"
                          "pipeline_parallel_degree = 1048576\ncontext_parallel_degree = 1048576\n"
                          "data_parallel_replicate_degree = 1048576\n",
                          8),
              HasSubstr("8 ranks do not divide by tensor 1048576"));
}

TEST(BadLaunchFile, DoesNotSayEnough) {
  EXPECT_THAT(strategy_of("--micro-batch-size 1"),
              AllOf(HasSubstr("does not say how many ranks there are"), HasSubstr("--devices")));
  EXPECT_THAT(strategy_of("--tensor-model-parallel-size 1", 1),
              HasSubstr("the micro-batch size is missing"));
  EXPECT_THAT(strategy_of("distributed_type: FSDP\nnum_processes: 8\n"),
              HasSubstr("accelerate leaves the batch to the program"));
  EXPECT_THAT(strategy_of("--micro-batch-size 1 --recompute-granularity full", 1),
              HasSubstr("give the method uniform or block"));
}

TEST(BadLaunchFile, HasWhatIsNotModelled) {
  for (const auto& [text, why] :
       {std::pair<std::string, std::string>{
            "--micro-batch-size 1 --num-layers 2 --hidden-size 64 --num-attention-heads 2 "
            "--seq-length 1024 --window-size 127,0 --window-attn-skip-freq 2",
            "run: error: --window-attn-skip-freq 2: layers of full attention"},
        {"--micro-batch-size 1 --optimizer lion", "--optimizer: 'lion' is not understood"},
        {"--micro-batch-size 1 --recompute-granularity selective --recompute-modules mla_up_proj",
         "only core_attn, layernorm, mlp, moe, moe_act, shared_experts are modelled"},
        {"--micro-batch-size 1 --pipeline-model-parallel-size 2 --num-layers 4 "
         "--pipeline-model-parallel-layout Ett|t*3L",
         "it has 5 layers, the model 4"},
        {"--micro-batch-size 1 --pipeline-model-parallel-layout Ett|(tL",
         "a bracket is not closed"},
        {R"({"train_batch_size": 4, "zero_optimization": {"stage": 2, "offload_optimizer":
             {"device": "nvme"}}})",
         "zero_optimization.offload_optimizer.device"},
        {R"({"train_batch_size": 4, "zero_optimization": {"stage": 2, "offload_optimizer":
             {"device": "cpu", "ratio": 0.3}}})",
         "zero_optimization.offload_optimizer.ratio: a step that is partly"},
        {"distributed_type: FSDP\nfsdp_config: {fsdp_offload_params: true, "
         "fsdp_sharding_strategy: SHARD_GRAD_OP}\n",
         "fsdp_config.fsdp_offload_params true: offloading is modelled where"},
        {"distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: ds.json}\n",
         "the configuration is in another file: import that one"},
        {"[parallelism]\ntensor_parallel_degree = 1\n",
         "activation_checkpoint.mode is selective by default: with selective_ac_option 2, the "
         "default, every second layer"},
        {"trainer: {devices: 1}\nmodel: {micro_batch_size: 1, optim: {name: sgd}}\n",
         "model.optim.name: 'sgd' is not understood"}}) {
    const auto run = import_text(text, 4);
    ASSERT_FALSE(run) << text;
    EXPECT_THAT(run.error().message, HasSubstr(why));
    EXPECT_THAT(run.error().message, StartsWith("run"));
  }
}

// The same words where they switch nothing on.
TEST(BadLaunchFile, IsSoundWhereItIsSwitchedOff) {
  const auto run = import_text(R"({"train_batch_size": 4, "optimizer": {"type": "AdamW"},
      "zero_optimization": {"stage": 2, "zero_hpz_partition_size": 1,
                            "offload_optimizer": {"device": "none"}}})",
                               4);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_THAT(run->idle, testing::Contains("zero_optimization.zero_hpz_partition_size"));
}

}  // namespace
}  // namespace foreshard::launch
