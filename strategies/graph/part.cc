#include "strategies/graph/part.h"

namespace foreshard {

const yaml::Names<Part>& yaml_names(const Part*) {
  static const yaml::Names<Part> names{
      {"norm", Part::kNorm, "The norms around attention and the feed-forward layer."},
      {"qkv", Part::kQkv, "The product that makes queries, keys and values, and their norms."},
      {"rope", Part::kRope, "The rotation of queries and keys."},
      {"core-attention", Part::kCoreAttention,
       "Scores, softmax, dropout, product with the values."},
      {"attention-out", Part::kAttentionOut, "The output projection of attention."},
      {"mlp-gate", Part::kMlpGate, "The product of the feed-forward layer's gate, if it is apart."},
      {"mlp-up", Part::kMlpUp,
       "Its first product, with that of the gate if there is one for both."},
      {"activation", Part::kActivation, "What stands between its products."},
      {"mlp-down", Part::kMlpDown, "Its last product."},
      {"routing", Part::kRouting, "Router, dispatch to the experts and mixture of their results."},
      {"experts-up", Part::kExpertsUp, "The first product of the routed experts."},
      {"expert-activation", Part::kExpertActivation, "What stands between their products."},
      {"experts-down", Part::kExpertsDown, "Their last product."},
      {"shared-experts", Part::kSharedExperts, "The experts that every token passes."},
      {"mamba", Part::kMamba, "Convolution, scan and gated norm of a Mamba layer."},
      {"residual", Part::kResidual, "What adds a branch to the stream, with bias and dropout."},
      {"adapters", Part::kAdapters, "What the adapters of linear layers compute."},
  };
  return names;
}

bool keeps_results(Part part) {
  return part == Part::kCoreAttention;
}

}  // namespace foreshard
