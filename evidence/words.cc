#include "evidence/words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace foreshard::accuracy {

std::optional<std::int64_t> number_after(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, status] =
      std::from_chars(text.data() + at + word.size(), text.data() + text.size(), value);
  if (status != std::errc()) return std::nullopt;
  return value;
}

namespace {

// `wanted` without the parts that the model lacks.
std::vector<Capture> of_model(std::vector<Capture> wanted, const Model& model) {
  std::erase_if(wanted, [&](Capture one) { return !lacking(model, one).empty(); });
  return wanted;
}

// The scopes in a list such as "['attn', 'moe_router', 'moe_preprocess']" or a word such as "mlp".
std::vector<Capture> scopes_in(std::string_view words) {
  std::vector<Capture> found;
  while (!words.empty()) {
    const auto end = words.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    if (const auto known = find_megatron_scope(words.substr(0, end))) found.push_back(*known);
    if (end == std::string_view::npos) break;
    words.remove_prefix(end + 1);
  }
  return found;
}

}  // namespace

bool is_rack(const TrainingRow& row) {
  return contains(row.gpu, "GB200") || contains(row.gpu, "GB300");
}

std::vector<Capture> graphs_of(const TrainingRow& row, const Model& model, bool is_one,
                               std::vector<std::string>& assumed) {
  const std::string_view notes = row.notes;
  const bool is_of_bridge = contains(row.framework, "Megatron-Bridge");
  const bool drops = contains(notes, "tokendrop") && contains(row.gpu, "B200") && is_of_bridge;
  const bool is_full = contains(notes, "full_iteration") || contains(notes, "CUDA graphs full") ||
                       contains(notes, "CUDA graphs mcore+full");
  if (is_one || drops || is_full) return {Capture::kStep};
  if (contains(notes, "CUDA graphs mcore") || contains(notes, "CUDA graphs layer"))
    return of_model({Capture::kAttention, Capture::kMlp, Capture::kMamba}, model);
  constexpr std::string_view kKey = "cuda_graph_scope=";
  if (const auto at = notes.find(kKey); at != std::string_view::npos)
    return of_model(
        scopes_in(notes.substr(at + kKey.size(), notes.find(';', at) - at - kKey.size())), model);
  if (!is_of_bridge || !is_rack(row) || model.experts == 0 || contains(notes, "recipe")) return {};
  assumed.emplace_back("cuda_graphs");
  return of_model({Capture::kAttention, Capture::kRouter}, model);
}

namespace {

// A module that a row names, and the parts of a layer that it recomputes.
struct Module {
  std::string_view name;
  std::vector<LayerPart> of_dense{};    ///< Parts in layers without experts.
  std::vector<LayerPart> of_experts{};  ///< Parts in layers with experts.
};

// Source: Megatron-LM, megatron/training/arguments.py (--recompute-modules). "attention core",
// "norm" and "act" are short names that tables use.
const std::vector<Module>& modules() {
  static const std::vector<Module> list{
      {"core_attn", {LayerPart::kCoreAttention}, {LayerPart::kCoreAttention}},
      {"attention core", {LayerPart::kCoreAttention}, {LayerPart::kCoreAttention}},
      {"layernorm", {LayerPart::kNorm}, {LayerPart::kNorm}},
      {"norm", {LayerPart::kNorm}, {LayerPart::kNorm}},
      {"act", {LayerPart::kActivation}, {LayerPart::kExpertActivation}},
      {"moe_act", {}, {LayerPart::kExpertActivation}},
      {"mlp", {LayerPart::kMlpUp, LayerPart::kActivation, LayerPart::kMlpDown}, {}},
      {"moe",
       {},
       {LayerPart::kRouting, LayerPart::kExpertsUp, LayerPart::kExpertActivation,
        LayerPart::kExpertsDown}},
      {"shared_experts", {}, {LayerPart::kSharedExperts}},
  };
  return list;
}

// The words of `text`, separated by '+', ',', ':' and brackets.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == '+' || c == ',' || c == '(' || c == ')' || c == ':') {
      words.emplace_back();
    } else if (c != ' ' || !words.back().empty()) {
      words.back() += c;
    }
  }
  for (std::string& word : words)
    while (word.ends_with(' ')) word.pop_back();
  std::erase(words, std::string{});
  return words;
}

// The parts that the named modules recompute in this model; nothing if a name is unknown.
std::optional<std::vector<LayerPart>> parts_of(const std::vector<std::string>& names,
                                               const Model& model) {
  std::vector<LayerPart> parts;
  const auto kinds = model.layer_kinds();
  for (const std::string& name : names) {
    const auto known = std::ranges::find(modules(), name, &Module::name);
    if (known == modules().end()) return std::nullopt;
    for (const LayerKind kind : kinds)
      for (const LayerPart part : kind.experts ? known->of_experts : known->of_dense)
        if (std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
  }
  return parts;
}

// The adapters in a framework's or submitter's recipe for fine-tuning.
struct AdapterRecipe {
  std::string_view framework;  ///< Part of the row's source or framework, in lower case.
  std::int64_t rank;
  std::vector<AdapterTarget> targets;
  bool dropout;
};

// Source: mlcommons/training_results (NVIDIA, llama2_70b_lora: target_modules attention,
// adapter_dropout 0.1); NVIDIA-NeMo/Megatron-Bridge, scripts/performance and recipes/llama
// (linear_qkv, dim 16); NVIDIA-NeMo/Automodel, examples (all linear layers, dim 8); NVIDIA/NeMo
// 24.07, megatron_gpt_finetuning_config.yaml (attention_qkv, adapter_dim 32).
const std::vector<AdapterRecipe>& adapter_recipes() {
  static const std::vector<AdapterRecipe> list{
      {"mlperf", 16, {AdapterTarget::kQkv, AdapterTarget::kAttentionOut}, true},
      {"megatron-bridge", 16, {AdapterTarget::kQkv}, false},
      {"automodel", 8, Adapters{}.targets, false},
      {"nemo", 32, {AdapterTarget::kQkv}, false},
      {"", 16, Adapters{}.targets, false},
  };
  return list;
}

}  // namespace

Status read_recomputation(const std::string& column, const Model& model, Strategy& strategy) {
  const std::string text = lower_case(column);
  if (text == "none") return {};
  const bool is_uniform_by_layer = contains(text, "uniform, every layer");
  if (text == "full" || is_uniform_by_layer) {
    strategy.recompute = Recompute::kFull;
    return {};
  }
  if (text.starts_with("full")) {
    const auto layers = number_after(text, "block, ");
    if (layers && *layers > 0) {
      strategy.recompute = Recompute::kFull;
      strategy.recompute_layers = *layers;
      return {};
    }
  } else if (text == "selective") {
    strategy.recompute = Recompute::kSelective;
    return {};
  } else if (contains(text, "op-level sac")) {
    strategy.recompute = Recompute::kSelective;
    strategy.recompute_parts = {LayerPart::kNorm, LayerPart::kRope, LayerPart::kMlpUp,
                                LayerPart::kActivation, LayerPart::kResidual};
    if (strategy.tensor_parallel == 1) strategy.recompute_parts.push_back(LayerPart::kAttentionOut);
    return {};
  } else if (text == "save_dot_only") {
    strategy.recompute = Recompute::kSelective;
    strategy.recompute_parts = {LayerPart::kNorm, LayerPart::kCoreAttention, LayerPart::kActivation,
                                LayerPart::kResidual};
    return {};
  } else {
    std::vector<std::string> names = words_of(text);
    if (!names.empty() && names.front() == "selective") names.erase(names.begin());
    const auto parts = parts_of(names, model);
    if (parts && !parts->empty()) {
      strategy.recompute = Recompute::kSelective;
      strategy.recompute_parts = *parts;
      return {};
    }
  }
  return Error{Error::Code::kUnsupported,
               fmt::format("recomputation '{}' is not modelled", column)};
}

namespace {

// The words by which notes name an attention kernel.
struct NamedAttention {
  std::string words;
  AttentionImplementation attention;
};

}  // namespace

std::optional<AttentionImplementation> attention_named(const TrainingRow& row) {
  // FlexAttention counts as FlashAttention-2: it reaches 0.9 and 0.85 of the rates of
  // FlashAttention-2 (pytorch.org/blog/flexattention).
  const std::array<NamedAttention, 5> names{
      NamedAttention{"TorchSDPA", AttentionImplementation::kFlash2},
      NamedAttention{"FlexAttn", AttentionImplementation::kFlash2},
      NamedAttention{"FA3 on " + row.gpu, AttentionImplementation::kFlash3},
      NamedAttention{"attention-backend=unfused", AttentionImplementation::kUnfused},
      NamedAttention{"attention-backend=flash", AttentionImplementation::kFlash2}};
  for (const NamedAttention& name : names)
    if (contains(row.notes, name.words)) return name.attention;
  return std::nullopt;
}

void read_offloading(const std::string& notes, Strategy& strategy) {
  if (contains(lower_case(notes), "adamw offload"))
    strategy.offload_optimizer = OptimizerOffload::kCpu;
  strategy.offload_activation_layers =
      number_after(notes, "cpu_offloading_num_layers=").value_or(0);
}

void read_state_types(const std::string& notes, bool narrow, Optimizer& optimizer,
                      Framework& framework) {
  const bool is_pure = narrow || contains(notes, "pure bf16") || contains(notes, "bf16-true");
  if (!is_pure && !contains(notes, "adamw in bf16")) return;
  optimizer.first_moment = optimizer.second_moment = optimizer.master = DType::kBf16;
  if (!is_pure) return;
  framework.gradient_dtype = DType::kBf16;
  framework.shards.fp32 = false;
}

std::optional<Adapters> adapters_of(const TrainingRow& row, std::vector<std::string>& assumed) {
  const std::string notes = lower_case(row.notes);
  constexpr std::array<std::string_view, 4> kWords{"finetuning lora", "lora finetuning",
                                                   "task=lora", "lora rank"};
  if (std::ranges::none_of(kWords, [&](std::string_view word) { return contains(notes, word); }))
    return std::nullopt;
  const std::string who = lower_case(row.source + " " + row.framework);
  const auto recipe = std::ranges::find_if(
      adapter_recipes(), [&](const AdapterRecipe& one) { return contains(who, one.framework); });
  assumed.emplace_back("adapters");
  return Adapters{.rank = number_after(notes, "lora rank ").value_or(recipe->rank),
                  .targets = recipe->targets,
                  .dropout = recipe->dropout,
                  .base = contains(notes, "nf4") ? AdapterBase::kNf4 : AdapterBase::kPlain};
}

}  // namespace foreshard::accuracy
