/// \file
/// Heads in the packed projection of transformer.h.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "tests/oracle/internal/kernels.h"

namespace foreshard::execute {

/// Turns a head of `columns` values by `sign` times the angles of its position: each value of the
/// first half with one of the second.
inline void rotate(double* head, std::int64_t columns, std::int64_t position, double sign) {
  constexpr double kRotaryBase = 10'000;
  const std::int64_t half = columns / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double angle =
        static_cast<double>(position) *
        std::pow(kRotaryBase, -2.0 * static_cast<double>(i) / static_cast<double>(columns));
    const double sine = sign * std::sin(angle);
    const double a = head[i];
    const double b = head[i + half];
    head[i] = a * std::cos(angle) - b * sine;
    head[i + half] = b * std::cos(angle) + a * sine;
  }
}

/// The groups that a slice of the packed projection has, and where their heads lie in a row of it.
class Packed {
 public:
  /// `settings`: of an operator that has `query_heads` and `kv_heads`.
  Packed(const Operand& qkv, const Settings& settings)
      : kv_heads_(settings.integer("kv_heads")),
        queries_(settings.integer("query_heads") / kv_heads_),
        d_(qkv.whole.back() / ((queries_ + 2) * kv_heads_)) {
    const std::int64_t group = (queries_ + 2) * d_;
    FORESHARD_CHECK(qkv.whole.back() == group * kv_heads_);
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
  double scale() const { return 1 / std::sqrt(static_cast<double>(d_)); }

 private:
  std::int64_t kv_heads_;
  std::int64_t queries_;
  std::int64_t d_;
  std::int64_t first_group_ = 0;
  std::int64_t groups_ = 0;
};

}  // namespace foreshard::execute
