/// \file
/// The rules of the library; each has its own file in rules/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/graph/annotate.h"
#include "strategies/graph/graph.h"

namespace foreshard::search::internal {

/// \return the annotations; nothing where the graph does not have the pattern.
using MakeRule = std::optional<std::vector<Annotation>>(const Graph& graph,
                                                        const std::vector<MeshAxis>& mesh,
                                                        std::int64_t batch);

/// What a study without annotations does (annotate.h): the batch over "data", matrices over
/// "tensor", in pairs of columns and rows as Megatron-LM (Shoeybi et al. 2019), tables by rows.
MakeRule megatron;
/// The batch over every axis, parameters whole on every rank.
MakeRule data_parallel;
/// Embedding tables are split by rows over all axes, and the batch over all axes elsewhere, with an
/// all-to-all between them (Naumov et al., arXiv 1906.00091, section 3.1, divides tables among
/// devices like that).
MakeRule table_rows;

}  // namespace foreshard::search::internal
