/// \file
/// Small models that tests lower and count by hand.
#pragma once

#include <cstdint>

#include "tests/strategies/graph/written_model.h"

#include "strategies/graph/model.h"

namespace foreshard::lower {

/// The shape of Llama 3 8B, small: grouped heads, RMSNorm, rotary positions, SwiGLU, no biases.
inline Model small_llama(std::int64_t layers) {
  return written_model("name: small Llama, layers: " + std::to_string(layers) +
                       ", hidden: 32, heads: 4, kv_heads: 2, ffn: 64, vocabulary: 512, sequence: "
                       "64, norm: rms-norm, activation: swiglu, positions: rotary, bias: false, "
                       "tied_embeddings: false, dropout: false");
}

/// Four layers of width 8, whose vocabulary of 12 is not tied.
inline Model tiny_gpt() {
  return written_model(
      "name: tiny GPT, layers: 4, hidden: 8, heads: 4, vocabulary: 12, sequence: 4, "
      "tied_embeddings: false");
}

}  // namespace foreshard::lower
