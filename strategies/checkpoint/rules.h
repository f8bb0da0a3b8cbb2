/// \file
/// The layout for each tensor of a checkpoint, by its name:
///
///     tensors:
///       - {match: "*.attention_norm.weight", layout: "tp=4 @0-3 [-]"}
///       - {match: "layers.{0-11}.qkv.weight", layout: "tp=4 @0-3 [-, tp]"}
///       - {match: "layers.{12-23}.qkv.weight", layout: "tp=4 @4-7 [-, tp]"}
///       - {match: "*.first_moment", leave_out: true}
///
/// `*` stands for any text, `{0-11}` for a number from 0 to 11. The first rule that matches
/// decides. strategies/graph/layout.h describes how layouts are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

#include "strategies/checkpoint/convert.h"

namespace foreshard::checkpoint {

struct LayoutRule {
  std::string match{};
  std::string layout{};
  bool leave_out = false;
};

struct LayoutRules {
  std::vector<LayoutRule> tensors{};
};

const yaml::Table<LayoutRule>& yaml_table(const LayoutRule*);
const yaml::Table<LayoutRules>& yaml_table(const LayoutRules*);

/// Cost: O(pattern * name).
bool matches(std::string_view pattern, std::string_view name);

/// The target that `rules` make of the tensors of `source`. `loader` read the rules.
/// \return kInvalidInput with the rule's place if its layout does not fit a tensor that it matches,
///     or it has neither layout nor leave_out, or both, or matches nothing. If no rule matches a
///     tensor, the error names the tensor.
Result<Target> target_by_rules(const Source& source, const LayoutRules& rules,
                               const yaml::Loader& loader);

/// The target in which every tensor of `source` has the layout `text`.
/// \return kInvalidInput, with the name of the first tensor that the layout does not fit.
Result<Target> target_by_layout(const Source& source, std::string_view text);

}  // namespace foreshard::checkpoint
