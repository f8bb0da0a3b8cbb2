/// \file
/// The parts of a transformer layer. Each operator belongs to one; recomputation selects by part.
#pragma once

#include <cstdint>

#include "base/yaml/names.h"

namespace foreshard {

/// Parts in the order of a layer. Operators of general graphs, of the embedding and of the head
/// have kNone.
enum class Part : std::uint8_t {
  kNone,
  kNorm,           ///< The norms around attention and the feed-forward layer.
  kQkv,            ///< The product that makes queries, keys and values, and their norms.
  kRope,           ///< The rotation of queries and keys.
  kCoreAttention,  ///< Scores, softmax, dropout, and the product with the values.
  kAttentionOut,   ///< The output projection of attention.
  kMlpGate,        ///< The product of the gate, if it is separate from kMlpUp.
  kMlpUp,
  kActivation,
  kMlpDown,
  kRouting,  ///< Choice of experts, dispatch of tokens, mixture of results.
  kExpertsUp,
  kExpertActivation,
  kExpertsDown,
  kSharedExperts,  ///< The shared experts (which every token passes), as a whole.
  kMamba,          ///< Convolution, scan and gated norm of a Mamba layer.
  kResidual,       ///< Addition of a branch to the stream, with bias and dropout.
  kAdapters,
};

/// Names of all values but kNone.
const yaml::Names<Part>& yaml_names(const Part*);

/// Whether recomputation of the part keeps the results that other parts read. True only for core
/// attention; all other parts drop their results, too, and recompute them for their readers.
/// Source: Megatron-LM, megatron/core/tensor_parallel/random.py (`checkpoint` of core attention,
/// `CheckpointWithoutOutput` of norms and activations).
bool keeps_results(Part part);

}  // namespace foreshard
