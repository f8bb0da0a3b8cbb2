#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/grouped.h"
#include "base/text.h"

#include "strategies/parallelism/internal/faults.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard {

// Width of the feed-forward layer that tensor-parallel ranks share; 0: the model has none.
static std::int64_t dense_width(const Model& model) {
  return model.has_dense_layers() ? model.ffn_width() : 0;
}

// Groups of heads of Mamba layers, which tensor-parallel ranks share; 0: the model has none.
static std::int64_t mamba_groups(const Model& model) {
  return model.mamba ? model.mamba->groups : 0;
}

std::string tensor_sizes(const Strategy& strategy, const Model& model) {
  std::vector<std::int64_t> sizes;
  const std::int64_t most = model.heads > 0 ? model.heads : mamba_groups(model);
  for (std::int64_t size = 1; size <= std::min<std::int64_t>(most, 64); ++size) {
    const bool sequence = !strategy.sequence_parallel || model.sequence % size == 0;
    if (model.heads % size == 0 && model.kv() % size == 0 && dense_width(model) % size == 0 &&
        model.shared_ffn % size == 0 && mamba_groups(model) % size == 0 && sequence)
      sizes.push_back(size);
  }
  return fmt::format("use {}{}", sizes.size() > 1 ? "one of " : "", fmt::join(sizes, ", "));
}

namespace {

constexpr std::int64_t kMostDivisor = 4096;  // the largest divisor that a remedy tries

// The largest number of replicas that the devices allow and among which the batch divides; 0: none.
std::int64_t most_replicas(const Strategy& strategy, std::int64_t devices) {
  std::int64_t data = devices / (strategy.devices() / strategy.data_parallel);
  while (data > 0 && strategy.global_batch % (data * strategy.micro_batch) != 0) --data;
  return data;
}

// A strategy with fewer tensor or pipeline ranks that fits the devices and has no other fault.
std::optional<Strategy> smaller(const Strategy& strategy, const Model& model,
                                std::int64_t devices) {
  const auto divisors = [](std::int64_t n) {
    std::vector<std::int64_t> found;
    for (std::int64_t d = std::min(n, kMostDivisor); d > 0; --d)
      if (n % d == 0) found.push_back(d);
    return found;
  };
  std::optional<Strategy> best;
  for (const std::int64_t tensor : divisors(strategy.tensor_parallel)) {
    for (const std::int64_t pipeline : divisors(strategy.pipeline_parallel)) {
      Strategy one = strategy;
      one.tensor_parallel = tensor;
      one.pipeline_parallel = pipeline;
      one.data_parallel = most_replicas(one, devices);
      if (one.data_parallel == 0 || (best && one.devices() <= best->devices())) continue;
      if (faults_in(one, model, devices).empty()) best = std::move(one);
    }
  }
  return best;
}

// "use 15 or 20": the batches nearest to the strategy's that `data` replicas share evenly.
std::string multiples(const Strategy& strategy, std::int64_t data) {
  const std::int64_t unit = data * strategy.micro_batch;
  const std::int64_t down = strategy.global_batch / unit * unit;
  return fmt::format("use strategy.global_batch={}{}", down > 0 ? fmt::format("{} or ", down) : "",
                     down + unit);
}

// A remedy for a batch that does not divide: a number of replicas, or batches for as many as fit
// the devices.
std::string batch_help(const Strategy& strategy, std::int64_t devices) {
  if (const std::int64_t data = most_replicas(strategy, devices); data > 0)
    return fmt::format("data_parallel: {} shares them evenly", data);
  const std::int64_t most = devices / (strategy.devices() / strategy.data_parallel);
  return multiples(strategy, std::max<std::int64_t>(most, 1));
}

// A remedy for a strategy with more ranks than devices.
std::string room_help(const Strategy& strategy, const Model& model, std::int64_t devices) {
  if (devices == 0) return "no device works: take some out of the cluster's down";
  const auto uses = [&](std::int64_t ranks) {
    return ranks == devices ? std::string("them all") : grouped(ranks) + " of them";
  };
  const std::int64_t replica = strategy.devices() / strategy.data_parallel;
  if (const std::int64_t data = most_replicas(strategy, devices); data > 0)
    return fmt::format("data_parallel: {} would use {}", data, uses(data * replica));
  if (const std::int64_t most = devices / replica; most > 0) {
    const std::int64_t unit = most * strategy.micro_batch;
    const std::int64_t batch = std::max<std::int64_t>(strategy.global_batch / unit, 1) * unit;
    return fmt::format("data_parallel: {} with global_batch: {} would use {}", most, batch,
                       uses(most * replica));
  }
  const std::string too_much =
      fmt::format("tensor_parallel x pipeline_parallel{} = {} is too much already",
                  strategy.context_parallel > 1 ? " x context_parallel" : "", grouped(replica));
  const auto fewer = smaller(strategy, model, devices);
  if (!fewer) return too_much;
  return fmt::format(
      "{}; tensor_parallel: {}, pipeline_parallel: {}, data_parallel: {} would use {}", too_much,
      fewer->tensor_parallel, fewer->pipeline_parallel, fewer->data_parallel,
      uses(fewer->devices()));
}

void forward_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  if (strategy.zero_stage == 1 || strategy.zero_stage == 2) {
    faults.push_back(
        {"zero_stage",
         fmt::format("ZeRO {} shares optimizer state{}, and mode: forward has none",
                     strategy.zero_stage, strategy.zero_stage == 2 ? " and gradients" : ""),
         "set zero_stage: 0, or 3 to share the parameters"});
  }
  if (strategy.recompute != Recompute::kNone) {
    faults.push_back(
        {"recompute",
         fmt::format("recompute: {} is for a backward pass, and mode: forward has none",
                     yaml::name_of(strategy.recompute)),
         "set recompute: none"});
  }
}

// Why there are fewer devices than ranks; empty if there are enough. `axes`: a graph's own.
std::string rank_fault(const Strategy& strategy, const std::vector<MeshAxis>& axes,
                       std::int64_t devices) {
  std::int64_t ranks = strategy.devices();
  std::string factors = fmt::format("tensor_parallel {} x pipeline_parallel {}",
                                    strategy.tensor_parallel, strategy.pipeline_parallel);
  if (strategy.context_parallel > 1)
    factors += fmt::format(" x context_parallel {}", strategy.context_parallel);
  factors += fmt::format(" x data_parallel {}", strategy.data_parallel);
  for (const MeshAxis& axis : axes) {
    ranks *= axis.size;
    factors += fmt::format(" x {} {}", axis.name, axis.size);
  }
  if (ranks <= devices) return {};
  return fmt::format("{} = {} ranks, but there {} {} {} for them", factors, grouped(ranks),
                     devices == 1 ? "is" : "are", grouped(devices), plural(devices, "device"));
}

// \param samples  "sequences", "samples".
// \param devices  how many there are for a remedy with other replicas; 0: it keeps their number.
void batch_faults(const Strategy& strategy, std::string_view samples, std::int64_t devices,
                  std::vector<StrategyFault>& faults) {
  const std::int64_t unit = strategy.data_parallel * strategy.micro_batch;
  if (strategy.global_batch % unit == 0) return;
  faults.push_back(
      {"global_batch",
       fmt::format("{} {} do not divide into data_parallel {} x micro_batch {} = {}",
                   grouped(strategy.global_batch), samples, strategy.data_parallel,
                   strategy.micro_batch, grouped(unit)),
       devices > 0 ? batch_help(strategy, devices) : multiples(strategy, strategy.data_parallel)});
}

void order_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  auto order = strategy.rank_order;
  std::ranges::sort(order);
  if (order == std::vector<std::string>{"data", "pipeline", "tensor"}) return;
  faults.push_back({"rank_order", "names each of tensor, data and pipeline once",
                    "rank_order: [tensor, data, pipeline]"});
}

// Faults of the schedule for its pipeline, and of keys that the schedule does not read.
void schedule_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  const auto fault = [&](std::string key, std::string message, std::string help) {
    faults.push_back({std::move(key), std::move(message), std::move(help)});
  };
  const schedule::Schedule* known = schedule::find_schedule(strategy.schedule);
  if (known == nullptr) return;  // the study says so
  const bool is_custom = known->name == schedule::kCustom;
  if (strategy.virtual_stages > known->most_chunks)
    return fault("virtual_stages",
                 fmt::format("schedule '{}' has {} per rank, not {}", known->name,
                             known->most_chunks == 1 ? "one stage"
                                                     : fmt::format("{} chunks", known->most_chunks),
                             strategy.virtual_stages),
                 "set schedule: interleaved");
  if (is_custom == strategy.schedule_actions.empty()) {
    const bool has_file = !strategy.schedule_file.empty();
    return is_custom ? fault("schedule_actions", "schedule 'custom' has no actions",
                             "list those of each pipeline rank, or name a schedule_file")
                     : fault(has_file ? "schedule_file" : "schedule_actions",
                             fmt::format("schedule '{}' has an order of its own", known->name),
                             "set schedule: custom, or leave this out");
  }
  if (!strategy.pass_times.empty() && !known->goes_by_times)
    fault("pass_times", fmt::format("schedule '{}' does not go by times", known->name),
          "leave them out, or set schedule: zb-1p");
  // A batch that does not divide is a separate fault. For schedules that may block (the oldest
  // three) no table is built, which keeps searches over them cheap.
  if (known->may_block || strategy.micro_batches() < 1 ||
      strategy.micro_batches() > kMaxLayerPasses)
    return;
  const auto table = table_of(strategy);
  if (table) return;
  const std::string& why = table.error().message;
  const std::size_t help = std::min(why.rfind("; "), why.size());
  const std::string own = strategy.schedule_file.empty() ? "schedule_actions" : "schedule_file";
  fault(is_custom ? own : "schedule", why.substr(0, help),
        help < why.size() ? why.substr(help + 2) : "");
}

// Faults in the division of a model's layers, or a graph's units, into pipeline stages.
void pipeline_faults(const Strategy& strategy, std::int64_t layers, std::string_view what,
                     std::string_view of, std::vector<StrategyFault>& faults) {
  const auto fault = [&](std::string key, std::string message, std::string help) {
    faults.push_back({std::move(key), std::move(message), std::move(help)});
  };
  schedule_faults(strategy, faults);
  if (strategy.virtual_stages > 1 && strategy.pipeline_parallel == 1) {
    fault("virtual_stages", "a pipeline of one rank cannot be interleaved",
          "set virtual_stages: 1 or pipeline_parallel > 1");
  }
  // The ranks of an interleaved pipeline wait for each other's transfers in a ring, so transfers
  // must be posted while kernels run.
  const Framework& framework = strategy.framework.value;
  if (strategy.virtual_stages > 1 && framework.blocking_launches && transfers_block(strategy)) {
    fault("virtual_stages",
          fmt::format("an interleaved pipeline whose host waits for each kernel and each transfer "
                      "is not modelled (framework '{}': blocking_launches)",
                      framework.name),
          "set virtual_stages: 1 and schedule: 1f1b");
  }
  if (strategy.virtual_stages > 1 && strategy.zero_stage == 3 && strategy.data_parallel > 1 &&
      framework.shards.gather_each) {
    fault("virtual_stages",
          fmt::format("an interleaved pipeline whose host waits for each gathered parameter is not "
                      "modelled (framework '{}': gather_each)",
                      framework.name),
          "set virtual_stages: 1 and schedule: 1f1b, or zero_stage: 1");
  }
  const std::int64_t stages = strategy.stages();
  if (strategy.layers_per_stage.empty()) {
    if (layers % stages != 0) {
      fault("pipeline_parallel",
            fmt::format("{} {} do not divide into {} equal stages", layers, what, stages),
            fmt::format("give them: layers_per_stage: [{}]",
                        fmt::join(even_split(layers, stages), ", ")));
    }
  } else {
    const auto& split = strategy.layers_per_stage;
    const std::int64_t sum = std::accumulate(split.begin(), split.end(), std::int64_t{0});
    if (static_cast<std::int64_t>(split.size()) != stages) {
      fault("layers_per_stage",
            fmt::format("{} entries for {} stages (pipeline_parallel x virtual_stages)",
                        split.size(), stages),
            fmt::format("layers_per_stage: [{}]", fmt::join(even_split(layers, stages), ", ")));
    } else if (std::ranges::any_of(split, [](std::int64_t n) { return n < 0; })) {
      fault("layers_per_stage", fmt::format("a stage cannot have a negative number of {}", what),
            "");
    } else if (sum != layers) {
      fault("layers_per_stage",
            fmt::format("the stages have {} {} together, the {} has {}", sum, what, of, layers),
            fmt::format("layers_per_stage: [{}]", fmt::join(even_split(layers, stages), ", ")));
    }
  }
}

// Number of runs of a graph and of its bodies (loops).
double passes_through(const Graph& graph) {
  double passes = 1;
  for (const Operator& op : graph.operators) {
    const double times =
        op.type == "loop" ? static_cast<double>(op.settings.integer("count")) : 1.0;
    for (const std::int32_t body : op.bodies)
      passes += times * passes_through(graph.bodies[static_cast<std::size_t>(body)]);
  }
  return passes;
}

void count_parameters(const Graph& graph, std::map<DType, double>& counts) {
  for (const Tensor& tensor : graph.tensors) {
    if (is_trained(tensor)) counts[tensor.dtype] += static_cast<double>(elements(tensor));
  }
  for (const Graph& body : graph.bodies) count_parameters(body, counts);
}

// The type of most of the parameters that could be trained; empty if there are none.
std::optional<DType> parameter_dtype(const Graph& graph) {
  std::map<DType, double> counts;
  count_parameters(graph, counts);
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return most == counts.end() ? std::nullopt : std::optional(most->first);
}

}  // namespace

// Checks that each set of shards spans more than one rank.
static void shard_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  const std::int64_t sets = strategy.shard_replicas;
  const std::int64_t ranks = strategy.data_parallel;
  if (sets == 1) return;
  if (strategy.zero_stage == 0)
    faults.push_back({"shard_replicas", "without ZeRO nothing is sharded",
                      "set zero_stage: 3 (FSDP), or leave shard_replicas out"});
  else if (ranks % sets != 0)
    faults.push_back({"shard_replicas",
                      fmt::format("data_parallel {} does not divide into {} sets", ranks, sets),
                      "use a divisor of data_parallel"});
  else if (strategy.shards() == 1)
    faults.push_back({"shard_replicas",
                      fmt::format("each of {} sets would lie on one rank, whole", sets),
                      "set zero_stage: 0 and leave shard_replicas out, or use fewer sets"});
}

std::vector<StrategyFault> faults_in(const Strategy& strategy, const Model& model,
                                     std::int64_t devices) {
  std::vector<StrategyFault> faults;
  const auto fault = [&](std::string key, std::string message, std::string help) {
    faults.push_back({std::move(key), std::move(message), std::move(help)});
  };
  const std::int64_t tp = strategy.tensor_parallel;
  const std::int64_t pp = strategy.pipeline_parallel;

  const std::string too_many = rank_fault(strategy, {}, devices);
  if (!too_many.empty()) fault("data_parallel", too_many, room_help(strategy, model, devices));
  if (strategy.mode == Mode::kForward) forward_faults(strategy, faults);
  if (model.heads % tp != 0) {
    fault("tensor_parallel",
          fmt::format("{} attention heads cannot be split {} ways", model.heads, tp),
          tensor_sizes(strategy, model));
  } else if (model.kv() % tp != 0) {
    fault("tensor_parallel",
          fmt::format("{} key/value heads cannot be split {} ways", model.kv(), tp),
          tensor_sizes(strategy, model));
  }
  if (mamba_groups(model) % tp != 0) {
    fault("tensor_parallel",
          fmt::format("{} groups of heads of the Mamba layers (mamba.groups) cannot be split {} "
                      "ways",
                      mamba_groups(model), tp),
          tensor_sizes(strategy, model));
  }
  if (model.qk_norm == QkNorm::kAllHeads && tp > 1) {
    fault("tensor_parallel",
          "queries and keys are normalised over all heads of a token together (qk_norm: "
          "all-heads), and sums over heads that ranks share are not modelled",
          "set tensor_parallel: 1");
  }
  if (dense_width(model) % tp != 0) {
    fault("tensor_parallel",
          fmt::format("the feed-forward width {} cannot be split {} ways",
                      grouped(dense_width(model)), tp),
          tensor_sizes(strategy, model));
  }
  if (strategy.sequence_parallel && model.sequence % tp != 0) {
    fault(
        "sequence_parallel",
        fmt::format("a sequence of {} tokens cannot be split {} ways", grouped(model.sequence), tp),
        "set sequence_parallel: false or another tensor_parallel");
  }
  if (strategy.quantization == Quantization::kFp8Rowwise && strategy.context_parallel > 1)
    fault("quantization", "the maxima of columns over the parts of a sequence are not modelled",
          "set context_parallel: 1 or quantization: fp8-current");
  if (const auto [first, last] = strategy.unquantized_layers; first + last >= model.layers)
    fault("unquantized_layers",
          fmt::format("{} first and {} last layers leave none of {} to be quantized", first, last,
                      model.layers),
          "set quantization: none, or lower one of the two");
  pipeline_faults(strategy, model.layers, "layers", "model", faults);
  if (model.tables_behind() > 0 && strategy.zero_stage >= 2 && pp > 1 && last_stage(strategy) == 0)
    fault("zero_stage",
          fmt::format("schedule '{}' has both ends of the model on one stage; that their common "
                      "table is cut by micro-batches (ZeRO {}) is not modelled",
                      strategy.schedule, strategy.zero_stage),
          "set zero_stage: 1");
  if (!strategy.batch_shares.empty())
    batch_share_faults(strategy, faults);
  else
    batch_faults(strategy, "sequences", too_many.empty() ? 0 : devices, faults);
  const std::int64_t passes =
      strategy.micro_batches() * ((model.layers + pp - 1) / std::max<std::int64_t>(pp, 1));
  if (passes > kMaxLayerPasses) {
    fault("global_batch",
          fmt::format("{} micro-batches through the layers of a stage are {} layer passes on each "
                      "device, more than the {} that a simulated step may have",
                      grouped(strategy.micro_batches()), grouped(passes), grouped(kMaxLayerPasses)),
          "use a larger micro_batch, more data_parallel or a smaller global_batch");
  }
  if (model.multi_token_prediction > 0 && strategy.mode == Mode::kForward)
    fault("mode",
          "modules that predict further tokens are for training; a forward pass alone leaves them "
          "out",
          "set the model's multi_token_prediction: 0, or mode: train");
  if (!strategy.granularity.empty())
    fault("granularity", "is for stages of a graph; those of a model take single micro-batches",
          "leave it out, and give another micro_batch");
  recompute_faults(strategy, model, faults);
  capture_faults(strategy, model, faults);
  offload_faults(strategy, model.layers, faults);
  adapter_faults(strategy, model, faults);
  optimizer_faults(strategy, faults);
  context_faults(strategy, model, faults);
  attention_faults(strategy, model, faults);
  encoder_faults(strategy, model, faults);
  shard_faults(strategy, faults);
  if (strategy.data_parallel % strategy.shard_replicas == 0) expert_faults(strategy, model, faults);
  order_faults(strategy, faults);
  return faults;
}

std::vector<StrategyFault> faults_in_graph(const Strategy& strategy, const Graph& graph,
                                           const std::vector<MeshAxis>& axes, std::int64_t units,
                                           std::int64_t batch, std::int64_t devices) {
  std::vector<StrategyFault> faults;
  if (std::string why = rank_fault(strategy, axes, devices); !why.empty())
    faults.push_back({"data_parallel", std::move(why), ""});
  if (strategy.sequence_parallel)
    faults.push_back({"sequence_parallel",
                      "a general graph does not state which dimension is the sequence",
                      "annotate the tensors between the matrices instead (graph.annotations)"});
  for (const auto& [key, is_set] :
       {std::pair("expert_parallel", strategy.expert_parallel > 1),
        std::pair("context_parallel", strategy.context_parallel > 1),
        std::pair("context_exchange", strategy.context_exchange != ContextExchange::kAllGather),
        std::pair("context_heads", strategy.context_heads > 1),
        std::pair("expert_tensor_parallel", strategy.expert_tensor_parallel > 0),
        std::pair("capacity_factor", strategy.capacity_factor > 1),
        std::pair("expert_load", !strategy.expert_load.is_balanced()),
        std::pair("token_dispatcher", strategy.token_dispatcher != TokenDispatcher::kAllToAll),
        std::pair("overlap_experts", strategy.overlap_experts),
        std::pair("batch_shares", !strategy.batch_shares.empty()),
        std::pair("shard_replicas", strategy.shard_replicas > 1),
        std::pair("recompute_layers", strategy.recompute_layers > 0),
        std::pair("offload_activation_layers", strategy.offload_activation_layers > 0),
        std::pair("offload_optimizer", strategy.offload_optimizer != OptimizerOffload::kNone),
        std::pair("offload_parameters", strategy.offload_parameters),
        std::pair("recompute_parts", strategy.recompute_parts != usual_recompute_parts())})
    if (is_set)
      faults.push_back(
          {key, "is for the transformer given as `model`",
           std::string_view(key).starts_with("offload") || std::string_view(key) == "batch_shares"
               ? "leave it out"
               : "leave it out, and give the graph an axis of its own (graph.axes)"});
  if (!strategy.cuda_graphs.empty() && strategy.cuda_graphs != std::vector{Capture::kStep})
    faults.push_back({"cuda_graphs", "of a general graph, the whole step is captured or nothing",
                      "set cuda_graphs: [step], or leave it out"});
  if (strategy.layers_per_stage.empty() && strategy.stages() > units)
    faults.push_back(
        {"pipeline_parallel",
         fmt::format("the graph has {} for {} stages",
                     units == 1 ? "one unit" : fmt::format("{} units", units), strategy.stages()),
         fmt::format("name {} operators at which it can be cut (graph.cuts)",
                     strategy.stages() - 1)});
  else
    pipeline_faults(strategy, units, "units", "graph", faults);
  if (strategy.global_batch % (strategy.data_parallel * strategy.micro_batch) == 0)
    granularity_faults(strategy, faults);
  optimizer_faults(strategy, faults);
  if (rule_of(strategy.optimizer).whole_tensors)
    faults.push_back({"optimizer",
                      fmt::format("'{}' takes tensors whole, which is modelled for the transformer "
                                  "given as `model`",
                                  strategy.optimizer.rule),
                      "leave optimizer.rule out"});
  if (strategy.recompute == Recompute::kSelective)
    faults.push_back({"recompute", "a general graph does not state what core attention is",
                      "set recompute: full, which computes each unit again (graph.cuts), or none"});
  if (strategy.mode == Mode::kForward) forward_faults(strategy, faults);
  if (batch != strategy.micro_batch * strategy.data_parallel)
    faults.push_back(
        {"micro_batch",
         fmt::format(
             "the graph's inputs hold {} samples, but micro_batch {} x data_parallel {} = {}",
             batch, strategy.micro_batch, strategy.data_parallel,
             strategy.micro_batch * strategy.data_parallel),
         batch % strategy.data_parallel == 0
             ? fmt::format("set micro_batch: {}", batch / strategy.data_parallel)
             : fmt::format("{} samples do not divide over {} replicas", batch,
                           strategy.data_parallel)});
  batch_faults(strategy, "samples", 0, faults);
  const double passes = static_cast<double>(strategy.micro_batches()) *
                        (passes_through(graph) + static_cast<double>(units - 1));
  if (passes > static_cast<double>(kMaxLayerPasses))
    faults.push_back(
        {"global_batch",
         fmt::format(
             "{} micro-batches, with the iterations of loops, are {:.0f} passes through the "
             "graph and its bodies, more than the {} that a simulated step may have",
             strategy.micro_batches(), passes, kMaxLayerPasses),
         "use a larger micro_batch, a smaller global_batch or loops of fewer iterations"});
  if (strategy.quantization != Quantization::kNone)
    faults.push_back({"quantization", "general graphs say for themselves what is quantized",
                      "leave it out, and give products an operator quantize and settings `to` and "
                      "`recipe`"});
  if (const auto dtype = parameter_dtype(graph); dtype && *dtype != strategy.precision)
    faults.push_back({"precision",
                      fmt::format("most of the graph's parameters are {}, not {}", name_of(*dtype),
                                  name_of(strategy.precision)),
                      fmt::format("set precision: {}", name_of(*dtype))});
  order_faults(strategy, faults);
  return faults;
}

}  // namespace foreshard
