/// \file
/// Encoders: before a decoder whose layers attend to the encoder's output (T5, Whisper), or alone,
/// with heads that read its states and perhaps images in place of tokens (BERT, ViT).
///
/// Before a decoder, the first layers of the model belong to the encoder. They read tokens of their
/// own, all of them at once, without a mask; a norm follows the last one. The other layers are the
/// decoder's. Each has a second attention after its self-attention (cross-attention): queries from
/// the decoder's stream, keys and values from the encoder's states. The projections of both are
/// split in the same way: queries, keys and values by column (by heads), the output by row. Source:
/// Vaswani et al., "Attention is all you need", 2017, section 3.1; NVIDIA/Megatron-LM,
/// megatron/core/transformer/attention.py (CrossAttention: linear_q from the stream, linear_kv from
/// key_value_states, both by column).
///
/// Positions `learned`: encoder and decoder have a table each; for frames of sound the encoder's
/// table holds sines and is not trained. Positions `relative` (T5): the first layer of the encoder
/// and of the decoder has a table, one row for each range of distances, one column for each head,
/// which is added to its attention scores. Source: Raffel et al., "Exploring the limits of transfer
/// learning with a unified text-to-text transformer", JMLR 2020, section 2.1. Not modelled: later
/// layers add the same table, and contribute to its gradient; their kernels are counted without it.
#pragma once

#include <cstdint>
#include <string>

#include "base/yaml/table.h"

namespace foreshard {

struct Model;

struct Encoder {
  std::int64_t layers = 0;    ///< The encoder's layers: the first ones of the model.
  std::int64_t sequence = 0;  ///< Tokens of a sample that the encoder reads.
  /// Values of a frame of sound; 0: the encoder reads tokens of the decoder's vocabulary. Two
  /// convolutions over time, each over three frames, turn frames into tokens; the second one halves
  /// their number (Whisper).
  std::int64_t mel_bins = 0;

  static constexpr std::int64_t kWidth = 3;  ///< Frames under the window of a convolution.
};

const yaml::Table<Encoder>& yaml_table(const Encoder*);

/// Rows of a table of relative positions. Source: huggingface/transformers,
/// models/t5/configuration_t5.py (relative_attention_num_buckets).
inline constexpr std::int64_t kRelativeBuckets = 32;

/// What is wrong with a model's encoder, or with relative positions; empty if nothing is.
std::string fault_in_encoder(const Model& model);

// What precedes and follows the layers of a model where that is not an embedding of tokens and a
// projection to the vocabulary: patches of images, and heads that read the states of an encoder.

/// What is computed from the final state of every token. With kNone and no classes, the states are
/// the model's output, and the backward pass begins with their gradient.
///
/// Not modelled: the computation that produces that gradient.
enum class Head : std::uint8_t { kLanguage, kMasked, kNone };

/// Images in place of tokens. Each image is cut into squares (patches) that do not overlap, and a
/// product turns each square into a token; a learned token, the class token, precedes them. Source:
/// Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, section 3.1. Not modelled: the
/// copy that brings the values of a square together (done by the data loader or by the kernel of a
/// convolution).
struct Image {
  std::int64_t size = 0;      ///< Pixels of a side of the image.
  std::int64_t patch = 0;     ///< Pixels of a side of a square.
  std::int64_t channels = 3;  ///< Values of a pixel.

  std::int64_t patches() const { return (size / patch) * (size / patch); }
  std::int64_t tokens() const { return patches() + 1; }
  std::int64_t patch_values() const { return patch * patch * channels; }
};

const yaml::Names<Head>& yaml_names(const Head*);
const yaml::Table<Image>& yaml_table(const Image*);

/// What is wrong with a model's ends, or with a model that has no causal mask; empty if nothing is.
std::string fault_in_ends(const Model& model);

}  // namespace foreshard
