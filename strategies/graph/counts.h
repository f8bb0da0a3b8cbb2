/// \file
/// Arithmetic of a graph's matrix products, convolutions and attention, by which MFU is measured.
/// model.h has the same of a transformer, and its numbers of parameters; both are counted from its
/// graphs.
#pragma once

#include "base/units.h"

#include "strategies/graph/graph.h"

namespace foreshard {

/// Arithmetic of a forward pass. Shapes are whole, not one rank's; branches count with their
/// probability.
Flops product_flops(const Graph& graph);

/// Arithmetic of a forward and a backward pass. A product has one product backward for each of its
/// two factors that depends on something trained; attention costs twice as much backward as
/// forward.
/// Not modelled: that before the first iteration of a loop nothing may be trained.
Flops step_flops(const Graph& graph);

}  // namespace foreshard
