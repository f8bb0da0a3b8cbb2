/// \file
/// Encoders, alone and before a decoder, small enough to train a step of in double precision.
#pragma once

#include "tests/strategies/execute/tiny_models.h"

namespace foreshard {

/// BERT's kind: no mask, norms after the sum, types of tokens, both of its heads.
inline Model tiny_bert() {
  return written_model(
      "name: tiny bert, layers: 4, hidden: 16, heads: 4, vocabulary: 21, sequence: 8, "
      "causal: false, token_types: 2, embedding_norm: true, norm_places: after-sum, head: masked, "
      "head_bias: true, pooler: true, classes: 3");
}

/// ViT's kind: nine squares of an image and the class token.
inline Model tiny_vit() {
  return written_model(
      "name: tiny vit, layers: 4, hidden: 16, heads: 4, sequence: 10, causal: false, "
      "image: {size: 6, patch: 2, channels: 3}, head: none, classes: 5, dropout: false");
}

/// T5's kind: RMS norms, relative positions, heads narrower than the stream divided by them, and a
/// table for encoder, decoder and, if `tied`, output.
inline Model tiny_t5(bool tied) {
  Model model = tiny_gpt();
  model.name = tied ? "tiny t5" : "tiny t5 with a gate";
  model.layers = 5;
  model.head_dim = 3;
  model.ffn = 24;
  model.sequence = 4;
  model.encoder = Encoder{.layers = 2, .sequence = 8};
  model.norm = Norm::kRmsNorm;
  model.positions = Positions::kRelative;
  model.bias = false;
  model.activation = tied ? Activation::kGelu : Activation::kSwiglu;
  model.tied_embeddings = tied;
  model.dropout = tied;
  return model;
}

/// Whisper's kind: frames of sound, keys without a bias, tables of positions.
inline Model tiny_whisper() {
  return written_model(
      "name: tiny whisper, layers: 4, hidden: 16, heads: 4, vocabulary: 21, sequence: 4, "
      "position_table: 6, key_bias: false, encoder: {layers: 1, sequence: 8, mel_bins: 3}, "
      "dropout: false");
}

inline std::vector<Model> tiny_encoders() {
  return {tiny_bert(), tiny_vit(), tiny_t5(true), tiny_t5(false), tiny_whisper()};
}

}  // namespace foreshard
