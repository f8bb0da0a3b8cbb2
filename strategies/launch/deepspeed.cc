// The format `deepspeed`, a row of formats.cc: its rows, and what follows from several keys
// together. import.cc and export.cc run it. Batch sizes are sequences; a micro-batch size that the
// file leaves to the program is marked as open.
#include <array>
#include <fmt/format.h>
#include <utility>

#include "base/text.h"

#include "strategies/launch/internal/formats.h"

// Source: microsoft/DeepSpeed 01f31a835, docs/_pages/config-json.md (names, defaults); deepspeedai/
// DeepSpeed, runtime/zero/config.py and runtime/config.py (what is derived from what).
namespace foreshard::launch::internal {
namespace {

std::span<const Row> rows() {
  constexpr Kind kSwitch = Kind::kSwitch;
  constexpr Kind kWord = Kind::kWord;
  constexpr Kind kText = Kind::kText;
  static constexpr auto kRows = std::to_array<Row>({
      {"train_batch_size", "note.train_batch", kText},
      {"train_micro_batch_size_per_gpu", "note.micro_batch", kText},
      {"gradient_accumulation_steps", "note.accumulation", kText},
      {"zero_optimization.stage", "strategy.zero_stage", Kind::kCount, "", kAlways},
      {"zero_optimization.mics_shard_size", "note.shard_group"},
      {"zero_optimization.overlap_comm", "note.overlap", kSwitch},
      {"zero_optimization.stage3_param_persistence_threshold",
       "strategy.framework.shards.gather_each"},
      {"zero_optimization.offload_optimizer.device", "strategy.offload_optimizer", kWord,
       "none=none cpu=cpu"},
      {"zero_optimization.cpu_offload", "strategy.offload_optimizer", kSwitch,
       "true=cpu false=none"},
      {"zero_optimization.offload_param.device", "strategy.offload_parameters", kWord,
       "none=false cpu=true"},
      {"zero_optimization.cpu_offload_params", "strategy.offload_parameters", kSwitch},
      {"bf16.enabled", "note.bf16", kSwitch, "true=true false=false auto=auto"},
      {"bfloat16.enabled", "note.bf16", kSwitch, "true=true false=false auto=auto"},
      {"fp16.enabled", "note.fp16", kSwitch, "true=true false=false auto=auto"},
      {"communication_data_type", "strategy.framework.gradient_dtype", kWord,
       "fp16=fp16 bf16=bf16 bfp16=bf16 fp32=fp32"},
      {"gradient_clipping", "note.clipping", kText},
      {"tensor_parallel.autotp_size", "strategy.tensor_parallel"},
      {"sequence_parallel_size", "strategy.context_parallel"},
      {"optimizer.type", "strategy.optimizer.rule", Kind::kWord,
       "Adam= AdamW= FusedAdam= adam= adamw= Lamb=lamb FusedLamb=lamb lamb=lamb Muon=muon "
       "muon=muon SGD=sgd sgd=sgd"},
  });
  return kRows;
}

std::span<const Rule> rules() {
  static constexpr auto kRules = std::to_array<Rule>({
      {"zero_optimization.offload_optimizer.ratio", "1 1.0",
       "a step that is partly the device's is not modelled", true},
      {"zero_optimization.zero_hpz_partition_size", "1",
       "second shards within nodes (ZeRO++) are not modelled", true},
      {"zero_optimization.zero_quantized_weights zero_optimization.zero_quantized_gradients", "",
       "quantized collectives (ZeRO++) are not modelled", true},
      {"amp.enabled", "", "Apex AMP is not modelled; use bf16 or fp16", true},
      {"sparse_attention.mode", "dense", "sparse attention is not modelled", true},
      {"activation_checkpointing.cpu_checkpointing", "",
       "give --set strategy.offload_activation_layers=N", true},
      {"pipeline.* hybrid_engine.enabled compression_training.* data_efficiency.enabled "
       "curriculum_learning.enabled progressive_layer_drop.enabled eigenvalue.enabled",
       "", "not modelled"},
      {"activation_checkpointing.partition_activations "
       "activation_checkpointing.contiguous_memory_optimization",
       "", "each rank keeps its inputs whole"},
      {"zero_optimization.reduce_scatter", "true", "gradients are reduced and scattered"},
      {"zero_optimization.allgather_partitions", "true", "parameters are gathered"},
      {"fp32_allreduce", "", "give communication_data_type"},
      {"data_types.grad_accum_dtype", "", "give --set strategy.framework.gradient_dtype"},
      {"compile.enabled compile.deepcompile", "", "kernels are those that run eagerly"},
  });
  return kRules;
}

constexpr std::string_view kIdle =
    "steps_per_print wall_clock_breakdown dump_state memory_breakdown optimizer.* scheduler.* "
    "fp16.* bf16.* amp.* flops_profiler.* tensorboard.* wandb.* csv_monitor.* comet.* "
    "comms_logger.* checkpoint.* elasticity.* autotuning.* aio.* zero_allow_untested_optimizer "
    "zero_force_ds_cpu_optimizer prescale_gradients gradient_predivide_factor sparse_gradients "
    "disable_allgather seq_parallel_communication_data_type zero_optimization.contiguous_gradients "
    "zero_optimization.*bucket_size zero_optimization.stage3_* zero_optimization.sub_group_size "
    "zero_optimization.round_robin_gradients zero_optimization.elastic_checkpoint "
    "zero_optimization.ignore_unused_parameters zero_optimization.offload_* "
    "zero_optimization.grad_hooks zero_optimization.mics_hierarchical_params_gather "
    "zero_optimization.load_from_fp32_weights zero_optimization.memory_efficient_linear "
    "zero_optimization.use_multi_rank_bucket_allreduce zero_optimization.gather_16bit_* "
    "activation_checkpointing.* sparse_attention.* zero_optimization.leaf_module.* "
    "zero_optimization.stage3* tensor_parallel.* dataloader_drop_last communication_data_type "
    "train_steps hybrid_engine.* data_efficiency.* curriculum_learning.*";

// A size; 0 where the Trainer of Transformers fills it in.
Result<std::int64_t> size(const Draft& draft, std::string_view key, std::string_view settled) {
  const std::string word = draft.word(key, "auto");
  if (word == "auto") return 0;
  const std::int64_t size = draft.count(key, 0);
  if (size < 1 || size > (1 << 30) || std::to_string(size) != word)
    return fault(draft.place(key), draft.from(key), "expected a positive whole number or \"auto\"",
                 fmt::format("or give --set {}=N", settled));
  return size;
}

// "auto" leaves a value to the Trainer of Transformers. Sizes of buckets and the like then have the
// defaults of DeepSpeed, or nearly so (10 x hidden for the threshold of persistence).
Result<std::vector<Setting>> cut(std::string_view text, const std::string& name) {
  FORESHARD_ASSIGN(auto settings, cut_yaml(text, name));
  for (Setting& setting : settings) {
    const bool is_auto = setting.words.size() == 1 && setting.words.front() == "auto";
    if (is_auto && setting.key.starts_with("zero_optimization.")) setting.words.clear();
  }
  return settings;
}

// train_batch_size = micro-batch x accumulation x data-parallel ranks: two give the third.
Status batch(Draft& draft, const ReadContext& reading, std::int64_t data) {
  FORESHARD_ASSIGN(auto global, size(draft, "note.train_batch", "strategy.global_batch"));
  FORESHARD_ASSIGN(auto micro, size(draft, "note.micro_batch", "strategy.micro_batch"));
  FORESHARD_ASSIGN(auto steps, size(draft, "note.accumulation", "strategy.global_batch"));
  const auto& settled = reading.request.settled;
  if (settled.contains("strategy.global_batch")) global = draft.count("strategy.global_batch");
  if (settled.contains("strategy.micro_batch")) micro = draft.count("strategy.micro_batch");
  if (steps == 0 && draft.word("note.accumulation") != "auto" && (global == 0 || micro == 0))
    steps = 1;
  if (global == 0 && micro > 0 && steps > 0) global = product({micro, steps, data});
  if (micro == 0 && global > 0 && steps > 0) micro = global / product({steps, data});
  if (global > 0 && micro == 0) {
    leave_micro_batch_open(draft);
    draft.set("strategy.global_batch", global, draft.from("note.train_batch"));
    return {};
  }
  if (global == 0)
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: error: train_batch_size and train_micro_batch_size_per_gpu are "
                             "left to the program\n   help: give --set strategy.micro_batch=N and "
                             "--set strategy.global_batch=N",
                             reading.request.name)};
  draft.set("strategy.global_batch", global,
            draft.has("note.train_batch") ? draft.from("note.train_batch")
                                          : "micro-batch x accumulation x data-parallel ranks");
  draft.set("strategy.micro_batch", micro,
            draft.has("note.micro_batch") ? draft.from("note.micro_batch")
                                          : draft.from("note.train_batch"));
  if (steps > 0 && global != product({micro, steps, data}) &&
      !settled.contains("strategy.global_batch") && !settled.contains("strategy.micro_batch"))
    return fault(draft.place("note.train_batch"), draft.from("note.train_batch"),
                 fmt::format("micro-batch {} x accumulation {} x data-parallel {} are {}", micro,
                             steps, data, product({micro, steps, data})),
                 fmt::format("{} ranks would do, or leave one of the three out",
                             std::max<std::int64_t>(
                                 1, global / std::max<std::int64_t>(1, product({micro, steps})))));
  return fault_in_batch(draft, reading);
}

// "auto" follows --bf16 and --fp16 of the Trainer of Transformers: taken as bf16, unless only fp16
// is "auto".
Status precision(Draft& draft, const ReadContext& reading) {
  bool bf16 = draft.is("note.bf16");
  bool fp16 = draft.is("note.fp16");
  for (const auto& [key, type] : {std::pair("note.bf16", &bf16), std::pair("note.fp16", &fp16)}) {
    if (bf16 || fp16 || draft.word(key) != "auto") continue;
    *type = true;
    if (!reading.request.settled.contains("strategy.precision"))
      reading.leave_out(draft.from(key),
                        "the program's --bf16 or --fp16 fills it in: taken as on; otherwise give "
                        "--set strategy.precision=fp16 or fp32");
  }
  if (bf16 && fp16)
    return fault(draft.place("note.fp16"), draft.from("note.fp16"), "bf16 is on too",
                 "switch one of them off");
  draft.set("strategy.precision",
            bf16   ? "bf16"
            : fp16 ? "fp16"
                   : "fp32",
            bf16   ? draft.from("note.bf16")
            : fp16 ? draft.from("note.fp16")
                   : "neither bf16 nor fp16");
  if (!draft.has("strategy.framework.gradient_dtype"))
    draft.set("strategy.framework.gradient_dtype", draft.word("strategy.precision"),
              "communication_data_type is the training type by default");
  return {};
}

Status finish(Draft& draft, const ReadContext& reading) {
  const std::int64_t tensor = draft.count("strategy.tensor_parallel");
  const std::int64_t sequence = draft.count("strategy.context_parallel");
  const std::int64_t stage = draft.count("strategy.zero_stage", 0);
  if (tensor < 1 || sequence < 1 || tensor > (1 << 20) || sequence > (1 << 20))
    return fault(draft.place("strategy.tensor_parallel"), draft.from("strategy.tensor_parallel"),
                 "sizes must be positive");
  if (stage < 0 || stage > 3)
    return fault(draft.place("strategy.zero_stage"), draft.from("strategy.zero_stage"),
                 "there are stages 0 to 3");
  FORESHARD_ASSIGN(const std::int64_t data,
                   data_parallel(draft, reading, tensor * sequence,
                                 fmt::format("tensor {} x sequence {}", tensor, sequence)));
  draft.set("strategy.data_parallel", data, "the ranks that the others leave");
  FORESHARD_TRY(batch(draft, reading, data));
  FORESHARD_TRY(precision(draft, reading));
  if (const std::int64_t group = draft.count("note.shard_group", 0); group > 0 && stage == 3) {
    if (data * sequence % group != 0)
      return fault(draft.place("note.shard_group"), draft.from("note.shard_group"),
                   fmt::format("{} ranks do not divide into groups of {}", data * sequence, group));
    draft.set("strategy.shard_replicas", data * sequence / group, draft.from("note.shard_group"));
  }
  if (sequence > 1)
    draft.set("strategy.context_exchange", "all-to-all", draft.from("strategy.context_parallel"));
  draft.set("strategy.framework.extends", "deepspeed-zero3", "");
  const bool overlaps = draft.has("note.overlap") ? draft.is("note.overlap") : stage == 3;
  draft.set("strategy.framework.gradient_reduction", overlaps ? "overlapped" : "after-backward",
            draft.has("note.overlap") ? draft.from("note.overlap")
                                      : "overlap_comm is on by default in stage 3 alone");
  if (stage < 3) draft.drop("strategy.framework.shards.gather_each");
  const std::string clipping = draft.word("note.clipping", "0");
  draft.set("strategy.framework.gradient_clipping",
            clipping == "0" || clipping == "0.0" ? "false" : "true", draft.from("note.clipping"));
  if (!reading.request.settled.contains("strategy.recompute"))
    reading.leave_out("activation checkpointing",
                      "the program switches it on, not this file: --set strategy.recompute=full");
  return {};
}

void spread(Draft& draft, const WriteContext& writing) {
  const Strategy& strategy = writing.strategy;
  draft.drop("strategy.data_parallel");
  const auto note = [&](std::string_view key, std::string word) {
    draft.set(key, std::move(word), "");
  };
  note("note.train_batch", std::to_string(strategy.global_batch));
  note("note.micro_batch", std::to_string(strategy.micro_batch));
  draft.drop("strategy.global_batch");
  draft.drop("strategy.micro_batch");
  if (strategy.precision == DType::kBf16) note("note.bf16", "true");
  if (strategy.precision == DType::kFp16) note("note.fp16", "true");
  if (strategy.precision != DType::kTf32) draft.drop("strategy.precision");
  if (strategy.zero_stage == 3 && strategy.shard_replicas > 1) {
    note("note.shard_group", std::to_string(strategy.shards()));
    draft.drop("strategy.shard_replicas");
  }
  const bool ulysses = strategy.context_exchange == ContextExchange::kAllToAll;
  if (strategy.context_parallel == 1 || ulysses) draft.drop("strategy.context_exchange");
  if (strategy.context_parallel > 1 && !ulysses)
    draft.forbid("strategy.context_exchange", "it exchanges tokens for heads (all-to-all)");
  note("note.overlap",
       strategy.framework->gradient_reduction == GradientReduction::kOverlapped ? "true" : "false");
  if (strategy.zero_stage < 3) draft.drop("strategy.framework.shards.gather_each");
  if (strategy.framework->gradient_clipping) note("note.clipping", "1.0");
}

bool recognises(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         (contains(text, "\"zero_optimization\"") ||
          contains(text, "\"train_micro_batch_size_per_gpu\"") ||
          contains(text, "\"train_batch_size\""));
}

}  // namespace

const Format& deepspeed_format() {
  static const Format format{.name = "deepspeed",
                             .summary = "The JSON configuration of DeepSpeed.",
                             .suffix = ".json",
                             .recognises = recognises,
                             .cut = cut,
                             .print = print_json,
                             .rows = rows,
                             .rules = rules,
                             .idle = kIdle,
                             .finish = finish,
                             .spread = spread,
                             .elsewhere = "strategy.recompute=model.gradient_checkpointing_enable"};
  return format;
}

}  // namespace foreshard::launch::internal
