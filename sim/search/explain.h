/// \file
/// Explains the choice of a search from the JSON that the search wrote: why the first strategy won
/// against the second, term by term; its interval; what dominates its step; how sure the choice is.
/// Reads results for models (foreshard.search/1) and for graphs (foreshard.graph_search/1).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"
#include "base/result.h"
#include "base/yaml/loader.h"

#include "sim/search/asked.h"
#include "sim/search/search.h"

namespace foreshard::search {

/// The parts of a result that are explained.
struct ReadResult {
  std::string schema{};   ///< "foreshard.search/1".
  std::string subject{};  ///< The model, or the graph.
  std::string cluster{};
  std::string framework{};
  std::int64_t global_batch = 0;
  /// The strategies that the result lists, with their time, interval, memory and breakdown, and for
  /// a model also their knobs; and the counts and bounds that the result has.
  SearchResult found{};
  std::vector<std::string> words{};  ///< One description per strategy.
  /// One per strategy: the overrides, as for `--set`, that turn the study's strategy into it
  /// (settings_of).
  std::vector<std::vector<yaml::Override>> settings{};
  std::int64_t number = 2;  ///< Rank (from 1) of the strategy that stands second; see beside().
  std::int64_t overlapping = 0;  ///< SearchResult::overlapping() over all simulated strategies.
  Asked asked{};

  bool is_of_model() const { return schema == "foreshard.search/1"; }
};

/// Whether a JSON of that schema is the result of a search.
bool is_result_schema(std::string_view schema);

/// \return kInvalidInput if `json` is no result of a search, or one that another version wrote.
Result<ReadResult> read_result(std::string_view json);

/// The result with the strategy of that index moved to the second place, with which the first is
/// compared.
ReadResult beside(ReadResult result, std::size_t index);

/// With `found.why_not`, if it is set. The JSON has the schema foreshard.explanation/1.
std::string explanation_text(const ReadResult& result, const Paper& paper = {});
std::string explanation_json(const ReadResult& result);
const record::Record<ReadResult>& record_of(const ReadResult*);

}  // namespace foreshard::search
