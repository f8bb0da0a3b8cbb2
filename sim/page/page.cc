// Lays out the page of `foreshard report`, and results as Markdown (page.h).
#include "sim/page/page.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>
#include <utility>

#include "base/json.h"
#include "sim_page_assets.h"

#include "sim/page/internal/document.h"
#include "sim/page/internal/sections.h"
#include "sim/picture/from_result.h"
#include "sim/picture/svg.h"

namespace foreshard::page {
namespace {

std::string schema_of(const Json& result) {
  const bool named =
      result.is_object() && result.contains("schema") && result.at("schema").is_string();
  return named ? result.at("schema").get<std::string>() : "";
}

struct Parsed {
  const GivenResult& given;
  Json json;
  std::string schema;
};

Error refusal(const GivenResult& given, const std::string& why) {
  return {Error::Code::kInvalidInput, given.name + ": " + why};
}

Result<Parsed> parsed(const GivenResult& given) {
  auto json = parsed_json<Json>(given.json);
  if (!json) return refusal(given, json.error().message);
  std::string schema = schema_of(*json);
  if (std::ranges::find(sections(), schema, &Section::schema) == sections().end())
    return refusal(given,
                   "a report is made of what simulate --bundle, and simulate, search, study, "
                   "compare, advise and topology collectives with --format json write");
  return Parsed{given, *std::move(json), std::move(schema)};
}

Status add_sections(Document& to, const std::vector<Parsed>& results) {
  for (const Section& section : sections())
    for (const Parsed& result : results) {
      if (result.schema != section.schema) continue;
      try {
        section.add(to, result.json);
      } catch (const std::out_of_range& fault) {
        return refusal(result.given, fault.what());
      } catch (const Json::exception& fault) {
        return refusal(result.given,
                       fmt::format("it is no whole {}: {}", picture::word_for(section.schema),
                                   json_words(fault.what())));
      }
    }
  return {};
}

}  // namespace

Result<std::string> page_of(const std::vector<GivenResult>& results, const std::string& command) {
  std::vector<Parsed> all;
  for (const GivenResult& given : results) {
    FORESHARD_ASSIGN(auto one, parsed(given));
    all.push_back(std::move(one));
  }
  Html html;
  FORESHARD_TRY(add_sections(html, all));
  std::string page = fmt::format(
      R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; )"
      R"(script-src 'unsafe-inline'">
<title>foreshard report</title>
<style>{}</style></head><body><main>
<h1>foreshard report</h1>
)",
      kPageCss);
  page += html.text();
  page += fmt::format("<p class=\"note\">Made by <code>{}</code></p>\n</main>\n",
                      picture::xml_escaped(command));
  if (html.is_scripted()) page += fmt::format("<script>\n{}</script>\n", kPageJs);
  return page + "</body></html>\n";
}

namespace {

class Fragment final : public Html {
 public:
  bool time_line(std::string_view) override { return true; }
  void without_time_line(std::string_view) override {}
};

}  // namespace

Result<std::string> sections_of(const GivenResult& result) {
  std::vector<Parsed> all;
  FORESHARD_ASSIGN(auto one, parsed(result));
  all.push_back(std::move(one));
  Fragment html;
  FORESHARD_TRY(add_sections(html, all));
  return html.text();
}

Result<std::string> markdown_of(const std::string& json) {
  const GivenResult given{.name = "the result", .json = json};
  auto one = parsed(given);
  if (!one)
    return Error{Error::Code::kUnsupported,
                 "--format markdown: there is none of such a result; use --format json"};
  Markdown markdown;
  std::vector<Parsed> all;
  all.push_back(*std::move(one));
  FORESHARD_TRY(add_sections(markdown, all));
  return markdown.text();
}

}  // namespace foreshard::page
