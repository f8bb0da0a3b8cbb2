/// \file
/// Encoders, alone and before a decoder, small enough to train a step of in double precision.
#pragma once

#include "tests/strategies/execute/tiny_models.h"

namespace foreshard {

/// BERT's kind: no mask, norms after the sum, types of tokens, both of its heads.
inline Model tiny_bert() {
  Model model = tiny_gpt();
  model.name = "tiny bert";
  model.causal = false;
  model.token_types = 2;
  model.embedding_norm = true;
  model.norm_places = NormPlaces::kAfterSum;
  model.head = Head::kMasked;
  model.head_bias = true;
  model.pooler = true;
  model.classes = 3;
  return model;
}

/// ViT's kind: nine squares of an image and the class token.
inline Model tiny_vit() {
  Model model = tiny_gpt();
  model.name = "tiny vit";
  model.vocabulary = 0;
  model.causal = false;
  model.image = Image{.size = 6, .patch = 2, .channels = 3};
  model.sequence = 10;
  model.head = Head::kNone;
  model.classes = 5;
  model.dropout = false;
  return model;
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
  Model model = tiny_gpt();
  model.name = "tiny whisper";
  model.sequence = 4;
  model.position_table = 6;
  model.key_bias = false;
  model.encoder = Encoder{.layers = 1, .sequence = 8, .mel_bins = 3};
  model.dropout = false;
  return model;
}

inline std::vector<Model> tiny_encoders() {
  return {tiny_bert(), tiny_vit(), tiny_t5(true), tiny_t5(false), tiny_whisper()};
}

}  // namespace foreshard
