/// \file
/// What stands before and behind the layers of a model, where that is not an embedding of tokens
/// and a projection to the vocabulary: patches of images, and what is read from the states of an
/// encoder.
#pragma once

#include <cstdint>
#include <string>

#include "base/yaml/table.h"

namespace foreshard {

struct Model;

/// What is made of the states behind the layers, token by token. Where nothing is, and no classes
/// are told either, the states go out, and the backward pass begins with their gradient.
///
/// Not modelled: what makes that gradient.
enum class Head : std::uint8_t { kLanguage, kMasked, kNone };

/// Images in place of tokens. Each is cut into squares that do not overlap, and a product makes a
/// token of each; before them stands a learned one, the class token. Source: Dosovitskiy et al.,
/// "An image is worth 16x16 words", ICLR 2021, section 3.1. Not modelled: that values of a square
/// are brought together (a copy that the data loader or the kernel of a convolution makes).
struct Image {
  std::int64_t size = 0;      ///< Pixels of a side.
  std::int64_t patch = 0;     ///< Likewise of a square.
  std::int64_t channels = 3;  ///< Values of a pixel.

  std::int64_t patches() const { return (size / patch) * (size / patch); }
  std::int64_t tokens() const { return patches() + 1; }
  std::int64_t patch_values() const { return patch * patch * channels; }
};

const yaml::Names<Head>& yaml_names(const Head*);
const yaml::Table<Image>& yaml_table(const Image*);

/// Elements of the parameters that stand before and behind the layers; a tied table once.
std::int64_t parameters_of_ends(const Model& model);
/// Multiplications of the products there, of one sample.
double products_of_ends(const Model& model);

/// What is wrong with a model's ends, or with a model that has no causal mask; empty if nothing is.
std::string fault_in_ends(const Model& model);

}  // namespace foreshard
