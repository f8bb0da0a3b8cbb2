#include "sim/search/asked.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

#include "base/digest/sha256.h"
#include "base/text.h"
#include "base/yaml/describe.h"

#include "sim/study/inputs.h"

namespace foreshard::search {

std::map<std::string, std::string> digests_of(const study::LoadedStudy& study) {
  std::map<std::string, Sha256> open;
  for (const auto& [key, value] : study::inputs_of(study))
    open[key.substr(0, key.find('.'))].update(key + "=" + value + "\n");
  std::map<std::string, std::string> digests;
  for (auto& [part, digest] : open) digests[part] = digest.finish();
  return digests;
}

nlohmann::ordered_json asked_json(const Asked& asked, const study::LoadedStudy& study,
                                  const SearchSpace* space) {
  nlohmann::ordered_json json = {{"study", asked.study},
                                 {"options", nlohmann::ordered_json::array()},
                                 {"space", nullptr},
                                 {"digests", digests_of(study)}};
  for (const auto& [option, value] : asked.options)
    json["options"].push_back({{"option", option}, {"value", value}});
  if (space != nullptr) json["space"] = yaml::echo(*space);
  return json;
}

Status unchanged(const std::map<std::string, std::string>& digests,
                 const study::LoadedStudy& study) {
  const auto now = digests_of(study);
  std::set<std::string> parts;
  for (const auto& [part, digest] : digests)
    if (!now.contains(part) || now.at(part) != digest) parts.insert(part);
  for (const auto& [part, digest] : now)
    if (!digests.contains(part)) parts.insert(part);
  if (parts.empty()) return {};
  return Error{Error::Code::kInvalidInput,
               fmt::format("since the search ran, the study has changed: its {} {} not what {} "
                           "was\n   help: search again, or bring back what it was",
                           join({parts.begin(), parts.end()}, ", its "),
                           parts.size() == 1 ? "is" : "are", parts.size() == 1 ? "it" : "each")};
}

}  // namespace foreshard::search
