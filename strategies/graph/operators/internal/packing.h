/// \file
/// The packed projection [batch, sequence, columns] of queries, keys and values (transformer.h):
/// heads lie by key-value group, the query heads of a group, then its key head, then its value
/// head. A rank has whole groups.
#pragma once

#include <string>
#include <vector>

#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {

struct Packing {
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t width;  ///< Of a head.

  std::int64_t group() const { return queries / keys + 2; }  ///< Heads.
  /// Of so many columns, those of queries and keys.
  std::int64_t without_values(std::int64_t columns) const {
    return columns / group() * (group() - 1);
  }
};
/// \pre packing_fault() is empty.
Packing packing_of(const Settings& settings, const Shape& x);

/// Why `x` is no packed projection of the heads that the settings name; empty if it is one.
std::string packing_fault(const Settings& settings, const Shape& x);

/// The packed projection has a factor of whole groups.
struct Grouped {
  RuleMaker make;
  RuleMaker::Dimensions packed;
};
Grouped grouped(const Packing& packing, const Shape& x, bool whole_sequence, bool whole_row);

/// Settings `query_heads` and `kv_heads`, then `others`.
std::vector<SettingDefinition> with_heads(std::vector<SettingDefinition> others);
/// Those, and what a fused attention kernel has besides.
std::vector<SettingDefinition> attention_kernel_settings();
/// What is wrong about them for a sequence of so many tokens; empty if nothing is.
std::string attention_kernel_fault(const Settings& settings, std::int64_t sequence);
/// `all` within the window and the packed samples that the settings name. Chunks are sequences of
/// their own.
Attention in_window(Attention all, const Settings& settings);
/// How the learned logits of heads, one each, lie beside the heads of `packed`.
RuleMaker::Dimensions sinks_of(const RuleMaker::Dimensions& packed);

}  // namespace foreshard::operators
