#include "strategies/parallelism/framework.h"

namespace foreshard {

std::string fault_in_precision(DType dtype) {
  return size_of(dtype) >= 2_B
             ? ""
             : "activations and gradients are not held in fp8; set precision: bf16 "
               "and, for products in fp8, quantization: fp8-current";
}

const yaml::Names<GradientReduction>& yaml_names(const GradientReduction*) {
  static const yaml::Names<GradientReduction> names{
      {"after-backward", GradientReduction::kAfterBackward,
       "In one go after the last micro-batch."},
      {"overlapped", GradientReduction::kOverlapped,
       "Per layer, beside the backward pass of the last micro-batch."},
  };
  return names;
}

const yaml::Names<PipelineTransfers>& yaml_names(const PipelineTransfers*) {
  static const yaml::Names<PipelineTransfers> names{
      {"blocking", PipelineTransfers::kBlocking,
       "A stage goes on when its sends and receives are done."},
      {"overlapped", PipelineTransfers::kOverlapped, "Sends proceed beside computation."},
      {"overlapped-if-interleaved", PipelineTransfers::kOverlappedIfInterleaved,
       "Overlapped where stages have several parts of the model, else blocking."},
  };
  return names;
}

const yaml::Names<Prefetch>& yaml_names(const Prefetch*) {
  static const yaml::Names<Prefetch> names{
      {"pre", Prefetch::kPre,
       "Before the pass of the unit before it, in the order of the pass through all units, the "
       "embedding and the head among them."},
      {"post", Prefetch::kPost, "Right behind that pass, before its gradients are reduced."},
      {"none", Prefetch::kNone, "When that pass has ended."},
  };
  return names;
}

const yaml::Names<OptimizerKernels>& yaml_names(const OptimizerKernels*) {
  static const yaml::Names<OptimizerKernels> names{
      {"fused", OptimizerKernels::kFused, "One kernel."},
      {"loop", OptimizerKernels::kLoop, "One kernel for each of Adam's eight operations."},
  };
  return names;
}

const yaml::Names<NormKernels>& yaml_names(const NormKernels*) {
  static const yaml::Names<NormKernels> names{
      {"fused", NormKernels::kFused, "One kernel."},
      {"recomputed-fp32", NormKernels::kRecomputedFp32,
       "One, on a copy in fp32, which the backward pass makes again."},
      {"autocast", NormKernels::kAutocast,
       "One in fp32, of a residual stream in fp32, and a cast of its result."},
      {"eager", NormKernels::kEager, "One for each operator of PyTorch (RMS norm)."},
  };
  return names;
}

const yaml::Names<LossKernels>& yaml_names(const LossKernels*) {
  static const yaml::Names<LossKernels> names{
      {"fused", LossKernels::kFused, "One kernel, which keeps exponentials in fp32."},
      {"recomputed", LossKernels::kRecomputed,
       "One, whose backward pass reads the logits again: these alone are kept."},
      {"eager", LossKernels::kEager, "One for each operator of a sharded loss."},
      {"log-softmax", LossKernels::kLogSoftmax,
       "Those of PyTorch's cross_entropy on a copy of the logits in fp32."},
  };
  return names;
}

const yaml::Names<OtherKernels>& yaml_names(const OtherKernels*) {
  static const yaml::Names<OtherKernels> names{
      {"fused", OtherKernels::kFused, "One kernel."},
      {"eager", OtherKernels::kEager, "One for each operator of PyTorch."},
  };
  return names;
}

const yaml::Names<AttentionImplementation>& yaml_names(const AttentionImplementation*) {
  using A = AttentionImplementation;
  static const yaml::Names<A> names{
      {"fused", A::kFused, "The fused kernel that is usual on the device."},
      {"unfused", A::kUnfused,
       "Two batched products; softmax and dropout are kernels between them."},
      {"triton-flash-1", A::kTritonFlash1, "FlashAttention (2022), written in Triton."},
      {"flash-2", A::kFlash2, "FlashAttention-2 (2023)."},
      {"flash-3", A::kFlash3, "FlashAttention-3 (2024), for Hopper."},
      {"cudnn", A::kCudnn, "cuDNN's, as Transformer Engine takes it from Hopper on."},
  };
  return names;
}

const yaml::Names<DType>& yaml_names(const DType*) {
  static const yaml::Names<DType> names{
      {"fp32", DType::kFp32, "IEEE single precision."},
      {"tf32", DType::kTf32, "fp32 in memory, 10-bit mantissa in the matrix units."},
      {"fp16", DType::kFp16, "IEEE half precision."},
      {"bf16", DType::kBf16, "bfloat16."},
      {"fp8", DType::kFp8, "8-bit floating point, of an optimizer's moments alone."},
  };
  return names;
}

const yaml::Table<Shards>& yaml_table(const Shards*) {
  static const auto table =
      yaml::Table<Shards>("shards",
                          "Parameters that each rank holds a shard of (ZeRO 3). The model's last "
                          "unit stays whole where its backward pass follows at once.")
          .optional("forward_prefetch", &Shards::forward_prefetch,
                    "When the next unit is asked for, forward.")
          .optional("backward_prefetch", &Shards::backward_prefetch,
                    "When the next unit is asked for, backward.")
          .optional("fp32", &Shards::fp32,
                    "Shards lie in fp32 (the optimizer needs no copy) and are cast before each "
                    "gather.")
          .optional("gathered_fp32", &Shards::gathered_fp32,
                    "They are gathered in fp32, and autocast keeps 16-bit copies of matrices from "
                    "the forward to the backward pass.")
          .optional(
              "copied_out", &Shards::copied_out,
              "Gathered parameters are copied to where they are read, as ranks hold a part of "
              "each (FSDP2).")
          .optional("experts", &Shards::experts,
                    "Experts that have ranks of their own are cut over the ranks that hold copies "
                    "of them. false: those ranks hold them whole.")
          .optional("gather_each", &Shards::gather_each,
                    "Parameters of more elements than this are gathered each by itself, the host "
                    "waiting for each; smaller ones are never given up.",
                    yaml::at_least(0))
          .check("gathered_fp32", [](const Shards& of) -> std::string {
            return of.gathered_fp32 && !of.fp32 ? "shards that are not in fp32 cannot be gathered "
                                                  "in fp32; set fp32: true"
                                                : "";
          });
  return table;
}

const yaml::Table<Pointwise>& yaml_table(const Pointwise*) {
  static const auto table =
      yaml::Table<Pointwise>("pointwise", "Into which kernels pointwise operators go.")
          .optional("norm", &Pointwise::norm, "RMS norm; a LayerNorm is one kernel.")
          .optional("rope", &Pointwise::rope, "Rotary position embedding.")
          .optional("activation", &Pointwise::activation, "SwiGLU; a GELU is one kernel.")
          .optional("cross_entropy", &Pointwise::cross_entropy, "The loss.")
          .optional("permutation", &Pointwise::permutation,
                    "What brings tokens to the order of their experts, and back.")
          .optional(
              "expert_bias", &Pointwise::expert_bias,
              "The biases of what experts give, where the weights of tokens are at the "
              "activation and no tensor ranks share an expert; fused: their product adds them.")
          .optional("clamp", &Pointwise::clamp, "Of what a SwiGLU reads, if the model clamps that.")
          .optional("routing", &Pointwise::routing,
                    "The choice of experts: weights, map, balancing loss and counts of tokens.");
  return table;
}

const yaml::Table<AttentionCopies>& yaml_table(const AttentionCopies*) {
  static const auto table =
      yaml::Table<AttentionCopies>("attention_copies",
                                   "Copies of queries, keys and values around fused attention.")
          .optional("forward", &AttentionCopies::forward, "Passes over all three, forward.",
                    yaml::non_negative())
          .optional("backward", &AttentionCopies::backward, "Likewise, of their gradients.",
                    yaml::non_negative());
  return table;
}

const yaml::Table<Framework>& yaml_table(const Framework*) {
  static const auto table =
      yaml::Table<Framework>("framework", "What a training framework fuses, overlaps and awaits.")
          .folder("frameworks")
          .required("name", &Framework::name, "Name in reports.", yaml::non_empty())
          .optional("family", &Framework::family,
                    "Frameworks of one family share most of their kernels; default: none does.")
          .optional("attention", &Framework::attention,
                    "Whose kernel computes attention. A device whose efficiency does not list it "
                    "takes the fused kernel that is usual there.")
          .optional("attention_on_blackwell", &Framework::attention_on_blackwell,
                    "The same on devices of compute capability 10.0 and more, where it is another "
                    "one (a study that sets `attention` itself has that).")
          .optional("attention_copies", &Framework::attention_copies,
                    "Copies that change how queries, keys and values lie around fused attention.")
          .optional("gate_apart", &Framework::gate_apart,
                    "Whether gate and up projection of a gated feed-forward layer are two products "
                    "(experts have one).")
          .optional(
              "weights_at_activation", &Framework::weights_at_activation,
              "The activation of a gated expert is multiplied by the weight of its token; else "
              "its result is, and kept for the gradient of the weight.")
          .optional("counts_tokens_on_host", &Framework::counts_tokens_on_host,
                    "Whether the host waits in each layer with experts for the counts of their "
                    "tokens.")
          .optional(
              "quantized_dispatch", &Framework::quantized_dispatch,
              "With `quantization`, tokens travel to their experts quantized. (Gradients travel in "
              "16 bits, but for experts that tensor-parallel ranks split.)")
          .optional("quantized_expert_inputs", &Framework::quantized_expert_inputs,
                    "With `quantization`, what the activations of routed experts read is kept "
                    "quantized for a backward pass that makes them again (recompute_parts: "
                    "[expert-activation]).")
          .optional("fp8_attention", &Framework::fp8_attention,
                    "With `quantization`, attention computes in fp8 (fp8_dot_product_attention); "
                    "not with context_parallel, nor from latents.")
          .optional("fp8_activation_inputs", &Framework::fp8_activation_inputs,
                    "With `quantization`, what the activation of a dense feed-forward layer reads "
                    "is kept in fp8 for the backward pass (activation_func_fp8_input_store).")
          .optional("fused_gradient_accumulation", &Framework::fused_gradient_accumulation,
                    "Whether weight-gradient products accumulate into the main gradient.")
          .optional("keeps_gradient_placeholders", &Framework::keeps_gradient_placeholders,
                    "Keeps an unused gradient tensor of each distinct shape of weight.")
          .optional("fused_cross_entropy", &Framework::fused_cross_entropy,
                    "The loss writes its gradient over the logits; else it keeps exponentials in "
                    "fp32.")
          .optional("loss_words", &Framework::loss_words,
                    "The product with the vocabulary and the loss run on the logits of this many "
                    "words at a time (with tensor_parallel each rank on its part of these), and "
                    "the backward pass makes these again; 0: on all at once.",
                    yaml::at_least(0))
          .optional("workspace", &Framework::workspace,
                    "What libraries of matrix products allocate for themselves, for good.")
          .optional("context", &Framework::context,
                    "What the driver keeps of a device's memory for a process.")
          .optional("communicator", &Framework::communicator,
                    "What the communication library keeps of it for one communicator.")
          .optional("gradients_in_backward", &Framework::gradients_in_backward,
                    "Gradients are allocated by the backward pass and given up before the next "
                    "step (set_to_none): with one micro-batch they take the place of activations. "
                    "Else they have buffers for good.")
          .optional("gradient_dtype", &Framework::gradient_dtype,
                    "Type of accumulated gradients and of their reduction.")
          .optional("fp16_gradient_dtype", &Framework::fp16_gradient_dtype,
                    "The same for training in fp16 (default: gradient_dtype).")
          .optional("accumulation_casts", &Framework::accumulation_casts,
                    "Whether a gradient is first cast to the type of the accumulated ones in a "
                    "kernel of its own.")
          .optional("gradient_reduction", &Framework::gradient_reduction,
                    "When gradients are reduced over data-parallel ranks.")
          .optional("gradient_bucket", &Framework::gradient_bucket,
                    "Bucket size at which overlapped gradients of a general graph are reduced "
                    "(default: 25 MiB, bucket_cap_mb of PyTorch's DistributedDataParallel).",
                    yaml::positive())
          .optional("overlap_parameter_gather", &Framework::overlap_parameter_gather,
                    "ZeRO 1 and 2: whether parameters are gathered during the next forward pass.")
          .optional(
              "overlap_tensor_gradients", &Framework::overlap_tensor_gradients,
              "Whether tensor-parallel reductions of data gradients overlap weight gradients.")
          .optional("overlap_tensor_products", &Framework::overlap_tensor_products,
                    "Whether products run while tensor-parallel ranks gather what they read "
                    "(tp_comm_overlap).")
          .optional("pipeline_transfers", &Framework::pipeline_transfers,
                    "Whether pipeline transfers overlap passes, or a stage waits for them.")
          .optional("host_time", &Framework::host_time,
                    "What the host does for each kernel beside its launch: Python, dispatcher, "
                    "autograd (default: nothing, as of compiled graphs).",
                    yaml::non_negative())
          .optional("product_launches", &Framework::product_launches,
                    "What the host does to launch a product, as a multiple of what it does for "
                    "another kernel: modules prepare it (Transformer Engine).",
                    yaml::at_least(1))
          .optional("eager_launches", &Framework::eager_launches,
                    "The same of each kernel of an operator that goes into several.",
                    yaml::non_negative())
          .optional("step_launches", &Framework::step_launches,
                    "The same of what the host does once a step (schedules, logs, data) behind the "
                    "norm of gradients that are clipped, while devices wait.",
                    yaml::non_negative())
          .optional("quantized_product_launches", &Framework::quantized_product_launches,
                    "The same of a product of operands in fp8 or fp4.", yaml::at_least(1))
          .optional("expert_product_time", &Framework::expert_product_time,
                    "What the host does for the product of each expert, which is then a launch of "
                    "its own (default: one kernel has the products of all experts).",
                    yaml::non_negative())
          .optional("expert_pass_time", &Framework::expert_pass_time,
                    "What the host does for each kernel that quantizes the rows of one expert, "
                    "where experts' products are launches of their own (default: nothing).",
                    yaml::non_negative())
          .optional("blocking_launches", &Framework::blocking_launches,
                    "Whether the host waits for each kernel (CUDA_LAUNCH_BLOCKING=1).")
          .optional("matrix_units_need_alignment", &Framework::matrix_units_need_alignment,
                    "Whether batched products with rows that are no multiple of 16 bytes run "
                    "outside the matrix units (cuBLAS before CUDA 11.6).")
          .optional("pipeline_host_sync", &Framework::pipeline_host_sync,
                    "Whether the host waits for every pipeline transfer that is not overlapped.")
          .optional("pass_host_sync", &Framework::pass_host_sync,
                    "Whether the host waits for every forward and backward pass of a micro-batch.")
          .optional("pipeline_scatter_gather", &Framework::pipeline_scatter_gather,
                    "Whether replicated activations cross stages in pieces of 1/tensor_parallel.")
          .optional("shards", &Framework::shards, "Parameters of ZeRO 3.")
          .optional("pointwise", &Framework::pointwise,
                    "Into which kernels pointwise operators go.")
          .optional("optimizer", &Framework::optimizer, "How the optimizer steps.")
          .optional("fused_update", &Framework::fused_update,
                    "Whether the update itself brings gradients to fp32, unscales (fp16) and clips "
                    "them; else each is a pass over them.")
          .optional("logged_losses", &Framework::logged_losses,
                    "How many losses are computed from the logits to be logged alone.",
                    yaml::at_least(0))
          .optional("gradient_clipping", &Framework::gradient_clipping,
                    "Whether a global gradient norm is computed before the optimizer step.")
          .optional("vocabulary_multiple", &Framework::vocabulary_multiple,
                    "The vocabulary is padded to a multiple of this times tensor_parallel.",
                    yaml::at_least(1))
          .optional("source", &Framework::source, "Where these facts are documented.")
          .check("gradient_dtype",
                 [](const Framework& of) { return fault_in_precision(of.gradient_dtype); });
  return table;
}

}  // namespace foreshard
