/// \file
/// Facts about a training framework, as data (configs/frameworks/*.yaml): what it fuses, overlaps
/// and synchronises, and the host time of each kernel beside the launch itself, which belongs to
/// the node (topology).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "base/yaml/table.h"

#include "strategies/graph/implementation.h"
#include "strategies/program/ir/kernel.h"

namespace foreshard {

/// The time at which gradients are reduced over the data-parallel ranks.
enum class GradientReduction : std::uint8_t {
  kAfterBackward,  ///< All at once, after the last micro-batch.
  kOverlapped,     ///< Layer by layer, overlapped with the backward pass of the last micro-batch.
};

enum class PipelineTransfers : std::uint8_t {
  kBlocking,    ///< A stage continues when its slot's sends and receives are done.
  kOverlapped,  ///< Sends overlap with computation.
  /// Overlapped if stages have several pieces of the model, else blocking.
  kOverlappedIfInterleaved,
};

/// The time at which the host asks for the parameters of the next unit, where ranks hold shards
/// (ZeRO-3). At most two units are whole at a time.
enum class Prefetch : std::uint8_t {
  kPre,  ///< Ahead of the current unit's pass (FSDP's BACKWARD_PRE).
  /// Right after the current unit's pass is launched, ahead of the reduction of its gradients
  /// (FSDP's BACKWARD_POST).
  kPost,
  kNone,  ///< Once the current unit's pass has ended.
};

/// The kernels of an optimizer step.
enum class OptimizerKernels : std::uint8_t {
  kFused,  ///< One kernel: each operand is read and written once.
  kLoop,   ///< One kernel per operation; Adam has eight.
};

/// Handling of parameters of which each rank holds a shard (ZeRO-3).
struct Shards {
  Prefetch forward_prefetch = Prefetch::kPre;
  Prefetch backward_prefetch = Prefetch::kPre;
  /// Shards are in fp32, are the optimizer's own copy, and are cast before each gather.
  bool fp32 = false;
  /// Parameters are gathered in fp32. Autocast then makes a 16-bit copy of each matrix, which stays
  /// from the unit's forward pass to its backward pass (autograd saves what a product reads).
  /// Not modelled: the kernels that make these copies.
  bool gathered_fp32 = false;
  /// Each rank holds a part of every parameter (FSDP2): gathered data are ordered by rank, and are
  /// copied into the parameters ahead of the pass that reads them.
  /// Not modelled: the memory of both copies at once; the copy of gradients into the buffer that is
  /// reduced (the pass that accumulates them stands for it); the copies where one rank holds
  /// everything; general graphs.
  bool copied_out = false;
  /// Experts that have ranks of their own (expert_parallel) are sharded over the ranks that hold
  /// copies of them, like all other parameters. If false, each of these ranks holds its experts
  /// whole, with their gradients and optimizer states.
  /// Not modelled: the 16-bit working copy of such whole experts, where shards are in fp32.
  bool experts = true;
  /// Parameters of more elements than this are gathered one by one, and the host waits for each;
  /// smaller ones stay whole and are never released. Empty: a unit's parameters are gathered
  /// together.
  std::optional<std::int64_t> gather_each{};
  bool operator==(const Shards&) const = default;
};

/// Copies around a fused attention kernel that change the memory layout of queries, keys and
/// values, in passes over all three of them.
struct AttentionCopies {
  double forward = 0;
  double backward = 0;
  bool operator==(const AttentionCopies&) const = default;
};

struct Framework {
  std::string name{};  ///< Empty: none was named.
  /// Frameworks of one family share most of their kernels: measured steps of one tell how far
  /// predictions of another are off (sim/study/measured_steps.h). Empty: a family of its own.
  std::string family{};
  /// Attention kernel of transformers. A device that lacks it uses its own usual kernel.
  AttentionImplementation attention = AttentionImplementation::kFused;
  /// The same on devices of compute capability 10.0 and more, where it is another one.
  std::optional<AttentionImplementation> attention_on_blackwell{};
  AttentionCopies attention_copies{};  ///< Not modelled: context parallelism, latent attention.
  /// Gate and up projection of a gated feed-forward layer are separate products.
  bool gate_apart = false;
  /// The router's weights multiply the experts' activations, not their results.
  bool weights_at_activation = false;
  /// The host waits in each layer with experts for their token counts, since it needs the sizes of
  /// the following kernels.
  bool counts_tokens_on_host = false;
  /// With fp8 or fp4: tokens are quantized before they travel to their experts, not after.
  bool quantized_dispatch = false;
  /// With fp8 or fp4: the inputs of the routed experts' activations are kept quantized for a
  /// backward pass that recomputes the activations (LayerPart::kExpertActivation).
  bool quantized_expert_inputs = false;
  /// With fp8 or fp4: attention reads queries, keys and values in fp8 and writes its result in fp8.
  /// Not modelled: context_parallel; latent attention.
  bool fp8_attention = false;
  /// With fp8 or fp4: the input of a dense feed-forward layer's activation is kept in fp8 for the
  /// backward pass.
  bool fp8_activation_inputs = false;
  bool fused_gradient_accumulation = true;
  /// With fused accumulation of weight gradients, autograd still expects a tensor of each weight's
  /// shape and type. True: one tensor per distinct shape is kept during the whole step; false: it
  /// is allocated and freed with its product.
  bool keeps_gradient_placeholders = false;
  bool fused_cross_entropy = false;  ///< The loss writes its gradient over the logits.
  /// The product with the vocabulary and the loss run on the logits of this many words at a time,
  /// and the backward pass makes these again. 0: on all logits at once.
  std::int64_t loss_words = 0;
  Bytes workspace{};     ///< Workspace that matrix-product libraries allocate and keep.
  Bytes context{};       ///< Device memory that the driver keeps for a process.
  Bytes communicator{};  ///< Device memory that the communication library keeps per communicator.
  /// Gradients come into being in the backward pass and are given up before the next step
  /// (PyTorch's zero_grad(set_to_none=True)): in a step of one micro-batch they take the place of
  /// activations. Else they have buffers for good.
  bool gradients_in_backward = false;
  DType gradient_dtype = DType::kFp32;  ///< Type of the accumulated gradient and of its reduction.
  /// gradient_dtype for training in fp16; empty: gradient_dtype itself.
  std::optional<DType> fp16_gradient_dtype;
  /// Without fused accumulation: a gradient of another type than the accumulated one is first cast,
  /// in a separate pass.
  bool accumulation_casts = false;
  GradientReduction gradient_reduction = GradientReduction::kOverlapped;
  /// Bucket size at which overlapped gradients of a general graph are reduced (a transformer's are
  /// reduced layer by layer).
  Bytes gradient_bucket = 25_MiB;
  bool overlap_parameter_gather = false;  ///< ZeRO-1/2: the gather overlaps the next forward pass.
  bool overlap_tensor_gradients = true;   ///< Tensor-parallel reductions overlap weight gradients.
  /// A product overlaps the tensor-parallel gather of its input (user buffers of Transformer
  /// Engine).
  bool overlap_tensor_products = false;
  PipelineTransfers pipeline_transfers = PipelineTransfers::kBlocking;
  /// Host time per kernel of the Program before its launch, on the host of a DGX H100: modules,
  /// dispatcher, autograd, and launches of views and copies that the Program does not list. Another
  /// host takes 1 / HostConfig::speed times as long. Not modelled: operators of unequal cost; the
  /// work of wrappers for a whole unit (FSDP's hooks), which is spread over the kernels with which
  /// it was measured.
  Seconds host_time{};
  /// Host time of a matrix product, as a multiple of launch + host_time, where modules prepare the
  /// product (Transformer Engine); `quantized_`: of a product of fp8 or fp4 operands. General
  /// graphs count 1 for every kernel.
  double product_launches = 1;
  double quantized_product_launches = 1;
  /// Host time of each kernel of an operator that runs as several kernels in plain PyTorch, as the
  /// same multiple.
  double eager_launches = 1;
  /// Host time once a step, between the gradient norm that the host reads and the first kernel of
  /// the optimizer (schedules, logs, data), as a multiple of launching a kernel. Not modelled: this
  /// time where gradients are not clipped, or where a CUDA graph launches the step (launches are
  /// then the graph's alone).
  double step_launches = 0;
  /// Host time per expert's product, where these are launched one by one. Empty: one kernel
  /// computes the products of all experts of a rank.
  /// Not modelled: as for host_time; other hosts (Grace takes as long as Xeon, by the sources of
  /// configs/frameworks).
  std::optional<Seconds> expert_product_time{};
  /// Host time per kernel that quantizes one expert's rows (kernel.h, `Pass::launches`).
  Seconds expert_pass_time{};
  bool blocking_launches = false;  ///< The host waits for each kernel (CUDA_LAUNCH_BLOCKING=1).
  /// Batched products with rows that are no multiple of 16 bytes run outside the matrix units, as
  /// with cuBLAS before CUDA 11.6.
  bool matrix_units_need_alignment = false;
  /// The host waits for every pipeline transfer that is not overlapped. Not modelled: waits for
  /// sends without a paired receive, as on the first stage while a pipeline fills.
  bool pipeline_host_sync = false;
  /// The host waits for every forward and backward pass of a micro-batch (timers that synchronise).
  /// Not modelled: interleaved pipelines.
  bool pass_host_sync = false;
  /// Replicated activations are sent in pieces of 1/tensor_parallel.
  bool pipeline_scatter_gather = false;
  Shards shards{};
  Pointwise pointwise{};
  OptimizerKernels optimizer = OptimizerKernels::kFused;
  /// The update itself casts gradients to fp32, unscales them (loss scaling) and clips them; else
  /// each of these is a pass over the gradients.
  bool fused_update = false;
  /// Losses that are computed only for logging, from the logits in fp32, beside the training loss.
  /// Not modelled: their memory.
  std::int64_t logged_losses = 0;
  bool gradient_clipping = true;  ///< A global gradient norm is computed before the optimizer step.
  /// The vocabulary is padded to a multiple of this x tensor_parallel.
  std::int64_t vocabulary_multiple = 128;
  std::string source;

  /// Type of the accumulated gradient and of its reduction, for training in `precision`.
  DType gradients_of(DType precision) const {
    return precision == DType::kFp16 ? fp16_gradient_dtype.value_or(gradient_dtype)
                                     : gradient_dtype;
  }
};

/// Why steps cannot run in that precision, and the remedy; empty if they can. Only products run in
/// fp8 (Strategy::quantization).
std::string fault_in_precision(DType dtype);

const yaml::Names<GradientReduction>& yaml_names(const GradientReduction*);
const yaml::Names<PipelineTransfers>& yaml_names(const PipelineTransfers*);
const yaml::Names<Prefetch>& yaml_names(const Prefetch*);
const yaml::Names<OptimizerKernels>& yaml_names(const OptimizerKernels*);
const yaml::Names<AttentionImplementation>& yaml_names(const AttentionImplementation*);
const yaml::Names<NormKernels>& yaml_names(const NormKernels*);
const yaml::Names<LossKernels>& yaml_names(const LossKernels*);
const yaml::Names<OtherKernels>& yaml_names(const OtherKernels*);
const yaml::Names<DType>& yaml_names(const DType*);
const yaml::Table<Shards>& yaml_table(const Shards*);
const yaml::Table<Pointwise>& yaml_table(const Pointwise*);
const yaml::Table<AttentionCopies>& yaml_table(const AttentionCopies*);
const yaml::Table<Framework>& yaml_table(const Framework*);

}  // namespace foreshard
