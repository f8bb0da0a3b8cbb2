/// \file
/// Groupings of the devices for a general graph (R3.1): every integer factorisation of their number
/// onto the mesh axes "tensor", "data" and those of the study's graph (graph.axes). A pipeline
/// keeps the stages that the study gives it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/search/place.h"
#include "sim/study/study.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

struct Grouping {
  Strategy strategy{};           ///< With its parallel sizes, micro-batch and granularity.
  Place place{};                 ///< Whose first devices are those of its ranks.
  std::vector<MeshAxis> axes{};  ///< Beside tensor, data and pipeline.

  std::vector<MeshAxis> mesh() const;
};

struct Groupings {
  std::vector<Grouping> all{};
  /// Those that the study's strategy, graph or batch forbid: how many, by what is wrong and
  /// what would do.
  std::map<std::string, std::int64_t> refused{};
};

/// Of all devices of each place and, where their number is no power of two, of the largest power of
/// two below; for a pipeline, of as many as divide over its stages. On the same devices as those of
/// an earlier place none is tried again.
/// \param two_levels  whether ranks that the batch cannot be shared among are, beside tensor ranks,
///     an axis "outer" of these instead of "data": a dimension may be split by one and then by the
///     other (R3.4).
/// \pre the study has a graph.
Groupings groupings_of(const study::LoadedStudy& study, const std::vector<Place>& places,
                       bool two_levels);

}  // namespace foreshard::search
