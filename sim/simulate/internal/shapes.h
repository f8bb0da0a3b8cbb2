/// \file
/// Flat communications as shapes of the engine.
#pragma once

#include <map>
#include <span>
#include <utility>

#include "sim/engine/workload.h"
#include "sim/simulate/fold.h"

namespace foreshard::sim::internal {

/// (communicator class, bytes in the base unit) -> shape.
using CommunicationShapes = std::map<std::pair<std::int32_t, double>, engine::Shape>;

/// \param links  class of links -> its resource.
/// \param sm  class of ranks -> the SMs of its device.
///
/// Cost: O(loads of all communicators).
CommunicationShapes communication_shapes(const ClusterView& cluster,
                                         const Communicators& communicators,
                                         const CommunicatorForms& forms, const Folding& folding,
                                         std::span<const engine::ResourceId> links,
                                         std::span<const engine::ResourceId> sm);

}  // namespace foreshard::sim::internal
