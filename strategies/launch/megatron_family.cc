// What the options of Megatron-LM, NeMo and Megatron-Bridge mean together (formats.h,
// finish_megatron and spread_megatron): parallel sizes, stages, sharding, precision, optimizer. The
// three formats call it; the model itself is in megatron_model.cc. Sizes below 1 are refused.
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <numeric>
#include <set>

#include "strategies/graph/part.h"
#include "strategies/launch/internal/formats.h"
#include "strategies/launch/internal/megatron.h"

namespace foreshard::launch::internal {
namespace {

// Source for all of this file: NVIDIA/Megatron-LM 000c4ac24, megatron/training/arguments.py
// (validate_args, core_transformer_config_from_args).

constexpr const char* kTwoLevels = "all-to-all+ring";  // how the rows read "a2a+p2p"

// Layers of each stage from the layout; the number of chunks of a rank follows from them.
Status layout(Draft& draft) {
  const std::string key = "note.layout";
  const auto refuse = [&](std::string_view why) {
    return fault(draft.place(key), draft.from(key), why,
                 "give the layers of each stage: --set strategy.layers_per_stage=[...]");
  };
  const auto read = read_layout(draft.word(key));
  if (!read) return refuse(read.error().message);
  const std::int64_t pipeline = draft.count("strategy.pipeline_parallel");
  const std::int64_t stages = std::ssize(read->layers);
  if (stages % pipeline != 0)
    return refuse(fmt::format("{} stages do not divide over {} pipeline ranks", stages, pipeline));
  const std::int64_t layers = draft.count("model.layers", 0);
  const std::int64_t sum =
      std::accumulate(read->layers.begin(), read->layers.end(), std::int64_t{0});
  if (layers > 0 && sum != layers)
    return refuse(fmt::format("it has {} layers, the model {}", sum, layers));
  if (read->predictions_apart)
    return refuse("predictions on another stage than the last are not modelled");
  if (stages > pipeline) {
    draft.set("strategy.virtual_stages", stages / pipeline, draft.from(key));
    draft.set("strategy.schedule", "interleaved", draft.from(key));
  }
  if (stages > 1) draft.set_list("strategy.layers_per_stage", read->layers, draft.from(key));
  return {};
}

// Layers of each stage, chunk by chunk, where the first and the last stage have numbers of their
// own or count the embedding and the loss as layers. Empty: equal stages.
Status stages(Draft& draft) {
  if (draft.has("note.layout")) return layout(draft);
  const std::int64_t layers = draft.count("model.layers", 0);
  const std::int64_t pipeline = draft.count("strategy.pipeline_parallel");
  const std::int64_t stages = product({pipeline, draft.count("strategy.virtual_stages")});
  const bool embedding = draft.is("note.embedding_is_layer");
  const bool loss = draft.is("note.loss_is_layer");
  const std::int64_t first = draft.count("note.first_layers", 0);
  const std::int64_t last = draft.count("note.last_layers", 0);
  if (stages < 2 || stages > 4096 || (!embedding && !loss && first == 0 && last == 0)) return {};
  const std::string key = first > 0   ? "note.first_layers"
                          : last > 0  ? "note.last_layers"
                          : embedding ? "note.embedding_is_layer"
                                      : "note.loss_is_layer";
  const auto refuse = [&](std::string_view why) {
    return fault(draft.place(key), draft.from(key), why,
                 "give the layers of each stage: --set strategy.layers_per_stage=[...]");
  };
  if (layers < 1) return refuse("the number of layers is not in the file");
  const std::int64_t alone = (first > 0 ? 1 : 0) + (last > 0 ? 1 : 0);
  const std::int64_t rest = layers + (embedding ? 1 : 0) + (loss ? 1 : 0) - first - last;
  if (stages == alone ? rest != 0 : rest < 0 || rest % (stages - alone) != 0)
    return refuse(
        fmt::format("the other {} layers do not divide over {} stages", rest, stages - alone));
  std::vector<std::int64_t> split(static_cast<std::size_t>(stages),
                                  stages == alone ? 0 : rest / (stages - alone));
  if (first > 0) split.front() = first;
  if (last > 0) split.back() = last;
  if (embedding) --split.front();
  if (loss) --split.back();
  draft.set_list("strategy.layers_per_stage", split, draft.from(key));
  return {};
}

Status chunks(Draft& draft) {
  std::int64_t chunks = draft.count("note.virtual_stages");
  std::string from = draft.from("note.virtual_stages");
  if (draft.has("note.layers_per_chunk")) {
    from = draft.from("note.layers_per_chunk");
    const std::int64_t of_stage =
        draft.count("model.layers", 0) /
        std::max<std::int64_t>(1, draft.count("strategy.pipeline_parallel"));
    const std::int64_t each = draft.count("note.layers_per_chunk");
    if (each < 1 || of_stage < 1 || of_stage % each != 0)
      return fault(
          draft.place("note.layers_per_chunk"), from,
          fmt::format("the {} layers of a stage do not divide into chunks of {}", of_stage, each),
          "give --num-layers too, or --num-virtual-stages-per-pipeline-rank");
    chunks = of_stage / each;
  }
  if (chunks > 1) {
    draft.set("strategy.virtual_stages", chunks, from);
    draft.set("strategy.schedule", "interleaved", from);
  }
  return {};
}

Status sharding(Draft& draft) {
  constexpr std::string_view kKey = "strategy.zero_stage";
  if (draft.is("note.fsdp2")) {
    draft.set(kKey, draft.is("note.fsdp2_keeps") ? 2 : 3, draft.from("note.fsdp2"));
  } else if (draft.is("note.megatron_fsdp")) {
    draft.set(kKey, draft.word("note.sharding", "0"), draft.from("note.sharding"));
  } else if (draft.is("note.distributed_optimizer")) {
    draft.set(kKey, 1, draft.from("note.distributed_optimizer"));
  }
  if (draft.count("strategy.shard_replicas") == 1 || draft.count(kKey, 0) == 0)
    draft.drop("strategy.shard_replicas");
  if (draft.is("strategy.framework.overlap_parameter_gather") && draft.count(kKey, 0) == 0)
    return fault(draft.place("strategy.framework.overlap_parameter_gather"),
                 draft.from("strategy.framework.overlap_parameter_gather"),
                 "without a distributed optimizer no parameters are gathered",
                 "add --use-distributed-optimizer");
  return {};
}

// Source for layers in bf16: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py
// (one at each end where the number is not given).
Status precision(Draft& draft) {
  const bool fp16 = draft.is("note.fp16");
  const bool bf16 = draft.is("note.bf16");
  draft.set("strategy.precision",
            bf16   ? "bf16"
            : fp16 ? "fp16"
                   : "fp32",
            bf16   ? draft.from("note.bf16")
            : fp16 ? draft.from("note.fp16")
                   : "neither bf16 nor fp16");
  if (fp16 && !bf16 && !draft.is("note.accumulate_fp32"))
    draft.set("strategy.framework.gradient_dtype", "fp16", "fp16 without accumulation in fp32");
  const bool fp4 = draft.has("note.fp4");
  if (fp4 && draft.has("note.fp8"))
    return fault(draft.place("note.fp4"), draft.from("note.fp4"),
                 "products are in fp4 or in fp8, not in both", "leave out one of the two");
  if (!fp4 && !draft.has("note.fp8")) {
    draft.drop("strategy.quantized_parameters");
    return {};
  }
  const std::string_view recipe = fp4 ? "note.fp4_recipe" : "note.fp8_recipe";
  draft.set("strategy.quantization", draft.word(recipe, fp4 ? "nvfp4" : "fp8-delayed"),
            draft.from(draft.has(recipe) ? recipe
                       : fp4             ? "note.fp4"
                                         : "note.fp8"));
  if (!draft.is("note.ends_in_bf16")) return {};
  for (const auto& [note, ours] :
       {std::pair("note.start_in_bf16", "first"), std::pair("note.end_in_bf16", "last")})
    draft.set(fmt::format("strategy.unquantized_layers.{}", ours), draft.count(note),
              draft.from(draft.has(note) ? note : "note.ends_in_bf16"));
  return {};
}

// A precision-aware optimizer keeps only the bits of fp32 master copies that bf16 parameters lack.
// Source: NVIDIA/Megatron-LM, megatron/core/optimizer/__init__.py (store_param_remainders, from
// Transformer Engine 2.1 on). On the CPU master copies are whole, though the option is needed
// there, too (megatron/training/arguments.py).
void optimizer(Draft& draft) {
  if (draft.word("note.main_gradients") == "bf16")
    draft.set("strategy.framework.gradient_dtype", "bf16", draft.from("note.main_gradients"));
  const bool is_adam = draft.word("strategy.optimizer.rule", "adam") == "adam";
  const bool on_cpu = draft.word("strategy.offload_optimizer") == "cpu";
  if (draft.is("note.precision_aware") && draft.is("note.bf16") && is_adam && !on_cpu &&
      !draft.has("strategy.optimizer.master"))
    draft.set("strategy.optimizer.remainders", "true", draft.from("note.precision_aware"));
}

// PyTorch's operators bring tokens into the order of experts where no option fuses them.
void permutation(Draft& draft) {
  const std::string key = "strategy.framework.pointwise.permutation";
  if (draft.count("model.experts", 0) > 0 && !draft.has(key))
    draft.set(key, "eager", "nothing that fuses permutations");
}

// The words of a scope for whole layers. Not modelled: that it captures dense layers in a model
// with layers of experts.
std::vector<std::string> words_of_layers(const Draft& draft) {
  const std::string pattern = draft.word("model.pattern", "*-");
  const auto has = [&](char layer) { return pattern.find(layer) != std::string::npos; };
  std::vector<std::string> words;
  if (has('*')) words.emplace_back("attn");
  if (has('-') && draft.count("model.experts", 0) == 0) words.emplace_back("mlp");
  if (has('M')) words.emplace_back("mamba");
  return words;
}

// What CUDA graphs launch. moe_preprocess goes with moe_router; "full", or no scope, means whole
// layers.
// Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py (cuda_graph_impl,
// cuda_graph_scope).
void cuda_graphs(Draft& draft, const ReadContext& reading) {
  const std::string impl = draft.word("note.graph_impl", "none");
  if (impl == "none") return;
  const bool has_scope = draft.has("note.graph_scope");
  std::vector<std::string> words =
      has_scope ? draft.at("note.graph_scope").words : std::vector<std::string>{};
  const std::string from = draft.from(has_scope ? "note.graph_scope" : "note.graph_impl");
  if (words.empty() && impl == megatron_scope(Capture::kStep)) words = {impl};
  if (words.empty() || words == std::vector<std::string>{"full"}) words = words_of_layers(draft);
  const bool has_experts = draft.count("model.experts", 0) > 0;
  std::set<Capture> named;
  for (const std::string& word : words) {
    const auto known = find_megatron_scope(word);
    if (known && (*known != Capture::kMlp || !has_experts))
      named.insert(*known);
    else if (word != "moe_preprocess")
      reading.leave_out(from, fmt::format("'{}' is launched by the host", word));
  }
  if (named.contains(Capture::kStep)) named = {Capture::kStep};
  Value graphs{.list = true, .from = from};
  for (const Capture one : named) graphs.words.emplace_back(yaml::name_of(one));
  if (!named.empty()) draft.set("strategy.cuda_graphs", std::move(graphs));
}

// How tokens reach experts: by DeepEP, if Megatron's flexible dispatcher is set.
void dispatcher(Draft& draft, const ReadContext& reading) {
  if (!draft.has("strategy.expert_parallel")) {
    draft.drop("strategy.overlap_experts");
    return;
  }
  const std::string word(draft.word("note.dispatcher"));
  if (word == "flex")
    draft.set("strategy.token_dispatcher", "deepep", draft.from("note.dispatcher"));
  if (word == "allgather")
    reading.leave_out(draft.from("note.dispatcher"), "tokens are exchanged all to all");
}

// With a2a+p2p there are two sizes: groups of adjacent ranks, of the first size, exchange tokens
// for heads.
// Source: NVIDIA/Megatron-LM, megatron/training/arguments.py
// (--hierarchical-context-parallel-sizes).
Status context_levels(Draft& draft) {
  const std::string key = "strategy.context_exchange";
  if (draft.word(key) != kTwoLevels || draft.count("strategy.context_parallel") == 1) return {};
  const std::string sizes = "note.context_sizes";
  const std::vector<std::string> words =
      draft.has(sizes) ? draft.at(sizes).words : std::vector<std::string>{};
  const auto size_at = [&](std::size_t i) {
    std::int64_t size = 0;
    std::from_chars(words[i].data(), words[i].data() + words[i].size(), size);
    return size;
  };
  const std::int64_t all = draft.count("strategy.context_parallel");
  if (words.size() != 2 || size_at(0) < 1 || size_at(1) < 1 || size_at(0) > all ||
      product({size_at(0), size_at(1)}) != all)
    return fault(draft.has(sizes) ? draft.place(sizes) : draft.place(key),
                 draft.has(sizes) ? draft.from(sizes) : draft.from(key),
                 fmt::format("needs two sizes of hierarchical context parallelism, whose product "
                             "is {}",
                             all),
                 "give the ranks that exchange heads, then those of the ring");
  const std::string from = draft.from(key);
  draft.set(key, size_at(1) == 1 ? "all-to-all" : "ring", from);
  if (size_at(0) > 1 && size_at(1) > 1)
    draft.set("strategy.context_heads", size_at(0), draft.from(sizes));
  return {};
}

// Drops keys that have no meaning together with the others.
void without_meaning(Draft& draft, const ReadContext& reading) {
  const std::int64_t tensor = draft.count("strategy.tensor_parallel");
  if (tensor == 1 && draft.is("strategy.sequence_parallel")) {
    reading.leave_out(draft.from("strategy.sequence_parallel"),
                      "switched off by Megatron itself without tensor parallelism");
    draft.drop("strategy.sequence_parallel");
  }
  if (draft.count("strategy.context_parallel") == 1) draft.drop("strategy.context_exchange");
  if (draft.count("strategy.expert_tensor_parallel", tensor) == tensor ||
      draft.count("model.experts", 0) == 0)
    draft.drop("strategy.expert_tensor_parallel");
  if (draft.count("strategy.expert_parallel") == 1) draft.drop("strategy.expert_parallel");
  dispatcher(draft, reading);
  permutation(draft);
  cuda_graphs(draft, reading);
}

// The framework overlaps transfers unless the file turns that off.
void transfers(Draft& draft) {
  if (draft.is("note.blocking_transfers") && draft.word("strategy.schedule") == "interleaved")
    draft.set("strategy.framework.pipeline_transfers", "blocking",
              draft.from("note.blocking_transfers"));
}

}  // namespace

Status finish_megatron(Draft& draft, const ReadContext& reading) {
  draft.set("strategy.framework.extends", "megatron-lm", "");
  const std::int64_t tensor = draft.count("strategy.tensor_parallel");
  const std::int64_t pipeline = draft.count("strategy.pipeline_parallel");
  const std::int64_t context = draft.count("strategy.context_parallel");
  for (const auto* key : {"strategy.tensor_parallel", "strategy.pipeline_parallel",
                          "strategy.context_parallel", "strategy.expert_parallel"})
    if (draft.count(key) < 1 || draft.count(key) > (1 << 20))
      return fault(draft.place(key), draft.from(key), "out of range", "use a number from 1 on");
  FORESHARD_ASSIGN(const std::int64_t data,
                   data_parallel(draft, reading, product({tensor, pipeline, context}),
                                 fmt::format("tensor {} x pipeline {} x context {}", tensor,
                                             pipeline, context)));
  draft.set("strategy.data_parallel", data, "the ranks that the others leave");
  if (!draft.has("strategy.micro_batch") && draft.has("strategy.global_batch")) {
    leave_micro_batch_open(draft);
  } else if (!draft.has("strategy.micro_batch")) {
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}: error: the micro-batch size is missing\n   help: give it in the "
                             "file or with --set strategy.micro_batch=1",
                             reading.request.name)};
  }
  if (!draft.has("strategy.global_batch"))
    draft.set("strategy.global_batch", product({draft.count("strategy.micro_batch"), data}),
              "micro-batch x data-parallel ranks, as none is given");
  FORESHARD_TRY(chunks(draft));
  FORESHARD_TRY(fault_in_batch(draft, reading));
  FORESHARD_TRY(stages(draft));
  FORESHARD_TRY(sharding(draft));
  FORESHARD_TRY(finish_megatron_recomputation(draft));
  FORESHARD_TRY(precision(draft));
  optimizer(draft);
  if (draft.is("note.pipeline_before_data"))
    draft.set("strategy.rank_order", Value{.words = {"tensor", "pipeline", "data"},
                                           .list = true,
                                           .from = draft.from("note.pipeline_before_data")});
  FORESHARD_TRY(finish_megatron_model(draft, reading));
  FORESHARD_TRY(context_levels(draft));
  without_meaning(draft, reading);
  transfers(draft);
  return {};
}

namespace {

// Sets a note. `ours` is the key that is lost if the format has no row for the note.
void note(Draft& draft, std::string_view key, std::string word, std::string ours) {
  draft.set(key, std::move(word), std::move(ours));
}

// The first and the last stage have notes of their own. Where other stages differ, or stages have
// chunks, the layout lists all stages.
void spread_stages(Draft& draft, const WriteContext& writing) {
  const Strategy& strategy = writing.strategy;
  const auto& split = strategy.layers_per_stage;
  const bool ends_alone = strategy.virtual_stages == 1 && split.size() > 1 && split.front() > 0 &&
                          split.back() > 0 &&
                          std::all_of(split.begin() + 1, split.end() - 1,
                                      [&](std::int64_t layers) { return layers == split[1]; });
  if (split.size() > 1 && !ends_alone) {
    const std::int64_t predictions =
        writing.model == nullptr ? 0 : writing.model->multi_token_prediction;
    note(draft, "note.layout", written_layout(split, predictions), "strategy.layers_per_stage");
    draft.drop("strategy.layers_per_stage");
    if (strategy.virtual_stages > 1) draft.drop("strategy.virtual_stages");
    if (strategy.schedule == "interleaved") draft.drop("strategy.schedule");
    return;
  }
  if (strategy.virtual_stages > 1) {
    note(draft, "note.virtual_stages", std::to_string(strategy.virtual_stages),
         "strategy.virtual_stages");
    draft.drop("strategy.virtual_stages");
    if (strategy.schedule == "interleaved") draft.drop("strategy.schedule");
    return;
  }
  if (!ends_alone) return;
  note(draft, "note.first_layers", std::to_string(split.front()), "strategy.layers_per_stage");
  note(draft, "note.last_layers", std::to_string(split.back()), "strategy.layers_per_stage");
  draft.drop("strategy.layers_per_stage");
}

void spread_sharding(Draft& draft, const Strategy& strategy) {
  const std::string ours = "strategy.zero_stage";
  if (strategy.zero_stage == 1) {
    note(draft, "note.distributed_optimizer", "true", ours);
  } else if (strategy.zero_stage > 1) {
    note(draft, "note.megatron_fsdp", "true", ours);
    note(draft, "note.sharding", std::to_string(strategy.zero_stage), ours);
  }
  draft.drop(ours);
}

void spread_precision(Draft& draft, const Strategy& strategy) {
  const DType dtype = strategy.precision;
  if (dtype == DType::kBf16) note(draft, "note.bf16", "true", "strategy.precision");
  if (dtype == DType::kFp16) note(draft, "note.fp16", "true", "strategy.precision");
  if (dtype == DType::kFp16 && strategy.framework->gradient_dtype == DType::kFp32)
    note(draft, "note.accumulate_fp32", "true", "");
  if (dtype == DType::kBf16 || dtype == DType::kFp16 || dtype == DType::kFp32)
    draft.drop("strategy.precision");
  if (strategy.quantization == Quantization::kNone) return;
  const bool fp4 = is_nvfp4(strategy.quantization);
  note(draft, fp4 ? "note.fp4" : "note.fp8", fp4 ? "nvfp4" : "hybrid", "strategy.quantization");
  note(draft, fp4 ? "note.fp4_recipe" : "note.fp8_recipe", draft.word("strategy.quantization"),
       "strategy.quantization");
  draft.drop("strategy.quantization");
  const UnquantizedLayers& ends = strategy.unquantized_layers;
  if (!ends.any()) return;
  note(draft, "note.ends_in_bf16", "true", "strategy.unquantized_layers");
  note(draft, "note.start_in_bf16", std::to_string(ends.first), "strategy.unquantized_layers");
  note(draft, "note.end_in_bf16", std::to_string(ends.last), "strategy.unquantized_layers");
  draft.drop("strategy.unquantized_layers.first");
  draft.drop("strategy.unquantized_layers.last");
}

// Setting the types of the optimizer's states also decides what is kept of master copies.
void spread_optimizer(Draft& draft, const Strategy& strategy) {
  const Optimizer& of = strategy.optimizer;
  const Optimizer usual;
  if (of.first_moment == usual.first_moment && of.second_moment == usual.second_moment &&
      of.master == usual.master && !of.remainders)
    return;
  note(draft, "note.precision_aware", "true", "strategy.optimizer");
  const bool keeps_remainders = strategy.precision == DType::kBf16 && of.master == usual.master;
  if (of.remainders == keeps_remainders) return draft.drop("strategy.optimizer.remainders");
  for (const auto* key : {"first_moment", "second_moment", "master", "remainders"})
    if (const std::string ours = std::string("strategy.optimizer.") + key; draft.has(ours))
      draft.forbid(ours, "with it come remainders of master copies in fp32");
}

// Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py (cuda_graph_scope,
// cuda_graph_impl).
void spread_graphs(Draft& draft, const WriteContext& writing) {
  const Strategy& strategy = writing.strategy;
  const std::vector<Capture>& captured = strategy.cuda_graphs;
  if (captured.empty()) return;
  const bool is_step = strategy.captures(Capture::kStep);
  if (writing.model != nullptr && writing.model->experts > 0 &&
      std::ranges::find(captured, Capture::kMlp) != captured.end())
    return draft.forbid("strategy.cuda_graphs", "beside experts 'mlp' is not read");
  if (strategy.recompute == Recompute::kFull && !is_step)
    return draft.forbid("strategy.cuda_graphs", "recomputed layers are in no graph but the step's");
  if (strategy.offload_activation_layers > 0)
    return draft.forbid("strategy.cuda_graphs", "they are without offloaded activations");
  note(draft, "note.graph_impl", is_step ? "local" : "transformer_engine", "strategy.cuda_graphs");
  if (is_step) note(draft, "note.unchecked_gradients", "true", "");
  Value scope{.list = true, .from = ""};
  for (const Capture one : captured) {
    scope.words.emplace_back(megatron_scope(one));
    if (one == Capture::kRouter) scope.words.emplace_back("moe_preprocess");
  }
  draft.set("note.graph_scope", std::move(scope));
  draft.drop("strategy.cuda_graphs");
}

}  // namespace

// Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py (cpu_offloading).
void spread_offloading(Draft& draft, const WriteContext& writing) {
  const Strategy& strategy = writing.strategy;
  if (strategy.offload_optimizer == OptimizerOffload::kCpu)
    note(draft, "note.precision_aware", "true", "strategy.offload_optimizer");
  if (strategy.offload_activation_layers == 0) return;
  if (strategy.pipeline_parallel > 1)
    draft.forbid("strategy.offload_activation_layers", "it is for one pipeline stage");
  if (strategy.recompute != Recompute::kNone)
    draft.forbid("strategy.offload_activation_layers", "it is without recomputation");
  if (writing.model != nullptr && strategy.offload_activation_layers >= writing.model->layers)
    draft.forbid("strategy.offload_activation_layers", "it leaves one layer at least");
}

void spread_megatron(Draft& draft, const WriteContext& writing) {
  const Strategy& strategy = writing.strategy;
  draft.drop("strategy.data_parallel");
  spread_stages(draft, writing);
  spread_sharding(draft, strategy);
  spread_megatron_recomputation(draft, strategy);
  spread_precision(draft, strategy);
  spread_optimizer(draft, strategy);
  spread_offloading(draft, writing);
  if (strategy.rank_order == std::vector<std::string>{"tensor", "pipeline", "data"}) {
    note(draft, "note.pipeline_before_data", "true", "strategy.rank_order");
    draft.drop("strategy.rank_order");
  }
  if (strategy.tensor_parallel == 1 && strategy.sequence_parallel)
    draft.forbid("strategy.sequence_parallel", "it is switched off without tensor parallelism");
  if (strategy.expert_tensor_parallel == 0) draft.drop("strategy.expert_tensor_parallel");
  if (strategy.expert_parallel > 1) {
    const bool once = strategy.token_dispatcher == TokenDispatcher::kDeepEp;
    note(draft, "note.dispatcher", once ? "flex" : "alltoall", "strategy.token_dispatcher");
    draft.drop("strategy.token_dispatcher");
  }
  spread_graphs(draft, writing);
  if (strategy.context_parallel == 1) draft.drop("strategy.context_exchange");
  if (strategy.context_heads > 1 && strategy.context_exchange == ContextExchange::kRing) {
    draft.set("strategy.context_exchange", kTwoLevels, "strategy.context_exchange");
    draft.set_list("note.context_sizes",
                   {strategy.context_heads, strategy.context_parallel / strategy.context_heads},
                   "strategy.context_heads");
    draft.drop("strategy.context_heads");
  }
  if (strategy.zero_stage == 0)
    draft.set("strategy.framework.overlap_parameter_gather", "false", "");
  if (strategy.schedule == "interleaved" &&
      strategy.framework->pipeline_transfers == PipelineTransfers::kBlocking)
    note(draft, "note.blocking_transfers", "true", "");
  spread_megatron_model(draft, writing);
}

}  // namespace foreshard::launch::internal
