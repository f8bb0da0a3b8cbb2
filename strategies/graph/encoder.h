/// \file
/// An encoder before a decoder, whose layers attend to what it makes of its input (T5, Whisper).
///
/// Of the model's layers the first ones are the encoder's. They read tokens of their own, all of
/// them at once, without a mask; behind the last of them stands a norm. Each of the others has,
/// behind its attention to the decoder's tokens, a second one: queries from the decoder's stream,
/// keys and values from the encoder's states. Its projections are split as those of the first one
/// are: queries, keys and values by column (by heads), the output by row. Source: Vaswani et al.,
/// "Attention is all you need", 2017, section 3.1; NVIDIA/Megatron-LM,
/// megatron/core/transformer/attention.py (CrossAttention: linear_q from the stream, linear_kv from
/// key_value_states, both by column).
///
/// Positions `learned` are a table of each; of frames of sound the encoder's is of sines, and is
/// not trained. Positions `relative` (T5): the first layer of either has a table, one row for each
/// range of distances, one column for each head, which is added to its scores. Source: Raffel et
/// al., "Exploring the limits of transfer learning with a unified text-to-text transformer", JMLR
/// 2020, section 2.1. Not modelled: that later layers add the same, and what that adds to the
/// table's gradient: kernels are those without.
#pragma once

#include <cstdint>
#include <string>

#include "base/yaml/table.h"

namespace foreshard {

struct Model;

struct Encoder {
  std::int64_t layers = 0;    ///< Of the model's, the first.
  std::int64_t sequence = 0;  ///< Tokens of a sample that it reads.
  /// Values of a frame of sound; 0: it reads tokens of the decoder's vocabulary. Two convolutions
  /// over time, of three frames each, the second of which halves them, make tokens of frames
  /// (Whisper).
  std::int64_t mel_bins = 0;

  static constexpr std::int64_t kWidth = 3;  ///< Frames that a convolution sees.
};

const yaml::Table<Encoder>& yaml_table(const Encoder*);

/// Rows of a table of relative positions. Source: huggingface/transformers,
/// models/t5/configuration_t5.py (relative_attention_num_buckets).
inline constexpr std::int64_t kRelativeBuckets = 32;

/// Multiplications by the matrices of a layer's attention to the encoder, of one sample: queries
/// and results are of the decoder's tokens, keys and values of the encoder's.
/// \pre the model has an encoder.
double cross_attention_products(const Model& model);

/// Of the table of positions of frames of sound, which is not trained.
std::int64_t elements_of_sines(const Model& model);

/// What is wrong with a model's encoder, or with relative positions; empty if nothing is.
std::string fault_in_encoder(const Model& model);

}  // namespace foreshard
