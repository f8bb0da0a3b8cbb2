/// \file
/// What a search was asked, so that its result can be explained later: the words that name the
/// study, the space, and digests that show whether the study still says the same.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/record/forward.h"
#include "base/result.h"

#include "sim/study/study.h"

namespace foreshard::search {

struct GivenOption {
  std::string option;  ///< The option's name on the command line: "--set".
  std::string value;   ///< "model.layers=4".
};

struct Asked {
  std::string study{};  ///< The study as it was given: a file, a catalogue name, or empty.
  std::vector<GivenOption> options{};  ///< Options given with it.
  std::optional<std::string> space{};  ///< The space as YAML; nothing for a graph.
  /// digests_of() the study when it was searched.
  std::map<std::string, std::string> digests{};
};
const record::Record<Asked>& record_of(const Asked*);

/// SHA-256 of the values that the study sets (study::inputs_of), one per part: "cluster", "model"
/// or "graph", "strategy", "communication", ...
std::map<std::string, std::string> digests_of(const study::LoadedStudy& study);

/// \return kInvalidInput, with the parts that differ, where the study is not what it was.
Status unchanged(const std::map<std::string, std::string>& digests,
                 const study::LoadedStudy& study);

}  // namespace foreshard::search
