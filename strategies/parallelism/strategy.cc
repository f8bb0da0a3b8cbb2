#include "strategies/parallelism/strategy.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/text.h"

namespace foreshard {
namespace {

// Larger than any conceivable machine, and small enough for exact products.
constexpr double kMaxWays = 1 << 20;
constexpr double kMaxBatch = 1 << 30;
constexpr double kMaxRanks = 1 << 30;

// Products of ways are looked at as numbers that cannot overflow.
std::string fault_in_ranks(const Strategy& of) {
  double ranks = 1;
  for (const std::int64_t ways :
       {of.tensor_parallel, of.pipeline_parallel, of.context_parallel, of.data_parallel})
    ranks *= static_cast<double>(ways);
  if (ranks <= kMaxRanks) return {};
  return fmt::format("{:.0f} ranks in all are more than {:.0f}", ranks, kMaxRanks);
}

}  // namespace

const std::vector<LayerPart>& usual_recompute_parts() {
  static const std::vector<LayerPart> parts{LayerPart::kCoreAttention};
  return parts;
}

const yaml::Names<Recompute>& yaml_names(const Recompute*) {
  static const yaml::Names<Recompute> names{
      {"none", Recompute::kNone, "Every activation that the backward pass reads is kept."},
      {"selective", Recompute::kSelective,
       "Parts of layers are recomputed (recompute_parts): by default, core attention."},
      {"full", Recompute::kFull, "Whole layers are recomputed from their inputs."},
  };
  return names;
}

const yaml::Names<ContextExchange>& yaml_names(const ContextExchange*) {
  static const yaml::Names<ContextExchange> names{
      {"all-gather", ContextExchange::kAllGather,
       "Keys and values of all tokens are gathered before attention."},
      {"overlapped-all-gather", ContextExchange::kOverlappedAllGather,
       "They are gathered beside attention to the rank's own tokens, then the others are attended "
       "to rank by rank (PyTorch)."},
      {"ring", ContextExchange::kRing,
       "They go round a ring, each step beside the attention of the one before; backward their "
       "gradients travel along (Transformer Engine's and Megatron-LM's p2p)."},
      {"all-to-all", ContextExchange::kAllToAll,
       "Ranks exchange tokens for heads: each attends over whole sequences (DeepSpeed Ulysses)."},
  };
  return names;
}

const yaml::Names<TokenDispatcher>& yaml_names(const TokenDispatcher*) {
  static const yaml::Names<TokenDispatcher> names{
      {"all-to-all", TokenDispatcher::kAllToAll,
       "One copy of a token for each of its experts, in one all-to-all (Megatron-LM: alltoall)."},
      {"deepep", TokenDispatcher::kDeepEp,
       "One copy for each rank that has some of its experts, which crosses to each node once and "
       "is "
       "copied there (Megatron-LM: flex)."},
  };
  return names;
}

const yaml::Names<OptimizerOffload>& yaml_names(const OptimizerOffload*) {
  static const yaml::Names<OptimizerOffload> names{
      {"none", OptimizerOffload::kNone, "The states are on the device, which takes the step."},
      {"cpu", OptimizerOffload::kCpu,
       "The states are in the memory of the host, and the CPU takes the step: gradients go there, "
       "and parameters come back (DeepSpeed ZeRO-Offload, FSDP's CPU offload, Megatron-LM's "
       "--optimizer-cpu-offload)."},
      {"fetch", OptimizerOffload::kFetch,
       "The states are in the memory of the host, and come to the device for its step."},
  };
  return names;
}

const yaml::Names<Mode>& yaml_names(const Mode*) {
  static const yaml::Names<Mode> names{
      {"train", Mode::kTrain, "Forward, backward, and the update of the parameters."},
      {"forward", Mode::kForward, "Forward alone: evaluation, inference over whole sequences."},
  };
  return names;
}

const yaml::Table<Strategy>& yaml_table(const Strategy*) {
  static const auto table =
      yaml::Table<Strategy>("strategy", "How a training step is divided over devices.")
          .folder("strategies")
          .optional("mode", &Strategy::mode, "What a step consists of.")
          .optional("tensor_parallel", &Strategy::tensor_parallel,
                    "Ways that each layer's matrices are split.", yaml::between(1, kMaxWays))
          .optional("pipeline_parallel", &Strategy::pipeline_parallel,
                    "Ways that the layers are split into stages.", yaml::between(1, kMaxWays))
          .optional("data_parallel", &Strategy::data_parallel,
                    "Replicas, each with its part of the batch.", yaml::between(1, kMaxWays))
          .optional("context_parallel", &Strategy::context_parallel,
                    "Ways that every sequence is split, besides sequence_parallel, with attention "
                    "over all parts.",
                    yaml::between(1, kMaxWays))
          .optional("context_exchange", &Strategy::context_exchange,
                    "How queries see the keys and values of other parts of a sequence.")
          .optional("context_heads", &Strategy::context_heads,
                    "Of the context_parallel ranks, groups of so many adjacent ones exchange "
                    "tokens for heads, and context_exchange is between these groups (with ring: "
                    "Transformer Engine's a2a+p2p).",
                    yaml::between(1, kMaxWays))
          .optional("expert_parallel", &Strategy::expert_parallel,
                    "Ways that the routed experts of a layer are divided among the tensor-, "
                    "context- and data-parallel ranks, flattened in this order: neighbours, or "
                    "groups of expert_tensor_parallel neighbours, hold other experts.",
                    yaml::between(1, kMaxWays))
          .optional("expert_tensor_parallel", &Strategy::expert_tensor_parallel,
                    "Ways that each expert's matrices are split among neighbours of the same "
                    "ranks (default, 0: as tensor_parallel).",
                    yaml::between(0, kMaxWays))
          .optional("capacity_factor", &Strategy::capacity_factor,
                    "Slots of each expert, as a multiple of its even share of the tokens: what is "
                    "more is dropped, and what is less is padded.",
                    yaml::between(1, 1024))
          .optional("expert_load", &Strategy::expert_load,
                    "How unevenly tokens choose experts, where none are dropped (default: evenly).")
          .optional("token_dispatcher", &Strategy::token_dispatcher,
                    "How tokens reach the ranks of their experts.")
          .optional("overlap_experts", &Strategy::overlap_experts,
                    "Exchange tokens with experts while another micro-batch computes: forward "
                    "passes run beside the backward passes behind them.")
          .optional("sequence_parallel", &Strategy::sequence_parallel,
                    "Split norms and dropouts along the sequence over the tensor-parallel ranks.")
          .optional("cuda_graphs", &Strategy::cuda_graphs,
                    "What CUDA graphs launch (default: nothing): the host launches one graph "
                    "instead of each of its kernels.")
          .optional("schedule", &Strategy::schedule,
                    "Pipeline schedule: a name that `foreshard catalog schedules` lists.")
          .optional("schedule_actions", &Strategy::schedule_actions,
                    "Of schedule custom: what each pipeline rank runs, in order, such as "
                    "'F0 F1 I0 W0 I1 W1' (forward, input gradients, weight gradients; B is a whole "
                    "backward pass), with the number of the piece first where a rank has several.")
          .optional("schedule_file", &Strategy::schedule_file,
                    "Instead of schedule_actions: path of a CSV with a row for each pipeline rank, "
                    "as torch.distributed.pipelining writes it, relative to this file.")
          .optional("pass_times", &Strategy::pass_times,
                    "By which zb-1p, zb-2p, v-half and v-min place weight gradients: times of a "
                    "forward pass, of input gradients, of weight gradients and, if there is a "
                    "fourth, of a transfer, in any unit (default: 1, 1, 1, 0).")
          .optional("virtual_stages", &Strategy::virtual_stages, "Model chunks per pipeline rank.",
                    yaml::between(1, kMaxWays))
          .optional("layers_per_stage", &Strategy::layers_per_stage,
                    "Layers of each stage, chunk by chunk (default: equal); of a graph: units "
                    "(graph.cuts). Where chunks lie in a V, in the order of the model.")
          .optional("micro_batch", &Strategy::micro_batch, "Sequences per device and micro-batch.",
                    yaml::between(1, kMaxBatch))
          .optional("granularity", &Strategy::granularity,
                    "Of a graph's pipeline: how many micro-batches each stage takes in one pass, "
                    "as suits its kind of device, such as [4, 1] (default: one).")
          .required("global_batch", &Strategy::global_batch, "Sequences per step.",
                    yaml::between(1, kMaxBatch))
          .optional("batch_shares", &Strategy::batch_shares,
                    "How many micro-batches data-parallel ranks take, as suits unequal devices: of "
                    "[3, 1], the first half of the ranks three times as many as the second "
                    "(default: equal).")
          .optional("zero_stage", &Strategy::zero_stage,
                    "ZeRO stage, which data-parallel ranks shard: 0 nothing, 1 optimizer state, 2 "
                    "also gradients, 3 also parameters (FSDP).",
                    yaml::between(0, 3))
          .optional("shard_replicas", &Strategy::shard_replicas,
                    "Sets of ZeRO shards: each is cut over data_parallel / shard_replicas ranks, "
                    "and gradients are reduced within a set, then among the sets (HSDP).",
                    yaml::between(1, kMaxWays))
          .optional("recompute", &Strategy::recompute,
                    "Which activations are recomputed in the backward pass.")
          .optional("recompute_parts", &Strategy::recompute_parts,
                    "The parts of a layer that are recomputed (recompute: selective).")
          .optional("recompute_layers", &Strategy::recompute_layers,
                    "Of each stage, or chunk of an interleaved pipeline, the first so many layers "
                    "are recomputed; 0: all.",
                    yaml::between(0, kMaxWays))
          .optional("offload_activation_layers", &Strategy::offload_activation_layers,
                    "Of each stage, or chunk of an interleaved pipeline, the first so many layers "
                    "keep their activations in the memory of the host between forward and backward "
                    "pass.",
                    yaml::between(0, kMaxWays))
          .optional("offload_optimizer", &Strategy::offload_optimizer,
                    "Where the optimizer's states are, and what takes its step.")
          .optional("offload_parameters", &Strategy::offload_parameters,
                    "Shards of the parameters (zero_stage: 3) are in the memory of the host, from "
                    "where they come before they are gathered.")
          .optional("precision", &Strategy::precision,
                    "Precision of parameters, activations and matrix products.")
          .optional("quantization", &Strategy::quantization,
                    "By which recipe a transformer's linear layers compute in fewer bits than "
                    "`precision`; embedding, attention products, norms and the head never do.")
          .optional("unquantized_layers", &Strategy::unquantized_layers,
                    "Layers that compute in `precision` all the same (default: none).")
          .optional("quantized_parameters", &Strategy::quantized_parameters,
                    "Weights of those layers are held quantized alone, without a copy in "
                    "`precision`, and data-parallel ranks gather them so.")
          .optional("optimizer", &Strategy::optimizer,
                    "What updates the parameters (default: Adam, its states in fp32).")
          .optional("rank_order", &Strategy::rank_order,
                    "Mesh axes tensor, data and pipeline, the one that varies fastest first.")
          .optional("framework", &Strategy::framework,
                    "The training framework, which decides what is overlapped and fused.")
          .check("pass_times",
                 [](const Strategy& of) -> std::string {
                   const auto& times = of.pass_times;
                   const auto is_time = [](double time) { return time > 0 && std::isfinite(time); };
                   const bool sound =
                       times.empty() || ((times.size() == 3 || times.size() == 4) &&
                                         std::all_of(times.begin(), times.begin() + 3, is_time) &&
                                         (times.size() == 3 || times[3] == 0 || is_time(times[3])));
                   return sound
                              ? ""
                              : "must be three times above 0 and, if there is a fourth, that of a "
                                "transfer: [1, 1, 0.5]";
                 })
          .check("data_parallel", fault_in_ranks)
          .check("precision", [](const Strategy& of) { return fault_in_precision(of.precision); })
          .check("quantization",
                 [](const Strategy& of) -> std::string {
                   if (of.quantization == Quantization::kNone || size_of(of.precision) == 2_B)
                     return {};
                   return fmt::format(
                       "'{}' quantizes tensors of 16 bits, not {}; set precision: bf16",
                       yaml::name_of(of.quantization), name_of(of.precision));
                 })
          .check("unquantized_layers",
                 [](const Strategy& of) -> std::string {
                   const bool is_idle =
                       of.unquantized_layers.any() && of.quantization == Quantization::kNone;
                   return is_idle ? "no layer is quantized; set quantization, or leave this out"
                                  : "";
                 })
          .check("quantized_parameters", [](const Strategy& of) -> std::string {
            if (!of.quantized_parameters || of.quantization != Quantization::kNone) return {};
            return "nothing is quantized; set quantization: fp8-current, or leave this out";
          });
  return table;
}

Strategy with_equal_shares(Strategy strategy, std::int64_t micro_batches) {
  strategy.batch_shares.clear();
  strategy.global_batch = strategy.data_parallel * strategy.micro_batch * micro_batches;
  return strategy;
}

std::vector<std::int64_t> even_split(std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> split;
  for (std::int64_t i = 0; i < stages; ++i)
    split.push_back(layers / stages + (i < layers % stages ? 1 : 0));
  return split;
}

std::vector<std::int64_t> uneven_split(std::int64_t layers, std::int64_t stages) {
  if (stages <= 2 || (layers + 2) % stages != 0) return even_split(layers, stages);
  std::vector<std::int64_t> split(static_cast<std::size_t>(stages), (layers + 2) / stages);
  --split.front();
  --split.back();
  return split;
}

std::vector<std::int64_t> layers_of_stages(const Strategy& strategy, std::int64_t layers) {
  if (!strategy.layers_per_stage.empty()) return strategy.layers_per_stage;
  return even_split(layers, strategy.stages());
}

std::string words_of_recomputation(const Strategy& strategy) {
  std::string text(yaml::name_of(strategy.recompute));
  const bool is_usual = strategy.recompute_parts == usual_recompute_parts();
  if (strategy.recompute == Recompute::kSelective && !is_usual) {
    text += " (";
    for (const LayerPart part : strategy.recompute_parts)
      text += fmt::format("{}{}", text.ends_with('(') ? "" : ", ", yaml::name_of(part));
    text += ")";
  }
  if (strategy.recompute_layers > 0)
    text += fmt::format(" of {} {} a stage", strategy.recompute_layers,
                        plural(strategy.recompute_layers, "layer"));
  return text;
}

std::string words_of_context(const Strategy& strategy) {
  return fmt::format("{} by {}{}", strategy.context_parallel,
                     strategy.context_heads > 1
                         ? fmt::format("all-to-all of {} and ", strategy.context_heads)
                         : "",
                     yaml::name_of(strategy.context_exchange));
}

std::string words_of_extras(const Strategy& strategy) {
  std::string text;
  const auto add = [&](std::string_view words) { text += fmt::format(", {}", words); };
  if (strategy.token_dispatcher != TokenDispatcher::kAllToAll)
    add(fmt::format("tokens by {}", yaml::name_of(strategy.token_dispatcher)));
  if (strategy.overlap_experts) add("exchanged beside other passes");
  if (!strategy.cuda_graphs.empty()) {
    std::vector<std::string_view> names;
    for (const Capture one : strategy.cuda_graphs) names.push_back(yaml::name_of(one));
    add(fmt::format("CUDA graphs of {}", fmt::join(names, ", ")));
  }
  if (strategy.optimizer != Optimizer{}) add(words_of(strategy.optimizer));
  if (!strategy.granularity.empty())
    add(fmt::format("{} micro-batches a pass", fmt::join(strategy.granularity, ":")));
  if (!strategy.batch_shares.empty())
    add(fmt::format("{} micro-batches by data-parallel rank",
                    fmt::join(strategy.batch_shares, ":")));
  if (strategy.offload_activation_layers > 0)
    add(fmt::format("activations of {} layers offloaded", strategy.offload_activation_layers));
  if (strategy.offload_optimizer == OptimizerOffload::kCpu) add("optimizer on the CPU");
  if (strategy.offload_optimizer == OptimizerOffload::kFetch) add("optimizer states offloaded");
  if (strategy.offload_parameters) add("parameters offloaded");
  return text;
}

std::string describe(const Strategy& strategy) {
  std::string text =
      fmt::format("tensor {}{}, pipeline {}", strategy.tensor_parallel,
                  strategy.sequence_parallel ? " with sequence" : "", strategy.pipeline_parallel);
  if (strategy.virtual_stages > 1) text += fmt::format(" x {} chunks", strategy.virtual_stages);
  text += fmt::format(", data {}, micro-batch {}", strategy.data_parallel, strategy.micro_batch);
  if (strategy.context_parallel > 1) text += ", context " + words_of_context(strategy);
  if (strategy.recompute != Recompute::kNone)
    text += fmt::format(", {} recomputation", words_of_recomputation(strategy));
  if (strategy.zero_stage > 0) text += fmt::format(", ZeRO {}", strategy.zero_stage);
  if (strategy.shard_replicas > 1) text += fmt::format(" over {}", strategy.shards());
  if (strategy.expert_parallel > 1)
    text += fmt::format(", experts {}{}", strategy.expert_parallel, words_of_experts(strategy));
  if (strategy.quantization != Quantization::kNone)
    text += fmt::format(", {}", yaml::name_of(strategy.quantization));
  if (strategy.unquantized_layers.any())
    text += fmt::format(" but for {} first and {} last layers", strategy.unquantized_layers.first,
                        strategy.unquantized_layers.last);
  return text + words_of_extras(strategy);
}

std::int64_t expert_tensor_ways(const Strategy& strategy) {
  return strategy.expert_tensor_parallel == 0 ? strategy.tensor_parallel
                                              : strategy.expert_tensor_parallel;
}

std::int64_t expert_ranks(const Strategy& strategy) {
  return strategy.expert_parallel * expert_tensor_ways(strategy);
}

std::int64_t expert_data_ranks(const Strategy& strategy) {
  return std::max<std::int64_t>(
      1, expert_ranks(strategy) / (strategy.tensor_parallel * strategy.context_parallel));
}

std::string words_of_experts(const Strategy& strategy) {
  const std::int64_t ways = expert_tensor_ways(strategy);
  if (ways == strategy.tensor_parallel) return {};
  return ways == 1 ? " (each whole)" : fmt::format(" (each split {} ways)", ways);
}

Bytes reserve_of(const Strategy& strategy) {
  const Framework& framework = *strategy.framework;
  Bytes reserve = framework.context;
  for (const std::int64_t ranks :
       {strategy.tensor_parallel, strategy.context_heads,
        strategy.context_parallel / strategy.context_heads, strategy.shards(),
        strategy.shard_replicas, strategy.pipeline_parallel})
    if (ranks > 1) reserve += framework.communicator;
  return reserve;
}

}  // namespace foreshard
