/// \file
/// Parts of a model that are not trained, from its front: the embedding, the first layers, or both;
/// and its output projection.
///
///     model: {frozen: {embedding: true, layers: 16}}
///
/// Of frozen parameters there are no gradients, no reductions and no optimizer states. Below the
/// lowest part that is trained nothing runs backward, and nothing is kept for it; what is frozen
/// above it hands gradients on.
/// Not modelled: layers that are frozen behind trained ones; parts of layers.
#pragma once

#include <cstdint>

#include "base/yaml/table.h"

namespace foreshard {

struct Frozen {
  bool embedding = false;   ///< With positions and the norm behind it.
  std::int64_t layers = 0;  ///< The first so many.
  bool head = false;        ///< The last norm and the output projection.
};
const yaml::Table<Frozen>& yaml_table(const Frozen*);

}  // namespace foreshard
