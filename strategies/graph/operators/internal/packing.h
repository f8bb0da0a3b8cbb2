/// \file
/// The packed projection [batch, sequence, columns] of queries, keys and values (transformer.h).
/// Heads lie by key-value group: the query heads of a group, then its key head, then its value
/// head. A rank has whole groups.
#pragma once

#include <string>
#include <vector>

#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {

struct Packing {
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t width;  ///< Width of a head.

  std::int64_t group() const { return queries / keys + 2; }  ///< Heads of a group.
  /// Number of columns of queries and keys, out of `columns` of the packed projection.
  std::int64_t without_values(std::int64_t columns) const {
    return columns / group() * (group() - 1);
  }
};
/// \pre packing_fault() is empty.
Packing packing_of(const Settings& settings, const Shape& x);

/// Why `x` is not a packed projection of the heads in the settings; empty if it is one.
std::string packing_fault(const Settings& settings, const Shape& x);

/// Dimensions of the packed projection in a rule: the columns are a factor of whole groups.
struct Grouped {
  RuleMaker make;
  RuleMaker::Dimensions packed;
};
Grouped grouped(const Packing& packing, const Shape& x, bool whole_sequence, bool whole_row);

/// Settings `query_heads` and `kv_heads`, then `others`.
std::vector<SettingDefinition> with_heads(std::vector<SettingDefinition> others);
/// The settings of with_heads(), then the settings of a fused attention kernel.
std::vector<SettingDefinition> attention_kernel_settings();
/// What is wrong with these settings for a sequence of `sequence` tokens; empty if nothing is.
std::string attention_kernel_fault(const Settings& settings, std::int64_t sequence);
/// `all` restricted to the window and the packed samples in the settings. Chunks become separate
/// sequences.
Attention in_window(Attention all, const Settings& settings);
/// Dimensions of the sinks (a learned logit for each head), split as the heads of `packed`.
RuleMaker::Dimensions sinks_of(const RuleMaker::Dimensions& packed);

}  // namespace foreshard::operators
