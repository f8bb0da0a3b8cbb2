/// \file
/// How context-parallel ranks, each of which holds a part of the same sequences, let their queries
/// attend to the keys of all tokens.
#pragma once

#include <cstdint>

#include "base/yaml/names.h"

namespace foreshard {

enum class ContextExchange : std::uint8_t {
  kAllGather,  ///< Keys and values of all tokens are gathered before attention.
  /// Keys and values are gathered while queries attend to the keys of their own rank. One kernel
  /// for the tokens of each other rank follows, and the results are merged.
  kOverlappedAllGather,
  /// Keys and values go round a ring: the attention of each step overlaps the transfer of the next
  /// step's keys.
  kRing,
  kAllToAll,  ///< Ranks exchange tokens for heads: each has all tokens of some heads.
};

const yaml::Names<ContextExchange>& yaml_names(const ContextExchange*);

}  // namespace foreshard
