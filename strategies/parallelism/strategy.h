/// \file
/// A parallel strategy by its published knobs: how a training step is divided over devices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

#include "strategies/graph/graph.h"
#include "strategies/graph/implementation.h"
#include "strategies/graph/model.h"
#include "strategies/graph/part.h"
#include "strategies/graph/quantization.h"
#include "strategies/parallelism/expert_load.h"
#include "strategies/parallelism/framework.h"
#include "strategies/parallelism/optimizer.h"

namespace foreshard {

enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  ///< Parts of layers are recomputed in the backward pass.
  kFull,       ///< Whole layers are recomputed from their inputs.
};

/// The part of a block that its backward pass recomputes.
struct Recomputation {
  Recompute how = Recompute::kNone;
  std::vector<LayerPart> parts{};  ///< Read if `how` is kSelective.
  bool operator==(const Recomputation&) const = default;
};

/// The way in which tokens reach the ranks of their experts, and results come back.
enum class TokenDispatcher : std::uint8_t {
  kAllToAll,  ///< One copy of a token per expert that it chose.
  kDeepEp,    ///< One copy of a token per rank, which crosses to each node once.
};

/// The place of the optimizer's states, if not the device.
enum class OptimizerOffload : std::uint8_t {
  kNone,
  kCpu,    ///< Host memory; the CPU takes the step.
  kFetch,  ///< Host memory, except during the step, which the device takes.
};

/// The passes of a step.
enum class Mode : std::uint8_t {
  kTrain,    ///< Forward, backward, gradients reduced, parameters updated.
  kForward,  ///< Forward alone: evaluation, or inference over whole sequences.
};

/// The parts that selective recomputation recomputes if none are named.
const std::vector<LayerPart>& usual_recompute_parts();

struct Strategy {
  Mode mode = Mode::kTrain;
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  std::int64_t data_parallel = 1;
  std::int64_t context_parallel = 1;  ///< Ranks that share every sequence.
  ContextExchange context_exchange = ContextExchange::kAllGather;
  /// Size of the inner context group: adjacent ranks that exchange tokens for heads (all-to-all).
  /// Between groups, context_exchange applies.
  std::int64_t context_heads = 1;
  std::int64_t expert_parallel = 1;  ///< Ways that the routed experts of a layer are divided.
  std::int64_t expert_tensor_parallel = 0;  ///< Ranks that share one expert; 0: tensor_parallel.
  double capacity_factor = 1;  ///< Slots per expert, as a multiple of its even share of the tokens.
  ExpertLoad expert_load{};    ///< Must be balanced if capacity_factor is not 1.
  TokenDispatcher token_dispatcher = TokenDispatcher::kAllToAll;
  /// Token exchanges with experts overlap a pass of another micro-batch (schedule::Slot::beside).
  bool overlap_experts = false;
  bool sequence_parallel = false;
  std::vector<Capture> cuda_graphs;  ///< Work that CUDA graphs launch; the host launches the rest.
  std::string schedule = "1f1b";     ///< A name of strategies/schedule.
  /// The actions of schedule "custom" (schedule/actions.h).
  std::vector<std::string> schedule_actions;
  std::string schedule_file;  ///< CSV file with the actions instead; read with the study.
  /// schedule::PassTimes in the order of the fields; empty: equal.
  std::vector<double> pass_times;
  std::int64_t virtual_stages = 1;             ///< Model chunks per pipeline rank.
  std::vector<std::int64_t> layers_per_stage;  ///< Per piece, in the model's order; empty: equal.
  std::int64_t micro_batch = 1;                ///< Sequences per device and micro-batch.
  std::int64_t global_batch = 1;               ///< Sequences per step.
  /// Micro-batches per step of a data-parallel rank, one entry per group of ranks: the ranks form
  /// as many equal groups of neighbours as there are entries. Empty: all ranks take equally many.
  std::vector<std::int64_t> batch_shares;
  /// stage -> micro-batches that one pass takes, in a graph's pipeline; empty: one.
  std::vector<std::int64_t> granularity;
  std::int64_t zero_stage = 0;      ///< ZeRO 0-3 over the data-parallel ranks (3: FSDP).
  std::int64_t shard_replicas = 1;  ///< Sets of ZeRO shards (HSDP): each is cut over
                                    ///< data_parallel / shard_replicas ranks.
  Recompute recompute = Recompute::kNone;
  /// Read if `recompute` is selective.
  std::vector<LayerPart> recompute_parts = usual_recompute_parts();
  /// Number of layers, the first of each stage (in an interleaved pipeline: of each chunk), that
  /// are recomputed; 0: all.
  std::int64_t recompute_layers = 0;
  /// Number of layers, the first of each stage (in an interleaved pipeline: of each chunk), whose
  /// activations are in host memory between the forward and the backward pass.
  std::int64_t offload_activation_layers = 0;
  OptimizerOffload offload_optimizer = OptimizerOffload::kNone;
  bool offload_parameters = false;  ///< Parameter shards (ZeRO 3) are in host memory.
  DType precision = DType::kBf16;   ///< Type of parameters, activations and matrix products.
  /// Recipe by which a transformer's linear layers compute in fewer bits than `precision`.
  Quantization quantization = Quantization::kNone;
  UnquantizedLayers unquantized_layers{};
  /// Weights that products read quantized are held and gathered only in quantized form.
  bool quantized_parameters = false;
  /// A weight in fp8 with one scale is held once for all its products (`reads_fp8_either_way`). Not
  /// read from YAML: set by the code that knows the devices.
  bool one_copy_in_fp8 = false;
  Optimizer optimizer{};
  std::vector<std::string> rank_order = {"tensor", "data", "pipeline"};  ///< Fastest first.
  yaml::Ref<Framework> framework;

  std::int64_t devices() const { return tensor_parallel * pipeline_parallel * copies(); }
  /// Ranks that hold copies of the parameters of one tensor-parallel rank of a stage.
  std::int64_t copies() const { return context_parallel * data_parallel; }
  std::int64_t shards() const { return copies() / shard_replicas; }  ///< Shards of ZeRO.
  /// Slots per expert as a multiple of its even share, sized for the busiest rank's tokens.
  double expert_slots(const Model& model) const {
    return capacity_factor * mean_load(expert_load, model, expert_parallel);
  }
  std::int64_t stages() const { return pipeline_parallel * virtual_stages; }
  bool offloads() const {
    return offload_activation_layers > 0 || offload_optimizer != OptimizerOffload::kNone ||
           offload_parameters;
  }
  bool captures(Capture one) const { return is_captured(one, cuda_graphs); }
  /// Host time per kernel besides its launch, on the host of a DGX H100.
  Seconds host_time() const { return captures(Capture::kStep) ? Seconds{} : framework->host_time; }
  Recomputation recomputation() const { return {recompute, recompute_parts}; }
  /// \pre stage < pipeline_parallel, unless `granularity` is empty
  std::int64_t granularity_of(std::size_t stage) const {
    return granularity.empty() ? 1 : granularity[stage];
  }
  /// Micro-batches of a data-parallel rank in a step; with unequal batch_shares, the most of any
  /// rank.
  std::int64_t micro_batches() const {
    if (!batch_shares.empty()) return *std::ranges::max_element(batch_shares);
    return global_batch / (data_parallel * micro_batch);
  }
  /// \pre batch_shares is not empty, and its size divides data_parallel
  std::int64_t batch_share_of(std::int64_t data_rank) const {
    const std::int64_t ranks = data_parallel / static_cast<std::int64_t>(batch_shares.size());
    return batch_shares[static_cast<std::size_t>(data_rank / ranks)];
  }
};

const yaml::Names<Recompute>& yaml_names(const Recompute*);
const yaml::Names<TokenDispatcher>& yaml_names(const TokenDispatcher*);
const yaml::Names<OptimizerOffload>& yaml_names(const OptimizerOffload*);
const yaml::Names<Mode>& yaml_names(const Mode*);
const yaml::Table<Strategy>& yaml_table(const Strategy*);

/// The strategy with `micro_batches` micro-batches on every data-parallel rank.
Strategy with_equal_shares(Strategy strategy, std::int64_t micro_batches);

/// "tensor 8, pipeline 4, data 2, micro-batch 1, ZeRO 1": one line for display.
std::string describe(const Strategy& strategy);

/// Its recomputation: "full", "selective (norm, activation)", "full of 21 layers a stage".
std::string words_of_recomputation(const Strategy& strategy);
/// Its context parallelism: "8 by all-to-all of 2 and ring". \pre context_parallel > 1.
std::string words_of_context(const Strategy& strategy);

/// ", tokens by deepep, exchanged beside other passes, muon, optimizer on the CPU": settings that
/// differ from their defaults; empty if none does.
std::string words_of_extras(const Strategy& strategy);

/// Most layer passes of one device in a step, over all micro-batches: with some 70 tasks each they
/// reach program::kMaxInstancesPerRole.
inline constexpr std::int64_t kMaxLayerPasses = std::int64_t{1} << 20;

/// A reason why a strategy does not suit a model on a number of devices. (It may leave devices
/// idle.)
struct StrategyFault {
  std::string key;  ///< The key to look at, for example "tensor_parallel".
  std::string message;
  std::string help;  ///< A remedy with numbers in it.
};
/// All faults of the strategy, in the order of the keys; empty if it can be lowered.
std::vector<StrategyFault> faults_in(const Strategy& strategy, const Model& model,
                                     std::int64_t devices);

/// The faults of a strategy for a general graph.
/// \param axes  the graph's axes beside tensor, data and pipeline.
/// \param units  number of units that the graph is cut into.
/// \param batch  samples per micro-batch in the graph's shapes, over all data-parallel ranks.
std::vector<StrategyFault> faults_in_graph(const Strategy& strategy, const Graph& graph,
                                           const std::vector<MeshAxis>& axes, std::int64_t units,
                                           std::int64_t batch, std::int64_t devices);

/// Splits layers as evenly as possible, the larger parts first: 10 layers on 4 stages are 3 3 2 2.
std::vector<std::int64_t> even_split(std::int64_t layers, std::int64_t stages);
/// As frameworks cut layers that do not divide into equal stages: one layer less on the first and
/// on the last stage, beside the embedding and the loss, where that makes the others equal; else
/// the even split.
std::vector<std::int64_t> uneven_split(std::int64_t layers, std::int64_t stages);

/// piece -> number of layers (in a general graph: units), in the order of the model.
/// schedule::piece_of says which stage holds a piece.
/// \pre faults_in is empty
std::vector<std::int64_t> layers_of_stages(const Strategy& strategy, std::int64_t layers);

// The ranks that hold the routed experts of a layer: groups among the flattened tensor-, context-
// and data-parallel ranks (strategies/graph/mesh_axes.h). A group may end within an axis.

/// Ranks that share one expert.
std::int64_t expert_tensor_ways(const Strategy& strategy);

/// Ranks that together hold all experts of a layer once; they are neighbours.
std::int64_t expert_ranks(const Strategy& strategy);

/// Data-parallel ranks among expert_ranks().
std::int64_t expert_data_ranks(const Strategy& strategy);

/// " (each whole)", " (each split 2 ways)": for experts that are split otherwise than the other
/// parameters.
std::string words_of_experts(const Strategy& strategy);

/// Device memory that is not available for tensors: the driver's context of the process, and the
/// buffers of the communication library's communicators. Tensors fit a device if
///
///     peak + reserve <= memory,   reserve = context + communicator x axes that are split
///
/// with one communicator for each axis that has more than one rank: tensor, heads and ring of
/// context parallelism, ZeRO shards, sets of shards, pipeline. The numbers are the framework's
/// (configs/frameworks). Not modelled: their growth with the device's SMs and links; communicators
/// over several axes at once; the connections of all-to-alls to every peer; memory that the
/// framework's allocator holds but has not handed out.
Bytes reserve_of(const Strategy& strategy);

}  // namespace foreshard
