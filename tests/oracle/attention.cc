// Attention, fused and in parts, on the packed projection of transformer.h.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/oracle/internal/kernels.h"
#include "tests/oracle/internal/packed.h"
#include "tests/oracle/random.h"

namespace foreshard::execute {
namespace {

constexpr double kRotaryBase = 10'000;

// One head of one sequence: pointers to its first row, and the distance of rows.
struct Head {
  const double* q;
  const double* k;
  const double* v;
  std::int64_t stride;
  std::int64_t length;
  std::int64_t d;
  double scale;

  static std::int64_t visible(std::int64_t s) { return s + 1; }  // causal
  double score(std::int64_t s, std::int64_t t) const {
    double product = 0;
    for (std::int64_t i = 0; i < d; ++i) product += q[s * stride + i] * k[t * stride + i];
    return product * scale;
  }
};

Head head_of(const Invocation& kernel, const Packed& packed, std::int64_t b, std::int64_t h) {
  const Operand& qkv = kernel.in[0];
  const std::int64_t length = extent(qkv, 1);
  FORESHARD_CHECK(length == qkv.whole[1]);  // every query sees every key
  const double* row = &qkv.values[at(b * length * columns(qkv))];
  return {.q = row + packed.query(h),
          .k = row + packed.key(h),
          .v = row + packed.value(h),
          .stride = columns(qkv),
          .length = length,
          .d = packed.head_dim(),
          .scale = packed.scale()};
}

// What the weight of key t for query s is multiplied by, as the dropout of unfused attention
// would.
class DroppedScores {
 public:
  DroppedScores(const Invocation& kernel, const Packed& packed)
      : key_(key_of(kernel.context.key, kAttentionDropout)),
        p_(kernel.op.settings.number("rate")),
        heads_(kernel.op.settings.integer("query_heads")),
        length_(kernel.in[0].whole[1]),
        first_batch_(kernel.in[0].box.begin[0]),
        first_head_(packed.first_query_head()) {}

  double factor(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t t) const {
    if (p_ == 0) return 1;
    const std::int64_t index =
        (((first_batch_ + b) * heads_ + first_head_ + h) * length_ + s) * length_ + t;
    return uniform(key_, index) < p_ ? 0.0 : 1 / (1 - p_);
  }

 private:
  std::uint64_t key_;
  double p_;
  std::int64_t heads_;
  std::int64_t length_;
  std::int64_t first_batch_;
  std::int64_t first_head_;
};

}  // namespace

// Outputs: the heads' results side by side, and per head the logarithm of the sum of exponentials
// (Dao et al., "FlashAttention", 2022).
void packed_attention(const Invocation& kernel) {
  const Packed packed(kernel.in[0], kernel.op.settings);
  const DroppedScores dropped(kernel, packed);
  Operand& out = kernel.out[0];
  Operand& statistics = kernel.out[1];
  const std::int64_t heads = packed.query_heads();
  const std::int64_t d = packed.head_dim();
  FORESHARD_CHECK(columns(out) == heads * d && columns(statistics) == heads);
  for (std::int64_t b = 0; b < extent(kernel.in[0], 0); ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const Head head = head_of(kernel, packed, b, h);
      for (std::int64_t s = 0; s < head.length; ++s) {
        double largest = -std::numeric_limits<double>::infinity();
        for (std::int64_t t = 0; t < head.visible(s); ++t)
          largest = std::max(largest, head.score(s, t));
        double total = 0;
        std::vector<double> result(at(d), 0.0);
        for (std::int64_t t = 0; t < head.visible(s); ++t) {
          const double weight = std::exp(head.score(s, t) - largest);
          total += weight;
          const double kept = weight * dropped.factor(b, h, s, t);
          for (std::int64_t i = 0; i < d; ++i) result[at(i)] += kept * head.v[t * head.stride + i];
        }
        const std::int64_t row = b * head.length + s;
        for (std::int64_t i = 0; i < d; ++i)
          out.values[at(row * columns(out) + h * d + i)] = result[at(i)] / total;
        statistics.values[at(row * heads + h)] = largest + std::log(total);
      }
    }
  }
}

// Inputs: the packed projection, the result, its statistics, the result's gradient.
void packed_attention_gradient(const Invocation& kernel) {
  const Packed packed(kernel.in[0], kernel.op.settings);
  const DroppedScores dropped(kernel, packed);
  const Operand& result = kernel.in[1];
  const Operand& statistics = kernel.in[2];
  const Operand& gradient = kernel.in[3];
  Operand& out = kernel.out[0];
  need_same_slice(kernel.in[0], out);
  need_same_slice(result, gradient);
  const std::int64_t heads = packed.query_heads();
  const std::int64_t d = packed.head_dim();
  FORESHARD_CHECK(columns(result) == heads * d && columns(statistics) == heads);
  std::ranges::fill(out.values, 0.0);
  for (std::int64_t b = 0; b < extent(kernel.in[0], 0); ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const Head head = head_of(kernel, packed, b, h);
      double* row = &out.values[at(b * head.length * head.stride)];
      double* dq = row + packed.query(h);
      double* dk = row + packed.key(h);
      double* dv = row + packed.value(h);
      for (std::int64_t s = 0; s < head.length; ++s) {
        const std::int64_t token = b * head.length + s;
        const double* o = &result.values[at(token * heads * d + h * d)];
        const double* g = &gradient.values[at(token * heads * d + h * d)];
        double along = 0;  // sum over keys of weight times its gradient
        for (std::int64_t i = 0; i < d; ++i) along += o[i] * g[i];
        for (std::int64_t t = 0; t < head.visible(s); ++t) {
          const double weight =
              std::exp(head.score(s, t) - statistics.values[at(token * heads + h)]);
          const double factor = dropped.factor(b, h, s, t);
          double slope = 0;
          for (std::int64_t i = 0; i < d; ++i) {
            slope += g[i] * head.v[t * head.stride + i];
            dv[t * head.stride + i] += weight * factor * g[i];
          }
          const double score = weight * (slope * factor - along) * head.scale;
          for (std::int64_t i = 0; i < d; ++i) {
            dq[s * head.stride + i] += score * head.k[t * head.stride + i];
            dk[t * head.stride + i] += score * head.q[s * head.stride + i];
          }
        }
      }
    }
  }
}

namespace {

// Turns queries and keys by their position, times `sign`. Values stay.
void turn_heads(const Invocation& kernel, double sign) {
  const Operand& x = kernel.in[0];
  Operand& y = kernel.out[0];
  need_same_slice(x, y);
  const Packed packed(x, kernel.op.settings);
  const std::int64_t d = packed.head_dim();
  const std::int64_t half = d / 2;
  y.values = x.values;
  for (std::int64_t r = 0; r < rows(x); ++r) {
    const std::int64_t position = x.box.begin[1] + r % extent(x, 1);
    const auto turn = [&](std::int64_t column) {
      double* head = &y.values[at(r * columns(x) + column)];
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(position) *
            std::pow(kRotaryBase, -2.0 * static_cast<double>(i) / static_cast<double>(d));
        const double sine = sign * std::sin(angle);
        const double a = head[i];
        const double b = head[i + half];
        head[i] = a * std::cos(angle) - b * sine;
        head[i + half] = b * std::cos(angle) + a * sine;
      }
    };
    for (std::int64_t h = 0; h < packed.query_heads(); ++h) {
      turn(packed.query(h));
      if (h % packed.queries_of_group() == 0) turn(packed.key(h));
    }
  }
}

}  // namespace

void rope(const Invocation& kernel) {
  turn_heads(kernel, 1);
}
void rope_gradient(const Invocation& kernel) {
  turn_heads(kernel, -1);
}

namespace {

// Visits every row of the packed projection with the columns of its heads: `visit(packed offset,
// which of q, k and v, offset in that)`, each of head_dim values.
template <class Visit>
void each_head(const Operand& qkv, const Packed& packed, Visit visit) {
  const std::int64_t d = packed.head_dim();
  const std::int64_t n = packed.query_heads();
  for (std::int64_t r = 0; r < rows(qkv); ++r) {
    const std::int64_t row = r * columns(qkv);
    for (std::int64_t h = 0; h < n; ++h) {
      visit(row + packed.query(h), 0, (r * n + h) * d);
      if (h % packed.queries_of_group() != 0) continue;
      const std::int64_t group = h / packed.queries_of_group();
      visit(row + packed.key(h), 1, (r * packed.groups() + group) * d);
      visit(row + packed.value(h), 2, (r * packed.groups() + group) * d);
    }
  }
}

// Slices of [batch, sequence, heads, d] have the heads of the packed slice.
template <class Parts>
void need_parts_of(const Operand& qkv, const Packed& packed, const Parts& parts) {
  const std::int64_t first = packed.first_query_head();
  const std::int64_t group = first / packed.queries_of_group();
  for (std::size_t i = 0; i < 3; ++i) {
    const Operand& part = parts[i];
    FORESHARD_CHECK(part.box.begin[0] == qkv.box.begin[0] && part.box.end[0] == qkv.box.end[0] &&
                    part.box.begin[1] == qkv.box.begin[1] && part.box.end[1] == qkv.box.end[1] &&
                    part.box.begin[2] == (i == 0 ? first : group) &&
                    extent(part, 2) == (i == 0 ? packed.query_heads() : packed.groups()) &&
                    extent(part, 3) == packed.head_dim());
  }
}

}  // namespace

void split_heads(const Invocation& kernel) {
  const Packed packed(kernel.in[0], kernel.op.settings);
  need_parts_of(kernel.in[0], packed, kernel.out);
  each_head(kernel.in[0], packed, [&](std::int64_t from, std::size_t part, std::int64_t to) {
    for (std::int64_t i = 0; i < packed.head_dim(); ++i)
      kernel.out[part].values[at(to + i)] = kernel.in[0].values[at(from + i)];
  });
}

void join_heads(const Invocation& kernel) {
  const Packed packed(kernel.out[0], kernel.op.settings);
  need_parts_of(kernel.out[0], packed, kernel.in);
  each_head(kernel.out[0], packed, [&](std::int64_t to, std::size_t part, std::int64_t from) {
    for (std::int64_t i = 0; i < packed.head_dim(); ++i)
      kernel.out[0].values[at(to + i)] = kernel.in[part].values[at(from + i)];
  });
}

namespace {

// [batch, heads, sequence, d] beside [batch, sequence, heads d]: visit(place in one, in the other).
template <class Visit>
void each_merged(const Operand& apart, const Operand& merged, Visit visit) {
  const std::int64_t heads = extent(apart, 1);
  const std::int64_t length = extent(apart, 2);
  const std::int64_t d = extent(apart, 3);
  FORESHARD_CHECK(apart.box.begin[0] == merged.box.begin[0] &&
                  apart.box.begin[2] == merged.box.begin[1] && extent(merged, 1) == length &&
                  apart.box.begin[1] * d == merged.box.begin[2] && columns(merged) == heads * d);
  for (std::int64_t b = 0; b < extent(apart, 0); ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t s = 0; s < length; ++s)
        for (std::int64_t i = 0; i < d; ++i)
          visit(at(((b * heads + h) * length + s) * d + i),
                at(((b * length + s) * heads + h) * d + i));
}

}  // namespace

void merge_heads(const Invocation& kernel) {
  each_merged(kernel.in[0], kernel.out[0], [&](std::size_t apart, std::size_t merged) {
    kernel.out[0].values[merged] = kernel.in[0].values[apart];
  });
}

void merge_heads_gradient(const Invocation& kernel) {
  each_merged(kernel.out[0], kernel.in[0], [&](std::size_t apart, std::size_t merged) {
    kernel.out[0].values[apart] = kernel.in[0].values[merged];
  });
}

}  // namespace foreshard::execute
