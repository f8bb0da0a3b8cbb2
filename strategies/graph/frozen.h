/// \file
/// Frozen (not trained) parts of a model: at its front the embedding, the first layers, or both;
/// and its output projection.
///
///     model: {frozen: {embedding: true, layers: 16}}
///
/// Frozen parameters have no gradients, no reductions and no optimizer states. Before the first
/// trained part nothing runs backward, and no activations are kept; frozen parts after it pass
/// gradients on.
/// Not modelled: frozen layers after trained ones; frozen parts of layers.
#pragma once

#include <cstdint>

#include "base/yaml/table.h"

namespace foreshard {

struct Frozen {
  bool embedding = false;   ///< The embedding, with its positions and its norm.
  std::int64_t layers = 0;  ///< The first `layers` layers.
  bool head = false;        ///< The last norm and the output projection.
};
const yaml::Table<Frozen>& yaml_table(const Frozen*);

}  // namespace foreshard
