/// \file
/// `foreshard report`: results as one HTML page that works without a network. Planners find money
/// and days first, then engineers where the time of a step goes, then researchers fabric and
/// curves. All charts are SVG (sim/picture) and show without scripts, each with its numbers in a
/// table; a script moves the time line alone.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace foreshard::page {

/// A result as a command wrote it with --format json or --bundle (uncompressed).
struct GivenResult {
  std::string name;  ///< File or study, for messages.
  std::string json;
};

/// The page of the results: at least one; a kind that is given several times has several sections.
/// It names no folder: of paths, only the names of the files are shown.
/// \param command  the command that made it, for its last section.
/// \return kInvalidInput, with the result's name, for a text that is no result which has a section.
Result<std::string> page_of(const std::vector<GivenResult>& results, const std::string& command);

/// The sections of one result as HTML, for a page that stands around them: without the time line,
/// whose script that page lacks.
/// \return as page_of.
Result<std::string> sections_of(const GivenResult& result);

/// A result in Markdown, for an issue or a wiki: a sentence, tables, and what pictures show folded.
/// \return kUnsupported for a kind of result that a page has no section for.
Result<std::string> markdown_of(const std::string& json);

}  // namespace foreshard::page
