/// \file
/// What precedes and follows the layers of a model where that is not an embedding of tokens and a
/// projection to the vocabulary: patches of images, and heads that read the states of an encoder.
#pragma once

#include <cstdint>
#include <string>

#include "base/yaml/table.h"

namespace foreshard {

struct Model;

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

/// Elements of the parameters before and after the layers; a tied table counts once.
std::int64_t parameters_of_ends(const Model& model);
/// Multiplications of the products before and after the layers, for one sample.
double products_of_ends(const Model& model);

/// What is wrong with a model's ends, or with a model that has no causal mask; empty if nothing is.
std::string fault_in_ends(const Model& model);

}  // namespace foreshard
