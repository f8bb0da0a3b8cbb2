/// \file
/// The result of a search of a graph as text for people, as JSON (schema foreshard.graph_search/1)
/// and as CSV. The winner's strategy and annotations stand there as YAML to paste into the study.
#pragma once

#include <cstdint>
#include <string>

#include "sim/search/asked.h"
#include "sim/search/graph/search.h"

namespace foreshard::search {

std::string graph_search_text(const study::LoadedStudy& study, const GraphSearchResult& result,
                              std::int64_t top);
std::string graph_search_json(const study::LoadedStudy& study, const GraphSearchResult& result,
                              std::int64_t top, const Asked& asked = {});
/// A line for each of the `top` best plans.
std::string graph_search_csv(const GraphSearchResult& result, std::int64_t top);

/// The study's keys that make it run as the candidate does: `graph.axes`, `graph.annotations`,
/// `strategy`'s sizes.
std::string study_keys_of(const GraphCandidate& candidate, const Graph& graph);

}  // namespace foreshard::search
