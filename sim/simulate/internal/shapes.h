/// \file
/// Flat communications as shapes of the engine.
#pragma once

#include <map>
#include <span>
#include <utility>

#include "sim/engine/workload.h"
#include "sim/simulate/fold.h"

namespace foreshard::sim::internal {

/// By class of communicators and bytes (in_base).
using CommunicationShapes = std::map<std::pair<std::int32_t, double>, engine::Shape>;

/// \param links  per class of links, its resource.
/// \param sm  per class of ranks, its device's SMs.
/// Cost: O(loads of all communicators).
CommunicationShapes communication_shapes(const ClusterView& cluster,
                                         const Communicators& communicators,
                                         const CommunicatorForms& forms, const Folding& folding,
                                         std::span<const engine::ResourceId> links,
                                         std::span<const engine::ResourceId> sm);

}  // namespace foreshard::sim::internal
