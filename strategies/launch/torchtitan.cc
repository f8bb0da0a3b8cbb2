// The format `torchtitan`, a row of formats.cc: its rows, and what follows from several keys
// together. import.cc and export.cc run it.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>

#include "base/text.h"

#include "strategies/launch/internal/formats.h"

// Source: pytorch/torchtitan 000204a4a, torchtitan/config/job_config.py (names, defaults); its
// train_configs of 2025 (batch_size, then local_batch_size; [compile] and [quantize.*], which
// replaced training.compile and [float8]); distributed/pipeline_parallel.py (stages and their
// layers), models/llama3/infra/parallelize.py (what follows from the degrees).
namespace foreshard::launch::internal {
namespace {

std::span<const Row> rows() {
  constexpr Kind kSwitch = Kind::kSwitch;
  constexpr Kind kWord = Kind::kWord;
  constexpr Kind kText = Kind::kText;
  constexpr Kind kCount = Kind::kCount;
  static constexpr auto kRows = std::to_array<Row>({
      {"model.name", "note.model", kText},
      {"model.flavor", "note.flavor", kText},
      {"model.converters", "note.converters", kText},
      {"training.local_batch_size", "note.local_batch", kCount, "", "8"},
      {"training.batch_size", "note.local_batch"},
      {"training.global_batch_size", "note.global_batch", kCount, "", "-1"},
      {"training.seq_len", "note.sequence", kCount, "", "2048"},
      {"training.mixed_precision_param", "strategy.precision", kWord, "bfloat16=bf16 float32=fp32",
       "bfloat16"},
      {"training.max_norm", "note.max_norm", Kind::kNumber},
      {"training.enable_cpu_offload", "note.cpu_offload", kSwitch},
      {"parallelism.tensor_parallel_degree", "strategy.tensor_parallel"},
      {"parallelism.pipeline_parallel_degree", "strategy.pipeline_parallel"},
      {"parallelism.pipeline_parallel_schedule", "strategy.schedule", kWord,
       "1F1B=1f1b GPipe=gpipe Interleaved1F1B=interleaved", "1F1B"},
      {"parallelism.pipeline_parallel_microbatch_size", "note.micro_batch", kCount, "", "1"},
      {"parallelism.pipeline_parallel_layers_per_stage", "note.layers_per_stage"},
      {"parallelism.pipeline_parallel_first_stage_less_layers", "note.less_first", kCount, "", "1"},
      {"parallelism.pipeline_parallel_last_stage_less_layers", "note.less_last", kCount, "", "1"},
      {"parallelism.context_parallel_degree", "strategy.context_parallel"},
      {"parallelism.context_parallel_rotate_method", "strategy.context_exchange", kWord,
       "allgather=overlapped-all-gather alltoall=ring", "allgather"},
      {"parallelism.data_parallel_replicate_degree", "note.replicas", kCount, "", "1"},
      {"parallelism.data_parallel_shard_degree", "note.shards", kCount, "", "-1"},
      {"parallelism.fsdp_reshard_after_forward", "note.reshard", kWord,
       "default=default always=always never=never", "default"},
      {"parallelism.expert_parallel_degree", "strategy.expert_parallel"},
      {"parallelism.expert_tensor_parallel_degree", "note.expert_tensor", kCount, "", "1"},
      {"activation_checkpoint.mode", "note.recompute", kWord,
       "none=none full=full selective=selective", "selective"},
      {"activation_checkpoint.selective_ac_option", "note.selective", kText},
      {"compile.enable", "note.compile", kSwitch, "", "false"},
      {"training.compile", "note.compile", kSwitch},
      {"quantize.linear.float8.recipe_name", "note.float8_recipe", kText},
      {"float8.recipe_name", "note.float8_recipe", kText},
      {"quantize.linear.float8.enable_fsdp_float8_all_gather", "strategy.quantized_parameters",
       kSwitch},
      {"float8.enable_fsdp_float8_all_gather", "strategy.quantized_parameters", kSwitch},
      {"optimizer.name", "strategy.optimizer.rule", kWord, "AdamW= Adam= Muon=muon"},
      {"optimizer.implementation", "strategy.framework.optimizer", kWord,
       "fused=fused for-loop=loop foreach=loop", "fused"},
  });
  return kRows;
}

std::span<const Rule> rules() {
  static constexpr auto kRules = std::to_array<Rule>({
      {"optimizer.early_step_in_backward", "",
       "steps of the optimizer within the backward pass are "
       "not modelled",
       true},
      {"parallelism.pipeline_parallel_split_points parallelism.module_fqns_per_model_part*", "",
       "give the layers of each stage: --set strategy.layers_per_stage=[...]", true},
      {"parallelism.pipeline_parallel_schedule_csv", "", "a schedule of one's own is not modelled",
       true},
      {"fault_tolerance.enable", "", "training that survives failures (TorchFT) is not modelled",
       true},
      {"parallelism.enable_async_tensor_parallel", "",
       "products and their collectives run one after another"},
      {"float8.filter_fqns quantize.linear.float8.filter_fqns mx.filter_fqns "
       "quantize.linear.mx.filter_fqns",
       "output router.gate", "every linear layer but the head computes in fp8"},
      {"float8.moe_fqns_prototype quantize.grouped_mm.*", "",
       "experts compute in what linear layers do"},
      {"float8.emulate quantize.linear.float8.emulate", "", "products run on the matrix units"},
      {"parallelism.disable_loss_parallel", "", "the loss is split over tensor-parallel ranks"},
      {"parallelism.enable_compiled_autograd", "", "not modelled"},
      {"training.deterministic debug.deterministic", "", "not modelled"},
      {"experimental.custom_import experimental.custom_args_module", "",
       "code of one's own is not known"},
  });
  return kRules;
}

constexpr std::string_view kIdle =
    "job.* profiling.* metrics.* optimizer.* lr_scheduler.* checkpoint.* comm.* "
    "memory_estimation.* fault_tolerance.* validation.* debug.* experimental.* compile.* "
    "model.tokenizer_path model.hf_assets_path model.print_after_conversion training.dataset* "
    "training.steps training.gc_* training.seed training.mixed_precision_reduce training.dtype "
    "training.warmup_steps activation_checkpoint.* float8.* mx.* quantize.*";

// Models of ours, by name and flavor.
struct TitanModel {
  std::string_view name, flavor, ours;
};
constexpr TitanModel kKnown[]{
    {"llama3", "8B", "llama3-8b"},
    {"llama3", "70B", "llama3-70b"},
    {"llama3", "405B", "llama3-405b"},
    {"qwen3", "30B-A3B", "qwen3-30b-a3b"},
    {"qwen3", "235B-A22B", "qwen3-235b-a22b"},
};

void model(Draft& draft, const ReadContext& reading) {
  for (const TitanModel& each : kKnown) {
    if (each.name != draft.word("note.model") || each.flavor != draft.word("note.flavor")) continue;
    draft.set("model.extends", std::string(each.ours), draft.from("note.flavor"));
    draft.set("model.sequence", draft.word("note.sequence"), draft.from("note.sequence"));
    return;
  }
  if (draft.has("note.model"))
    reading.leave_out(draft.from("note.model") + ", " + draft.from("note.flavor"),
                      "not a model of the catalogue: give it with --model");
  draft.set("model.sequence", draft.word("note.sequence"), draft.from("note.sequence"));
}

Status pipeline(Draft& draft, const ReadContext& reading) {
  const std::int64_t ranks = draft.count("strategy.pipeline_parallel");
  if (ranks == 1) {
    draft.drop("strategy.schedule");
    return {};
  }
  const bool interleaved = draft.word("strategy.schedule") == "interleaved";
  const std::string schedule = draft.from("strategy.schedule");
  if (draft.has("note.layers_per_stage"))
    return fault(draft.place("note.layers_per_stage"), draft.from("note.layers_per_stage"),
                 "the number of stages follows from the layers of the model, which the file does "
                 "not give",
                 "leave it out, and give --set strategy.virtual_stages=N");
  if (interleaved) draft.set("strategy.virtual_stages", 2, schedule + ": two stages on each rank");
  const std::int64_t first = draft.count("note.less_first");
  const std::int64_t last = draft.count("note.less_last");
  if (first != 0 || last != 0)
    reading.leave_out(draft.from("note.less_first"),
                      "layers are divided equally; --set strategy.layers_per_stage=[...] says how "
                      "else");
  return {};
}

Status batch(Draft& draft, const ReadContext& reading) {
  const std::int64_t data = draft.count("strategy.data_parallel");
  const std::int64_t local = draft.count("note.local_batch");
  const bool piped = draft.count("strategy.pipeline_parallel") > 1;
  const std::string micro = piped ? "note.micro_batch" : "note.local_batch";
  if (local < 1 || local > (1 << 30))
    return fault(draft.place("note.local_batch"), draft.from("note.local_batch"),
                 "must be positive");
  if (!reading.request.settled.contains("strategy.micro_batch"))
    draft.set("strategy.micro_batch", draft.word(micro), draft.from(micro));
  const bool open = draft.count("note.global_batch") < 0;
  if (!reading.request.settled.contains("strategy.global_batch"))
    draft.set(
        "strategy.global_batch", open ? product({local, data}) : draft.count("note.global_batch"),
        open ? "training.local_batch_size x data-parallel ranks" : draft.from("note.global_batch"));
  if (piped && draft.count("strategy.global_batch") > product({local, data}))
    reading.leave_out(draft.from("note.global_batch"),
                      "the pipelines of one step are predicted as one that does not run empty in "
                      "between");
  return fault_in_batch(draft, reading);
}

Status data(Draft& draft, const ReadContext& reading) {
  const std::int64_t tensor = draft.count("strategy.tensor_parallel");
  const std::int64_t pipeline = draft.count("strategy.pipeline_parallel");
  const std::int64_t context = draft.count("strategy.context_parallel");
  for (const auto* key : {"strategy.tensor_parallel", "strategy.pipeline_parallel",
                          "strategy.context_parallel", "note.replicas"})
    if (draft.count(key) < 1 || draft.count(key) > (1 << 20))
      return fault(draft.place(key), draft.from(key), "out of range", "use a number from 1 on");
  const std::int64_t replicas = draft.count("note.replicas");
  std::int64_t shards = draft.count("note.shards");
  const std::int64_t others = product({tensor, pipeline, context, replicas});
  if (shards == -1) {
    FORESHARD_ASSIGN(shards, data_parallel(draft, reading, others,
                                           fmt::format("tensor {} x pipeline {} x context {} x "
                                                       "replicas {}",
                                                       tensor, pipeline, context, replicas)));
    if (reading.request.settled.contains("strategy.data_parallel")) shards /= replicas;
  } else if (shards < 1 || shards > (1 << 20)) {
    return fault(draft.place("note.shards"), draft.from("note.shards"), "out of range",
                 "use -1 or a number from 1 on");
  } else if (reading.request.devices && *reading.request.devices < product({others, shards})) {
    return fault(
        draft.place("note.shards"), draft.from("note.shards"),
        fmt::format("{} x {} ranks, but there are {}", others, shards, *reading.request.devices));
  }
  draft.set("strategy.data_parallel", replicas * shards, draft.from("note.shards"));
  const std::string reshard = draft.word("note.reshard");
  const bool sharded = shards * context > 1;
  const bool keeps = reshard == "never" || (reshard == "default" && pipeline > 1);
  draft.set("strategy.zero_stage", sharded ? (keeps ? 2 : 3) : 0,
            sharded && keeps ? draft.from("note.reshard") : draft.from("note.shards"));
  if (sharded && replicas > 1)
    draft.set("strategy.shard_replicas", replicas, draft.from("note.replicas"));
  if (tensor > 1)
    draft.set("strategy.sequence_parallel", "true", draft.from("strategy.tensor_parallel"));
  if (context == 1) draft.drop("strategy.context_exchange");
  if (draft.count("strategy.expert_parallel") > 1 && tensor > 1 &&
      draft.count("note.expert_tensor") != tensor)
    draft.set("strategy.expert_tensor_parallel", draft.word("note.expert_tensor"),
              draft.from("note.expert_tensor"));
  return {};
}

Status quantization(Draft& draft) {
  std::string recipe;
  if (draft.has("note.converters")) {
    for (const std::string& converter : draft.at("note.converters").words) {
      if (contains(converter, "float8")) {
        const std::string name = draft.word("note.float8_recipe", "tensorwise");
        if (name != "tensorwise")
          return fault(draft.place("note.float8_recipe"), draft.from("note.float8_recipe"),
                       "scales of rows are not modelled", "use tensorwise",
                       Error::Code::kUnsupported);
        recipe = "fp8-current";
      } else if (contains(converter, "mx")) {
        recipe = "mxfp8";
      } else {
        return fault(draft.place("note.converters"), "model.converters",
                     fmt::format("'{}' is not modelled", converter), "", Error::Code::kUnsupported);
      }
    }
  }
  if (recipe.empty()) {
    draft.drop("strategy.quantized_parameters");
  } else {
    draft.set("strategy.quantization", recipe, draft.from("note.converters"));
  }
  return {};
}

// "op" keeps attention, reduce-scattered tensors and every second product; a number N recomputes
// every N-th layer whole.
// Source: torchtitan/distributed/activation_checkpoint.py (_apply_op_sac, _apply_layer_sac).
Status recomputation(Draft& draft) {
  const std::string mode = draft.word("note.recompute");
  draft.set("strategy.recompute", mode, draft.from("note.recompute"));
  if (mode != "selective") return {};
  const std::string option = draft.word("note.selective", "2");
  if (option == "op") {
    Value parts{.words = {"norm", "rope", "mlp-up", "activation", "residual"},
                .list = true,
                .from = draft.from("note.selective")};
    if (draft.count("strategy.tensor_parallel") == 1) parts.words.emplace_back("attention-out");
    draft.set("strategy.recompute_parts", std::move(parts));
    return {};
  }
  const std::string from = draft.from("note.selective");
  return fault(
      draft.place("note.recompute"), draft.from("note.recompute"),
      fmt::format("with {}, every {} layer is recomputed whole, and how many a stage has is "
                  "not in the file",
                  from.empty() ? "selective_ac_option 2, the default" : from,
                  option == "1"   ? "single"
                  : option == "2" ? "second"
                                  : option + "th"),
      fmt::format("give their number: --set strategy.recompute=full --set "
                  "strategy.recompute_layers=N (the layers of a stage divided by {}), or "
                  "--set strategy.recompute=none",
                  option),
      Error::Code::kUnsupported);
}

void kernels(Draft& draft) {
  draft.set("strategy.framework.extends", "torchtitan", "");
  if (draft.has("note.max_norm") && draft.word("note.max_norm") == "0")
    draft.set("strategy.framework.gradient_clipping", "false", draft.from("note.max_norm"));
  if (draft.is("note.compile")) return;
  for (const auto* what : {"norm", "rope", "activation", "cross_entropy"})
    draft.set(std::string("strategy.framework.pointwise.") + what, "eager",
              draft.from("note.compile"));
}

Status finish(Draft& draft, const ReadContext& reading) {
  FORESHARD_TRY(data(draft, reading));
  FORESHARD_TRY(pipeline(draft, reading));
  FORESHARD_TRY(batch(draft, reading));
  FORESHARD_TRY(finish_fsdp_offload(draft));
  FORESHARD_TRY(quantization(draft));
  if (!reading.request.settled.contains("strategy.recompute")) FORESHARD_TRY(recomputation(draft));
  kernels(draft);
  model(draft, reading);
  return {};
}

void spread_data(Draft& draft, const Strategy& strategy) {
  const bool sharded = strategy.zero_stage > 1;
  const std::int64_t replicas = sharded ? strategy.shard_replicas : strategy.data_parallel;
  if (strategy.zero_stage == 1)
    return draft.forbid("strategy.zero_stage", "it shards gradients and parameters, or nothing");
  if (!sharded && strategy.context_parallel > 1)
    return draft.forbid("strategy.zero_stage", "it shards over the ranks of a sequence");
  if (sharded && (strategy.shards() == 1 || strategy.data_parallel % replicas != 0))
    return draft.forbid("strategy.shard_replicas", "no shards are left");
  draft.set("note.replicas", replicas, "");
  draft.set("note.shards", strategy.data_parallel / replicas, "");
  draft.drop("strategy.data_parallel");
  draft.drop("strategy.zero_stage");
  draft.drop("strategy.shard_replicas");
  if (strategy.zero_stage == 2) draft.set("note.reshard", "never", "");
  if (strategy.zero_stage == 3)
    draft.set("note.reshard", strategy.pipeline_parallel > 1 ? "always" : "default", "");
}

void spread_batch(Draft& draft, const Strategy& strategy) {
  const bool piped = strategy.pipeline_parallel > 1;
  draft.set("note.local_batch",
            piped ? strategy.global_batch / strategy.data_parallel : strategy.micro_batch, "");
  if (piped) draft.set("note.micro_batch", strategy.micro_batch, "");
  draft.set("note.global_batch", strategy.global_batch, "");
  draft.drop("strategy.micro_batch");
  draft.drop("strategy.global_batch");
}

void spread(Draft& draft, const WriteContext& writing) {
  const Strategy& strategy = writing.strategy;
  spread_data(draft, strategy);
  spread_fsdp_offload(draft, strategy);
  spread_batch(draft, strategy);
  if (strategy.pipeline_parallel > 1 && strategy.layers_per_stage.empty()) {
    draft.set("note.less_first", 0, "");
    draft.set("note.less_last", 0, "");
  }
  if (strategy.sequence_parallel == (strategy.tensor_parallel > 1))
    draft.drop("strategy.sequence_parallel");
  else if (!strategy.sequence_parallel)
    draft.forbid("strategy.sequence_parallel", "it always splits sequences among tensor ranks");
  const std::int64_t chunks = strategy.schedule == "interleaved" ? 2 : 1;
  if (strategy.virtual_stages == chunks) draft.drop("strategy.virtual_stages");
  if (strategy.context_parallel == 1) draft.drop("strategy.context_exchange");
  if (strategy.expert_parallel > 1 && strategy.tensor_parallel > 1) {
    draft.set("note.expert_tensor",
              strategy.expert_tensor_parallel == 0 ? strategy.tensor_parallel
                                                   : strategy.expert_tensor_parallel,
              "");
    draft.drop("strategy.expert_tensor_parallel");
  }
  if (strategy.recompute != Recompute::kSelective) {
    draft.set("note.recompute", draft.word("strategy.recompute"), "");
    draft.drop("strategy.recompute");
  }
  if (strategy.quantization == Quantization::kFp8Current ||
      strategy.quantization == Quantization::kMxFp8) {
    draft.set("note.converters", Value{.words = {strategy.quantization == Quantization::kMxFp8
                                                     ? "quantize.linear.mx"
                                                     : "quantize.linear.float8"},
                                       .list = true});
    draft.drop("strategy.quantization");
  }
  const bool eager = strategy.framework->pointwise.norm == NormKernels::kEager;
  draft.set("note.compile", eager ? "false" : "true", "");
  if (writing.model != nullptr) draft.set("note.sequence", writing.model->sequence, "");
}

bool recognises(std::string_view text) {
  return contains(text, "[parallelism]") ||
         (contains(text, "[training]") && contains(text, "[model]"));
}

}  // namespace

const Format& torchtitan_format() {
  static const Format format{.name = "torchtitan",
                             .summary = "The TOML configuration of torchtitan.",
                             .suffix = ".toml",
                             .recognises = recognises,
                             .cut = cut_toml,
                             .print = print_toml,
                             .rows = rows,
                             .rules = rules,
                             .idle = kIdle,
                             .finish = finish,
                             .spread = spread};
  return format;
}

}  // namespace foreshard::launch::internal
