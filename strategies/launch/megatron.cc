// The format `megatron`, a row of formats.cc: Megatron-LM's options. import.cc and export.cc run
// it; what options mean together is in megatron_family.cc.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/text.h"

#include "strategies/launch/internal/formats.h"

// Source: NVIDIA/Megatron-LM 000c4ac24, megatron/training/arguments.py (names, defaults, choices).
namespace foreshard::launch::internal {
namespace {

std::span<const Row> rows() {
  constexpr Kind kSwitch = Kind::kSwitch;
  constexpr Kind kWord = Kind::kWord;
  constexpr Kind kNumber = Kind::kNumber;
  constexpr Kind kText = Kind::kText;
  static constexpr auto kRows = std::to_array<Row>({
      {"--nproc-per-node", "note.ranks_of_node", kText},
      {"--nproc_per_node", "note.ranks_of_node", kText},
      {"--nnodes", "note.nodes", kText},
      {"--tensor-model-parallel-size", "strategy.tensor_parallel"},
      {"--pipeline-model-parallel-size", "strategy.pipeline_parallel"},
      {"--context-parallel-size", "strategy.context_parallel"},
      {"--cp-comm-type", "strategy.context_exchange", kWord,
       "p2p=ring a2a=all-to-all allgather=all-gather a2a+p2p=all-to-all+ring", "p2p"},
      {"--hierarchical-context-parallel-sizes", "note.context_sizes", kText},
      {"--expert-model-parallel-size", "strategy.expert_parallel"},
      {"--expert-tensor-parallel-size", "strategy.expert_tensor_parallel"},
      {"--moe-expert-capacity-factor", "strategy.capacity_factor", kNumber},
      {"--moe-token-dispatcher-type", "note.dispatcher", kWord,
       "alltoall=alltoall allgather=allgather flex=flex", "allgather"},
      {"--overlap-moe-expert-parallel-comm", "strategy.overlap_experts", kSwitch},
      {"--sequence-parallel", "strategy.sequence_parallel", kSwitch},
      {"--num-virtual-stages-per-pipeline-rank", "note.virtual_stages"},
      {"--num-layers-per-virtual-pipeline-stage", "note.layers_per_chunk"},
      {"--decoder-first-pipeline-num-layers", "note.first_layers"},
      {"--decoder-last-pipeline-num-layers", "note.last_layers"},
      {"--pipeline-model-parallel-layout", "note.layout", kText},
      {"--account-for-embedding-in-pipeline-split", "note.embedding_is_layer", kSwitch},
      {"--account-for-loss-in-pipeline-split", "note.loss_is_layer", kSwitch},
      {"--use-tp-pp-dp-mapping", "note.pipeline_before_data", kSwitch},
      {"--micro-batch-size", "strategy.micro_batch", Kind::kCount, "", kAlways},
      {"--global-batch-size", "strategy.global_batch", Kind::kCount, "", kAlways},
      {"--use-distributed-optimizer", "note.distributed_optimizer", kSwitch},
      {"--num-distributed-optimizer-instances", "strategy.shard_replicas"},
      {"--optimizer", "strategy.optimizer.rule", kWord, "adam= sgd=sgd muon=muon dist_muon=muon"},
      {"--use-precision-aware-optimizer", "note.precision_aware", kSwitch},
      {"--exp-avg-dtype", "strategy.optimizer.first_moment", kWord,
       "fp32= fp16=fp16 bf16=bf16 fp8=fp8"},
      {"--exp-avg-sq-dtype", "strategy.optimizer.second_moment", kWord,
       "fp32= fp16=fp16 bf16=bf16 fp8=fp8"},
      {"--main-params-dtype", "strategy.optimizer.master", kWord, "fp32= fp16=fp16"},
      {"--main-grads-dtype", "note.main_gradients", kWord, "fp32=fp32 bf16=bf16"},
      {"--use-torch-fsdp2", "note.fsdp2", kSwitch},
      {"--torch-fsdp2-no-reshard-after-forward", "note.fsdp2_keeps", kSwitch},
      {"--use-megatron-fsdp", "note.megatron_fsdp", kSwitch},
      {"--data-parallel-sharding-strategy", "note.sharding", kWord,
       "no_shard=0 optim=1 optim_grads=2 optim_grads_params=3"},
      {"--recompute-granularity", "note.granularity", kWord, "selective=selective full=full"},
      {"--recompute-activations", "note.granularity", kSwitch, "true=selective false="},
      {"--recompute-method", "note.method", kWord, "uniform=uniform block=block"},
      {"--recompute-num-layers", "note.recompute_layers"},
      {"--recompute-modules", "note.recompute_modules", kText},
      {"--bf16", "note.bf16", kSwitch},
      {"--fp16", "note.fp16", kSwitch},
      {"--accumulate-allreduce-grads-in-fp32", "note.accumulate_fp32", kSwitch},
      {"--fp8-format", "note.fp8", kWord, "hybrid=hybrid e4m3=hybrid"},
      {"--fp8-recipe", "note.fp8_recipe", kWord,
       "delayed=fp8-delayed tensorwise=fp8-current blockwise=fp8-block mxfp8=mxfp8"},
      {"--fp4-format", "note.fp4", kWord, "e2m1=nvfp4"},
      {"--fp4-recipe", "note.fp4_recipe", kWord, "nvfp4=nvfp4"},
      {"--fp8-param-gather", "strategy.quantized_parameters", kSwitch},
      {"--first-last-layers-bf16", "note.ends_in_bf16", kSwitch},
      {"--num-layers-at-start-in-bf16", "note.start_in_bf16"},
      {"--num-layers-at-end-in-bf16", "note.end_in_bf16"},
      {"--overlap-grad-reduce", "strategy.framework.gradient_reduction", kSwitch,
       "true=overlapped false=after-backward", "false"},
      {"--overlap-param-gather", "strategy.framework.overlap_parameter_gather", kSwitch, "",
       "false"},
      {"--no-overlap-p2p-communication", "note.blocking_transfers", kSwitch},
      {"--no-check-for-nan-in-loss-and-grad", "note.unchecked_gradients", kSwitch},
      {"--grad-reduce-in-bf16", "strategy.framework.gradient_dtype", kSwitch,
       "true=bf16 false=fp32", "false"},
      {"--no-gradient-accumulation-fusion", "strategy.framework.fused_gradient_accumulation",
       kSwitch, "true=false false=true", "false"},
      {"--moe-router-fusion", "strategy.framework.pointwise.routing", kSwitch, "true=fused false="},
      {"--moe-permute-fusion", "strategy.framework.pointwise.permutation", kSwitch,
       "true=fused false="},
      {"--cuda-graph-impl", "note.graph_impl", kText},
      {"--cuda-graph-scope", "note.graph_scope", kText},
      {"--cross-entropy-loss-fusion", "strategy.framework.fused_cross_entropy", kSwitch, "",
       "false"},
      {"--attention-backend", "strategy.framework.attention", kWord,
       "auto= fused=cudnn flash=flash-2 unfused=unfused local=unfused"},
      {"--use-flash-attn", "strategy.framework.attention", kSwitch, "true=flash-2 false="},
      {"--make-vocab-size-divisible-by", "strategy.framework.vocabulary_multiple", Kind::kCount, "",
       "128"},

      {"--num-layers", "model.layers"},
      {"--encoder-num-layers", "model.layers"},
      {"--hidden-size", "model.hidden"},
      {"--num-attention-heads", "model.heads"},
      {"--group-query-attention", "note.grouped_query", kSwitch},
      {"--num-query-groups", "note.query_groups"},
      {"--kv-channels", "model.head_dim"},
      {"--multi-latent-attention", "note.latents", kSwitch},
      {"--q-lora-rank", "model.query_rank"},
      {"--kv-lora-rank", "model.key_value_rank"},
      {"--qk-head-dim", "note.unrotated_dim"},
      {"--qk-pos-emb-head-dim", "model.rotary_dim"},
      {"--v-head-dim", "model.value_dim"},
      {"--hybrid-override-pattern", "model.pattern", kText},
      {"--hybrid-layer-pattern", "model.pattern", kText},
      {"--mamba-num-heads", "model.mamba.heads"},
      {"--mamba-head-dim", "model.mamba.head_dim"},
      {"--mamba-num-groups", "model.mamba.groups"},
      {"--mamba-state-dim", "model.mamba.state"},
      {"--ffn-hidden-size", "model.ffn"},
      {"--window-size", "note.window", kText},
      {"--window-attn-skip-freq", "note.window_pattern", kText},
      {"--seq-length", "model.sequence"},
      {"--encoder-seq-length", "model.sequence"},
      {"--max-position-embeddings", "note.positions"},
      {"--vocab-size", "model.vocabulary"},
      {"--padded-vocab-size", "model.vocabulary"},
      {"--normalization", "model.norm", kWord, "LayerNorm=layer-norm RMSNorm=rms-norm"},
      {"--swiglu", "model.activation", kSwitch, "true=swiglu false=gelu"},
      {"--squared-relu", "model.activation", kSwitch, "true=squared-relu false="},
      {"--position-embedding-type", "model.positions", kWord,
       "learned_absolute=learned rope=rotary none=none"},
      {"--use-rotary-position-embeddings", "model.positions", kSwitch, "true=rotary false="},
      {"--disable-bias-linear", "model.bias", kSwitch, "true=false false=true"},
      {"--add-qkv-bias", "model.qkv_bias", kSwitch},
      {"--qk-layernorm", "model.qk_norm", kSwitch, "true=per-head false=none"},
      {"--untie-embeddings-and-output-weights", "model.tied_embeddings", kSwitch,
       "true=false false=true"},
      {"--attention-dropout", "note.attention_dropout", kNumber, "", "0.1"},
      {"--hidden-dropout", "note.hidden_dropout", kNumber, "", "0.1"},
      {"--num-experts", "model.experts"},
      {"--moe-router-topk", "model.experts_per_token", Kind::kCount, "", "2"},
      {"--moe-router-num-groups", "model.expert_groups"},
      {"--moe-router-group-topk", "model.groups_per_token"},
      {"--moe-ffn-hidden-size", "model.expert_ffn"},
      {"--moe-shared-expert-intermediate-size", "model.shared_ffn"},
      {"--moe-layer-freq", "note.moe_frequency", kText},
      {"--mtp-num-layers", "model.multi_token_prediction"},
      {"--cpu-offloading-num-layers", "strategy.offload_activation_layers"},
      {"--optimizer-cpu-offload", "strategy.offload_optimizer", kSwitch, "true=cpu false=none"},
  });
  return kRows;
}

std::span<const Rule> rules() {
  static constexpr auto kRules = std::to_array<Rule>({
      {"--optimizer-offload-fraction", "1 1.0",
       "a step that is partly the device's is not modelled", true},
      {"--overlap-cpu-optimizer-d2h-h2d", "",
       "the CPU's step and the copy back run one after another"},
      {"--fp4-param-gather", "", "weights in fp4 alone are not modelled", true},
      {"--fp8-quantizer-factory", "", "a quantizer of one's own is not modelled", true},
      {"--quick-geglu", "", "this activation is not modelled", true},
      {"--apply-residual-connection-post-layernorm", "",
       "give the model with --model (norm_places)", true},
      {"--spec", "megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec",
       "layers of other specifications are not modelled", true},
      {"--hybrid-attention-ratio --hybrid-mlp-ratio", "",
       "give the layers by letters: --hybrid-override-pattern", true},
      {"--retro-* --vision-* --mamba-* "
       "--heterogeneous-layers-* --decoder-num-layers --perform-rl-step",
       "", "only decoders of equal layers, trained plainly, are modelled", true},
      {"--moe-flex-dispatcher-backend", "deepep", "the flexible dispatcher is taken for DeepEP"},
      {"--moe-shared-expert-overlap --delay-wgrad-compute", "",
       "exchanges of tokens are hidden by other micro-batches alone"},
      {"--tp-comm-overlap*", "",
       "products and their collectives run one after another, but for "
       "those of weight gradients"},
      {"--distribute-saved-activations", "", "each rank keeps its inputs whole"},
      {"--enable-cuda-graph --external-cuda-graph", "",
       "each kernel is launched by the host; give --cuda-graph-impl and --cuda-graph-scope"},
      {"--no-fp8-wgrad", "", "all products compute in fp8"},
      {"--reset-attention-mask --sft", "",
       "attention is over whole sequences; give the lengths of packed samples (model.samples)"},
      {"--rampup-batch-size", "", "the step predicted is one of the full batch"},
      {"--muon-tp-mode", "duplicated",
       "whole matrices are made orthogonal, by all tensor-parallel ranks"},
      {"--muon-num-ns-steps", "5", "Newton-Schulz iterates five times"},
      {"--muon-split-qkv", "", "queries, keys and values are one matrix"},
      {"--transformer-impl", "transformer_engine", "kernels are those of Transformer Engine"},
      {"--no-masked-softmax-fusion --no-bias-gelu-fusion --no-bias-swiglu-fusion "
       "--no-bias-dropout-fusion --no-rope-fusion --no-persist-layer-norm",
       "", "pointwise operators are predicted fused"},
      {"--use-nccl-ub --use-sharp --sharp-enabled-group --nccl-communicator-config-path "
       "--use-ring-exchange-p2p",
       "", "collectives run as configs/communication says"},
      {"--deterministic-mode --use-legacy-models --fp32-residual-connection "
       "--overlap-param-gather-with-optimizer-step --defer-embedding-wgrad-compute "
       "--microbatch-group-size-per-virtual-pipeline-stage "
       "--overlap-p2p-communication-warmup-flush "
       "--train-sync-interval --check-weight-hash-across-dp-replicas-interval",
       "", "not modelled"},
      {"--distributed-backend", "nccl", "collectives run as configs/communication says"},
      {"--moe-layer-recompute", "", "recomputation of experts alone is not modelled", true},
      {"--timing-log-level", "0", "timers that synchronise are not modelled"},
  });
  return kRules;
}

constexpr std::string_view kIdle =
    // data, tokenizer, checkpoints
    "--data-* --train-data-path --valid-data-path --test-data-path --split --mock-data "
    "--tokenizer-* --vocab-file --merge-file --vocab-extra-ids --tiktoken-* --legacy-tokenizer "
    "--trust-remote-code --num-workers --dataloader-type --reset-* --eod-mask-loss --*-cache-path "
    "--per-split-* --no-mmap-bin-files --no-create-attention-mask-in-dataloader "
    "--num-dataset-builder-threads --mid-level-* --allow-ambiguous-* --save* --load* --ckpt-* "
    "--no-save-* --no-load-* --*-ckpt-* --use-checkpoint-* --use-dist-ckpt --finetune "
    "--pretrained-checkpoint --exit-* --async-save --auto-detect-* --no-initialization "
    "--persistent-save-interval --non-persistent-* --replication* --no-ckpt-* --no-strict-* "
    "--use-persistent-ckpt-worker --use-mp-args-* --no-use-tokenizer-*"
    // logs, profiles, restarts
    " --log-* --no-log-* --tensorboard-* --wandb-* --*one-logger* --app-tag-* --logging-level "
    "--timing-log-option --profile* --use-pytorch-profiler --record-memory-history "
    "--memory-snapshot-path --config-logger-dir --inprocess-* --enable-ft-package "
    "--calc-ft-timeouts "
    "--*straggler* --run-workload-* --adlr-* --rerun-mode --error-injection-* "
    "--result-rejected-* --iterations-to-skip --no-barrier-* --disable-msc "
    // the run's length, evaluation, learning rates, initial values
    "--train-iters --train-samples --eval-* --skip-train --full-validation "
    "--multiple-validation-sets --test-mode --lr* --min-lr --decoupled-* --override-opt* "
    "--weight-decay* --start-weight-decay --end-weight-decay --adam-* --sgd-* --muon-* "
    "--clip-grad --seed --data-parallel-random-init --init-method-* --embedding-init-* "
    "--decrease-batch-size-if-needed --loss-scale* --initial-loss-scale --min-loss-scale "
    "--hysteresis "
    // options without cost
    "--norm-epsilon --apply-layernorm-1p --rotary-* --use-rope-scaling --rope-* --no-rope-freq "
    "--openai-gelu --moe-aux-loss-coeff --moe-z-loss-coeff --moe-input-jitter-eps --moe-router-* "
    "--moe-per-layer-logging --moe-grouped-gemm --moe-deepep-num-sms "
    "--moe-enable-deepep "
    "--moe-pad-expert-input-to-capacity --moe-token-drop-policy --moe-use-legacy-grouped-gemm "
    "--fp8-margin --fp8-interval --fp8-amax-* "
    "--attention-softmax-in-fp32 --apply-query-key-layer-scaling --calculate-per-token-loss "
    "--check-for-* --manual-gc* --no-manual-gc-eval "
    "--empty-unused-memory-level --use-cpu-initialization --use-mcore-models "
    "--no-async-tensor-model-parallel-allreduce --distributed-timeout-* --disable-gloo-* "
    "--local-rank --lazy-mpu-init --ddp-* --no-align-* --init-model-with-meta-device "
    "--fsdp-double-buffer --suggested-communication-unit-size --keep-fp8-transpose-cache "
    "--te-rng-tracker --inference-* --cross-entropy-fusion-impl "
    "--no-scatter-gather-tensors-in-pipeline --high-priority-stream-groups --enable-experimental "
    "--no-clone-scatter-output-in-embedding --is-hybrid-model --max-tokens-to-oom "
    "--mtp-loss-scaling-factor "
    // options of torchrun
    "--node-rank --node_rank --master* --rdzv* --standalone --max-restarts "
    "--tee --redirects";

// Takes the number of ranks from the options of torchrun, if the request does not state it.
Status finish(Draft& draft, const ReadContext& reading) {
  const auto number = [&](std::string_view key, std::int64_t otherwise) -> std::int64_t {
    if (!draft.has(key)) return otherwise;
    const std::string word = draft.word(key);
    std::int64_t value = 0;
    const char* end = word.data() + word.size();
    const auto [stop, status] = std::from_chars(word.data(), end, value);
    return status == std::errc() && stop == end ? value : 0;
  };
  const std::int64_t on_node = number("note.ranks_of_node", 0);
  const std::int64_t nodes = number("note.nodes", 1);
  if (!reading.request.devices && on_node > 0 && nodes > 0)
    draft.set("note.devices", product({on_node, nodes}),
              draft.from("note.ranks_of_node") + (draft.has("note.nodes") ? " x " : "") +
                  draft.from("note.nodes"));
  return finish_megatron(draft, reading);
}

bool recognises(std::string_view text) {
  constexpr std::string_view kSigns[]{"--micro-batch-size", "--num-layers", "--global-batch-size",
                                      "--tensor-model-parallel-size", "--hidden-size"};
  return std::ranges::any_of(kSigns, [&](auto sign) { return contains(text, sign); });
}

}  // namespace

const Format& megatron_format() {
  static const Format format{.name = "megatron",
                             .summary = "Options of Megatron-LM, or a script that holds them.",
                             .suffix = ".args",
                             .recognises = recognises,
                             .cut = cut_words,
                             .print = print_words,
                             .rows = rows,
                             .rules = rules,
                             .idle = kIdle,
                             .finish = finish,
                             .spread = spread_megatron,
                             .has_model = true};
  return format;
}

}  // namespace foreshard::launch::internal
