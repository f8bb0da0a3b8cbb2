/// \file
/// Groupings of the devices for a general graph (R3.1): every factorisation of their number into
/// sizes of the mesh axes "tensor", "data" and the axes of the study's graph (graph.axes). A
/// pipeline keeps the stages that the study gives it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/search/device_subset.h"
#include "sim/study/study.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

struct Grouping {
  /// The study's strategy with this grouping's sizes, micro-batch and granularity.
  Strategy strategy{};
  DeviceSubset place{};          ///< The place whose first devices its ranks run on.
  std::vector<MeshAxis> axes{};  ///< Axes other than tensor, data and pipeline.

  std::vector<MeshAxis> mesh() const;
};

struct Groupings {
  std::vector<Grouping> all{};
  /// Counts of groupings that the study's strategy, graph or batch forbid, by what is wrong and
  /// what would do.
  std::map<std::string, std::int64_t> refused{};
};

/// The groupings of all devices of each place and, where their number is no power of two, of the
/// largest power of two below it; with a pipeline, these are the devices per stage. Groupings on
/// the same devices as in an earlier place are not tried again.
/// \param two_levels  whether data-parallel ranks over which the batch does not divide become,
///     where there are tensor ranks too, an axis "outer" instead of "data": a dimension may then be
///     split first over one of the two axes and then over the other (R3.4).
/// \pre the study has a graph.
Groupings groupings_of(const study::LoadedStudy& study, const std::vector<DeviceSubset>& places,
                       bool two_levels);

}  // namespace foreshard::search
