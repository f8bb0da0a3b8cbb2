/// \file
/// Converts a solution of a problem of choices (tables.h) to annotations of the graph, and back.
/// A solution is a *choice*: variable -> index of its option. The search of graph shardings
/// (search.h) reports its best ones as annotations, and starts from the choice of a graph that is
/// sharded already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "sim/search/graph/tables.h"
#include "strategies/graph/annotate.h"
#include "strategies/graph/distribute.h"

namespace foreshard::search {

/// The annotations with which distribute() splits every operator, and lays out every activation, as
/// in `choice`.
std::vector<Annotation> annotations_of(const Graph& graph, const Tables& tables,
                                       const std::vector<std::size_t>& choice,
                                       const std::vector<MeshAxis>& mesh);

/// The annotations without which the sharded graph would differ; the others follow from them. All
/// are kept where the graph has more than a thousand operators, or where it cannot be sharded with
/// these annotations.
/// \param batch  samples in the graph's shapes.
/// Cost: O(annotations) distributions of the graph.
std::vector<Annotation> without_redundant(const Graph& graph, const std::vector<MeshAxis>& mesh,
                                          std::int64_t batch, std::vector<Annotation> annotations);

/// The choice that a sharded graph corresponds to. Nothing where the tables do not have it (slices
/// of unequal size, partial sums that pass through several operators).
std::optional<std::vector<std::size_t>> choice_of(const Graph& graph, const Tables& tables,
                                                  const ShardedGraph& sharded);

/// The annotations as a YAML list to paste into a study: one per line, after `indent` blanks; empty
/// for none. With `graph`, the rule of each operator that it has follows as a comment.
std::string yaml_of(const std::vector<Annotation>& annotations, std::size_t indent,
                    const Graph* graph = nullptr);

}  // namespace foreshard::search
