#include "evidence/setting.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "base/text.h"
#include "base/yaml/bounds.h"
#include "evidence/training.h"
#include "evidence/words.h"

#include "strategies/schedule/schedule.h"
#include "validate/tables/device_names.h"

namespace foreshard::accuracy {
namespace {

Error unsupported(std::string why) {
  return {Error::Code::kUnsupported, std::move(why)};
}

// An error for rows whose transformer block is altered: only plain blocks can be predicted.
Status obstacle(const TrainingRow& row) {
  if (contains(lower_case(row.notes), "not a standard gpt block"))
    return unsupported("the source alters the transformer block");
  return {};
}

struct Sharding {
  std::int64_t stage = 0;               ///< ZeRO stage.
  std::optional<std::int64_t> group{};  ///< Number of ranks in a sharding group, if it is stated.
  bool within_nodes = false;            ///< The ranks of each node form a sharding group.
};
// The sharding in a cell such as "1", "3(FSDP=64)", "1 within groups of 8", "sharding4 stage2",
// "FSDP2(zero3)", "DP", or "HSDP (shard within node ...)".
Result<Sharding> sharding_of(const std::string& text) {
  if (text == "DP") return Sharding{};
  if (text.starts_with("HSDP")) {
    if (contains(text, "within node")) return Sharding{.stage = 3, .within_nodes = true};
    return unsupported(fmt::format("sharding '{}' does not state its groups", text));
  }
  Sharding result;
  if (const auto leading = number_after(text, "")) {
    result.stage = *leading;
  } else if (const auto named = number_after(text, "stage")) {
    result.stage = *named;
  } else if (contains(text, "FSDP")) {
    result.stage = 3;
  } else {
    return unsupported(fmt::format("ZeRO stage '{}' is not known", text));
  }
  if (result.stage > 3) return unsupported(fmt::format("ZeRO stage '{}' is not known", text));
  for (const std::string_view word : {"groups of ", "FSDP=", "sharding", "FSDP2("})
    if (const auto group = number_after(text, word)) result.group = group;
  return result;
}

// Fills a Setting from one row, in the order of the steps in run(): later ones use earlier results.
class Mapping {
 public:
  Mapping(const TrainingRow& row, const RowFormat& format, yaml::Loader& loader)
      : row_(row),
        format_(format),
        loader_(loader),
        named_(format.framework_named(row.framework, row.source, row.notes)) {}

  Result<Setting> run() {
    FORESHARD_TRY(obstacle(row_));
    for (const auto step : {&Mapping::model, &Mapping::mesh, &Mapping::cluster, &Mapping::framework,
                            &Mapping::sharding, &Mapping::precision, &Mapping::recompute,
                            &Mapping::offloading, &Mapping::schedule})
      FORESHARD_TRY((this->*step)());
    std::ranges::sort(setting_.assumed);
    return std::move(setting_);
  }

 private:
  void assume(std::string what) { setting_.assumed.push_back(std::move(what)); }
  void open(study::OpenSetting what) { setting_.open.push_back(what); }

  Status model() {
    for (const auto& [name, value] :
         {std::pair("layers", row_.layers), std::pair("hidden", row_.hidden),
          std::pair("heads", is_of_experts() ? 0 : row_.heads), std::pair("seq", row_.seq)})
      if (!value) return unsupported(fmt::format("column '{}' is empty", name));
    if (const auto* known = format_.hybrid_named(row_.model_name)) return hybrid(known->take);
    if (contains(lower_case(row_.notes), "mamba"))
      return unsupported("state-space layers of a model that is not in the catalogue");
    const Family* const named = named_.only_gpt ? &format_.family_called(format_.plain_family)
                                                : format_.family_named(row_.model_name);
    FORESHARD_ASSIGN(const Family family, named != nullptr ? Result<Family>(*named) : family_of());
    if (!row_.vocab) assume("vocabulary");
    if (!row_.ffn && family.activation == Activation::kSwiglu)
      return unsupported("column 'ffn' is empty");
    Model described = of_family(family);
    give_window(described);
    give_latents(described);
    give_experts(described);
    described.adapters = adapters_of(row_, setting_.assumed);
    auto model = checked(std::move(described));
    if (!model) return unsupported(model.error().message);
    setting_.model = *std::move(model);
    return {};
  }

  // The model with the row's sizes and the family's architecture.
  Model of_family(const Family& family) const {
    Model described{
        .name = row_.model_name,
        .layers = *row_.layers,
        .hidden = *row_.hidden,
        .heads = row_.heads.value_or(0),
        .kv_heads = row_.kv_heads.value_or(0),
        .head_dim = number_after(row_.notes, "head_dim=").value_or(0),
        .ffn = row_.ffn.value_or(0),
        .vocabulary = row_.vocab.value_or(named_.vocabulary.value_or(family.vocabulary)),
        .sequence = *row_.seq,
        .norm = family.norm,
        .activation = family.activation,
        .positions = family.positions,
        .bias = family.bias,
        .qkv_bias = family.qkv_bias,
        .tied_embeddings = family.tied_embeddings,
        .dropout = family.dropout,
        .source = row_.source};
    if (contains(row_.model_name, "QK norm")) described.qk_norm = QkNorm::kPerHead;
    described.attention_bias = family.attention_bias;
    described.mlp_bias = family.mlp_bias;
    described.router_bias = family.router_bias;
    described.sinks = family.sinks;
    described.clamped_activation = family.clamped_activation;
    if (is_of_experts()) {
      described.pattern = "E";
      described.positions = Positions::kNone;
    }
    return described;
  }

  // The family of a model with an unknown name, from its columns: the gated family if keys have
  // fewer heads than queries or the feed-forward width is not four times the hidden size, else the
  // plain family. Words in the name override properties of the family. If the row states the number
  // of parameters (of a model without experts), the family that comes closer to it is taken.
  Result<Family> family_of() {
    for (const auto& [name, is_stated] :
         {std::pair("ffn", row_.ffn.has_value()), std::pair("vocabulary", row_.vocab.has_value())})
      if (!is_stated)
        return unsupported(
            fmt::format("model '{}' is of no family that is known, and column '{}' is empty",
                        row_.model_name, format_.column(name)));
    assume("architecture");
    const Family& gated = format_.family_called(format_.gated_family);
    const Family& plain = format_.family_called(format_.plain_family);
    const std::int64_t heads = row_.heads.value_or(0);
    const bool is_gated = row_.kv_heads.value_or(heads) < heads || *row_.ffn != 4 * *row_.hidden;
    Family likely = with_words(is_gated ? gated : plain);
    const auto off = [&](const Family& family) {
      const auto model = checked(of_family(family));
      return !model ? std::numeric_limits<double>::infinity()
                    : std::abs(std::log(static_cast<double>(parameter_count(*model)) / 1e9 /
                                        *row_.parameters));
    };
    if (!row_.parameters || row_.experts.value_or(0) > 1) return likely;
    const Family other = with_words(is_gated ? plain : gated);
    if (off(other) < off(likely)) likely = other;
    constexpr double kNearest = 0.15;
    if (off(likely) > kNearest)
      return unsupported(fmt::format(
          "model '{}' is of no family that is known: with its columns, the nearest shape has "
          "{:.1f} "
          "billion parameters, not {:.1f}",
          row_.model_name, static_cast<double>(parameter_count(of_family(likely))) / 1e9,
          *row_.parameters));
    return likely;
  }

  // The family, changed by words in the model's name.
  Family with_words(Family family) const {
    const std::string name = lower_case(row_.model_name);
    if (contains(name, "rope")) family.positions = Positions::kRotary;
    if (contains(name, "gelu")) family.activation = Activation::kGelu;
    if (contains(name, "swiglu")) family.activation = Activation::kSwiglu;
    if (contains(name, "untied")) family.tied_embeddings = false;
    return family;
  }

  // Takes the model of the catalogue, if the row states the same layers and width.
  Status hybrid(const yaml::Ref<Model>& entry) {
    Model known = *entry;
    if (known.layers != *row_.layers || known.hidden != *row_.hidden)
      return unsupported(fmt::format("{} has {} layers of width {}, not {} of {}", entry.name,
                                     known.layers, known.hidden, *row_.layers, *row_.hidden));
    known.sequence = *row_.seq;
    auto model = checked(std::move(known));
    if (!model) return unsupported(model.error().message);
    setting_.model = *std::move(model);
    setting_.catalogue_model = entry.name;
    return {};
  }

  bool is_of_experts() const { return is_of_experts_alone(row_); }

  void give_window(Model& model) const {
    model.window = number_after(row_.notes, "sliding window ").value_or(0);
    if (model.window > 0 && contains(row_.notes, "alternating")) model.full_interval = 2;
  }

  // Multi-head latent attention. Rows hardly ever state the widths of its heads, so they are the
  // ones that all models of DeepSeek have.
  void give_latents(Model& model) {
    const auto rank = number_after(row_.notes, "kv_lora ");
    if (!rank) return;
    model.key_value_rank = *rank;
    model.query_rank = number_after(row_.notes, "q_lora ").value_or(0);
    model.head_dim = 192;
    model.rotary_dim = 64;
    model.value_dim = 128;
    assume("head_dim");
  }

  // Column 'ffn' is the width of an expert, unless the notes state that width.
  void give_experts(Model& model) const {
    if (row_.experts.value_or(0) <= 1) return;
    model.experts = *row_.experts;
    model.experts_per_token = row_.topk.value_or(1);
    for (const std::string_view word : {"moe_ffn=", "moe_ffn "})
      if (const auto width = number_after(row_.notes, word)) model.expert_ffn = *width;
    if (model.expert_ffn == 0) model.expert_ffn = model.ffn;
    for (const std::string_view word : {"shared expert ", ", shared "})
      if (const auto width = number_after(row_.notes, word)) model.shared_ffn = *width;
    if (contains(row_.notes, "first layer dense")) model.dense_layers = 1;
    const auto chosen_groups = number_after(row_.notes, "group-limited routing ");
    const auto groups = number_after(
        row_.notes, fmt::format("group-limited routing {} of ", chosen_groups.value_or(0)));
    if (groups) {
      model.expert_groups = *groups;
      model.groups_per_token = *chosen_groups;
    }
    if (!model.has_dense_layers()) model.ffn = 0;
  }

  // Expert and expert-tensor parallelism. If neither the notes nor the name of the run state expert
  // tensor parallelism, it is 1 for Megatron-Bridge, whose recipes all set it to 1, and if the
  // expert-parallel size does not divide the data- and context-parallel ranks; else it equals
  // tensor parallelism, Megatron-LM's default.
  // Source: NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs (expert_tensor_parallel_size
  // of the bases of Qwen 3, DeepSeek-V3, Kimi K2 and GPT-OSS); NVIDIA/Megatron-LM,
  // megatron/core/parallel_state.py (initialize_model_parallel).
  void expert_parallel() {
    Strategy& strategy = setting_.strategy;
    if (setting_.model.experts == 0) return;
    strategy.expert_parallel = row_.ep.value_or(1);
    for (const std::string_view word : {"ETP=", "expert TP=", "expert_tensor_parallel="})
      if (const auto ways = number_after(row_.notes, word)) strategy.expert_tensor_parallel = *ways;
    if (const auto ways = number_after(row_.model_name, "_etp"))
      strategy.expert_tensor_parallel = *ways;
    const bool is_printed = strategy.expert_tensor_parallel > 0 ||
                            contains(row_.notes, "expert TP=same") || strategy.tensor_parallel == 1;
    if (is_printed) return;
    if (contains(row_.framework, "Megatron-Bridge") ||
        strategy.copies() % strategy.expert_parallel != 0)
      strategy.expert_tensor_parallel = 1;
    assume("expert_tensor_parallel");
  }

  // The month of 2026 of the container whose recipe for racks applies; 0: none does. It applies to
  // rows of Megatron-Bridge on a rack that do not state their recipe. These recipes use HybridEP,
  // and from June on also one CUDA graph for the whole step and token exchanges that overlap with
  // other passes.
  // Source: NVIDIA-NeMo/Megatron-Bridge, skills/perf-moe-dispatcher-selection (GB200, GB300);
  // scripts/performance/configs/qwen/qwen3_workload_base_configs.py at 63b08b397, beside 17a381f95.
  std::int64_t month_of_rack_recipe() const {
    const bool is_open = is_rack(row_) && !contains(row_.notes, "recipe") &&
                         contains(row_.framework, "Megatron-Bridge");
    return is_open ? number_after(row_.source, "NeMo container 26.").value_or(0) : 0;
  }
  // HybridEP is modelled as DeepEP, whose rates on Blackwell were measured with HybridEP.
  void token_exchange() {
    Strategy& strategy = setting_.strategy;
    if (strategy.expert_parallel == 1) return;
    const std::string notes = lower_case(row_.notes);
    if (contains(notes, "deepep") || contains(notes, "hybridep") || month_of_rack_recipe() > 0)
      strategy.token_dispatcher = TokenDispatcher::kDeepEp;
    const auto* known = schedule::find_schedule(strategy.schedule);
    strategy.overlap_experts =
        (contains(notes, "a2a_overlap=true") || contains(notes, "all-to-all overlapped") ||
         month_of_rack_recipe() >= 6) &&
        strategy.pipeline_parallel <= known->pairs_up_to;
  }

  // Rows hardly ever state how context-parallel ranks exchange keys and values. Megatron-LM's
  // default is a ring, PyTorch's is an all-gather that overlaps with attention.
  // Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (--cp-comm-type).
  void context_exchange() {
    Strategy& strategy = setting_.strategy;
    if (strategy.context_parallel == 1) return;
    const bool is_megatron =
        named_.take.name.starts_with("megatron") || named_.take.name.starts_with("nemo");
    strategy.context_exchange =
        is_megatron ? ContextExchange::kRing : ContextExchange::kOverlappedAllGather;
    assume("context_exchange");
  }

  // If the row states no global batch, a step has four times as many micro-batches as pipeline
  // stages, which keeps the bubble small (Huang et al., "GPipe", 2019, section 2.3).
  Status mesh() {
    Strategy& strategy = setting_.strategy;
    strategy.tensor_parallel = row_.tp.value_or(1);
    strategy.pipeline_parallel = row_.pp.value_or(1);
    strategy.context_parallel = std::max<std::int64_t>(number_after(row_.cp, "").value_or(1), 1);
    strategy.data_parallel = row_.dp.value_or(1);
    if (const std::string why = yaml::out_of_bounds(strategy); !why.empty())
      return unsupported(why);
    const std::int64_t replica =
        strategy.tensor_parallel * strategy.pipeline_parallel * strategy.context_parallel;
    if (!row_.num_gpus && !row_.dp) return unsupported("column 'num_gpus' is empty");
    const std::int64_t gpus = row_.num_gpus.value_or(replica * row_.dp.value_or(1));
    strategy.data_parallel = row_.dp.value_or(gpus / replica);
    if (strategy.devices() != gpus)
      return unsupported(fmt::format("tp {} x pp {} x cp {} x dp {} is not {} GPUs",
                                     strategy.tensor_parallel, strategy.pipeline_parallel,
                                     strategy.context_parallel, strategy.data_parallel, gpus));
    expert_parallel();
    const bool tensor = strategy.tensor_parallel > 1;
    if (tensor && row_.seq_parallel.empty()) assume("seq_parallel");
    strategy.sequence_parallel = tensor && lower_case(row_.seq_parallel) == "true";
    if (row_.mbs) {
      strategy.micro_batch = *row_.mbs;
    } else {
      open(study::OpenSetting::kMicroBatch);
      assume("micro_batch");
    }
    if (!row_.gbs) assume("global_batch");
    strategy.global_batch = row_.gbs.value_or(4 * strategy.pipeline_parallel *
                                              strategy.data_parallel * strategy.micro_batch);
    return {};
  }

  Status device() {
    if (const DeviceWords* const known = format_.device_named(row_.gpu, row_.source, row_.notes)) {
      assume("gpu_variant");
      setting_.cluster.device = known->take.name;
      return {};
    }
    const auto device = device_named(row_.gpu, row_.gpu_mem_gb);
    if (!device) return unsupported(fmt::format("device '{}' is not in the catalogue", row_.gpu));
    if (device->guessed_memory) assume("gpu_memory");
    if (device->another_variant) assume("gpu_variant");
    setting_.cluster.device = device->name;
    return {};
  }

  Status cluster() {
    FORESHARD_TRY(device());
    setting_.cluster.gpus = setting_.strategy.devices();
    if (row_.gpus_per_node) setting_.cluster.gpus_per_node = *row_.gpus_per_node;
    const bool several = setting_.cluster.gpus > setting_.cluster.gpus_per_node;
    if (!row_.gpus_per_node && setting_.cluster.gpus > 1) assume("gpus_per_node");
    if (row_.internode_gbps_per_gpu) {
      setting_.cluster.internode_per_gpu = *row_.internode_gbps_per_gpu * 1_Gbit_s;
    } else if (several) {
      assume("network");
    }
    return {};
  }

  Status framework() {
    if (named_.is_assumed) assume("framework");
    Framework framework = *named_.take;
    if (contains(row_.notes, "no compute/comm overlap")) {
      framework = [&] {
        Framework plain = std::move(framework);
        plain.gradient_reduction = GradientReduction::kAfterBackward;
        plain.overlap_parameter_gather = false;
        plain.overlap_tensor_gradients = false;
        plain.pipeline_transfers = PipelineTransfers::kBlocking;
        return plain;
      }();
    }
    const std::string notes = lower_case(row_.notes);
    // Features that notes switch on; without such a note, the framework's default applies.
    if (contains(notes, "(userbuffers) on")) framework.overlap_tensor_products = true;
    if (contains(notes, "fp8 attention")) framework.fp8_attention = true;
    if (contains(notes, "fp8 stored activation input")) framework.fp8_activation_inputs = true;
    framework.attention = attention_named(row_).value_or(framework.attention);
    if (pads_experts()) framework.counts_tokens_on_host = false;
    setting_.strategy.cuda_graphs =
        graphs_of(row_, setting_.model, month_of_rack_recipe() >= 6, setting_.assumed);
    if (contains(notes, "+lamb")) setting_.strategy.optimizer.rule = "lamb";
    read_state_types(notes, named_.narrow_states, setting_.strategy.optimizer, framework);
    setting_.strategy.framework = yaml::Ref<Framework>{std::move(framework), named_.take.name};
    context_exchange();
    micro_batch();
    return {};
  }

  // Whether every expert's input is padded to its capacity, so that the host needs no token counts.
  // Source: NVIDIA/NeMo, nemo/lightning/pytorch/callbacks/moe_token_drop.py (which pads by
  // default).
  bool pads_experts() const {
    return contains(row_.notes, "moe_pad_expert_input_to_capacity") ||
           contains(row_.notes, "tokendrop");
  }

  // Megatron-LM's reference mappings of models with experts have micro-batches of one sequence.
  // Source: NVIDIA/Megatron-LM (commit 022bcb5a), megatron/core/transformer/moe/README.md.
  void micro_batch() {
    if (setting_.model.experts == 0) return;
    if (named_.one_sequence_with_experts)
      std::erase(setting_.open, study::OpenSetting::kMicroBatch);
  }

  Status sharding() {
    Strategy& strategy = setting_.strategy;
    if (row_.zero_stage.empty()) {
      strategy.zero_stage = named_.zero_stage;
      if (strategy.copies() > 1) assume("zero_stage");
      return {};
    }
    FORESHARD_ASSIGN(const auto sharding, sharding_of(row_.zero_stage));
    strategy.zero_stage = sharding.stage;
    // Data-parallel ranks in a sharding group; context-parallel ranks always belong to one group.
    std::int64_t group = sharding.group.value_or(strategy.data_parallel);
    if (sharding.within_nodes && row_.gpus_per_node)
      group = std::clamp<std::int64_t>(*row_.gpus_per_node / strategy.tensor_parallel, 1,
                                       strategy.data_parallel);
    if (group < 1 || strategy.data_parallel % group != 0)
      return unsupported(fmt::format("{} data-parallel ranks do not divide into groups of {}",
                                     strategy.data_parallel, group));
    strategy.shard_replicas = strategy.data_parallel / group;
    const bool one_rank = strategy.shards() == 1;  // whose parameters FSDP keeps in fp32
    if (one_rank && (strategy.shard_replicas > 1 || !strategy.framework->shards.fp32))
      strategy.zero_stage = 0;
    if (strategy.zero_stage == 0) strategy.shard_replicas = 1;
    return {};
  }

  Status precision() {
    const std::string text = lower_case(row_.precision);
    for (const std::string_view narrow : {"fp8", "float8", "fp4"})
      if (contains(text, narrow)) return quantization(text);
    if (text.empty() || contains(text, "not stated")) assume("precision");
    const auto fp16 = text.find("fp16");
    const auto bf16 = std::min(text.find("bf16"), text.find("bfloat16"));
    if (!text.empty() && fp16 == std::string::npos && bf16 == std::string::npos)
      return unsupported(fmt::format("precision '{}' is not modelled", row_.precision));
    setting_.strategy.precision = fp16 < bf16 ? DType::kFp16 : DType::kBf16;
    return {};
  }

  // Sets the recipe of fp8 or fp4. "-CS" (NVIDIA) is current scaling: a tensor is scaled by its own
  // maximum, as in torchao's float8. If no fp8 recipe is named, Megatron-Bridge uses current
  // scaling too, and all others Transformer Engine's delayed scaling, Megatron-LM's default.
  Status quantization(const std::string& text) {
    FORESHARD_ASSIGN(const auto device,
                     loader_.read_ref<DeviceType>(setting_.cluster.device, "device"));
    const bool has_four_bits = contains(text, "fp4");
    const std::string wanted(name_of(has_four_bits ? DType::kFp4 : DType::kFp8));
    if (!device.tensor_peak.contains(wanted))
      return unsupported(fmt::format("device '{}' has no {} products", row_.gpu, wanted));
    setting_.strategy.one_copy_in_fp8 = reads_fp8_either_way(device);
    Quantization& recipe = setting_.strategy.quantization;
    const std::string notes = lower_case(row_.notes);
    const bool current =
        contains(text, "cs") || contains(text, "current") || contains(text, "tensorwise");
    if (has_four_bits) {
      // Unrotated: one submitter's config_common_fp4.sh says so; it is assumed for the others.
      const bool is_rotated = named_.take.name != "nemo-25.09";
      recipe = is_rotated ? Quantization::kNvFp4 : Quantization::kNvFp4Unrotated;
      if (!is_rotated) assume("quantization");
    } else if (contains(text, "mx")) {
      recipe = Quantization::kMxFp8;
    } else if (contains(text, "block")) {
      recipe = Quantization::kFp8Block;
    } else if (contains(text, "rowwise")) {
      recipe = Quantization::kFp8Rowwise;
    } else if (current) {
      recipe = Quantization::kFp8Current;
    } else if (contains(notes, "delayed scaling")) {
      recipe = Quantization::kFp8Delayed;
    } else {
      const bool scales_by_itself = contains(text, "float8") || contains(row_.framework, "Bridge");
      recipe = scales_by_itself ? Quantization::kFp8Current : Quantization::kFp8Delayed;
      assume("quantization");
    }
    quantized_parameters(notes);
    return {};
  }

  // Whether weights are held in quantized form alone. If the row does not say it, they are for
  // Megatron-Bridge, and for adapters in the recipes of NVIDIA and AMD, whose base never changes (a
  // base of 70B in bf16 beside its copies in fp4 would not fit in the B200 that ran it). They are
  // not with scales for blocks of 128, nor if all parameters are trained in fp4.
  // Source: NVIDIA-NeMo/Megatron-Bridge 067f987, src/megatron/bridge/training/mixed_precision.py;
  // mlcommons/training_results_v5.0 0fdc28f01325, NVIDIA/benchmarks/llama2_70b_lora, conf
  // (fp8_params: ${FP8}).
  void quantized_parameters(const std::string& notes) {
    Strategy& strategy = setting_.strategy;
    const bool is_usual =
        strategy.quantization != Quantization::kFp8Block &&
        (setting_.model.adapters.has_value() ||
         (!is_nvfp4(strategy.quantization) && contains(row_.framework, "Bridge")));
    const bool is_on =
        contains(notes, "fp8 params on") || contains(notes, "fp8 params/param gather on");
    const bool is_off =
        contains(notes, "fp8 params off") || contains(notes, "fp8 params/param gather off");
    strategy.quantized_parameters = is_on || (is_usual && !is_off);
    if (is_usual && !is_on && !is_off) assume("quantized_parameters");
  }

  Status recompute() {
    if (!row_.recompute.empty())
      return read_recomputation(row_.recompute, setting_.model, setting_.strategy);
    open(study::OpenSetting::kRecompute);
    assume("recompute");
    return {};
  }

  Status offloading() {
    read_offloading(row_.notes, setting_.strategy);
    return {};
  }

  Status schedule() {
    Strategy& strategy = setting_.strategy;
    constexpr std::string_view kKey = "schedule=";
    if (const auto at = row_.notes.find(kKey); at != std::string::npos) {
      const std::size_t begin = at + kKey.size();
      const std::string name =
          row_.notes.substr(begin, row_.notes.find_first_of("; ,", begin) - begin);
      const ScheduleWords* const known = format_.schedule_named(name);
      if (known == nullptr)
        return unsupported(fmt::format("pipeline schedule '{}' is not modelled", name));
      if (known->is_split) return split_schedule(*known);
    }
    strategy.virtual_stages = row_.vpp.value_or(1);
    if (!row_.vpp && strategy.pipeline_parallel > 1) {
      if (named_.stages == StageCut::kEqual) open(study::OpenSetting::kVirtualStages);
      assume("virtual_stages");
    }
    if (strategy.pipeline_parallel == 1) strategy.virtual_stages = 1;
    if (strategy.virtual_stages > 1) strategy.schedule = "interleaved";
    token_exchange();
    uneven_stages();
    return {};
  }

  // Sets a schedule that splits backward passes, with the schedule's own number of chunks. The
  // row's number of virtual stages is ignored: for two chunks in a V, rows state one or two, and
  // for schedules with one chunk any number.
  Status split_schedule(const ScheduleWords& named) {
    Strategy& strategy = setting_.strategy;
    if (strategy.pipeline_parallel == 1)
      return unsupported(fmt::format("schedule '{}' on one pipeline stage", named.schedule));
    strategy.schedule = named.schedule;
    strategy.virtual_stages = schedule::find_schedule(named.schedule)->fewest_chunks;
    if (named.is_synchronous) assume("optimizer_synchronization");
    uneven_stages();
    return {};
  }

  // Sets the layers of each stage as the framework divides them, unless all stages are equal.
  void uneven_stages() {
    Strategy& strategy = setting_.strategy;
    const std::int64_t layers = setting_.model.layers;
    const std::int64_t stages = strategy.stages();
    if (stages > 1 && named_.stages == StageCut::kByWeights) {
      strategy.layers_per_stage = layers_by_weights(setting_.model, stages);
      return;
    }
    if (layers % stages == 0) return;
    assume("layers_per_stage");
    strategy.layers_per_stage = uneven_split(layers, stages);
  }

  const TrainingRow& row_;
  const RowFormat& format_;
  yaml::Loader& loader_;
  const FrameworkWords& named_;
  Setting setting_;
};

}  // namespace

Result<Setting> setting_of(const TrainingRow& row, const RowFormat& format, yaml::Loader& loader) {
  return Mapping(row, format, loader).run();
}

}  // namespace foreshard::accuracy
