/// \file
/// Low-rank adapters (LoRA). Beside a linear layer whose weight W is frozen, two narrow matrices A
/// (in x rank) and B (rank x out) are trained:
///
///     y = x W + alpha / rank (x A) B
///
/// All other parameters of the model are frozen: they have no gradients and no optimizer states.
///
/// Tensor-parallel ranks hold parts of the adapters. If the layer is split by columns, a rank holds
/// columns of A and columns of B; if it is split by rows, rows of A and columns of B.
/// Source: Hu et al., "LoRA: Low-rank adaptation of large language models", ICLR 2022;
/// NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/peft/utils.py (ParallelLinearAdapter).
/// Not modelled: kernels that scale and add in one pass; ranks that gather the whole result of a
/// layer split by rows before each cuts out its tokens (the model has an all-to-all instead, as
/// Bridge's a2a_experimental); separate adapters of queries, keys and values, or of gate and up
/// projection; adapters of experts, of the embedding and of the head; with dropout, the second
/// gathering of the adapter's input.
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
  kPlain,  ///< Same type as other weights: the strategy's `precision`.
  kNf4,    ///< 4 bits; each product first converts the weight to 16 bits (QLoRA).
};
/// Bytes of a weight in nf4: 4 bits, plus 8 bits of scale for each 64 weights, plus 32 bits of
/// scale for each 256 of these scales (double quantization): 0.516 bytes.
/// Source: Dettmers et al., "QLoRA: Efficient finetuning of quantized LLMs", NeurIPS 2023,
/// section 3.
Bytes nf4_bytes();

struct Adapters {
  std::int64_t rank = 0;
  std::vector<AdapterTarget> targets{AdapterTarget::kQkv, AdapterTarget::kAttentionOut,
                                     AdapterTarget::kMlpUp, AdapterTarget::kMlpDown};
  bool dropout = false;  ///< Dropout on the adapter's input (what A reads).
  AdapterBase base = AdapterBase::kPlain;

  bool are_at(AdapterTarget target) const;
};

const yaml::Names<AdapterTarget>& yaml_names(const AdapterTarget*);
const yaml::Names<AdapterBase>& yaml_names(const AdapterBase*);
const yaml::Table<Adapters>& yaml_table(const Adapters*);

/// Frozen (not trained) parts of a model: at its front the embedding, the first layers, or both;
/// and its output projection.
///
///     model: {frozen: {embedding: true, layers: 16}}
///
/// Frozen parameters have no gradients, no reductions and no optimizer states. Before the first
/// trained part nothing runs backward, and no activations are kept; frozen parts after it pass
/// gradients on.
/// Not modelled: frozen layers after trained ones; frozen parts of layers.
struct Frozen {
  bool embedding = false;   ///< The embedding, with its positions and its norm.
  std::int64_t layers = 0;  ///< The first `layers` layers.
  bool head = false;        ///< The last norm and the output projection.
};
const yaml::Table<Frozen>& yaml_table(const Frozen*);

}  // namespace foreshard
