/// \file
/// Pictures of results: from the JSON that a command wrote to SVG.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foreshard::picture {

struct Kind {
  std::string_view name;    ///< "waterfall"
  std::string_view schema;  ///< The results that have such a picture: "foreshard.prediction/1".
  std::string_view shows;   ///< "where the peak of the devices is lost"
};

/// All kinds. A result's first one is its usual picture.
std::span<const Kind> kinds();

/// The word for a kind of result in messages: "'prediction'" for "foreshard.prediction/1"; of
/// another program's schema, all of it.
std::string word_for(std::string_view schema);

/// The classes of devices of a prediction by name: "stage 3", or "rank 24" where several classes
/// have one role. Faults are thrown, as the JSON library does.
std::vector<std::string> class_names(const nlohmann::ordered_json& result);

/// Throws std::out_of_range if a bundle's time line is not whole: its columns, the names and
/// classes that it refers to.
void check_time_line(const nlohmann::ordered_json& result);

/// The picture of the result `json`.
/// \param kind  its name; empty: the usual one of the result.
/// \return kInvalidInput if the text is no result that has such a picture, with the remedy.
Result<std::string> picture_of(std::string_view json, std::string_view kind = {});
/// The same of a result that is parsed.
Result<std::string> picture_of_parsed(const nlohmann::ordered_json& result, std::string_view kind);

}  // namespace foreshard::picture
