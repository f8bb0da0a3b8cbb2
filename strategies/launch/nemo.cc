// The format `nemo`, a row of formats.cc: the YAML of NeMo 1. import.cc and export.cc run it; what
// keys mean together is in megatron_family.cc.
#include <array>

#include "base/text.h"

#include "strategies/launch/internal/formats.h"

// Source: NVIDIA/NeMo 000763d0c, examples/nlp/language_modeling/conf/megatron_gpt_config.yaml, and
// that file in NeMo 1.23 (fp8, distributed optimizer, context parallelism).
namespace foreshard::launch::internal {
namespace {

std::span<const Row> rows() {
  constexpr Kind kSwitch = Kind::kSwitch;
  constexpr Kind kWord = Kind::kWord;
  constexpr Kind kNumber = Kind::kNumber;
  constexpr Kind kText = Kind::kText;
  static constexpr auto kRows = std::to_array<Row>({
      {"trainer.num_nodes", "note.nodes"},
      {"trainer.devices", "note.devices_per_node"},
      {"trainer.precision", "note.precision", kWord,
       "bf16=bf16 bf16-mixed=bf16 bf16-true=bf16 16=fp16 16-mixed=fp16 16-true=fp16 32=fp32 "
       "32-true=fp32"},
      {"model.tensor_model_parallel_size", "strategy.tensor_parallel"},
      {"model.pipeline_model_parallel_size", "strategy.pipeline_parallel"},
      {"model.virtual_pipeline_model_parallel_size", "note.virtual_stages"},
      {"model.context_parallel_size", "strategy.context_parallel"},
      {"model.cp_comm_type", "strategy.context_exchange", kWord,
       "p2p=ring a2a=all-to-all all_gather=all-gather", "p2p"},
      {"model.expert_model_parallel_size", "strategy.expert_parallel"},
      {"model.sequence_parallel", "strategy.sequence_parallel", kSwitch},
      {"model.micro_batch_size", "strategy.micro_batch", Kind::kCount, "", kAlways},
      {"model.global_batch_size", "strategy.global_batch", Kind::kCount, "", kAlways},
      {"model.optim.name", "note.distributed_optimizer", kWord,
       "mcore_distributed_optim=true distributed_fused_adam=true fused_adam=false adam=false "
       "adamw=false megatron_fused_adam=false",
       kAlways},
      {"model.fsdp", "note.megatron_fsdp", kSwitch},
      {"model.fsdp_sharding_strategy", "note.sharding", kWord, "full=3 grad=2"},
      {"model.activations_checkpoint_granularity", "note.granularity", kWord,
       "selective=selective full=full"},
      {"model.activations_checkpoint_method", "note.method", kWord, "uniform=uniform block=block"},
      {"model.activations_checkpoint_num_layers", "note.recompute_layers"},
      {"model.fp8", "note.fp8", kSwitch, "true=hybrid false="},
      {"model.fp8_params", "strategy.quantized_parameters", kSwitch},
      {"model.optim.overlap_grad_sync", "strategy.framework.gradient_reduction", kSwitch,
       "true=overlapped false=after-backward", "false"},
      {"model.optim.overlap_param_sync", "strategy.framework.overlap_parameter_gather", kSwitch, "",
       "false"},
      {"model.overlap_p2p_comm", "note.blocking_transfers", kSwitch, "false=true true=false"},
      {"model.gradient_accumulation_fusion", "strategy.framework.fused_gradient_accumulation",
       kSwitch, "", "false"},
      {"model.make_vocab_size_divisible_by", "strategy.framework.vocabulary_multiple"},

      {"model.num_layers", "model.layers"},
      {"model.hidden_size", "model.hidden"},
      {"model.num_attention_heads", "model.heads"},
      {"model.num_query_groups", "note.groups_alone"},
      {"model.kv_channels", "model.head_dim"},
      {"model.ffn_hidden_size", "model.ffn"},
      {"model.window_size", "note.window", kText},
      {"model.window_attn_skip_freq", "note.window_pattern", kText},
      {"model.encoder_seq_length", "model.sequence"},
      {"model.max_position_embeddings", "note.positions"},
      {"model.override_vocab_size", "model.vocabulary"},
      {"model.normalization", "model.norm", kWord,
       "layernorm=layer-norm layernorm1p=layer-norm rmsnorm=rms-norm"},
      {"model.activation", "model.activation", kWord, "gelu=gelu fast-swiglu=swiglu swiglu=swiglu"},
      {"model.position_embedding_type", "model.positions", kWord,
       "learned_absolute=learned rope=rotary none=none"},
      {"model.bias", "model.bias", kSwitch},
      {"model.qk_layernorm", "model.qk_norm", kSwitch, "true=per-head false=none"},
      {"model.share_embeddings_and_output_weights", "model.tied_embeddings", kSwitch},
      {"model.attention_dropout", "note.attention_dropout", kNumber, "", "0.1"},
      {"model.hidden_dropout", "note.hidden_dropout", kNumber, "", "0.1"},
      {"model.cpu_offloading", "note.cpu_offloading", kSwitch},
      {"model.cpu_offloading_num_layers", "strategy.offload_activation_layers"},
      {"model.num_moe_experts", "model.experts"},
      {"model.moe_router_topk", "model.experts_per_token", Kind::kCount, "", "2"},
  });
  return kRows;
}

std::span<const Rule> rules() {
  static constexpr auto kRules = std::to_array<Rule>({
      {"model.transformer_block_type", "pre_ln", "give the model with --model (norm_places)", true},
      {"model.peft.peft_scheme", "", "fine-tuning of adapters is not modelled", true},
      {"model.optim.name", "", "only Adam is modelled", true},
      {"model.ub_tp_comm_overlap", "",
       "products and their collectives run one after another, but for those of weight gradients"},
      {"model.megatron_amp_O2", "True true", "parameters are held in the training precision"},
      {"model.fp32_residual_connection", "", "not modelled"},
      {"model.data.*packed_sequence", "",
       "attention is over whole sequences; give the lengths of packed samples (model.samples)"},
      {"model.rampup_batch_size", "", "the step predicted is one of the full batch"},
      {"model.enable_cuda_graph model.use_cuda_graph", "", "each kernel is launched by the host"},
      {"model.num_micro_batches_with_partial_activation_checkpoints "
       "model.activations_checkpoint_layers_per_pipeline",
       "", "every micro-batch is recomputed alike"},
      {"trainer.accumulate_grad_batches", "1", "the micro-batches are those of the global batch"},
  });
  return kRules;
}

constexpr std::string_view kIdle =
    "name restore_from_path exp_manager.* trainer.* run.* cluster.* hydra.* defaults* "
    "model.tokenizer.* model.data.* model.nsys_profile.* model.optim.* model.mcore_gpt "
    "model.resume_from_checkpoint model.init_method_std model.use_scaled_init_method "
    "model.apply_query_key_layer_scaling model.layernorm_epsilon model.normalize_attention_scores "
    "model.pre_process model.post_process model.persist_layer_norm model.native_amp_* "
    "model.hysteresis model.grad_allreduce_chunk_size_mb model.grad_div_ar_fusion model.seed "
    "model.use_cpu_initialization model.onnx_safe model.apex_transformer_log_level "
    "model.gradient_as_bucket_view model.transformer_engine model.fp8_* model.rotary_percentage "
    "model.rotary_base model.rotary_interleaved model.attention_type model.headscale "
    "model.bias_*fusion model.masked_softmax_fusion model.get_attention_mask_from_fusion "
    "model.openai_gelu model.sync_batch_comm model.use_flash_attention "
    "model.do_layer_norm_weight_* "
    "model.reduce_amax model.use_emha model.ub_tp_comm_* model.seq_len_interpolation_factor "
    "model.batch_p2p_comm model.hidden_act model.precision model.moe_aux_* model.moe_router_* "
    "model.moe_grouped_gemm model.apply_rope_fusion model.cross_entropy_* model.dist_ckpt_* "
    "model.num_micro_batches_* model.fp16_lm_cross_entropy model.target model.optim model.data "
    "model.tokenizer model.name model.*_init_* model.nccl_communicator_config_path model.sharp "
    "model.mmap_bin_files model.ffn_dropout model.embedding_init_*";

Status finish(Draft& draft, const ReadContext& reading) {
  if (draft.has("note.nodes") || draft.has("note.devices_per_node"))
    draft.set(
        "note.devices", product({draft.count("note.nodes"), draft.count("note.devices_per_node")}),
        draft.has("note.nodes") ? draft.from("note.nodes") : draft.from("note.devices_per_node"));
  if (draft.is("note.megatron_fsdp") && !draft.has("note.sharding"))
    draft.set("note.sharding", 3, draft.from("note.megatron_fsdp"));
  const std::string precision = draft.word("note.precision", "fp32");
  if (precision != "fp32") draft.set("note." + precision, "true", draft.from("note.precision"));
  // NeMo 1 offloads nothing unless it is told to.
  if (!draft.is("note.cpu_offloading")) draft.drop("strategy.offload_activation_layers");
  return finish_megatron(draft, reading);
}

// Writes one node with all devices: how the job spreads over nodes is not known.
void spread(Draft& draft, const WriteContext& writing) {
  spread_megatron(draft, writing);
  if (writing.strategy.offload_activation_layers > 0) draft.set("note.cpu_offloading", "true", "");
  draft.set("note.nodes", 1, "");
  draft.set("note.devices_per_node", writing.strategy.devices(), "");
  const std::string precision = draft.is("note.bf16")   ? "bf16"
                                : draft.is("note.fp16") ? "fp16"
                                                        : "fp32";
  draft.set("note.precision", precision, "");
  draft.drop("note.bf16");
  draft.drop("note.fp16");
  // NeMo's recipe is Transformer Engine's delayed scaling, which a file does not name.
  if (writing.strategy.quantization == Quantization::kFp8Delayed) draft.drop("note.fp8_recipe");
  if (writing.strategy.zero_stage == 0) draft.set("note.distributed_optimizer", "false", "");
}

// Other programs of PyTorch Lightning have these sections, too, so a size that NeMo names must be
// there.
bool recognises(std::string_view text) {
  return !text.starts_with('{') && has_top_key(text, "trainer") && has_top_key(text, "model") &&
         (contains(text, "micro_batch_size:") || contains(text, "_parallel_size:") ||
          contains(text, "global_batch_size:") || contains(text, "encoder_seq_length:"));
}

}  // namespace

const Format& nemo_format() {
  static const Format format{.name = "nemo",
                             .summary = "The Hydra configuration of NeMo 1: trainer and model.",
                             .suffix = ".yaml",
                             .recognises = recognises,
                             .cut = cut_yaml,
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
