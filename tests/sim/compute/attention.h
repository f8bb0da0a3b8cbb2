/// \file
/// Attention of tests.
#pragma once

#include "strategies/program/ir/kernel.h"

namespace foreshard {

/// Causal, in bf16.
inline Attention attention_of(std::int64_t batch, std::int64_t query_heads, std::int64_t kv_heads,
                              std::int64_t query_length, std::int64_t key_length,
                              std::int64_t head_dim) {
  return {.batch = batch,
          .query_heads = query_heads,
          .kv_heads = kv_heads,
          .query_length = query_length,
          .key_length = key_length,
          .head_dim = head_dim};
}

}  // namespace foreshard
