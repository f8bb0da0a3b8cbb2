// Tells why a search did not choose the strategies that a user names (why_not.h), for `foreshard
// explain --why-not`.
#include "sim/search/why_not.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <vector>

#include "base/record/record.h"
#include "base/text.h"

#include "strategies/schedule/schedule.h"

namespace foreshard::search {
namespace {

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == ';')
      words.emplace_back();
    else
      words.back() += c;
  }
  std::erase(words, "");
  return words;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<std::vector<std::int64_t>> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto number = number_in(text.substr(0, comma));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    if (comma == text.size()) return numbers;
    text.remove_prefix(comma + 1);
  }
}

// Restricts the space to what a word names; false: the word is not understood.
bool narrow(SearchSpace& space, std::string_view word) {
  if (word == "sp" || word == "no-sp") {
    space.sequence_parallel = word == "sp";
    return true;
  }
  if (const auto known = yaml_names(static_cast<const Recompute*>(nullptr)).find(word)) {
    space.recompute = {*known};
    return true;
  }
  if (schedule::find_schedule(word) != nullptr) {
    space.schedule = {std::string(word)};
    return true;
  }
  const std::size_t letters = std::min(word.find_first_of("=0123456789"), word.size());
  const std::string_view name = word.substr(0, letters);
  std::string_view value = word.substr(letters);
  if (value.starts_with('=')) value.remove_prefix(1);
  if (name == "layers") {
    const auto layers = numbers_in(value);
    if (layers) space.layers_per_stage = *layers;
    return layers.has_value();
  }
  const auto sizes = sizes_of_space();
  const auto size = std::ranges::find(sizes, name, &SpaceSize::word);
  const auto number = number_in(value);
  if (size == sizes.end() || !number) return false;
  const SizeLimits limits = limits_of(size->values);
  if (*number < limits.least || *number > limits.most) return false;
  space.*(size->values) = {*number};
  return true;
}

// The key that a word is about: "tp" for "tp8"; the word itself if it has no number.
std::string subject_of(std::string_view word) {
  if (word == "sp" || word == "no-sp") return "sp";
  if (yaml_names(static_cast<const Recompute*>(nullptr)).find(word)) return "recomputation";
  if (schedule::find_schedule(word) != nullptr) return "the schedule";
  return std::string(word.substr(0, word.find_first_of("=0123456789")));
}

}  // namespace

const yaml::Names<WhyNot::Cause>& yaml_names(const WhyNot::Cause*) {
  using Cause = WhyNot::Cause;
  static const yaml::Names<Cause> names{
      {"sizes", Cause::kSizes, ""},     {"memory", Cause::kMemory, ""},
      {"route", Cause::kRoute, ""},     {"space", Cause::kSpace, ""},
      {"bound", Cause::kBound, ""},     {"estimate", Cause::kEstimate, ""},
      {"nothing", Cause::kNothing, ""}, {"simulation", Cause::kSimulation, ""},
      {"time", Cause::kTime, ""}};
  return names;
}

const record::Record<WhyNot>& record_of(const WhyNot*) {
  static const auto record =
      record::Record<WhyNot>("why_not", "Why the strategy of --why-not was not chosen.")
          .field("asked", &WhyNot::asked)
          .field("in_space", &WhyNot::in_space, "Whether the search looked at such strategies.")
          .field("cause", &WhyNot::cause)
          .field("message", &WhyNot::message, "An explanation with numbers.")
          .field("remedy", &WhyNot::remedy,
                 "What it would have taken to win; empty: nothing, or it is not known.");
  return record;
}

Result<SearchSpace> narrowed(SearchSpace space, std::string_view words) {
  const auto list = words_in(words);
  const auto fault = [](const std::string& what) {
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{}; write words such as tp8 pp4 dp2 cp1 ep8 etp1 mb1 v2 zero1 hsdp2, "
                             "none, selective or full, sp or no-sp, layers=5,5,6,3, or the name of "
                             "a schedule",
                             what)};
  };
  if (list.empty()) return fault("no strategy is named");
  std::set<std::string> said;
  for (const std::string& word : list) {
    if (!narrow(space, word)) return fault(fmt::format("'{}' is no part of a strategy", word));
    if (!said.insert(subject_of(word)).second)
      return fault(fmt::format("'{}' says {} once more", word, subject_of(word)));
  }
  return space;
}

bool is_within(const Strategy& strategy, const SearchSpace& space, const Model& model) {
  const auto allows = [](const auto& values, const auto& value) {
    return values.empty() || std::ranges::find(values, value) != values.end();
  };
  const bool has_sizes = std::ranges::all_of(sizes_of_space(), [&](const SpaceSize& size) {
    return allows(space.*(size.values), strategy.*(size.value));
  });
  const bool has_layers = space.layers_per_stage.empty() ||
                          space.layers_per_stage == layers_of_stages(strategy, model.layers);
  return has_sizes && has_layers && allows(space.recompute, strategy.recompute) &&
         allows(space.schedule, strategy.schedule) &&
         (!space.sequence_parallel || strategy.tensor_parallel == 1 ||
          *space.sequence_parallel == strategy.sequence_parallel);
}

}  // namespace foreshard::search
