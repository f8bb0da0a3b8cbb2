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

#include "strategies/graph/capture.h"
#include "strategies/graph/context_exchange.h"
#include "strategies/graph/graph.h"
#include "strategies/graph/model.h"
#include "strategies/graph/quantization.h"
#include "strategies/parallelism/expert_load.h"
#include "strategies/parallelism/framework.h"
#include "strategies/parallelism/optimizer.h"

namespace foreshard {

enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  ///< Parts of layers are recomputed in the backward pass.
  kFull,       ///< Whole layers are, from their inputs.
};

/// What the backward pass of a block computes again.
struct Recomputation {
  Recompute how = Recompute::kNone;
  std::vector<Part> parts{};  ///< Of kSelective.
  bool operator==(const Recomputation&) const = default;
};

/// How tokens reach the ranks of their experts, and their results come back.
enum class TokenDispatcher : std::uint8_t {
  kAllToAll,  ///< One copy for each expert that the token chose.
  kDeepEp,    ///< One copy for each rank, which crosses to each node once.
};

/// Where the optimizer's states are, if not on the device.
enum class OptimizerOffload : std::uint8_t {
  kNone,
  kCpu,    ///< In the memory of the host, whose CPU takes the step.
  kFetch,  ///< There too, but for the step, which the device takes.
};

/// What a step is.
enum class Mode : std::uint8_t {
  kTrain,    ///< Forward, backward, gradients reduced, parameters updated.
  kForward,  ///< Forward alone: evaluation, or inference over whole sequences.
};

/// What selective recomputation computes again where no parts are named.
const std::vector<Part>& usual_recompute_parts();

struct Strategy {
  Mode mode = Mode::kTrain;
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  std::int64_t data_parallel = 1;
  std::int64_t context_parallel = 1;  ///< Ranks that each have a part of every sequence.
  ContextExchange context_exchange = ContextExchange::kAllGather;
  /// Of these, adjacent ones that exchange tokens for heads first.
  std::int64_t context_heads = 1;
  std::int64_t expert_parallel = 1;         ///< Ways that the routed experts are divided.
  std::int64_t expert_tensor_parallel = 0;  ///< Ranks that share one expert; 0: tensor_parallel.
  double capacity_factor = 1;  ///< Slots of an expert, as a multiple of its even share of tokens.
  ExpertLoad expert_load{};    ///< Balanced, if capacity_factor is not 1.
  TokenDispatcher token_dispatcher = TokenDispatcher::kAllToAll;
  /// Tokens are exchanged with experts while a pass of another micro-batch computes
  /// (schedule::Slot::beside).
  bool overlap_experts = false;
  bool sequence_parallel = false;
  std::vector<Capture> cuda_graphs;  ///< What CUDA graphs launch; else the host launches it.
  std::string schedule = "1f1b";     ///< A name of strategies/schedule.
  std::vector<std::string> schedule_actions;  ///< Of schedule "custom": schedule/actions.h.
  std::string schedule_file;                  ///< Where they stand instead; read with the study.
  std::vector<double> pass_times;   ///< schedule::PassTimes, in their order; empty: equal.
  std::int64_t virtual_stages = 1;  ///< Model chunks per pipeline rank.
  std::vector<std::int64_t> layers_per_stage;  ///< Per piece, in the model's order; empty: equal.
  std::int64_t micro_batch = 1;                ///< Sequences per device and micro-batch.
  std::int64_t global_batch = 1;               ///< Sequences per step.
  /// Micro-batches that a data-parallel rank takes in a step, by group of ranks: the ranks are as
  /// many equal groups of neighbours as there are entries. Empty: all ranks take as many.
  std::vector<std::int64_t> batch_shares;
  /// Of a graph's pipeline, by stage: micro-batches that one pass takes; empty: one.
  std::vector<std::int64_t> granularity;
  std::int64_t zero_stage = 0;      ///< ZeRO 0-3 over the data-parallel ranks (3: FSDP).
  std::int64_t shard_replicas = 1;  ///< Sets of ZeRO shards (HSDP): each is cut over
                                    ///< data_parallel / shard_replicas ranks.
  Recompute recompute = Recompute::kNone;
  std::vector<Part> recompute_parts = usual_recompute_parts();  ///< Where it is selective.
  /// Of each stage (of an interleaved pipeline: of each chunk) the first so many layers are
  /// recomputed; 0: all.
  std::int64_t recompute_layers = 0;
  /// Of each stage (of an interleaved pipeline: of each chunk) the first so many layers have their
  /// activations in the memory of the host between the passes.
  std::int64_t offload_activation_layers = 0;
  OptimizerOffload offload_optimizer = OptimizerOffload::kNone;
  bool offload_parameters = false;  ///< Shards of parameters (ZeRO 3) are in the host's memory.
  DType precision = DType::kBf16;   ///< Of parameters, activations and matrix products.
  /// By which a transformer's linear layers compute in fewer bits than that.
  Quantization quantization = Quantization::kNone;
  UnquantizedLayers unquantized_layers{};
  /// Weights that products read quantized are held so alone, and gathered so.
  bool quantized_parameters = false;
  /// A weight in fp8 with one scale is held once for all its products (`reads_fp8_either_way`). Not
  /// read: whoever knows the devices sets it.
  bool one_copy_in_fp8 = false;
  Optimizer optimizer{};
  std::vector<std::string> rank_order = {"tensor", "data", "pipeline"};  ///< Fastest first.
  yaml::Ref<Framework> framework;

  std::int64_t devices() const { return tensor_parallel * pipeline_parallel * copies(); }
  /// Ranks that hold copies of the parameters of one tensor-parallel rank of a stage.
  std::int64_t copies() const { return context_parallel * data_parallel; }
  std::int64_t shards() const { return copies() / shard_replicas; }  ///< Of ZeRO.
  /// Slots of an expert as a multiple of its even share: as many as the busiest rank's tokens take.
  double expert_slots(const Model& model) const {
    return capacity_factor * mean_load(expert_load, model, expert_parallel);
  }
  std::int64_t stages() const { return pipeline_parallel * virtual_stages; }
  bool offloads() const {
    return offload_activation_layers > 0 || offload_optimizer != OptimizerOffload::kNone ||
           offload_parameters;
  }
  bool captures(Capture one) const { return is_captured(one, cuda_graphs); }
  /// What the host of a DGX H100 does for each kernel that it launches, besides launching it.
  Seconds host_time() const { return captures(Capture::kStep) ? Seconds{} : framework->host_time; }
  Recomputation recomputation() const { return {recompute, recompute_parts}; }
  /// \pre below pipeline_parallel, unless no stage has one.
  std::int64_t granularity_of(std::size_t stage) const {
    return granularity.empty() ? 1 : granularity[stage];
  }
  /// Of a data-parallel rank in a step; of unequal batch_shares the most.
  std::int64_t micro_batches() const {
    if (!batch_shares.empty()) return *std::ranges::max_element(batch_shares);
    return global_batch / (data_parallel * micro_batch);
  }
  /// \pre there are batch_shares, and as many groups divide the ranks.
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

/// The strategy if every data-parallel rank took so many micro-batches.
Strategy with_equal_shares(Strategy strategy, std::int64_t micro_batches);

/// "tensor 8, pipeline 4, data 2, micro-batch 1, ZeRO 1": in one line, for people.
std::string describe(const Strategy& strategy);

/// "full", "selective (norm, activation)", "full of 21 layers a stage": of its recomputation.
std::string words_of_recomputation(const Strategy& strategy);
/// "8 by all-to-all of 2 and ring". \pre context_parallel > 1.
std::string words_of_context(const Strategy& strategy);

/// ", tokens by deepep, exchanged beside other passes, muon, optimizer on the CPU": what is not as
/// it usually is; empty where all is.
std::string words_of_extras(const Strategy& strategy);

/// Layers that one device may run in a step, all micro-batches counted: with some 70 tasks each,
/// they are what program::kMaxInstancesPerRole allows.
inline constexpr std::int64_t kMaxLayerPasses = std::int64_t{1} << 20;

/// What is wrong with the strategy for this model on that many devices, of which it may leave some
/// idle.
struct StrategyFault {
  std::string key;  ///< The key to look at, for example "tensor_parallel".
  std::string message;
  std::string help;  ///< A remedy with numbers in it.
};
/// All the faults, in the order of the keys; empty if it can be lowered.
std::vector<StrategyFault> faults_in(const Strategy& strategy, const Model& model,
                                     std::int64_t devices);

/// What the strategy cannot ask of a general graph.
/// \param axes  those of the graph beside tensor, data and pipeline.
/// \param units  that the graph is cut into.
/// \param batch  samples of a micro-batch in the graph's shapes, over all data-parallel ranks.
std::vector<StrategyFault> faults_in_graph(const Strategy& strategy, const Graph& graph,
                                           const std::vector<MeshAxis>& axes, std::int64_t units,
                                           std::int64_t batch, std::int64_t devices);

/// As equal as possible, the larger ones first: 10 layers on 4 stages are 3 3 2 2.
std::vector<std::int64_t> even_split(std::int64_t layers, std::int64_t stages);
/// As frameworks cut layers that do not divide into equal stages: one layer less on the first and
/// on the last stage, beside the embedding and the loss, where that makes the others equal; else
/// the even split.
std::vector<std::int64_t> uneven_split(std::int64_t layers, std::int64_t stages);

/// Layers of each piece (of a general graph: units), in the order of the model. Which stage holds a
/// piece: schedule::piece_of.
/// \pre faults_in is empty.
std::vector<std::int64_t> layers_of_stages(const Strategy& strategy, std::int64_t layers);
}  // namespace foreshard
