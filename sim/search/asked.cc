// What a search was asked (asked.h), written into its result and compared with the study when
// `foreshard explain` reads it again.
#include "sim/search/asked.h"

#include <fmt/format.h>
#include <set>

#include "base/digest/sha256.h"
#include "base/record/record.h"
#include "base/text.h"

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

const record::Record<GivenOption>& record_of(const GivenOption*) {
  static const auto record =
      record::Record<GivenOption>("option")
          .field("option", &GivenOption::option, "As on the command line, such as --set.")
          .field("value", &GivenOption::value);
  return record;
}

const record::Record<Asked>& record_of(const Asked*) {
  static const auto record =
      record::Record<Asked>("asked", "The question, so that `explain` can ask it again.")
          .field("study", &Asked::study, "The study as it was given.")
          .field("options", &Asked::options, "Options given with it.")
          .field("space", &Asked::space, "The space that was searched, as YAML.")
          .field("digests", &Asked::digests, "SHA-256 of the study's values, one per part.");
  return record;
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
