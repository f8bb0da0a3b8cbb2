#include "sim/page/controls.h"

#include <fmt/format.h>

#include "sim_page_assets.h"

#include "sim/picture/svg.h"

namespace foreshard::page {
namespace {

using picture::xml_escaped;

// Sizes are doubled and halved; other numbers go up and down by one.
std::string number_field(const Control& control, const std::string& common) {
  const std::string label = xml_escaped(control.label);
  const auto button = [&](std::string_view value, std::string_view words, std::string_view sign) {
    return fmt::format(
        R"(<button type="button" value="{}" tabindex="-1" aria-label="{} {}">{}</button>)", value,
        words, label, sign);
  };
  const bool doubles = control.lowest == "1";
  return button("-", doubles ? "&#247;2: half the" : "less", doubles ? "&#247;2" : "-") +
         fmt::format(R"(<input type="number" {} value="{}" min="{}" max="{}" required>)", common,
                     xml_escaped(control.value), control.lowest, control.highest) +
         button("+", doubles ? "&#215;2: twice the" : "more", doubles ? "&#215;2" : "+");
}

std::string field_of(const Control& control) {
  const std::string common =
      fmt::format(R"(name="{}" data-own="{}" aria-label="{}")", xml_escaped(control.key),
                  xml_escaped(control.value), xml_escaped(control.label));
  if (control.choices.empty()) return number_field(control, common);
  std::string options;
  for (const std::string& choice : control.choices)
    options += fmt::format("<option{}>{}</option>", choice == control.value ? " selected" : "",
                           xml_escaped(choice));
  return fmt::format("<select {}>{}</select>", common, options);
}

std::string form_of(const std::vector<ControlGroup>& groups) {
  std::string text;
  for (const ControlGroup& group : groups) {
    if (group.controls.empty()) continue;
    text += fmt::format("<fieldset><legend>{}</legend>\n", xml_escaped(group.name));
    for (const Control& control : group.controls)
      text += fmt::format(
          "<div class=\"field\" title=\"{}\"><span>{}</span> <span "
          "class=\"value\">{}</span></div>\n",
          xml_escaped(control.doc), xml_escaped(control.label), field_of(control));
    text += "</fieldset>\n";
  }
  return text;
}

constexpr std::string_view kSearch =
    R"(<button type="button" value="search">search</button>
)";

}  // namespace

std::string page_of_controls(std::string_view study, const std::vector<ControlGroup>& groups,
                             bool searches) {
  return fmt::format(
      R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0} - foreshard</title>
<link rel="icon" href="icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="serve.css">
<script src="serve.js" defer></script></head><body><main>
<h1>{0}</h1>
<p><button type="button" id="beside" aria-expanded="false">another beside it</button>
<output id="difference"></output></p>
<noscript><p>The controls need scripts; <code>foreshard report</code> makes a page without
them.</p></noscript>
<div id="sides"></div>
<template><section class="side"><h2></h2>
<form>
{1}<fieldset><legend>Devices</legend>
<label title="data_parallel becomes what the other sizes leave, so that no device is idle">
<input type="checkbox" name="fill" checked> <span>data parallel fills the cluster</span></label></fieldset>
</form>
<p class="tools">{2}<button type="button" value="yaml">copy as YAML</button>
<button type="button" value="command">copy the command</button>
<button type="button" value="reset">as the study</button></p>
<p class="told" role="status"></p>
<pre class="fault" role="alert" hidden></pre>
<textarea class="text" aria-label="text to copy" readonly hidden rows="12"></textarea>
<div class="found"></div>
<div class="figures"></div>
<div class="sections"></div>
</section></template>
</main></body></html>
)",
      xml_escaped(study), form_of(groups), searches ? kSearch : "");
}

std::string_view script_of_controls() {
  return kServeJs;
}

std::string style_of_controls() {
  return std::string(kPageCss) + kServeCss;
}

}  // namespace foreshard::page
