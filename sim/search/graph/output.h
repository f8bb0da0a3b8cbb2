/// \file
/// The result of a search of a graph as text for people, as JSON (schema foreshard.graph_search/1)
/// and as CSV. The text has the winner's strategy and annotations as YAML to paste into the study.
#pragma once

#include <cstdint>
#include <string>

#include "base/page.h"
#include "base/record/forward.h"

#include "sim/search/asked.h"
#include "sim/search/graph/search.h"

namespace foreshard::search {

std::string graph_search_text(const study::LoadedStudy& study, const GraphSearchResult& result,
                              std::int64_t top, const Paper& paper = {});
/// \param asked  the question, without its digests.
std::string graph_search_json(const study::LoadedStudy& study, const GraphSearchResult& result,
                              std::int64_t top, Asked asked = {});

/// The result with its question.
struct GraphSearchReport {
  const study::LoadedStudy* study;
  const GraphSearchResult* result;
  std::int64_t top;  ///< Plans that are listed.
  Asked asked;
};
const record::Record<GraphSearchReport>& record_of(const GraphSearchReport*);

/// CSV with a line for each of the `top` best plans.
std::string graph_search_csv(const GraphSearchResult& result, std::int64_t top);

/// YAML of the keys with which the study runs as the candidate does: `graph.axes`,
/// `graph.annotations`, and the sizes under `strategy`.
std::string study_keys_of(const GraphCandidate& candidate, const Graph& graph);

}  // namespace foreshard::search
