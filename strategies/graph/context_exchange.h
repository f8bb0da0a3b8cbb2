/// \file
/// How ranks that hold parts of the same sequences let their queries see the keys of all tokens.
#pragma once

#include <cstdint>

#include "base/yaml/names.h"

namespace foreshard {

enum class ContextExchange : std::uint8_t {
  kAllGather,  ///< Keys and values of all tokens are gathered before attention.
  /// They are gathered while queries attend to the keys of their own rank; a kernel for the tokens
  /// of each other rank follows, and results are merged.
  kOverlappedAllGather,
  /// They go round a ring: each step's attention runs beside the transfer of the next step's keys.
  kRing,
  kAllToAll,  ///< Ranks exchange tokens for heads: each has all tokens of some heads.
};

const yaml::Names<ContextExchange>& yaml_names(const ContextExchange*);

}  // namespace foreshard
