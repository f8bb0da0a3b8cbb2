// The format `megatron-bridge`, a row of formats.cc: the YAML of NeMo 2 and Megatron-Bridge.
// import.cc and export.cc run it; what keys mean together is in megatron_family.cc.
#include <array>

#include "base/text.h"

#include "strategies/launch/internal/formats.h"

// Source: NVIDIA-NeMo/Megatron-Bridge a9497c6b1, scripts/performance/dryrun_configs (a whole
// ConfigContainer as it writes it) and scripts/performance/configs (overrides of one); NVIDIA/
// Megatron-LM, megatron/core/transformer/transformer_config.py (defaults).
namespace foreshard::launch::internal {
namespace {

// Names of types in Megatron-Bridge and in PyTorch.
constexpr std::string_view kTypes =
    "fp32= fp16=fp16 bf16=bf16 fp8=fp8 torch.float32= torch.float16=fp16 torch.bfloat16=bf16 "
    "torch.uint8=fp8 float32= float16=fp16 bfloat16=bf16 uint8=fp8";

constexpr std::string_view kGradientTypes =
    "fp32=fp32 bf16=bf16 torch.float32=fp32 torch.bfloat16=bf16 float32=fp32 bfloat16=bf16";

std::span<const Row> rows() {
  constexpr Kind kSwitch = Kind::kSwitch;
  constexpr Kind kWord = Kind::kWord;
  constexpr Kind kNumber = Kind::kNumber;
  constexpr Kind kText = Kind::kText;
  static constexpr auto kRows = std::to_array<Row>({
      {"_target_", "note.container", kText},
      {"model.tensor_model_parallel_size", "strategy.tensor_parallel"},
      {"model.pipeline_model_parallel_size", "strategy.pipeline_parallel"},
      {"model.virtual_pipeline_model_parallel_size", "note.virtual_stages"},
      {"model.context_parallel_size", "strategy.context_parallel"},
      {"model.cp_comm_type", "strategy.context_exchange", kWord,
       "p2p=ring a2a=all-to-all all_gather=all-gather allgather=all-gather "
       "a2a+p2p=all-to-all+ring",
       "p2p"},
      {"model.hierarchical_context_parallel_sizes", "note.context_sizes"},
      {"model.expert_model_parallel_size", "strategy.expert_parallel"},
      {"model.expert_tensor_parallel_size", "strategy.expert_tensor_parallel"},
      {"model.moe_expert_capacity_factor", "strategy.capacity_factor", kNumber},
      {"model.moe_token_dispatcher_type", "note.dispatcher", kWord,
       "alltoall=alltoall allgather=allgather flex=flex"},
      {"comm_overlap.overlap_moe_expert_parallel_comm", "strategy.overlap_experts", kSwitch},
      {"model.overlap_moe_expert_parallel_comm", "strategy.overlap_experts", kSwitch},
      {"model.sequence_parallel", "strategy.sequence_parallel", kSwitch},
      {"model.pipeline_model_parallel_layout", "note.layout", kText},
      {"model.num_layers_in_first_pipeline_stage", "note.first_layers"},
      {"model.num_layers_in_last_pipeline_stage", "note.last_layers"},
      {"model.account_for_embedding_in_pipeline_split", "note.embedding_is_layer", kSwitch},
      {"model.account_for_loss_in_pipeline_split", "note.loss_is_layer", kSwitch},
      {"dist.use_tp_pp_dp_mapping", "note.pipeline_before_data", kSwitch},
      {"train.micro_batch_size", "strategy.micro_batch", Kind::kCount, "", kAlways},
      {"train.global_batch_size", "strategy.global_batch", Kind::kCount, "", kAlways},
      {"optimizer.use_distributed_optimizer", "note.distributed_optimizer", kSwitch},
      {"ddp.use_distributed_optimizer", "note.distributed_optimizer_of_ddp", kSwitch},
      {"ddp.num_distributed_optimizer_instances", "strategy.shard_replicas"},
      {"optimizer.optimizer", "strategy.optimizer.rule", kWord,
       "adam= sgd=sgd muon=muon dist_muon=muon"},
      {"optimizer.use_precision_aware_optimizer", "note.precision_aware", kSwitch},
      {"optimizer.exp_avg_dtype", "strategy.optimizer.first_moment", kWord, kTypes},
      {"optimizer.exp_avg_sq_dtype", "strategy.optimizer.second_moment", kWord, kTypes},
      {"optimizer.main_params_dtype", "strategy.optimizer.master", kWord, kTypes},
      {"optimizer.main_grads_dtype", "note.main_gradients", kWord, kGradientTypes},
      {"optimizer.exp_avg_dtype._target_", "strategy.optimizer.first_moment", kWord, kTypes},
      {"optimizer.exp_avg_sq_dtype._target_", "strategy.optimizer.second_moment", kWord, kTypes},
      {"optimizer.main_params_dtype._target_", "strategy.optimizer.master", kWord, kTypes},
      {"optimizer.main_grads_dtype._target_", "note.main_gradients", kWord, kGradientTypes},
      {"dist.use_torch_fsdp2", "note.fsdp2", kSwitch},
      {"ddp.use_megatron_fsdp", "note.megatron_fsdp", kSwitch},
      {"dist.use_megatron_fsdp", "note.megatron_fsdp", kSwitch},
      {"ddp.data_parallel_sharding_strategy", "note.sharding", kWord,
       "no_shard=0 optim=1 optim_grads=2 optim_grads_params=3"},
      {"model.recompute_granularity", "note.granularity", kWord, "selective=selective full=full"},
      {"model.recompute_method", "note.method", kWord, "uniform=uniform block=block"},
      {"model.recompute_num_layers", "note.recompute_layers"},
      {"model.recompute_modules", "note.recompute_modules", kText},
      {"mixed_precision.bf16", "note.bf16", kSwitch},
      {"mixed_precision.fp16", "note.fp16", kSwitch},
      {"mixed_precision.fp32", "note.fp32", kSwitch},
      {"mixed_precision.fp8", "note.fp8", kWord, "hybrid=hybrid e4m3=hybrid"},
      {"mixed_precision.fp8_recipe", "note.fp8_recipe", kWord,
       "delayed=fp8-delayed tensorwise=fp8-current blockwise=fp8-block mxfp8=mxfp8"},
      {"mixed_precision.fp4", "note.fp4", kWord, "e2m1=nvfp4"},
      {"mixed_precision.fp4_recipe", "note.fp4_recipe", kWord, "nvfp4=nvfp4"},
      {"mixed_precision.fp8_param_gather", "strategy.quantized_parameters", kSwitch},
      {"mixed_precision.first_last_layers_bf16", "note.ends_in_bf16", kSwitch},
      {"mixed_precision.num_layers_at_start_in_bf16", "note.start_in_bf16"},
      {"mixed_precision.num_layers_at_end_in_bf16", "note.end_in_bf16"},
      {"model.first_last_layers_bf16", "note.ends_in_bf16", kSwitch},
      {"model.num_layers_at_start_in_bf16", "note.start_in_bf16"},
      {"model.num_layers_at_end_in_bf16", "note.end_in_bf16"},
      {"mixed_precision", "note.precision_recipe", kText},
      {"ddp.overlap_grad_reduce", "strategy.framework.gradient_reduction", kSwitch,
       "true=overlapped false=after-backward"},
      {"ddp.overlap_param_gather", "strategy.framework.overlap_parameter_gather", kSwitch},
      {"model.overlap_p2p_comm", "note.blocking_transfers", kSwitch, "false=true true=false"},
      {"ddp.grad_reduce_in_fp32", "strategy.framework.gradient_dtype", kSwitch,
       "true=fp32 false=bf16"},
      {"model.gradient_accumulation_fusion", "strategy.framework.fused_gradient_accumulation",
       kSwitch},
      {"model.moe_router_fusion", "strategy.framework.pointwise.routing", kSwitch,
       "true=fused false="},
      {"model.moe_permute_fusion", "strategy.framework.pointwise.permutation", kSwitch,
       "true=fused false="},
      {"model.cuda_graph_impl", "note.graph_impl", kText},
      {"model.cuda_graph_scope", "note.graph_scope", kText},
      {"ddp.check_for_nan_in_grad", "note.unchecked_gradients", kSwitch, "false=true true=false"},
      {"model.cross_entropy_loss_fusion", "strategy.framework.fused_cross_entropy", kSwitch},
      {"model.attention_backend", "strategy.framework.attention", kWord,
       "auto= fused=cudnn flash=flash-2 unfused=unfused local=unfused"},
      {"model.make_vocab_size_divisible_by", "strategy.framework.vocabulary_multiple"},

      {"model.num_layers", "model.layers"},
      {"model.hidden_size", "model.hidden"},
      {"model.num_attention_heads", "model.heads"},
      {"model.num_query_groups", "note.groups_alone"},
      {"model.kv_channels", "model.head_dim"},
      {"model.multi_latent_attention", "note.latents", kSwitch},
      {"model.q_lora_rank", "model.query_rank"},
      {"model.kv_lora_rank", "model.key_value_rank"},
      {"model.qk_head_dim", "note.unrotated_dim"},
      {"model.qk_pos_emb_head_dim", "model.rotary_dim"},
      {"model.v_head_dim", "model.value_dim"},
      {"model.ffn_hidden_size", "model.ffn"},
      {"model.window_size", "note.window", kText},
      {"model.window_attn_skip_freq", "note.window_pattern", kText},
      {"model.seq_length", "model.sequence"},
      {"dataset.sequence_length", "model.sequence"},
      {"dataset.seq_length", "model.sequence"},
      {"model.vocab_size", "model.vocabulary"},
      {"model.normalization", "model.norm", kWord, "LayerNorm=layer-norm RMSNorm=rms-norm"},
      {"model.gated_linear_unit", "model.activation", kSwitch, "true=swiglu false=gelu"},
      {"model.position_embedding_type", "model.positions", kWord,
       "learned_absolute=learned rope=rotary none=none"},
      {"model.add_bias_linear", "model.bias", kSwitch},
      {"model.add_qkv_bias", "model.qkv_bias", kSwitch},
      {"model.qk_layernorm", "model.qk_norm", kSwitch, "true=per-head false=none"},
      {"model.share_embeddings_and_output_weights", "model.tied_embeddings", kSwitch},
      {"model.attention_dropout", "note.attention_dropout", kNumber, "", "0.1"},
      {"model.hidden_dropout", "note.hidden_dropout", kNumber, "", "0.1"},
      {"model.num_moe_experts", "model.experts"},
      {"model.moe_router_topk", "model.experts_per_token", Kind::kCount, "", "2"},
      {"model.moe_router_num_groups", "model.expert_groups"},
      {"model.moe_router_group_topk", "model.groups_per_token"},
      {"model.moe_ffn_hidden_size", "model.expert_ffn"},
      {"model.moe_shared_expert_intermediate_size", "model.shared_ffn"},
      {"model.moe_layer_freq", "note.moe_frequency", kText},
      {"model.mtp_num_layers", "model.multi_token_prediction"},
      {"model.cpu_offloading_num_layers", "strategy.offload_activation_layers"},
      {"model.cpu_offloading", "note.cpu_offloading", kSwitch},
  });
  return kRows;
}

std::span<const Rule> rules() {
  static constexpr auto kRules = std::to_array<Rule>({
      {"optimizer.optimizer_cpu_offload", "",
       "give --set strategy.offload_optimizer=cpu, if its fraction is 1", true},
      {"model.fine_grained_activation_offloading", "",
       "offloading modules, rather than layers, is not modelled", true},
      {"mixed_precision.fp4_param_gather", "", "weights in fp4 alone are not modelled", true},
      {"model.hybrid_context_parallel", "", "exchanges that differ by sample are not modelled",
       true},
      {"peft.* peft", "", "fine-tuning of adapters is not modelled", true},
      {"model.is_hybrid_model model.heterogeneous_block_specs "
       "model.experimental_attention_variant model.moe_latent_size",
       "", "only decoders of equal layers are modelled", true},
      {"model.moe_layer_recompute", "", "recomputation of experts alone is not modelled", true},
      {"model.moe_flex_dispatcher_backend", "deepep",
       "the flexible dispatcher is taken for DeepEP"},
      {"model.moe_shared_expert_overlap model.delay_wgrad_compute comm_overlap.delay_wgrad_compute",
       "", "exchanges of tokens are hidden by other micro-batches alone"},
      {"model.tp_comm_overlap comm_overlap.tp_comm_overlap", "",
       "products and their collectives run one after another, but for those of weight gradients"},
      {"model.enable_cuda_graph model.external_cuda_graph", "",
       "each kernel is launched by the host; give cuda_graph_impl and cuda_graph_scope"},
      {"dataset.packed_sequence_specs* dataset.offline_packing_specs*", "0 -1",
       "attention is over whole sequences; give the lengths of packed samples (model.samples)"},
      {"train.rampup_batch_size", "", "the step predicted is one of the full batch"},
      {"optimizer.muon_tp_mode", "duplicated",
       "whole matrices are made orthogonal, by all tensor-parallel ranks"},
      {"optimizer.muon_num_ns_steps", "5", "Newton-Schulz iterates five times"},
      {"ddp.nccl_ub dist.use_sharp", "", "collectives run as configs/communication says"},
      {"model.deterministic_mode model.fp32_residual_connection "
       "ddp.reduce_scatter_with_fp32_accumulation model.defer_embedding_wgrad_compute",
       "", "not modelled"},
  });
  return kRules;
}

constexpr std::string_view kIdle =
    "*._target_ *._call_ *._args_ *._partial_ *._name_ checkpoint.* dataset.* logger.* profiling.* "
    "rerun_state_machine.* rng.* scheduler.* tokenizer.* validation.* ft.* straggler.* "
    "nvrx_straggler.* inprocess_restart.* tensor_inspect.* optimizer_config_override_provider.* "
    "train.* dist.* ddp.* optimizer.* mixed_precision.* comm_overlap.* "
    "model.activation_func.* model.apply_rope_fusion model.attention_softmax_in_fp32 "
    "model.apply_query_key_layer_scaling model.barrier_with_L1_time model.batch_p2p_* model.beta_* "
    "model.bias_*fusion model.bf16 model.fp16 model.fp8* model.clone_scatter_* "
    "model.config_logger_dir model.cpu_offloading_* model.cross_entropy_fusion_impl "
    "model.cuda_graph_* model.dsa_* model.calculate_per_token_loss model.deallocate_* "
    "model.hf_model_id model.init_method* model.inference_* model.kitchen_* "
    "model.layernorm_* model.linear_* model.mamba_* model.masked_softmax_fusion "
    "model.max_position_embeddings model.min_offloaded_* model.mlp_chunks_* model.moe_aux_* "
    "model.moe_deepep_* model.moe_enable_deepep model.moe_grouped_gemm model.moe_hybridep_* "
    "model.moe_router_* model.moe_token_* model.moe_pad_* model.mrope_* model.mscale* "
    "model.mtp_loss_* model.mup_* model.original_max_* model.parallel_output "
    "model.params_dtype* model.perform_initialization model.persist_layer_norm "
    "model.pipeline_dtype* model.qk_clip_* model.q_lora_rank model.kv_lora_rank "
    "model.qk_head_dim model.qk_pos_emb_head_dim model.v_head_dim model.rope_* model.rotary_* "
    "model.scatter_embedding_* model.should_pad_vocab model.softmax_type model.tp_comm_* "
    "model.transformer_impl model.transformer_layer_spec* model.use_* model.norm_epsilon";

// The settings of cut_yaml, without the container's name and without the "_config" that older
// versions put at the end of sections' names.
Result<std::vector<Setting>> cut(std::string_view text, const std::string& name) {
  FORESHARD_ASSIGN(auto settings, cut_yaml(text, name));
  for (Setting& setting : settings) {
    constexpr std::string_view kContainer = "ConfigContainer.";
    constexpr std::string_view kEnd = "_config";
    if (setting.key.starts_with(kContainer)) setting.key.erase(0, kContainer.size());
    const std::size_t dot = setting.key.find('.');
    if (dot != std::string::npos && dot > kEnd.size() &&
        setting.key.compare(dot - kEnd.size(), kEnd.size(), kEnd) == 0)
      setting.key.erase(dot - kEnd.size(), kEnd.size());
  }
  return settings;
}

// Takes the precision recipe apart by its name: "bf16_mixed", "bf16_with_mxfp8_mixed".
Status finish(Draft& draft, const ReadContext& reading) {
  const std::string recipe = draft.word("note.precision_recipe");
  const std::string from = draft.from("note.precision_recipe");
  if (contains(recipe, "bf16")) draft.set("note.bf16", "true", from);
  if (contains(recipe, "fp16") && !contains(recipe, "bf16")) draft.set("note.fp16", "true", from);
  if (contains(recipe, "nvfp4")) draft.set("note.fp4", "nvfp4", from);
  if (contains(recipe, "fp8")) {
    draft.set("note.fp8", "hybrid", from);
    draft.set("note.fp8_recipe",
              contains(recipe, "mxfp8")        ? "mxfp8"
              : contains(recipe, "subchannel") ? "fp8-block"
              : contains(recipe, "current")    ? "fp8-current"
                                               : "fp8-delayed",
              from);
  }
  // Source: NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/training/mixed_precision.py.
  if (draft.is("note.ends_in_bf16"))
    for (const auto* count : {"note.start_in_bf16", "note.end_in_bf16"})
      if (!draft.has(count)) draft.set(count, "0", draft.from("note.ends_in_bf16"));
  // Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py
  // (MLATransformerConfig), whose defaults differ from the command line's.
  if (draft.is("note.latents"))
    for (const auto* rank : {"model.query_rank", "model.key_value_rank"})
      if (!draft.has(rank)) draft.set(rank, std::int64_t{512}, "Megatron Core's default");
  if (!draft.has("note.bf16") && !draft.has("note.fp16") && !draft.is("note.fp32"))
    draft.set("note.bf16", "true", "bf16, as recipes are");
  if (draft.is("note.distributed_optimizer_of_ddp"))
    draft.set("note.distributed_optimizer", "true",
              draft.from("note.distributed_optimizer_of_ddp"));
  if (draft.has("note.cpu_offloading") && !draft.is("note.cpu_offloading"))
    draft.drop("strategy.offload_activation_layers");
  if (!draft.has("note.container"))
    reading.leave_out("the recipe",
                      "what the file does not override is taken to be as in Megatron "
                      "Core, not as in the recipe");
  return finish_megatron(draft, reading);
}

void spread(Draft& draft, const WriteContext& writing) {
  spread_megatron(draft, writing);
  if (writing.strategy.offload_activation_layers > 0) draft.set("note.cpu_offloading", "true", "");
  if (writing.strategy.precision == DType::kFp32) draft.set("note.fp32", "true", "");
  draft.set("note.container", "megatron.bridge.training.config.ConfigContainer", "");
}

// Other frameworks have sections of these names, too, so a size that only Megatron Core names must
// be there.
bool recognises(std::string_view text) {
  if (text.starts_with('{')) return false;
  if (contains(text, "ConfigContainer")) return contains(text, "model");
  const bool sections = (has_top_key(text, "train") || has_top_key(text, "train_config")) &&
                        (has_top_key(text, "model") || has_top_key(text, "model_config"));
  return sections && (contains(text, "micro_batch_size:") || contains(text, "_parallel_size:") ||
                      contains(text, "global_batch_size:"));
}

}  // namespace

const Format& megatron_bridge_format() {
  static const Format format{.name = "megatron-bridge",
                             .summary = "The ConfigContainer of Megatron-Bridge, as YAML.",
                             .suffix = ".yaml",
                             .recognises = recognises,
                             .cut = cut,
                             .print = print_yaml,
                             .rows = rows,
                             .rules = rules,
                             .idle = kIdle,
                             .finish = finish,
                             .spread = spread,
                             .has_model = true};
  return format;
}

}  // namespace foreshard::launch::internal
