#include "validate/accuracy/catalogue_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/text.h"

#include "strategies/parallelism/framework.h"
#include "topology/device_type.h"

namespace foreshard::accuracy {
namespace {

struct DeviceLine {
  std::string_view word;
  double memory_gb;
  std::string_view name;
  bool rare = false;  // meant only where its capacity is said
};
// The first word that fits decides the kind; of one kind, the last line is the usual one.
constexpr std::array kDevices{
    DeviceLine{"A100 PCIe", 40, "A100-PCIe-40GB"},
    DeviceLine{"A100 PCIe", 80, "A100-PCIe-80GB"},
    DeviceLine{"A100-PCIe", 40, "A100-PCIe-40GB"},
    DeviceLine{"A100-PCIe", 80, "A100-PCIe-80GB"},
    DeviceLine{"A100", 40, "A100-SXM-40GB"},
    DeviceLine{"A100", 80, "A100-SXM-80GB"},
    DeviceLine{"A800", 80, "A800-SXM-80GB"},
    DeviceLine{"GB200", 186, "GB200"},
    DeviceLine{"GB300", 279, "GB300"},
    DeviceLine{"B200", 180, "B200"},
    DeviceLine{"B300", 279, "B300"},
    DeviceLine{"GH200", 144, "GH200-144GB"},
    DeviceLine{"GH200", 96, "GH200-96GB"},
    DeviceLine{"H100 PCIe", 80, "H100-PCIe"},
    DeviceLine{"H100-PCIe", 80, "H100-PCIe"},
    DeviceLine{"H100 NVL", 94, "H100-NVL"},
    DeviceLine{"H100-NVL", 94, "H100-NVL"},
    DeviceLine{"H100", 96, "H100-SXM-96GB", true},
    DeviceLine{"H100", 80, "H100-SXM"},
    DeviceLine{"H200", 141, "H200-SXM"},
    DeviceLine{"H800", 80, "H800-SXM"},
    DeviceLine{"V100", 16, "V100-SXM-16GB"},
    DeviceLine{"V100", 32, "V100-SXM-32GB"},
    DeviceLine{"A40", 48, "A40"},
    DeviceLine{"L40S", 48, "L40S"},
    DeviceLine{"4090", 24, "RTX-4090"},
    DeviceLine{"RTX PRO 6000", 96, "RTX-PRO-6000"},
    DeviceLine{"MI300X", 192, "MI300X"},
    DeviceLine{"MI325X", 256, "MI325X"},
    DeviceLine{"MI355X", 288, "MI355X"},
};

struct FrameworkLine {
  std::string_view framework;
  std::string_view source;
  NamedFramework named;
  std::string_view notes = "";
};

// Blocks go to a stage until the costs of all of them so far are more than the shares of the stages
// so far. Costs are numbers of weights, with as many heads of keys as of queries. Source:
// huggingface/nanotron 01de8d94548f, src/nanotron/models/base.py (build_model) and llama.py
// (get_block_compute_costs).
std::vector<std::int64_t> layers_by_cost(const Model& model, std::int64_t stages) {
  const std::int64_t layer = model.hidden * (4 * model.hidden + 3 * model.ffn_width());
  const std::int64_t all = model.layers * layer + model.hidden * model.vocabulary;
  std::vector<std::int64_t> split(static_cast<std::size_t>(stages));
  std::int64_t stage = 0;
  for (std::int64_t cost = layer; cost <= model.layers * layer; cost += layer) {
    ++split[static_cast<std::size_t>(stage)];
    if (cost * stages > all * (stage + 1)) ++stage;
  }
  return split;
}

// First line that fits, in upper or lower case. Megatron-LM of 2021 and before is that of the SC
// 2021 paper; later ones up to early 2024 (still no flash attention, a host that waits for every
// pipeline transfer) add up gradients in products and reduce them beside others.
constexpr std::array kFrameworks{
    FrameworkLine{"BigScience", "", {"megatron-deepspeed-bloom", 0, false}},
    FrameworkLine{"Megatron-DeepSpeed", "", {"megatron-deepspeed", 0, false}},
    FrameworkLine{"DeepSpeed", "SC21", {"deepspeed-zero3-2021", 3, false}},
    FrameworkLine{"DeepSpeed", "", {"deepspeed-liger", 3, false}, "Liger"},
    FrameworkLine{"DeepSpeed", "", {"deepspeed-transformers", 3, false}},
    FrameworkLine{"llm-foundry", "", {"llm-foundry", 3, false}},
    FrameworkLine{"torchtitan", "", {"torchtitan-eager", 3, false}, "eager"},
    FrameworkLine{"torchtitan", "", {"torchtitan", 3, false}},
    FrameworkLine{"AutoModel", "", {"automodel", 3, false}, "TE + "},
    FrameworkLine{"Halo", "", {"halo", 3, false}},
    FrameworkLine{"FSDP", "", {"pytorch-fsdp", 3, false}},
    FrameworkLine{"InternEvo", "", {"internevo", 1, false}},
    FrameworkLine{"nanotron", "", {"nanotron", 1, false, {}, layers_by_cost}},
    FrameworkLine{"PaddleNLP", "", {"paddlenlp", 0, false}},
    FrameworkLine{"Megatron-LM", "SC21", {"megatron-lm-sc21", 0, false}},
    FrameworkLine{"Megatron-LM", "2020", {"megatron-lm-sc21", 0, false}},
    FrameworkLine{"Megatron-LM", "2021", {"megatron-lm-sc21", 0, false}},
    FrameworkLine{"Megatron-LM", "Korthikanti", {"megatron-lm-2022", 0, false}},
    FrameworkLine{"Megatron-LM", "OneFlow", {"megatron-lm-sc21", 0, false}},
    FrameworkLine{"Megatron-LM", "LiBai", {"megatron-lm-sc21", 0, false}},
    // Its scripts name a SentencePiece tokenizer (sail-sg/zero-bubble-pipeline-parallelism,
    // examples/pretrain_zero_bubble.sh). Derived, of how many words: of the paper's 1.5, 6.2, 14.6
    // and 28.3 G parameters, 22, 30, 46 and 62 layers leave between 26,500 and 34,500 rows of a
    // table.
    FrameworkLine{"Megatron-LM", "Zero Bubble", {"megatron-lm-2022", 0, false, 32000}},
    FrameworkLine{"Megatron-LM", "MegaScale (NSDI", {"megatron-lm-2022", 0, false}},
    FrameworkLine{"Megatron-LM", "mcore 0.8", {"megatron-core-0.8", 0, false}},
    // Papers of April and May 2025, before Megatron Core 0.13.
    FrameworkLine{"Megatron", "Parallel Folding", {"megatron-core-0.10", 0, false}},
    FrameworkLine{"Megatron", "MegaScale-MoE", {"megatron-core-0.10", 0, false}},
    FrameworkLine{"Megatron-Bridge", "", {"megatron-bridge", 0, false}},
    // The file that has steps logged so rarely has the loss fused, too (mlcommons/
    // training_results_v5.1, llama31_8b: config_common_8b.sh).
    FrameworkLine{"NeMo", "MLPerf Training v5.1", {"nemo-25.09", 0, false}, "every 32nd step"},
    FrameworkLine{"NeMo", "", {"nemo", 0, false}},
    FrameworkLine{"Megatron", "ModelZoo", {"megatron-core-moe", 0, false}},
    FrameworkLine{"Megatron", "moe_perf", {"megatron-core-moe", 0, false}},
    FrameworkLine{"Megatron", "", {"megatron-lm", 0, false}},
    FrameworkLine{"Pax/", "", {"paxml", 0, false}},
    FrameworkLine{"OneFlow", "", {"oneflow-libai", 0, false}},
    FrameworkLine{"LiBai", "", {"oneflow-libai", 0, false}},
    FrameworkLine{"", "", {"generic", 0, true}},
};

void make_gpt_oss(Model& model) {
  model.attention_bias = model.mlp_bias = model.router_bias = true;
  model.sinks = model.clamped_activation = true;
}

constexpr std::array kFamilies{
    Family{"llama3", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false, false,
           false, 128256, "meta-llama/Meta-Llama-3-8B: config.json"},
    Family{"llama-3", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false, false,
           false, 128256, "meta-llama/Meta-Llama-3-8B: config.json"},
    Family{"llama", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false, false,
           false, 32000, "meta-llama/Llama-2-7b: config.json"},
    Family{"mistral", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false, false,
           false, 32000, "mistralai/Mistral-7B-v0.1: config.json"},
    Family{"mixtral", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false, false,
           false, 32000, "mistralai/Mixtral-8x7B-v0.1: config.json"},
    Family{"qwen", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, true, false,
           false, 152064, "Qwen/Qwen2-7B: config.json"},
    Family{"deepseek", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false, false,
           false, 102400, "deepseek-ai/DeepSeek-V2: config.json"},
    Family{"gpt oss", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false, false,
           false, 201088, "openai/gpt-oss-120b: config.json", make_gpt_oss},
    Family{"gpt-oss", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false, false,
           false, 201088, "openai/gpt-oss-120b: config.json", make_gpt_oss},
    // Its three matrices and GELU cost what SwiGLU does.
    Family{"grok", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false, true,
           false, 131072, "xai-org/grok-1: run.py"},
    Family{"internal-352b", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false,
           false, false, 65536,
           "Jin et al., MegaScale-MoE, 2025 (352 B parameters: three matrices)"},
    Family{"baichuan", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, false, false,
           false, 125696, "baichuan-inc/Baichuan2-7B-Base: config.json"},
    Family{"internlm", Norm::kRmsNorm, Activation::kSwiglu, Positions::kRotary, false, true, false,
           false, 103168, "internlm/internlm-7b: config.json"},
    Family{"nemotron", Norm::kLayerNorm, Activation::kGelu, Positions::kRotary, false, false, false,
           false, 256000,
           "Parmar et al., Nemotron-4 15B, 2024 (squared ReLU costs what GELU does)"},
    Family{"mpt", Norm::kLayerNorm, Activation::kGelu, Positions::kLearned, true, false, true,
           false, 50368,
           "mosaicml/llm-foundry: scripts/train/yamls/pretrain/mpt-7b.yaml (biases and learned "
           "positions; the released models have neither)"},
    Family{"", Norm::kLayerNorm, Activation::kGelu, Positions::kLearned, true, false, true, true,
           50257, "openai-community/gpt2: config.json"},
};

struct HybridLine {
  std::string_view name;  ///< Lower case, of letters and digits alone; the row's begins with it.
  std::string_view entry;
};
constexpr std::array kHybrids{
    HybridLine{"nemotronv3nano", "nemotron-3-nano-30b-a3b"},
    HybridLine{"nemotron3nano", "nemotron-3-nano-30b-a3b"},
    HybridLine{"nemotronnano9bv2", "nemotron-nano-9b-v2"},
    HybridLine{"nemotronh8b", "nemotron-h-8b"},
    HybridLine{"nemotronh47b", "nemotron-h-47b"},
    HybridLine{"nemotronh56b", "nemotron-h-56b"},
};

}  // namespace

std::optional<NamedDevice> device_named(std::string_view gpu, std::optional<double> memory_gb) {
  for (const DeviceLine& kind : kDevices) {
    if (!contains(gpu, kind.word)) continue;
    const DeviceLine* usual = nullptr;
    std::int64_t variants = 0;
    for (const DeviceLine& line : kDevices) {
      if (line.word != kind.word) continue;
      usual = &line;
      if (!line.rare) ++variants;
      const bool printed = contains(gpu, std::to_string(static_cast<int>(line.memory_gb)) + "GB");
      const bool stated = memory_gb && std::abs(*memory_gb / line.memory_gb - 1) < 0.1;
      if (printed || stated) return NamedDevice{std::string(line.name), false, false};
    }
    return NamedDevice{std::string(usual->name), !memory_gb && variants > 1, memory_gb.has_value()};
  }
  return std::nullopt;
}

NamedFramework framework_named(std::string_view framework, std::string_view source,
                               std::string_view notes) {
  const std::string name = lower_case(framework);
  for (const FrameworkLine& line : kFrameworks)
    if (contains(name, lower_case(line.framework)) && contains(source, line.source) &&
        contains(notes, line.notes))
      return line.named;
  return kFrameworks.back().named;
}

const Family& family_named(std::string_view model_name) {
  const std::string name = lower_case(model_name);
  for (const Family& family : kFamilies)
    if (contains(name, family.word)) return family;
  return kFamilies.back();
}

std::optional<std::string_view> hybrid_named(std::string_view model_name) {
  std::string name = lower_case(model_name);
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  for (const HybridLine& line : kHybrids)
    if (name.starts_with(line.name)) return line.entry;
  return std::nullopt;
}

Status fault_of_catalogue(yaml::Loader& loader) {
  for (const DeviceLine& line : kDevices)
    if (const auto device = loader.read_ref<DeviceType>(line.name); !device) return device.error();
  for (const FrameworkLine& line : kFrameworks)
    if (const auto framework = loader.read_ref<Framework>(line.named.entry); !framework)
      return framework.error();
  for (const HybridLine& line : kHybrids)
    if (const auto model = loader.read_ref<Model>(line.entry); !model) return model.error();
  return {};
}

}  // namespace foreshard::accuracy
