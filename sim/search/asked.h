/// \file
/// What a search was asked, so that its result can be explained later: the words that name the
/// study, the space, and digests that show whether the study still says the same.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

#include "sim/search/space.h"
#include "sim/study/study.h"

namespace foreshard::search {

struct Asked {
  std::string study{};  ///< The study as it was given: a file, a catalogue name, or empty.
  /// Options given with it, as on the command line: "--set" and "model.layers=4".
  std::vector<std::pair<std::string, std::string>> options{};
};

/// SHA-256 of the values that the study sets (study::inputs_of), one per part: "cluster", "model"
/// or "graph", "strategy", "communication", ...
std::map<std::string, std::string> digests_of(const study::LoadedStudy& study);

/// The entry "asked" in the JSON of a search: the words, the space as YAML, the digests.
/// \param space  null where the search has none, as for a graph.
nlohmann::ordered_json asked_json(const Asked& asked, const study::LoadedStudy& study,
                                  const SearchSpace* space);

/// \return kInvalidInput, with the parts that differ, where the study is not what it was.
Status unchanged(const std::map<std::string, std::string>& digests,
                 const study::LoadedStudy& study);

}  // namespace foreshard::search
