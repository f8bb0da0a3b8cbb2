/// \file
/// The rules of the library: each in its file of rules/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/graph/annotate.h"
#include "strategies/graph/graph.h"

namespace foreshard::search::internal {

/// \return the annotations; nothing where the graph has not the pattern.
using MakeRule = std::optional<std::vector<Annotation>>(const Graph& graph,
                                                        const std::vector<MeshAxis>& mesh,
                                                        std::int64_t batch);

/// What a study without annotations does (annotate.h): the batch over "data", matrices over
/// "tensor", in pairs of columns and rows as Megatron-LM (Shoeybi et al. 2019), tables by rows.
MakeRule megatron;
/// The batch over every axis, parameters whole on every rank.
MakeRule data_parallel;
/// Tables that are looked up by rows over all axes, the batch over all axes elsewhere: an
/// all-to-all lies between (Naumov et al., arXiv 1906.00091, section 3.1, cuts tables so among
/// devices).
MakeRule table_rows;

}  // namespace foreshard::search::internal
