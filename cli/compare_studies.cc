#include "cli/compare_studies.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/quantity.h"
#include "base/yaml/given.h"
#include "cli/found.h"

#include "sim/report/json.h"
#include "sim/report/predict.h"
#include "sim/study/break_even.h"
#include "sim/study/inputs.h"
#include "validate/measurement/measurement.h"

namespace foreshard::cli {
namespace {

constexpr double kHalf = 0.5;
constexpr std::size_t kMostEffects = 24;  // keys that are tried alone, each with a simulation

// Whether `name` is a JSON file with a prediction. The result of a search counts as a study.
bool is_json_file(const std::string& name) {
  std::error_code status;
  return name.ends_with(".json") && std::filesystem::is_regular_file(name, status) &&
         !holds_found(name);
}

// A side of the comparison: its prediction, and its study unless the prediction was read from a
// file.
struct Side {
  report::Outcome outcome;
  std::optional<study::LoadedStudy> study;
};

Result<report::Outcome> outcome_of(const study::LoadedStudy& study) {
  FORESHARD_ASSIGN(const auto report, report::predict(study, {.critical_path = false}));
  return report::read_outcome(report::to_json(report));
}

Result<Side> side_of_file(const std::string& path) {
  FORESHARD_ASSIGN(const auto text, read_file(path, limits::kResult));
  auto outcome = report::read_outcome(text);
  if (!outcome) return Error{outcome.error().code, path + ": " + outcome.error().message};
  return Side{*std::move(outcome), std::nullopt};
}

// Indices of the differences that are tried alone, ascending: the first one of each part of the
// study ("cluster", "strategy"), then the second one of each part, and so on, up to kMostEffects.
std::vector<std::size_t> tried_alone(const std::vector<study::InputDifference>& differences) {
  std::map<std::string, std::size_t> seen;                    // part -> differences so far
  std::vector<std::pair<std::size_t, std::size_t>> in_turns;  // turn, index
  for (std::size_t i = 0; i < differences.size(); ++i) {
    if (differences[i].b.empty()) continue;
    const std::string& key = differences[i].key;
    in_turns.emplace_back(seen[key.substr(0, key.find('.'))]++, i);
  }
  std::ranges::sort(in_turns);
  if (in_turns.size() > kMostEffects) in_turns.resize(kMostEffects);
  std::vector<std::size_t> tried;
  tried.reserve(in_turns.size());
  for (const auto& [turn, index] : in_turns) tried.push_back(index);
  return tried;
}

// Makes and simulates the sides. A study is loaded again for each value that is tried.
class Sides {
 public:
  Sides(const SidesGiven& given, const Environment& environment)
      : given_(given), environment_(environment) {}

  Result<report::SideBySide> compare() {
    FORESHARD_TRY(fault());
    FORESHARD_ASSIGN(Side a, side_a());
    FORESHARD_ASSIGN(Side b, side_b());
    report::SideBySide sides{std::move(a.outcome), std::move(b.outcome), {}, {}};
    if (a.study && b.study)
      sides.changes = changes_of(study::differences(*a.study, *b.study));
    else
      sides.changes = changes_of_files(sides.a, sides.b);
    report::sort_by_effect(sides);
    if (!given_.break_even.empty()) {
      FORESHARD_ASSIGN(sides.crossing, crossing_of(sides.a));
    }
    return sides;
  }

 private:
  bool a_is_file() const { return is_json_file(given_.a.study()); }
  bool b_is_file() const { return is_json_file(given_.b); }

  Status fault() const {
    const auto invalid = [](const std::string& what) {
      return Error{Error::Code::kInvalidInput, what};
    };
    if (given_.a.study() == "-" || given_.b == "-")
      return invalid(
          "- is given for a study, but each is read more than once here: write it to a "
          "file");
    if (a_is_file() && !given_.a.first_study_option().empty())
      return invalid(given_.a.first_study_option() + " changes a study, but " + given_.a.study() +
                     " is a prediction that was made; give the study instead");
    if (b_is_file() && !given_.sets_of_b.empty())
      return invalid("--set-b changes a study, but " + given_.b +
                     " is a prediction that was made; give the study instead");
    if (a_is_file() && given_.b.empty())
      return invalid("--set-b without a second study changes the first, but " + given_.a.study() +
                     " is a prediction that was made; give the study instead");
    if (!given_.break_even.empty() && b_is_file())
      return invalid("--break-even tries values of B, but " + given_.b +
                     " is a prediction that was made; give the study instead");
    return {};
  }

  Result<Side> side_a() {
    if (a_is_file()) return side_of_file(given_.a.study());
    FORESHARD_ASSIGN(auto study, given_.a.load(environment_));
    FORESHARD_ASSIGN(auto outcome, outcome_of(study));
    return Side{std::move(outcome), std::move(study)};
  }

  Result<Side> side_b() {
    if (b_is_file()) return side_of_file(given_.b);
    FORESHARD_ASSIGN(auto study, study_b({}));
    FORESHARD_ASSIGN(auto outcome, outcome_of(study));
    return Side{std::move(outcome), std::move(study)};
  }

  Result<study::LoadedStudy> study_b(const std::vector<std::string>& more) const {
    std::vector<std::string> sets = given_.sets_of_b;
    sets.insert(sets.end(), more.begin(), more.end());
    return given_.a.load_other(environment_, given_.b, sets);
  }

  // All changes; some have the step of A with only that change.
  std::vector<report::Change> changes_of(const std::vector<study::InputDifference>& differences) {
    std::vector<report::Change> changes;
    changes.reserve(differences.size());
    for (const study::InputDifference& one : differences)
      changes.push_back({.key = one.key, .a = one.a, .b = one.b, .step = {}});
    for (const std::size_t tried : tried_alone(differences))
      changes[tried].step = step_with(changes[tried].key + "=" + changes[tried].b);
    return changes;
  }

  // Step of A with only this change; nothing if that gives no valid study.
  std::optional<Seconds> step_with(const std::string& set) const {
    const auto study = given_.a.load_other(environment_, "", {set});
    if (!study) return std::nullopt;
    const auto outcome = outcome_of(*study);
    if (!outcome) return std::nullopt;
    const auto step = outcome->figure("step");
    return step ? std::optional(Seconds::from_base(*step)) : std::nullopt;
  }

  // The changes between predictions that were read from files: the inputs that they name.
  static std::vector<report::Change> changes_of_files(const report::Outcome& a,
                                                      const report::Outcome& b) {
    std::vector<report::Change> changes;
    const auto add = [&](const std::string& key, const std::string& of_a, const std::string& of_b) {
      if (of_a != of_b) changes.push_back({.key = key, .a = of_a, .b = of_b, .step = {}});
    };
    add("model", a.model, b.model);
    add("cluster", a.cluster, b.cluster);
    add("strategy", a.strategy, b.strategy);
    const auto digest_in = [](const report::Outcome& side, const std::string& path) {
      const auto found = std::ranges::find(side.inputs, path, &report::Outcome::Input::path);
      return found == side.inputs.end() ? std::string() : found->sha256.substr(0, 12);
    };
    for (const auto& input : a.inputs)
      add(input.path, digest_in(a, input.path), digest_in(b, input.path));
    for (const auto& input : b.inputs)
      if (digest_in(a, input.path).empty()) add(input.path, "", digest_in(b, input.path));
    return changes;
  }

  std::string_view figure() const {
    return given_.metric == "usd"      ? "cost of a step"
           : given_.metric == "energy" ? "energy of a step"
                                       : "step";
  }

  Result<double> metric_of(const report::Outcome& side, const char* who) const {
    const auto value = side.figure(figure());
    if (value) return *value;
    return Error{Error::Code::kInvalidInput,
                 fmt::format("the {} of {} is not known, so nothing can be equal to it; foreshard "
                             "simulate tells what is missing",
                             figure(), who)};
  }

  // Whether the key takes whole numbers only: the range's ends are whole, and B is a valid study
  // with the lower end but not with half more.
  bool is_whole(const std::string& key, const study::ValueRange& range) const {
    const auto whole = [](double value) { return value == std::round(value); };
    if (!range.unit.empty() || !whole(range.low) || !whole(range.high)) return false;
    return study_b({key + "=" + range.text_of(range.low)}) &&
           !study_b({key + "=" + range.text_of(range.low + kHalf)});
  }

  Result<report::Crossing> crossing_of(const report::Outcome& a) const {
    const auto equals = given_.break_even.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{Error::Code::kInvalidInput,
                   fmt::format("--break-even {}: write KEY=LOW..HIGH, for example "
                               "cluster.rent=1..4 USD/h",
                               given_.break_even)};
    report::Crossing crossing;
    crossing.key = given_.break_even.substr(0, equals);
    crossing.metric = given_.metric;
    const auto read = study::parse_range(given_.break_even.substr(equals + 1));
    if (!read) return Error{read.error().code, "--break-even: " + read.error().message};
    study::ValueRange range = *read;
    crossing.low = range.text_of(range.low);
    crossing.high = range.text_of(range.high);
    FORESHARD_ASSIGN(const double of_a, metric_of(a, "A"));
    const auto difference = [&](double value) -> Result<double> {
      FORESHARD_ASSIGN(const auto study, study_b({crossing.key + "=" + range.text_of(value)}));
      FORESHARD_ASSIGN(const auto outcome, outcome_of(study));
      FORESHARD_ASSIGN(const double of_b, metric_of(outcome, "B"));
      return of_b - of_a;
    };
    range.whole = is_whole(crossing.key, range);
    FORESHARD_ASSIGN(const auto found, study::break_even(difference, range));
    const auto written = [&](double value) {
      const std::string number =
          range.whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
      return range.unit.empty() ? number : number + " " + range.unit;
    };
    if (found.value) {
      crossing.value = written(*found.value);
      return crossing;
    }
    crossing.better = found.at_low > 0 ? "A" : "B";
    if (found.between)
      crossing.between = {range.text_of(found.between->first),
                          range.text_of(found.between->second)};
    return crossing;
  }

  const SidesGiven& given_;
  const Environment& environment_;
};

}  // namespace

Result<bool> is_predicted(const std::string& name) {
  if (name.empty()) return false;
  std::error_code status;
  if (name.ends_with(".yaml") || name.ends_with(".yml") || holds_found(name)) return true;
  if (!std::filesystem::is_regular_file(name, status)) return !name.ends_with(".json");
  const auto text = read_file(name, limits::kResult);
  if (!text) return false;
  const std::string schema = schema_in(*text);
  if (schema.empty()) return false;
  if (schema == report::kPredictionSchema) return true;
  if (schema == measure::kMeasurementSchema) return false;
  return Error{
      Error::Code::kInvalidInput,
      fmt::format("{}: its schema is '{}'; compare takes a prediction ('{}', which foreshard "
                  "simulate STUDY.yaml --format json makes), the result of a search or a "
                  "measurement ('{}', which "
                  "foreshard replay -o FILE writes)",
                  name, schema, report::kPredictionSchema, measure::kMeasurementSchema)};
}

bool is_cluster(const std::string& name, const Environment& environment) {
  if (name.empty() || name == "-" || name.ends_with(".json")) return false;
  yaml::Loader loader({.catalogue = environment.catalogue, .overrides = {}});
  if (yaml::is_file_name(name))
    return !loader.read_file<study::Study>(name) && loader.read_file<ClusterConfig>(name);
  return !loader.read_ref<study::Study>(name) && loader.read_ref<ClusterConfig>(name);
}

Result<report::SideBySide> side_by_side(const SidesGiven& given, const Environment& environment) {
  return Sides(given, environment).compare();
}

}  // namespace foreshard::cli
