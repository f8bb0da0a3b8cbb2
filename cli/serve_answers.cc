// The answers of `foreshard serve` to its page (serve.h): simulations and searches by the functions
// of the commands of these names.
#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <utility>

#include "base/caller.h"
#include "base/digest/sha256.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/quantity.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "base/threads.h"
#include "base/yaml/describe.h"
#include "cli/commands.h"
#include "cli/given_result.h"
#include "cli/serve.h"

#include "sim/page/page.h"
#include "sim/report/json.h"
#include "sim/report/numbers.h"
#include "sim/report/predict.h"

namespace foreshard::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

http::Response json_response(std::string text) {
  return {.status = 200, .type = "application/json", .body = std::move(text)};
}

// A refused setting is an answer, not a failure of the request.
http::Response fault_response(const Error& error) {
  return json_response(text_of({{"fault", error.message}}));
}

constexpr std::string_view kStopped = "stopped";

// What `work` gives, or the message for what it throws. Its thread's work ends with its client.
Result<std::string> guarded(Caller& caller, const std::function<Result<std::string>()>& work) {
  const CalledBy called(&caller);
  try {
    return work();
  } catch (const CallEnded&) {
    return Error{Error::Code::kInvalidInput, std::string(kStopped)};
  } catch (const std::exception& fault) {
    const std::string_view missing = missing_resource(std::current_exception());
    return Error{Error::Code::kIo, missing.empty() ? std::string("internal error: ") + fault.what()
                                                   : std::string(missing)};
  }
}

Caller caller_until(std::function<bool()> ended) {
  return {.input = {},
          .may_fork = false,
          .stop = [ended = std::move(ended)] { return ended() ? Ending::kAtOnce : Ending::kNone; },
          .progress = {}};
}

std::string seconds_words(double value) {
  return format(value * 1_s);
}
std::string bytes_words(double value) {
  return format(value * 1_B);
}
std::string percent_words(double value) {
  constexpr double kPercent = 100;
  return fmt::format("{:.1f} %", kPercent * value);
}
std::string usd_words(double value) {
  return "$" + report::scaled(value);
}

// A figure that two sides are compared by.
struct Figure {
  const char* name;
  const char* place;  // JSON pointer into a prediction.
  std::string (*words)(double);
};

Json figures_of(const Json& prediction) {
  static constexpr std::array<Figure, 5> kFigures{
      {{"step", "/step/time_s", seconds_words},
       {"MFU", "/throughput/mfu", percent_words},
       {"peak memory", "/memory/peak_bytes", bytes_words},
       {"a step costs", "/cost/usd_per_step", usd_words},
       {"tokens/s", "/throughput/tokens_per_s", report::scaled}}};
  Json figures = Json::array();
  for (const Figure& one : kFigures) {
    const Json::json_pointer place(one.place);
    if (!prediction.contains(place) || !prediction.at(place).is_number()) continue;
    const auto value = prediction.at(place).get<double>();
    figures.push_back({{"name", one.name}, {"text", one.words(value)}, {"value", value}});
  }
  return figures;
}

Json as_object(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json object = Json::object();
  for (const auto& [key, value] : pairs) object[key] = value;
  return object;
}

// The study's parts, written out.
Result<std::string> yaml_of(const study::LoadedStudy& study, const Environment& environment) {
  if (study.graph)
    return Error{Error::Code::kUnsupported,
                 "a study of a graph names files: copy the command instead"};
  study::Study written;
  written.description = study.description;
  written.cluster.value = study.cluster;
  written.model = yaml::Ref<Model>{study.model, {}};
  written.strategy.value = study.strategy;
  written.disturbances = study.disturbances;
  written.train = study.train;
  written.memory_margin = study.memory_margin;
  written.assumed = study.assumed;
  yaml::Loader loader({.catalogue = environment.catalogue, .overrides = {}});
  return yaml::brief(written, loader);
}

// The digest of all that an answer depends on.
std::string digest_of(const std::vector<std::string>& sets,
                      const std::vector<yaml::Input>& inputs) {
  std::string all;
  const auto add = [&all](const std::string& text) {
    all += std::to_string(text.size()) + ":" + text;
  };
  for (const std::string& set : sets) add(set);
  for (const yaml::Input& input : inputs) {
    add(input.path);
    add(input.bytes);
  }
  return sha256(all);
}

// A value of a found strategy, as --set takes it.
std::string setting_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> words;
  for (const Json& one : value) words.push_back(setting_text(one));
  return "[" + join(words) + "]";
}

}  // namespace

Status ServedStudy::load() {
  FORESHARD_ASSIGN(const auto study, loaded({}));
  controls_ = controls_of(study, environment_);
  own_ = values_of(study);
  page_ = page::page_of_controls(study.name, controls_, !study.graph);
  return {};
}

Result<study::LoadedStudy> ServedStudy::loaded(const std::vector<std::string>& sets) const {
  return study_.load_other(environment_, {}, sets);
}

// What the study has by itself, now: its file may have changed.
std::vector<std::pair<std::string, std::string>> ServedStudy::own_values() const {
  const auto study = loaded({});
  return study ? values_of(*study) : own_;
}

// data_parallel as the devices leave it; empty where it is wrong for another reason, which is said
// when the study is simulated.
std::string ServedStudy::filling(const std::vector<std::string>& sets) const {
  Caller caller;
  const auto filled = guarded(caller, [&]() -> Result<std::string> {
    FORESHARD_ASSIGN(const auto study, study_.load_other(environment_, {}, sets, false));
    const std::int64_t replica = study.strategy.devices() / study.strategy.data_parallel;
    const std::int64_t most = replica > 0 ? study.pool.size() / replica : 0;
    return most > 0 ? fmt::format("strategy.data_parallel={}", most) : "";
  });
  return filled ? *filled : "";
}

Result<ServedStudy::Question> ServedStudy::question_of(const http::Request& request) const {
  FORESHARD_ASSIGN(const auto asked, parsed_json<Json>(request.body));
  FORESHARD_ASSIGN(auto sets, asked_settings(asked, controls_));
  const bool fills = asked.value("fill", Json(false)) == true && !sets.empty();
  if (fills)
    if (const std::string filled = filling(sets); !filled.empty()) sets.push_back(filled);
  const bool ahead = request.path == "ahead";
  Turns::Question turn{.name = join(sets, "\n"), .ahead = ahead, .is_gone = request.is_gone};
  return Question{.sets = std::move(sets), .turn = std::move(turn)};
}

Result<std::string> ServedStudy::predicted(const study::LoadedStudy& study) const {
  FORESHARD_ASSIGN(const auto report, report::predict(study, {}));
  const std::string json = report::to_json(report);
  FORESHARD_ASSIGN(const std::string sections, page::sections_of({study.name, json}));
  FORESHARD_ASSIGN(const auto prediction, parsed_json<Json>(json));
  return text_of({{"figures", figures_of(prediction)},
                  {"values", as_object(values_of(study))},
                  {"own", as_object(own_values())},
                  {"fits", report.prediction.fits},
                  {"html", sections}});
}

Result<std::string> ServedStudy::simulated(const Question& question) {
  constexpr std::size_t kMost = 64;  // of some 40 kB
  FORESHARD_ASSIGN(const auto study, loaded(question.sets));
  const std::string digest = digest_of(question.sets, study.inputs);
  const auto known = std::ranges::find(remembered_, digest, [](auto& one) { return one.first; });
  if (known != remembered_.end()) return known->second;
  FORESHARD_ASSIGN(std::string answer, predicted(study));
  if (remembered_.size() >= kMost) remembered_.pop_front();
  remembered_.emplace_back(digest, answer);
  return answer;
}

Result<std::string> ServedStudy::pictures(const Question& question) const {
  FORESHARD_ASSIGN(const auto study, loaded(question.sets));
  FORESHARD_ASSIGN(const auto report, report::predict(study, {.timeline = true}, {.bundle = true}));
  FORESHARD_ASSIGN(const std::string sections,
                   page::sections_of({study.name, report::to_json(report)}));
  return text_of({{"html", sections}});
}

Result<std::string> ServedStudy::yaml(const Question& question) const {
  FORESHARD_ASSIGN(const auto study, loaded(question.sets));
  FORESHARD_ASSIGN(const std::string text, yaml_of(study, environment_));
  return text_of({{"text", text}});
}

Result<std::string> ServedStudy::command(const Question& question) const {
  std::string text = "foreshard simulate";
  const search::Asked asked = study_.asked();
  if (!asked.study.empty()) text += " " + shell_word(asked.study);
  for (const auto& one : asked.options) text += " " + one.option + " " + shell_word(one.value);
  for (const std::string& set : question.sets) text += " --set " + shell_word(set);
  return text_of({{"text", text + "\n"}});
}

Result<Json> ServedStudy::found(const std::string& json) const {
  FORESHARD_ASSIGN(const auto result, parsed_json<Json>(json));
  FORESHARD_ASSIGN(const std::string html, page::sections_of({"search", json}));
  Json strategies = Json::array();
  for (const Json& one : result.at("best")) {
    Json& set = strategies.emplace_back(Json::object());
    for (const auto& [key, value] : one.at("strategy").items())
      set["strategy." + key] = setting_text(value);
    for (const auto& [key, value] : own_values())  // null: as the study has it
      if (set.contains(key) && set[key] == value) set[key] = nullptr;
  }
  return Json{{"html", html}, {"strategies", std::move(strategies)}};
}

void ServedStudy::search(const Question& question, http::Events& events) const {
  constexpr auto kBetween = std::chrono::milliseconds(100);
  std::mutex sending;
  auto next = std::chrono::steady_clock::now();
  Caller caller = caller_until(question.turn.is_gone);
  caller.progress = [&](std::string_view what, std::int64_t done, std::int64_t total) {
    const std::scoped_lock lock(sending);
    const auto now = std::chrono::steady_clock::now();
    if (now < next) return;
    next = now + kBetween;
    const std::string text = total > 0 ? fmt::format("{} {} of {}", what, done, total)
                                       : fmt::format("{} {}", what, done);
    events.send("progress", text_of({{"text", text}}));
  };
  std::vector<std::string> words{"search", "--format", "json", "--budget", "60s"};
  const search::Asked asked = study_.asked();
  if (!asked.study.empty()) words.push_back(asked.study);
  for (const auto& one : asked.options) words.insert(words.end(), {one.option, one.value});
  for (const std::string& set : question.sets) words.insert(words.end(), {"--set", set});
  const CatalogueFolder folder{
      .given = environment_.catalogue.empty() ? "" : environment_.catalogue.front().string()};
  const auto told = guarded(caller, [&]() -> Result<std::string> {
    const int code = run(words, folder);
    if (caller.output.empty()) {
      for (const Caller::Message& message : caller.messages)
        if (message.is_error) return Error{message.code, message.text};
      return Error{Error::Code::kIo, fmt::format("the search ended with code {}", code)};
    }
    FORESHARD_ASSIGN(const auto found_strategies, found(caller.output));
    return text_of(found_strategies);
  });
  const std::scoped_lock lock(sending);
  if (told)
    events.send("done", *told);
  else
    events.send("fault", text_of({{"fault", told.error().message}}));
}

http::Response ServedStudy::in_turn(const Question& question,
                                    const std::function<Result<std::string>()>& work) {
  Caller caller = caller_until([&] { return turns_.should_end(question.turn); });
  Result<std::string> told = Error{Error::Code::kInvalidInput, std::string(kStopped)};
  turns_.wait_for(question.turn, [&] { told = guarded(caller, work); });
  return told ? json_response(*std::move(told)) : fault_response(told.error());
}

http::Response ServedStudy::answer(const http::Request& request) {
  if (!request.is_post) {
    if (request.path.empty()) return {.type = "text/html", .body = page_};
    if (request.path == "serve.js")
      return {.type = "text/javascript", .body = std::string(page::script_of_controls())};
    if (request.path == "serve.css") return {.type = "text/css", .body = page::style_of_controls()};
    if (request.path == "icon.svg")
      return {.type = "image/svg+xml",
              .body =
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 8 8\">"
                  "<path fill=\"#0072B2\" d=\"M0 1h5v2H0zM2 4h6v2H2z\"/></svg>"};
    return {.status = 404, .body = "there is no such page\n"};
  }
  const auto question = question_of(request);
  if (!question) return fault_response(question.error());
  if (request.path == "simulate" || request.path == "ahead")
    return in_turn(*question, [&] { return simulated(*question); });
  if (request.path == "pictures") return in_turn(*question, [&] { return pictures(*question); });
  if (request.path == "yaml") return in_turn(*question, [&] { return yaml(*question); });
  if (request.path == "command") return in_turn(*question, [&] { return command(*question); });
  if (request.path == "search")
    return {.events = [this, asked = *question](http::Events& events) { search(asked, events); }};
  return {.status = 404, .body = "there is no such question\n"};
}

}  // namespace foreshard::cli
