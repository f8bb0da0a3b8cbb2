/// \file
/// Low-rank adapters (LoRA): beside a linear layer whose weight W is frozen, two narrow matrices A
/// (in x rank) and B (rank x out) are trained,
///
///     y = x W + alpha / rank (x A) B
///
/// and nothing else of the model is: of frozen parameters there are no gradients and no optimizer
/// states.
///
/// Tensor-parallel ranks hold parts of the adapters: of a layer split by columns, of A's and of B's
/// columns; of one split by rows, of A's rows and of B's columns.
/// Source: Hu et al., "LoRA: Low-rank adaptation of large language models", ICLR 2022;
/// NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/peft/utils.py (ParallelLinearAdapter).
/// Not modelled: kernels that scale and add in one pass; ranks that gather the whole result of a
/// layer split by rows before each cuts out its tokens (an all-to-all is what is called: Bridge's
/// a2a_experimental); adapters of queries, keys and values, or of gate and up projection, by
/// themselves; adapters of experts, of the embedding and of the head; what the ranks gather is
/// gathered once more where adapters have dropout.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

namespace foreshard {

/// A linear layer that can have an adapter.
enum class AdapterTarget : std::uint8_t { kQkv, kAttentionOut, kMlpUp, kMlpDown };

/// How the frozen weights of a layer's linear layers are held.
enum class AdapterBase : std::uint8_t {
  kPlain,  ///< As `precision` says.
  kNf4,    ///< In 4 bits, and brought to 16 for each product (QLoRA).
};
/// Of a weight in nf4: 4 bits, a scale of 8 bits for each 64, and one of these of 32 bits for each
/// 256 (double quantization): 0.516 bytes.
/// Source: Dettmers et al., "QLoRA: Efficient finetuning of quantized LLMs", NeurIPS 2023,
/// section 3.
Bytes nf4_bytes();

struct Adapters {
  std::int64_t rank = 0;
  std::vector<AdapterTarget> targets{AdapterTarget::kQkv, AdapterTarget::kAttentionOut,
                                     AdapterTarget::kMlpUp, AdapterTarget::kMlpDown};
  bool dropout = false;  ///< Of what A reads.
  AdapterBase base = AdapterBase::kPlain;

  bool are_at(AdapterTarget target) const;
};

const yaml::Names<AdapterTarget>& yaml_names(const AdapterTarget*);
const yaml::Names<AdapterBase>& yaml_names(const AdapterBase*);
const yaml::Table<Adapters>& yaml_table(const Adapters*);

}  // namespace foreshard
