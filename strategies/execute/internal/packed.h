/// \file
/// Heads in the packed projection of transformer.h.
#pragma once

#include <cstdint>

#include "base/check.h"

#include "strategies/execute/internal/kernels.h"

namespace foreshard::execute {

/// The groups that a slice of the packed projection has, and where their heads lie in a row of it.
class Packed {
 public:
  Packed(const Operand& qkv, const Settings& settings) : Packed(qkv, heads_of(qkv, settings)) {}
  Packed(const Operand& qkv, const HeadLayout& heads)
      : queries_(heads.query_heads / heads.kv_heads), d_(heads.head_dim) {
    const std::int64_t group = (queries_ + 2) * d_;
    FORESHARD_CHECK(qkv.whole.back() == group * heads.kv_heads);
    // A rank has whole groups, else its queries would lack their keys.
    FORESHARD_CHECK(qkv.box.begin.back() % group == 0 && columns(qkv) % group == 0);
    first_group_ = qkv.box.begin.back() / group;
    groups_ = columns(qkv) / group;
  }

  std::int64_t groups() const { return groups_; }
  std::int64_t query_heads() const { return groups_ * queries_; }
  std::int64_t first_query_head() const { return first_group_ * queries_; }
  std::int64_t head_dim() const { return d_; }

  /// Columns at which the slice's head `h` (of queries), and the key and the value that it shares
  /// with its group, begin.
  std::int64_t query(std::int64_t h) const {
    return h / queries_ * (queries_ + 2) * d_ + h % queries_ * d_;
  }
  std::int64_t key(std::int64_t h) const { return (h / queries_ * (queries_ + 2) + queries_) * d_; }
  std::int64_t value(std::int64_t h) const { return key(h) + d_; }
  std::int64_t queries_of_group() const { return queries_; }

 private:
  static HeadLayout heads_of(const Operand& qkv, const Settings& settings) {
    const std::int64_t queries = settings.integer("query_heads");
    const std::int64_t keys = settings.integer("kv_heads");
    return {queries, keys, qkv.whole.back() / (queries + 2 * keys)};
  }

  std::int64_t queries_;
  std::int64_t d_;
  std::int64_t first_group_ = 0;
  std::int64_t groups_ = 0;
};

}  // namespace foreshard::execute
