/// \file
/// Which part of a transformer's layer an operator belongs to: recomputation selects by part.
#pragma once

#include <cstdint>

#include "base/yaml/names.h"

namespace foreshard {

/// In the order of a layer. Operators of general graphs, of the embedding and of the head are of no
/// part.
enum class Part : std::uint8_t {
  kNone,
  kNorm,           ///< The norms around attention and the feed-forward layer.
  kQkv,            ///< The product that makes queries, keys and values, and their norms.
  kRope,           ///< Their rotation.
  kCoreAttention,  ///< Scores, softmax, dropout, and the product with the values.
  kAttentionOut,   ///< The product behind it.
  kMlpGate,        ///< The product of the gate, where it is one of its own.
  kMlpUp,
  kActivation,
  kMlpDown,
  kRouting,  ///< What chooses experts, brings tokens to them and mixes their results.
  kExpertsUp,
  kExpertActivation,
  kExpertsDown,
  kSharedExperts,  ///< The experts of all tokens, as a whole.
  kMamba,          ///< Convolution, scan and gated norm of a Mamba layer.
  kResidual,       ///< What adds a branch to the stream, with its bias and dropout.
  kAdapters,
};

/// Those that can be named: all but kNone.
const yaml::Names<Part>& yaml_names(const Part*);

/// Whether results that other parts read are kept when the part is computed again. Of attention
/// they are; of all others they are given up too, and made again for those who read them. Source:
/// Megatron-LM, megatron/core/tensor_parallel/random.py (`checkpoint` of core attention,
/// `CheckpointWithoutOutput` of norms and activations).
bool keeps_results(Part part);

}  // namespace foreshard
