/// \file
/// What the result of a search says of its own choice, read back from the JSON that the search
/// wrote: why the first won, beside the second, term by term; its interval; what dominates it; how
/// sure it is. Results of models (foreshard.search/1) and of graphs (foreshard.graph_search/1).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "sim/search/asked.h"
#include "sim/search/search.h"

namespace foreshard::search {

/// A result as far as it is explained.
struct ReadResult {
  std::string schema{};   ///< "foreshard.search/1".
  std::string subject{};  ///< The model, or the graph.
  std::string cluster{};
  std::string framework{};
  std::int64_t global_batch = 0;
  /// Its strategies as the result lists them, with their time, interval, memory and breakdown;
  /// of a model also the knobs of each. Counts and bounds as far as the result has them.
  SearchResult found{};
  std::vector<std::string> words{};  ///< Of each strategy.
  /// What makes the study's strategy each of them, as `--set` takes it (settings_of).
  std::vector<std::vector<yaml::Override>> settings{};
  std::int64_t number = 2;       ///< Of what stands second, counted from 1; see beside().
  std::int64_t overlapping = 0;  ///< As SearchResult::overlapping(), of all that were simulated.
  Asked asked{};
  std::map<std::string, std::string> digests{};  ///< Of the study, as digests_of() made them.

  bool is_of_model() const { return schema == "foreshard.search/1"; }
};

/// Whether a JSON of that schema is the result of a search.
bool is_result_schema(std::string_view schema);

/// \return kInvalidInput if `json` is no result of a search, or one that another version wrote.
Result<ReadResult> read_result(std::string_view json);

/// With the strategy of that index in the second one's place, beside which the first is explained.
ReadResult beside(ReadResult result, std::size_t index);

std::string explanation_text(const ReadResult& result, const std::optional<WhyNot>& why_not);
/// Schema foreshard.explanation/1.
std::string explanation_json(const ReadResult& result, const std::optional<WhyNot>& why_not);

}  // namespace foreshard::search
