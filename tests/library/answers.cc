// Answers questions as the library does, for tests/python/calls_test.py. Each line of stdin has a
// question, {"words": [...], "input": "..."}; each line of stdout its answer, {"code", "text"}.
// A command that has a function of its own is asked through it.
#include <foreshard/foreshard.h>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

namespace library_test {
namespace {

using foreshard::Answer;
using foreshard::Hooks;
using foreshard::Words;
using nlohmann::json;

// Takes the option `name` and its value out of the words.
std::optional<std::string> take(Words& words, const std::string& name) {
  for (auto word = words.begin(); word != words.end() && word + 1 != words.end(); ++word) {
    if (*word != name) continue;
    const std::string value = *(word + 1);
    words.erase(word, word + 2);
    return value;
  }
  return std::nullopt;
}

// Takes the study out of the words after a command.
foreshard::Study take_study(Words& words) {
  foreshard::Study study;
  if (!words.empty() && !words.front().starts_with("--")) {
    study.file = words.front();
    words.erase(words.begin());
  }
  study.cluster = take(words, "--cluster").value_or("");
  study.model = take(words, "--model").value_or("");
  study.strategy = take(words, "--strategy").value_or("");
  while (const auto setting = take(words, "--set")) {
    const auto equals = setting->find('=');
    study.set(setting->substr(0, equals), setting->substr(equals + 1));
  }
  return study;
}

Answer of_prediction(Words words, const Hooks& hooks) {
  const foreshard::Study study = take_study(words);
  take(words, "--engine");
  if (!words.empty()) throw std::invalid_argument("predict() has no " + words.front());
  const auto found = foreshard::predict(study, {}, FORESHARD_PACKAGE_CATALOGUE, hooks);
  return {.code = found.feasible ? 0 : 3, .text = found.json};
}

Answer of_search(Words words, const Hooks& hooks) {
  const foreshard::Study study = take_study(words);
  foreshard::SearchOptions options;
  if (const auto level = take(words, "--level")) options.level = std::stoi(*level);
  if (const auto top = take(words, "--top")) options.top = std::stoi(*top);
  if (const auto number = take(words, "--simulate")) options.simulate = std::stoi(*number);
  // search() gives all its options, and a search of a graph has no --certify.
  const auto certify = take(words, "--certify");
  if (!certify) throw std::invalid_argument("search() is not for graphs");
  options.certify = std::stoi(*certify);
  if (!words.empty()) throw std::invalid_argument("search() has no " + words.front());
  const auto found = foreshard::search(study, options, FORESHARD_PACKAGE_CATALOGUE, hooks);
  return {.code = found.best.empty() || !found.best.front().fits ? 3 : 0, .text = found.json};
}

Answer of_reshard(Words words, const Hooks& hooks) {
  foreshard::Resharding moved;
  moved.tensor = take(words, "--tensor").value_or("");
  moved.from = take(words, "--from").value_or("");
  moved.to = take(words, "--to").value_or("");
  moved.cluster = take(words, "--cluster").value_or("");
  if (!words.empty()) throw std::invalid_argument("reshard() has no " + words.front());
  return {.text = foreshard::reshard(moved, FORESHARD_PACKAGE_CATALOGUE, hooks).json};
}

// The function of a command that takes a study, or a file, as its first argument.
template <class Function>
auto of_study(Function function) {
  return [function](Words words, const Hooks& hooks) {
    const foreshard::Study study = take_study(words);
    return function(study, words, hooks);
  };
}

template <class Function>
auto of_file(Function function) {
  return [function](Words words, const Hooks& hooks) {
    const std::string file = words.at(0);
    words.erase(words.begin());
    return function(file, words, hooks, FORESHARD_PACKAGE_CATALOGUE);
  };
}

template <class Function>
auto of_words(Function function) {
  return [function](const Words& words, const Hooks& hooks) {
    return function(words, hooks, FORESHARD_PACKAGE_CATALOGUE);
  };
}

using Asked = std::function<Answer(const Words&, const Hooks&)>;

const std::map<std::string, Asked>& functions() {
  static const std::map<std::string, Asked> all{
      {"simulate", of_prediction},
      {"search", of_search},
      {"reshard", of_reshard},
      {"study", of_file(foreshard::sweep)},
      {"explain", of_file(foreshard::explain)},
      {"elastic", of_file(foreshard::elastic)},
      {"check", of_file(foreshard::check)},
      {"import", of_file(foreshard::import_launch)},
      {"topology", of_words(foreshard::topology)},
      {"catalog", of_words(foreshard::catalogue)},
      {"calibrate", of_words(foreshard::calibrate)},
      {"compare", of_study([](const auto& study, const Words& more, const Hooks& hooks) {
         return foreshard::compare(study, {}, more, hooks);
       })},
      {"replan", of_study([](const auto& study, const Words& more, const Hooks& hooks) {
         return foreshard::replan(study, more, hooks);
       })},
      {"export", of_study([](const auto& study, Words more, const Hooks& hooks) {
         const auto framework = take(more, "--as");
         if (!framework) throw std::invalid_argument("export_launch() writes launch files");
         return foreshard::export_launch(study, *framework, more, hooks);
       })},
      {"schema", [](const Words& words, const Hooks&) { return foreshard::schema(words.at(0)); }},
  };
  return all;
}

// \throws std::invalid_argument if the function has no such options
Answer by_function(const Words& words, const Hooks& hooks) {
  const auto function = functions().find(words.at(0));
  if (function == functions().end()) throw std::invalid_argument("there is no such function");
  Words more(words.begin() + 1, words.end());
  // Functions ask for JSON themselves, where there is JSON.
  const std::set<std::string> yaml{"calibrate", "check", "export", "import", "schema"};
  const bool is_yaml =
      yaml.contains(words[0]) || (!more.empty() && (more[0] == "show" || more[0] == "import"));
  const auto format = take(more, "--format");
  if (format != "json" && (format || !is_yaml)) throw std::invalid_argument("it answers in JSON");
  return function->second(more, hooks);
}

json answer_to(const json& question) {
  const Words words = question["words"];
  const Hooks hooks{.input = question["input"], .may_fork = false};
  Answer answer;
  bool function = true;
  try {
    answer = by_function(words, hooks);
  } catch (const foreshard::Failure&) {
    answer.code = 2;
  } catch (const std::invalid_argument&) {
    function = false;
    answer = foreshard::run(words, hooks);
  }
  return {{"code", answer.code}, {"text", answer.text}, {"function", function}};
}

}  // namespace
}  // namespace library_test

int main() {
  std::string line;
  while (std::getline(std::cin, line))
    std::cout << library_test::answer_to(nlohmann::json::parse(line)).dump() << '\n' << std::flush;
}
