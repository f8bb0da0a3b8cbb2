/// \file
/// A solved problem of choices (tables.h) as annotations of the graph, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

#include "sim/search/graph/tables.h"
#include "strategies/graph/annotate.h"
#include "strategies/graph/sharding.h"

namespace foreshard::search {

/// The annotations that make distribute() split every operator, and lay every activation, as
/// `choice` says.
std::vector<Annotation> annotations_of(const Graph& graph, const Tables& tables,
                                       const std::vector<std::size_t>& choice,
                                       const std::vector<MeshAxis>& mesh);

/// Those of `annotations` without which the sharded graph would be another one; the others follow
/// from them. Where the graph has more than a thousand operators all are kept.
/// Cost: O(annotations) distributions of the graph.
std::vector<Annotation> needed_of(const Graph& graph, const std::vector<MeshAxis>& mesh,
                                  std::int64_t batch, std::vector<Annotation> annotations);

/// What a sharded graph chose; nothing where it chose what the tables do not have (slices of
/// unequal size, summands that several operators hand on).
std::optional<std::vector<std::size_t>> choice_of(const Graph& graph, const Tables& tables,
                                                  const ShardedGraph& sharded);

/// As a list to paste into a study: a line for each, `indent` blanks before it; of a graph's
/// operators with their rules as comments.
std::string yaml_of(const std::vector<Annotation>& annotations, std::size_t indent,
                    const Graph* graph = nullptr);

}  // namespace foreshard::search
