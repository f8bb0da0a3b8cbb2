/// \file
/// A search's result as text for people, as JSON (schema foreshard.search/1) and as CSV.
///
/// Sizes in the JSON are as in foreshard.prediction/1 (sim/report/json.h): a strategy fits if its
/// peak is at most `capacity_bytes` - `reserve_bytes`. `gap` and `certified_within` are null where
/// nothing that fits was found; `nearest` is null where something was. `use` names the nodes of a
/// place (device_subset.h); empty: the study's own `use`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/page.h"
#include "base/quantity.h"
#include "base/record/forward.h"
#include "base/yaml/loader.h"

#include "sim/search/asked.h"
#include "sim/search/search.h"
#include "sim/study/records.h"

namespace foreshard::search {

/// The opening of an answer in which no strategy keeps the memory margin; else empty.
std::string tight_text(const SearchResult& result);
/// A sentence that the answer keeps some of its memory on hosts because nothing fits without; else
/// empty.
std::string needs_hosts_text(const SearchResult& result);

/// The `top` best strategies, what dominates each, why the others lost, and how sure the winner is.
std::string search_text(const study::LoadedStudy& study, const SearchResult& result,
                        std::int64_t top, const Paper& paper = {});
/// \param asked  the question, so that `explain` can ask it again; without its space and digests.
std::string search_json(const study::LoadedStudy& study, const SearchResult& result,
                        std::int64_t top, Asked asked = {});

// Docs of keys in several results.
inline constexpr const char* kCertified = "Whether nothing can be faster, within the model.";
inline constexpr const char* kOverlapping = "Strategies whose intervals overlap the first one's.";
inline constexpr const char* kFirstBeatsSecond =
    "The probability that a machine runs the first faster than the second, if errors are "
    "log-normal and independent.";

/// A search's result with its question.
struct SearchReport {
  const study::LoadedStudy* study;
  const SearchResult* result;
  std::int64_t top;  ///< Strategies that are listed.
  Asked asked;
};
const record::Record<SearchReport>& record_of(const SearchReport*);

/// The overrides that turn a study's strategy into this one: "strategy.tensor_parallel" = "8", ...
std::vector<yaml::Override> settings_of(const Simulated& one);
/// "20.2 ms behind: bubble +54.5 ms, compute -38.6 ms": the parts of the step in which `one`
/// differs most from the first.
std::string difference_text(const Simulated& first, const Simulated& one);
/// How often the first is the fastest with drawn parameters; empty where that was not tried.
/// The form with "99 % unmeasured" in place of its braces; empty if next to nothing is.
std::string unmeasured_text(const char* form, const study::Unmeasured& unmeasured);
std::string robustness_text(const SearchResult& result);
std::string why_not_text(const WhyNot& why);
/// How much faster `one` would have to get to win: "it would have to lose 20.2 ms of the 54.5 ms
/// that its bubble takes more". \pre `one` is slower than `first`.
std::string remedy_text(const Simulated& first, const Simulated& one);
/// The memory that a strategy lacks which does not fit, in numbers.
std::string missing_text(const Nearest& nearest);
/// Why no strategy of the space can be tried, by cause.
std::string nothing_suits(const SearchResult& result);
/// CSV with a line for each of the `top` best strategies.
std::string search_csv(const SearchResult& result, std::int64_t top);

// The words that results for models and for graphs share. `One` is a Simulated or a GraphCandidate.

template <class One>
std::span<const One> top_of(const std::vector<One>& ranked, std::int64_t top) {
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(top, 0));
  return std::span(ranked).first(std::min(ranked.size(), most));
}

/// "4.1 ms to 5.2 ms".
template <class One>
std::string interval_text(const One& one) {
  return format(one.low) + " to " + format(one.high);
}

/// Key of the largest part of a step; without computation if not `with_compute`.
inline auto dominant_of(bool with_compute) {
  return [=](const auto& one) { return sim::dominant(one.breakdown, with_compute).key; };
}

/// The remarks on their unmeasured parts, after an empty line; empty if there are none.
/// \param what  the word for one of them: "strategy".
template <class One>
std::string evidence_lines(std::span<const One> ranked, std::string_view what) {
  std::vector<const study::Unmeasured*> all;
  for (const One& one : ranked) all.push_back(&one.unmeasured);
  const std::string text = study::evidence_text(all, what);
  return text.empty() ? "" : "\n" + text;
}

}  // namespace foreshard::search
