#include "strategies/checkpoint/rules.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/glob.h"

#include "strategies/graph/layout.h"

namespace foreshard::checkpoint {
namespace {

// "0-11" -> {0, 11}.
std::optional<std::pair<std::int64_t, std::int64_t>> interval_of(std::string_view text) {
  std::pair<std::int64_t, std::int64_t> interval;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, interval.first);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, interval.second);
  if (second.ec != std::errc{} || second.ptr != end) return std::nullopt;
  return interval;
}

constexpr std::string_view kDigits = "0123456789";

// How many characters of pattern and name the pattern's first letter or number takes; nothing if
// the two differ there.
GlobStep step_of(std::string_view pattern, std::string_view name) {
  if (pattern.empty() || name.empty()) return std::nullopt;
  const std::size_t close = pattern.front() == '{' ? pattern.find('}') : std::string_view::npos;
  if (close != std::string_view::npos)
    if (const auto interval = interval_of(pattern.substr(1, close - 1))) {
      const std::size_t digits = std::min(name.find_first_not_of(kDigits), name.size());
      std::int64_t number = -1;
      const auto read = std::from_chars(name.data(), name.data() + digits, number);
      if (digits == 0 || read.ec != std::errc{} || number < interval->first ||
          number > interval->second)
        return std::nullopt;
      return std::pair(close + 1, digits);
    }
  return letter_step(pattern, name);
}

// A copy of the source's entry with another layout.
TensorEntry moved(const TensorEntry& entry, Layout layout) {
  TensorEntry to = entry;
  to.layout = std::move(layout);
  return to;
}

}  // namespace

const yaml::Table<LayoutRule>& yaml_table(const LayoutRule*) {
  static const auto table =
      yaml::Table<LayoutRule>("layout rule", "The layout of the tensors with a name like this.")
          .required("match", &LayoutRule::match,
                    "Names of the tensors: * matches any text, {0-11} a number from 0 to 11.",
                    yaml::non_empty())
          .optional("layout", &LayoutRule::layout,
                    "Mesh, ranks and what splits each dimension: \"tp=4 @0-3 [-, tp]\".")
          .optional("leave_out", &LayoutRule::leave_out, "Leaves these tensors out of the target.");
  return table;
}

const yaml::Table<LayoutRules>& yaml_table(const LayoutRules*) {
  static const auto table =
      yaml::Table<LayoutRules>("layout rules", "How the tensors of a checkpoint are to lie.")
          .required("tensors", &LayoutRules::tensors,
                    "The rules; the first that matches a tensor decides.");
  return table;
}

bool matches(std::string_view pattern, std::string_view name) {
  return matches_glob(pattern, name, step_of);
}

namespace {

// Refuses a rule that matches no tensor at all: it is most likely misspelt.
Status unmatched(const Source& source, const LayoutRules& rules, const yaml::Loader& loader) {
  for (std::size_t r = 0; r < rules.tensors.size(); ++r) {
    const std::string& pattern = rules.tensors[r].match;
    const bool any = std::ranges::any_of(source.tensors, [&](const SourceTensor& tensor) {
      return matches(pattern, tensor.entry.name);
    });
    if (any) continue;
    const std::string first =
        source.tensors.empty() ? ""
                               : ", the first of which is '" + source.tensors[0].entry.name + "'";
    return loader.error_at(fmt::format("tensors.{}.match", r),
                           fmt::format("'{}' matches none of the {} tensors{}", pattern,
                                       source.tensors.size(), first));
  }
  return {};
}

}  // namespace

Result<Target> target_by_rules(const Source& source, const LayoutRules& rules,
                               const yaml::Loader& loader) {
  for (std::size_t r = 0; r < rules.tensors.size(); ++r)
    if (rules.tensors[r].layout.empty() != rules.tensors[r].leave_out)
      return loader.error_at(fmt::format("tensors.{}", r),
                             "a rule has either 'layout' or 'leave_out: true'");
  FORESHARD_TRY(unmatched(source, rules, loader));
  Target target;
  for (const SourceTensor& tensor : source.tensors) {
    const TensorEntry& entry = tensor.entry;
    const auto rule = std::ranges::find_if(
        rules.tensors, [&](const LayoutRule& r) { return matches(r.match, entry.name); });
    if (rule == rules.tensors.end())
      return Error{Error::Code::kInvalidInput,
                   fmt::format("no rule matches tensor '{}'; add one, or 'match: \"*\"' at the end",
                               entry.name)};
    if (rule->leave_out) {
      target.left_out.push_back(entry.name);
      continue;
    }
    auto layout = parse_layout(rule->layout, entry.shape);
    if (!layout)
      return loader.error_at(
          fmt::format("tensors.{}.layout", rule - rules.tensors.begin()),
          fmt::format("does not fit tensor '{}': {}", entry.name, layout.error().message));
    target.tensors.push_back(moved(entry, *std::move(layout)));
  }
  return target;
}

Result<Target> target_by_layout(const Source& source, std::string_view text) {
  Target target;
  for (const SourceTensor& tensor : source.tensors) {
    auto layout = parse_layout(text, tensor.entry.shape);
    if (!layout)
      return Error{Error::Code::kInvalidInput,
                   fmt::format("--to does not fit tensor '{}': {}\nfor tensors of different shapes "
                               "give a layout each in a file of rules: --to RULES.yaml",
                               tensor.entry.name, layout.error().message)};
    target.tensors.push_back(moved(tensor.entry, *std::move(layout)));
  }
  return target;
}

}  // namespace foreshard::checkpoint
