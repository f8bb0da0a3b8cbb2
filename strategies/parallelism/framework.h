/// \file
/// What a training framework does with a strategy, as facts (configs/frameworks/*.yaml): what it
/// fuses, overlaps and synchronises, and what each kernel costs its host beside the launch itself,
/// which is the node's (topology).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "base/yaml/table.h"

#include "strategies/graph/implementation.h"
#include "strategies/program/ir/kernel.h"

namespace foreshard {

/// When gradients are reduced over the data-parallel ranks.
enum class GradientReduction : std::uint8_t {
  kAfterBackward,  ///< In one go after the last micro-batch.
  kOverlapped,     ///< Per layer, beside the backward pass of the last micro-batch.
};

enum class PipelineTransfers : std::uint8_t {
  kBlocking,                 ///< A stage goes on when its sends and receives of the slot are done.
  kOverlapped,               ///< Sends proceed beside computation.
  kOverlappedIfInterleaved,  ///< Where stages have several parts of the model, else blocking.
};

/// When the host asks for the parameters of the unit that comes after the one that runs, where
/// ranks hold shards (ZeRO-3). No more than two units are whole at a time.
enum class Prefetch : std::uint8_t {
  kPre,   ///< Before the pass of the unit before it (FSDP's BACKWARD_PRE).
  kPost,  ///< Right behind that pass, before its gradients are reduced (FSDP's BACKWARD_POST).
  kNone,  ///< When that pass has ended.
};

/// How the optimizer steps.
enum class OptimizerKernels : std::uint8_t {
  kFused,  ///< One kernel: each operand is read and written once.
  kLoop,   ///< One kernel for each of Adam's eight operations.
};

/// Parameters that each rank holds a shard of (ZeRO-3).
struct Shards {
  Prefetch forward_prefetch = Prefetch::kPre;
  Prefetch backward_prefetch = Prefetch::kPre;
  /// Shards lie in fp32, which are then the optimizer's own copy, and are cast before each gather.
  bool fp32 = false;
  /// Each rank holds a part of every parameter (FSDP2): what is gathered lies by rank, and is
  /// copied into the parameters ahead of the pass that reads them.
  /// Not modelled: the room of both at once; the copy of gradients into the buffer that is reduced,
  /// for which the pass that accumulates them stands; the same where one rank holds everything; and
  /// general graphs.
  bool copied_out = false;
  /// Experts that have ranks of their own (expert_parallel) are cut over the ranks that hold copies
  /// of them, as all else is. Otherwise each of these ranks holds them whole, with their gradients
  /// and the optimizer's states.
  /// Not modelled: the working copy in 16 bits of such experts, where shards lie in fp32.
  bool experts = true;
  /// Parameters of more elements than this are gathered each by itself, and the host waits for
  /// each; smaller ones are never given up. Nothing: a unit's are gathered together.
  std::optional<std::int64_t> gather_each{};
  bool operator==(const Shards&) const = default;
};

/// How sure a prediction is: of public measurements, those with the framework weighing most, the
/// ratio of measured to predicted time lies between these in 8 cases of 10 (10th and 90th
/// percentile). Taken from the rows of `foreshard accuracy --format json` by tools/residuals;
/// predictions themselves are not scaled by it.
struct Residual {
  double low = 1;
  double high = 1;
  std::int64_t measurements = 0;
  std::string steps_of{};  ///< Whose steps, where not this framework's: "all frameworks".
  std::string source;
};

/// Copies around a fused attention kernel that change how queries, keys and values lie: passes over
/// all three of them.
struct AttentionCopies {
  double forward = 0;
  double backward = 0;
  bool operator==(const AttentionCopies&) const = default;
};

struct Framework {
  std::string name{};  ///< Empty: none was named.
  /// Of transformers. A device that does not have it takes its own usual kernel.
  AttentionImplementation attention = AttentionImplementation::kFused;
  AttentionCopies attention_copies{};  ///< Not modelled: context parallelism, latent attention.
  /// Gate and up projection of a gated feed-forward layer are products of their own.
  bool gate_apart = false;
  /// Weights of a token's experts are factors of the experts' activations, not of their results.
  bool weights_at_activation = false;
  /// The host waits in each layer with experts for the counts of tokens that go to them, by which
  /// it sizes what follows.
  bool counts_tokens_on_host = false;
  /// With fp8 or fp4: tokens travel to experts quantized, and are not quantized there alone.
  bool quantized_dispatch = false;
  /// With fp8 or fp4: what the activations of routed experts read is kept quantized for a backward
  /// pass that makes them again (Part::kExpertActivation).
  bool quantized_expert_inputs = false;
  /// With fp8 or fp4: queries, keys and values come to attention in fp8, and its result leaves it
  /// so. Not modelled: where ranks have parts of a sequence (context_parallel); latents.
  bool fp8_attention = false;
  /// With fp8 or fp4: what the activation of a dense feed-forward layer reads is kept in fp8 for
  /// the backward pass.
  bool fp8_activation_inputs = false;
  bool fused_gradient_accumulation = true;
  /// Where weight gradients are added up by the products themselves, autograd still wants a tensor
  /// of each weight's shape and type. Kept: one for each distinct shape during the whole step; else
  /// it comes and goes with its product.
  bool keeps_gradient_placeholders = false;
  bool fused_cross_entropy = false;  ///< The loss writes its gradient over the logits.
  Bytes workspace{};     ///< What libraries of matrix products allocate for themselves, for good.
  Bytes context{};       ///< What the driver keeps of a device's memory for a process.
  Bytes communicator{};  ///< What the communication library keeps of it for one communicator.
  DType gradient_dtype = DType::kFp32;  ///< Of the accumulated gradient, and of its reduction.
  /// The same where training is in fp16; nothing: as ever.
  std::optional<DType> fp16_gradient_dtype;
  /// Unfused, and of another dtype than the gradient: it is cast first, in a pass of its own.
  bool accumulation_casts = false;
  GradientReduction gradient_reduction = GradientReduction::kOverlapped;
  /// Overlapped gradients of a general graph are reduced when so many bytes are there (a
  /// transformer's by the layer).
  Bytes gradient_bucket = 25_MiB;
  bool overlap_parameter_gather = false;  ///< ZeRO-1/2: gather beside the next forward pass.
  bool overlap_tensor_gradients = true;   ///< Tensor-parallel reductions beside weight gradients.
  /// A product runs while the tensor-parallel ranks gather what it reads (user buffers of
  /// Transformer Engine).
  bool overlap_tensor_products = false;
  PipelineTransfers pipeline_transfers = PipelineTransfers::kBlocking;
  /// What the host of a DGX H100 does for each kernel of the Program before it launches it:
  /// modules, dispatcher, autograd, and the launches of views and copies that the Program does not
  /// name. Another host takes 1 / HostConfig::speed of that. Not modelled: operators of unequal
  /// cost; what wrappers do for a whole unit (hooks of FSDP), which counts as that of the kernels
  /// that it was measured with.
  Seconds host_time{};
  /// The same for a product, as a multiple of launch and host_time, where modules prepare it
  /// (Transformer Engine), and for one of operands in fp8 or fp4. Of general graphs all weigh 1.
  double product_launches = 1;
  double quantized_product_launches = 1;
  /// The same for each kernel of an operator that has several, as plain PyTorch launches them.
  double eager_launches = 1;
  /// What the host does once a step, between the norm of gradients that it reads and the first
  /// kernel of the optimizer: schedules, logs, data. As a multiple of launching a kernel. Not
  /// modelled: the same where gradients are not clipped, or where a CUDA graph launches the step
  /// (a launch is then that of the graph's kernels alone).
  double step_launches = 0;
  /// What the host does for each expert's product, where these are launched one by one; nothing:
  /// one kernel has the products of all experts of a rank.
  /// Not modelled: as of host_time; other hosts (Grace takes as long as Xeon, by the sources of
  /// configs/frameworks).
  std::optional<Seconds> expert_product_time{};
  /// Likewise for each kernel that quantizes one expert's rows (kernel.h, `Pass::launches`).
  Seconds expert_pass_time{};
  bool blocking_launches = false;  ///< The host waits for each kernel (CUDA_LAUNCH_BLOCKING=1).
  /// Batched products with rows that are no multiple of 16 bytes run outside the matrix units, as
  /// with cuBLAS before CUDA 11.6.
  bool matrix_units_need_alignment = false;
  /// The host waits for every pipeline transfer that is not overlapped. Not modelled: that it waits
  /// for sends which no receive goes with, as of the first stage while a pipeline fills.
  bool pipeline_host_sync = false;
  /// The host waits for every forward and backward pass of a micro-batch (timers that synchronise).
  /// Not modelled: in an interleaved pipeline.
  bool pass_host_sync = false;
  bool pipeline_scatter_gather = false;  ///< Replicated activations are sent in 1/tensor pieces.
  Shards shards{};
  Pointwise pointwise{};
  OptimizerKernels optimizer = OptimizerKernels::kFused;
  /// The update itself brings gradients to fp32, out of the scale of the loss, and clips them; else
  /// each of these is a pass over them.
  bool fused_update = false;
  /// Losses that are computed to be logged, from the logits in fp32, beside the one that is
  /// trained. Not modelled: their memory.
  std::int64_t logged_losses = 0;
  bool gradient_clipping = true;           ///< A global gradient norm before the optimizer step.
  std::int64_t vocabulary_multiple = 128;  ///< Padded to this times the tensor-parallel size.
  std::optional<Residual> residual;
  std::string source;

  /// Of the accumulated gradient, and of its reduction, of training in `precision`.
  DType gradients_of(DType precision) const {
    return precision == DType::kFp16 ? fp16_gradient_dtype.value_or(gradient_dtype)
                                     : gradient_dtype;
  }
};

/// Why steps do not run in that precision, and what to do; empty if they can. What runs in fp8 is
/// products alone (Strategy::quantization).
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
const yaml::Table<Residual>& yaml_table(const Residual*);
const yaml::Table<Framework>& yaml_table(const Framework*);

}  // namespace foreshard
