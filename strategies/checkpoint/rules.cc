#include "strategies/checkpoint/rules.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "strategies/graph/layout_text.h"

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

// A target entry like the source's, elsewhere.
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
                    "Their names: * is any text, {0-11} a number from 0 to 11.", yaml::non_empty())
          .optional("layout", &LayoutRule::layout,
                    "Mesh, ranks and what splits each dimension: \"tp=4 @0-3 [-, tp]\".")
          .optional("leave_out", &LayoutRule::leave_out, "The target does without them.");
  return table;
}

const yaml::Table<LayoutRules>& yaml_table(const LayoutRules*) {
  static const auto table =
      yaml::Table<LayoutRules>("layout rules", "How the tensors of a checkpoint are to lie.")
          .required("tensors", &LayoutRules::tensors, "Rules; the first that matches decides.");
  return table;
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == '*') {
    while (!pattern.empty() && pattern.front() == '*') pattern.remove_prefix(1);
    if (pattern.empty()) return true;
    for (std::size_t skip = 0; skip <= name.size(); ++skip)
      if (matches(pattern, name.substr(skip))) return true;
    return false;
  }
  if (pattern.front() == '{') {
    const std::size_t close = pattern.find('}');
    const auto interval =
        close == std::string_view::npos ? std::nullopt : interval_of(pattern.substr(1, close - 1));
    if (interval) {
      const std::size_t digits = std::min(name.find_first_not_of(kDigits), name.size());
      std::int64_t number = -1;
      const auto read = std::from_chars(name.data(), name.data() + digits, number);
      return digits > 0 && read.ec == std::errc{} && number >= interval->first &&
             number <= interval->second && matches(pattern.substr(close + 1), name.substr(digits));
    }
  }
  return !name.empty() && pattern.front() == name.front() &&
         matches(pattern.substr(1), name.substr(1));
}

Result<Target> target_by_rules(const Source& source, const LayoutRules& rules,
                               const yaml::Loader& loader) {
  for (std::size_t r = 0; r < rules.tensors.size(); ++r)
    if (rules.tensors[r].layout.empty() != rules.tensors[r].leave_out)
      return loader.error_at(fmt::format("tensors.{}", r),
                             "a rule has either 'layout' or 'leave_out: true'");
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
                   fmt::format("--to does not fit tensor '{}': {}\ntensors of different shapes get "
                               "a layout each in a file of rules: --to RULES.yaml",
                               tensor.entry.name, layout.error().message)};
    target.tensors.push_back(moved(tensor.entry, *std::move(layout)));
  }
  return target;
}

}  // namespace foreshard::checkpoint
