/// \file
/// The page of `foreshard serve`: controls of a study, of which C++ answers each change with the
/// sections of a report. All that moves is serve.js; the page loads it and serve.css from beside
/// itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foreshard::page {

/// A setting that the page can change.
struct Control {
  std::string key;    ///< "strategy.tensor_parallel", as --set takes it.
  std::string label;  ///< "tensor parallel"
  std::string doc;
  std::string value;                   ///< The study's own.
  std::vector<std::string> choices{};  ///< Empty: any whole number from `lowest` to `highest`.
  std::string lowest{};
  std::string highest{};
};

struct ControlGroup {
  std::string name;  ///< "Batch"
  std::vector<Control> controls;
};

/// The page, with the controls of one side in a template.
/// \param searches  whether the study's strategies can be searched.
std::string page_of_controls(std::string_view study, const std::vector<ControlGroup>& groups,
                             bool searches);

std::string_view script_of_controls();
/// The style sheet of reports, and what controls add to it.
std::string style_of_controls();

}  // namespace foreshard::page
