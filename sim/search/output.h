/// \file
/// A search's result as text for people, as JSON (schema foreshard.search/1) and as CSV.
///
/// Sizes in the JSON are as in foreshard.prediction/1 (sim/report/json.h): a strategy fits if its
/// peak is at most `capacity_bytes` - `reserve_bytes`. `gap` and `certified_within` are null where
/// nothing that fits was found; `nearest` is null where something was. `use` names the nodes of a
/// place (device_subset.h); empty: the study's own `use`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/yaml/loader.h"

#include "sim/search/asked.h"
#include "sim/search/search.h"

namespace foreshard::search {

/// The opening of an answer in which no strategy keeps the memory margin; else empty.
std::string tight_text(const SearchResult& result);
/// A sentence that the answer keeps some of its memory on hosts because nothing fits without; else
/// empty.
std::string needs_hosts_text(const SearchResult& result);

/// The `top` best strategies, what dominates each, why the others lost, and how sure the winner is.
std::string search_text(const study::LoadedStudy& study, const SearchResult& result,
                        std::int64_t top);
/// \param asked  the question, so that `explain` can ask it again.
std::string search_json(const study::LoadedStudy& study, const SearchResult& result,
                        std::int64_t top, const Asked& asked = {});
/// The overrides that turn a study's strategy into this one: "strategy.tensor_parallel" = "8", ...
std::vector<yaml::Override> settings_of(const Simulated& one);
/// "20.2 ms behind: bubble +54.5 ms, compute -38.6 ms": the parts of the step in which `one`
/// differs most from the first.
std::string difference_text(const Simulated& first, const Simulated& one);
/// How often the first is the fastest with drawn parameters; empty where that was not tried.
std::string robustness_text(const SearchResult& result);
nlohmann::ordered_json robustness_json(const SearchResult& result);
std::string why_not_text(const WhyNot& why);
nlohmann::ordered_json why_not_json(const WhyNot& why);
/// How much faster `one` would have to get to win: "it would have to lose 20.2 ms of the 54.5 ms
/// that its bubble takes more". \pre `one` is slower than `first`.
std::string remedy_text(const Simulated& first, const Simulated& one);
/// The memory that a strategy lacks which does not fit, in numbers.
std::string missing_text(const Nearest& nearest);
/// Why no strategy of the space can be tried, by cause.
std::string nothing_suits(const SearchResult& result);
/// CSV with a line for each of the `top` best strategies.
std::string search_csv(const SearchResult& result, std::int64_t top);

}  // namespace foreshard::search
