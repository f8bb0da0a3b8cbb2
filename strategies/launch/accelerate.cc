// The format `accelerate`, a row of formats.cc: its rows, and what follows from several keys
// together. import.cc and export.cc run it. torchtitan.cc shares its offloading of FSDP.
#include <array>
#include <fmt/format.h>
#include <utility>

#include "base/text.h"

#include "strategies/launch/internal/formats.h"

// Source: huggingface/accelerate, src/accelerate/commands/config/config_args.py (names),
// examples/config_yaml_templates, examples/torch_native_parallelism/configs and
// docs/source/usage_guides/megatron_lm.md (files as `accelerate config` writes them).
namespace foreshard::launch::internal {
namespace {

std::span<const Row> rows() {
  constexpr Kind kSwitch = Kind::kSwitch;
  constexpr Kind kWord = Kind::kWord;
  constexpr Kind kText = Kind::kText;
  static constexpr auto kRows = std::to_array<Row>({
      {"distributed_type", "note.type", kWord,
       "FSDP=fsdp DEEPSPEED=deepspeed MEGATRON_LM=megatron MULTI_GPU=ddp NO=ddp", kAlways},
      {"num_processes", "note.devices"},
      {"num_machines", "note.machines"},
      {"mixed_precision", "note.precision", kWord, "no=fp32 fp16=fp16 bf16=bf16 fp8=fp8", "no"},
      {"fp8_config.backend", "note.fp8_backend", kWord, "TE=fp8-delayed AO=fp8-current"},
      {"fsdp_config.fsdp_version", "note.version"},
      {"fsdp_config.fsdp_sharding_strategy", "note.sharding", kWord,
       "FULL_SHARD=full SHARD_GRAD_OP=grads NO_SHARD=none HYBRID_SHARD=hybrid "
       "HYBRID_SHARD_ZERO2=hybrid-grads 1=full 2=grads 3=none 4=hybrid 5=hybrid-grads"},
      {"fsdp_config.fsdp_reshard_after_forward", "note.reshard", kWord,
       "true=full false=grads FULL_SHARD=full SHARD_GRAD_OP=grads NO_SHARD=none "
       "HYBRID_SHARD=hybrid HYBRID_SHARD_ZERO2=hybrid-grads"},
      {"fsdp_config.fsdp_activation_checkpointing", "strategy.recompute", kSwitch,
       "true=full false=none"},
      {"fsdp_config.fsdp_backward_prefetch", "strategy.framework.shards.backward_prefetch", kWord,
       "BACKWARD_PRE=pre BACKWARD_POST=post NO_PREFETCH=none"},
      {"fsdp_config.fsdp_forward_prefetch", "strategy.framework.shards.forward_prefetch", kSwitch,
       "true=pre false=post"},
      {"parallelism_config.parallelism_config_dp_replicate_size", "note.replicas"},
      {"parallelism_config.parallelism_config_dp_shard_size", "note.shards"},
      {"parallelism_config.parallelism_config_tp_size", "strategy.tensor_parallel"},
      {"parallelism_config.parallelism_config_cp_size", "strategy.context_parallel"},
      {"parallelism_config.parallelism_config_cp_comm_strategy", "strategy.context_exchange", kWord,
       "allgather=overlapped-all-gather alltoall=ring", "allgather"},
      {"fsdp_config.fsdp_offload_params", "note.cpu_offload", kSwitch},
      {"fsdp_config.fsdp_cpu_offload", "note.cpu_offload", kSwitch},
      {"deepspeed_config.offload_optimizer_device", "note.offload_optimizer", kWord,
       "none=none cpu=cpu"},
      {"deepspeed_config.offload_param_device", "note.offload_parameters", kWord,
       "none=false cpu=true"},
      {"deepspeed_config.zero_stage", "note.zero_stage"},
      {"deepspeed_config.gradient_accumulation_steps", "note.accumulation", kText},
      {"megatron_lm_config.megatron_lm_tp_degree", "note.megatron_tensor"},
      {"megatron_lm_config.megatron_lm_pp_degree", "strategy.pipeline_parallel"},
      {"megatron_lm_config.megatron_lm_num_micro_batches", "note.accumulation", kText},
      {"megatron_lm_config.megatron_lm_sequence_parallelism", "strategy.sequence_parallel",
       kSwitch},
      {"megatron_lm_config.megatron_lm_recompute_activations", "strategy.recompute", kSwitch,
       "true=selective false=none"},
      {"megatron_lm_config.megatron_lm_use_distributed_optimizer", "note.distributed_optimizer",
       kSwitch},
  });
  return kRows;
}

std::span<const Rule> rules() {
  static constexpr auto kRules = std::to_array<Rule>({
      {"deepspeed_config.deepspeed_config_file", "",
       "the configuration is in another file: import that one", true},
      {"use_cpu", "", "training on processors is not modelled", true},
      {"tpu_name tpu_zone tpu_use_cluster", "", "TPUs are not modelled", true},
      {"parallelism_config.parallelism_config_sp_size", "1",
       "sequences by accelerate's sp are not modelled; use cp", true},
      {"dynamo_config.dynamo_backend", "NO no", "kernels are those that run eagerly"},
      {"fsdp_config.fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP",
       "each layer is gathered by itself"},
      {"deepspeed_config.deepspeed_moe_layer_cls_names", "", "not modelled"},
  });
  return kRules;
}

constexpr std::string_view kIdle =
    "compute_environment debug downcast_bf16 enable_cpu_affinity machine_rank main_process_ip "
    "main_process_port main_training_function rdzv_backend same_network tpu_* gpu_ids "
    "fsdp_config.fsdp_cpu_ram_efficient_loading fsdp_config.fsdp_state_dict_type "
    "fsdp_config.fsdp_sync_module_states fsdp_config.fsdp_transformer_layer_cls_to_wrap "
    "fsdp_config.fsdp_use_orig_params fsdp_config.fsdp_min_num_params fp8_config.* "
    "deepspeed_config.gradient_clipping deepspeed_config.zero3_* "
    "deepspeed_config.deepspeed_multinode_launcher deepspeed_config.deepspeed_hostfile "
    "deepspeed_config.offload_* megatron_lm_config.megatron_lm_gradient_clipping "
    "megatron_lm_config.megatron_lm_learning_rate_* dynamo_config.* commands command_file "
    "parallelism_config.*handler* use_cpu mpirun_config.* ipex_config.* use_parallelism_config";

Status sharding(Draft& draft, std::int64_t data) {
  const std::string type = draft.word("note.type");
  if (type == "megatron") {
    draft.set("strategy.zero_stage", draft.is("note.distributed_optimizer") ? 1 : 0,
              draft.from("note.distributed_optimizer"));
  } else if (type == "deepspeed") {
    // DeepSpeedPlugin: zero_stage is 2 unless it is given.
    draft.set("strategy.zero_stage", draft.count("note.zero_stage", 2),
              draft.from("note.zero_stage"));
  } else if (type == "fsdp") {
    const std::string key = draft.has("note.reshard") && draft.count("note.version") == 2
                                ? "note.reshard"
                            : draft.has("note.sharding") ? "note.sharding"
                                                         : "note.reshard";
    const std::string how = draft.word(key, "full");
    const bool hybrid = how.starts_with("hybrid");
    const std::int64_t replicas =
        hybrid ? draft.count("note.machines") : draft.count("note.replicas");
    if (hybrid && !draft.has("note.machines"))
      return fault(draft.place(key), draft.from(key),
                   "shards lie within machines, and num_machines is not given");
    draft.set("strategy.zero_stage",
              how == "none"            ? 0
              : how.ends_with("grads") ? 2
                                       : 3,
              draft.has(key) ? draft.from(key) : "FSDP");
    if (replicas > 1 && how != "none") {
      if (data % replicas != 0)
        return fault(
            draft.place(key), draft.from(key),
            fmt::format("{} data-parallel ranks do not divide into {} sets", data, replicas));
      draft.set("strategy.shard_replicas", replicas,
                draft.from(hybrid ? "note.machines" : "note.replicas"));
    }
  }
  return {};
}

Status batch(Draft& draft, const ReadContext& reading, std::int64_t data) {
  const auto& settled = reading.request.settled;
  const std::string steps = draft.word("note.accumulation", "auto");
  if (settled.contains("strategy.micro_batch") && !settled.contains("strategy.global_batch") &&
      steps != "auto") {
    const std::int64_t number = draft.count("note.accumulation", 0);
    if (number < 1 || number > (1 << 20))
      return fault(draft.place("note.accumulation"), draft.from("note.accumulation"),
                   "expected a positive whole number or auto");
    draft.set("strategy.global_batch", product({draft.count("strategy.micro_batch"), number, data}),
              draft.from("note.accumulation"));
  }
  if (!draft.has("strategy.micro_batch") || !draft.has("strategy.global_batch"))
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: error: accelerate leaves the batch to the program\n   help: give "
                             "--set strategy.micro_batch=N (per_device_train_batch_size) and --set "
                             "strategy.global_batch=N (that x accumulation x data-parallel {})",
                             reading.request.name, data)};
  return fault_in_batch(draft, reading);
}

void precision(Draft& draft) {
  const std::string word = draft.word("note.precision");
  const std::string from = draft.from("note.precision");
  draft.set("strategy.precision", word == "fp8" ? "bf16" : word, from);
  if (word == "fp8")
    draft.set("strategy.quantization", draft.word("note.fp8_backend", "fp8-delayed"), from);
}

Status finish(Draft& draft, const ReadContext& reading) {
  if (!draft.has("note.type"))
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: error: distributed_type is missing", reading.request.name)};
  if (draft.has("note.megatron_tensor"))
    draft.set("strategy.tensor_parallel", draft.at("note.megatron_tensor"));
  const std::int64_t tensor = draft.count("strategy.tensor_parallel");
  const std::int64_t pipeline = draft.count("strategy.pipeline_parallel");
  const std::int64_t context = draft.count("strategy.context_parallel");
  for (const auto* key :
       {"strategy.tensor_parallel", "strategy.pipeline_parallel", "strategy.context_parallel"})
    if (draft.count(key) < 1 || draft.count(key) > (1 << 20))
      return fault(draft.place(key), draft.from(key), "out of range", "use a number from 1 on");
  FORESHARD_ASSIGN(const std::int64_t data,
                   data_parallel(draft, reading, product({tensor, pipeline, context}),
                                 fmt::format("tensor {} x pipeline {} x context {}", tensor,
                                             pipeline, context)));
  draft.set("strategy.data_parallel", data, draft.from("note.devices"));
  const std::int64_t named = product({draft.count("note.replicas"), draft.count("note.shards")});
  if (draft.has("note.shards") && named != data)
    return fault(
        draft.place("note.shards"), draft.from("note.shards"),
        fmt::format("{} data-parallel ranks are not the {} that the others leave", named, data));
  FORESHARD_TRY(sharding(draft, data));
  if (draft.word("note.type") == "fsdp") FORESHARD_TRY(finish_fsdp_offload(draft));
  for (const auto& [note, key] :
       {std::pair("note.offload_optimizer", "strategy.offload_optimizer"),
        std::pair("note.offload_parameters", "strategy.offload_parameters")})
    if (draft.has(note) && draft.word("note.type") == "deepspeed") draft.set(key, draft.at(note));
  FORESHARD_TRY(batch(draft, reading, data));
  precision(draft);
  if (context == 1) draft.drop("strategy.context_exchange");
  if (tensor == 1) draft.drop("strategy.sequence_parallel");
  const std::string type = draft.word("note.type");
  if (type != "fsdp") {
    draft.drop("strategy.framework.shards.backward_prefetch");
    draft.drop("strategy.framework.shards.forward_prefetch");
  }
  draft.set("strategy.framework.extends",
            type == "deepspeed"  ? "deepspeed-zero3"
            : type == "megatron" ? "megatron-lm"
                                 : "pytorch-fsdp",
            "");
  if (type == "deepspeed" && !reading.request.settled.contains("strategy.recompute"))
    reading.leave_out("activation checkpointing",
                      "the program switches it on, not this file: --set strategy.recompute=full");
  return {};
}

// The plugin that can express most of the strategy.
std::string type_for(const Strategy& strategy) {
  const bool megatron = strategy.pipeline_parallel > 1 ||
                        (strategy.zero_stage == 1 && strategy.recompute != Recompute::kFull &&
                         strategy.context_parallel == 1) ||
                        (strategy.zero_stage == 0 && strategy.tensor_parallel > 1);
  if (megatron) return "megatron";
  return strategy.zero_stage == 0 ? "ddp" : "fsdp";
}

void spread_fsdp(Draft& draft, const Strategy& strategy) {
  const auto note = [&](std::string_view key, std::int64_t number) { draft.set(key, number, ""); };
  if (strategy.zero_stage < 2 || strategy.data_parallel % strategy.shard_replicas != 0) return;
  note("note.version", 2);
  draft.set("note.reshard", strategy.zero_stage == 3 ? "full" : "grads", "");
  draft.drop("strategy.zero_stage");
  if (strategy.recompute == Recompute::kSelective)
    draft.forbid("strategy.recompute", "FSDP recomputes whole layers");
  if (strategy.shard_replicas > 1 || strategy.tensor_parallel > 1 ||
      strategy.context_parallel > 1) {
    note("note.replicas", strategy.shard_replicas);
    note("note.shards", strategy.data_parallel / strategy.shard_replicas);
    draft.drop("strategy.shard_replicas");
  }
}

void spread_megatron_lm(Draft& draft, const Strategy& strategy) {
  if (strategy.zero_stage < 2) {
    draft.set("note.distributed_optimizer", strategy.zero_stage == 1 ? "true" : "false", "");
    draft.drop("strategy.zero_stage");
  }
  draft.set("note.megatron_tensor", strategy.tensor_parallel, "");
  draft.drop("strategy.tensor_parallel");
  if (strategy.recompute == Recompute::kFull)
    draft.forbid("strategy.recompute", "the Megatron-LM plugin recomputes core attention");
  if (strategy.context_parallel > 1)
    draft.forbid("strategy.context_parallel", "the Megatron-LM plugin has no context parallelism");
}

void spread(Draft& draft, const WriteContext& writing) {
  const Strategy& strategy = writing.strategy;
  const std::string type = type_for(strategy);
  draft.set("note.type", type, "");
  draft.set("note.devices", strategy.devices(), "");
  draft.drop("strategy.data_parallel");
  if (type == "fsdp") spread_fsdp(draft, strategy);
  if (type == "fsdp") spread_fsdp_offload(draft, strategy);
  if (type == "megatron") spread_megatron_lm(draft, strategy);
  if (type != "fsdp") {
    draft.drop("strategy.framework.shards.backward_prefetch");
    draft.drop("strategy.framework.shards.forward_prefetch");
  }
  if (strategy.sequence_parallel && (type != "megatron" || strategy.tensor_parallel == 1))
    draft.forbid("strategy.sequence_parallel", "the Megatron-LM plugin does it, of tensor ranks");
  if (type == "ddp") {
    draft.drop("strategy.zero_stage");
    if (strategy.recompute != Recompute::kNone)
      draft.forbid("strategy.recompute", "without FSDP the program switches it on");
    if (strategy.context_parallel > 1)
      draft.forbid("strategy.context_parallel", "it needs FSDP: zero_stage 2 or 3");
  }
  if (strategy.context_parallel == 1) draft.drop("strategy.context_exchange");
  const bool fp8 = strategy.quantization == Quantization::kFp8Delayed ||
                   strategy.quantization == Quantization::kFp8Current;
  if (fp8 && strategy.precision == DType::kBf16) {
    draft.set("note.precision", "fp8", "");
    draft.set("note.fp8_backend", draft.word("strategy.quantization"), "");
    draft.drop("strategy.quantization");
    draft.drop("strategy.precision");
  } else if (strategy.precision != DType::kTf32) {
    draft.set("note.precision", draft.word("strategy.precision"), "");
    draft.drop("strategy.precision");
  }
}

bool recognises(std::string_view text) {
  return contains(text, "distributed_type:");
}

}  // namespace

const Format& accelerate_format() {
  static const Format format{
      .name = "accelerate",
      .summary = "The YAML that `accelerate config` of Hugging Face writes.",
      .suffix = ".yaml",
      .recognises = recognises,
      .cut = cut_yaml,
      .print = print_yaml,
      .rows = rows,
      .rules = rules,
      .idle = kIdle,
      .finish = finish,
      .spread = spread,
      .elsewhere =
          "strategy.micro_batch=per_device_train_batch_size;"
          "strategy.global_batch=that x accumulation steps x data-parallel ranks"};
  return format;
}

Status finish_fsdp_offload(Draft& draft) {
  if (!draft.is("note.cpu_offload")) return {};
  if (draft.count("strategy.zero_stage", 0) != 3)
    return fault(draft.place("note.cpu_offload"), draft.from("note.cpu_offload"),
                 "offloading is modelled where parameters are given up after each pass (ZeRO 3) "
                 "alone",
                 "shard parameters fully, or leave it out");
  draft.set("strategy.offload_optimizer", "cpu", draft.from("note.cpu_offload"));
  draft.set("strategy.offload_parameters", "true", draft.from("note.cpu_offload"));
  return {};
}

void spread_fsdp_offload(Draft& draft, const Strategy& strategy) {
  const bool all = strategy.zero_stage == 3 && strategy.offload_parameters &&
                   strategy.offload_optimizer == OptimizerOffload::kCpu;
  if (!all) return;
  draft.set("note.cpu_offload", "true", "");
  draft.drop("strategy.offload_optimizer");
  draft.drop("strategy.offload_parameters");
}

}  // namespace foreshard::launch::internal
