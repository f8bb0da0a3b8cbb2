// Attention, fused and in parts, on the packed projection of transformer.h and beside it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/oracle/internal/kernels.h"
#include "tests/oracle/internal/packed.h"
#include "tests/oracle/random.h"

namespace foreshard::execute {
namespace {

// The operand that holds keys and values.
const Operand& keys_of(const Invocation& kernel) {
  return kernel.in[kernel.op.type.starts_with("packed") ? 0 : 1];
}

// Where the rows of heads lie: queries in one slice, keys and values in another one or the same.
class Heads {
 public:
  /// All in the packed projection `qkv`.
  static Heads packed(const Operand& qkv, const Settings& settings) {
    const Packed packed(qkv, settings);
    FORESHARD_CHECK(extent(qkv, 1) == qkv.whole[1]);  // every query sees every key
    Heads heads(qkv, qkv, settings, packed.head_dim());
    heads.count_ = packed.query_heads();
    heads.first_ = packed.first_query_head();
    heads.query_gap_ = 2 * heads.d_;
    heads.key_at_ = packed.key(0);
    heads.group_ = (packed.queries_of_group() + 2) * heads.d_;
    return heads;
  }
  /// Keys and values of all tokens beside queries of some.
  static Heads apart(const Operand& queries, const Operand& keys, const Settings& settings) {
    const std::int64_t d = queries.whole[2] / settings.integer("query_heads");
    FORESHARD_CHECK(extent(keys, 1) == keys.whole[1]);
    Heads heads(queries, keys, settings, d);
    if (const std::int64_t own = settings.integer("value_dim"); own > 0) heads.value_d_ = own;
    heads.group_ = d + heads.value_d_;
    FORESHARD_CHECK(columns(queries) % (heads.of_group_ * d) == 0 &&
                    columns(keys) * heads.of_group_ * d == heads.group_ * columns(queries) &&
                    keys.box.begin[2] * heads.of_group_ * d == heads.group_ * queries.box.begin[2]);
    heads.count_ = columns(queries) / d;
    heads.first_ = queries.box.begin[2] / d;
    return heads;
  }

  std::int64_t count() const { return count_; }
  std::int64_t d() const { return d_; }
  std::int64_t value_d() const { return value_d_; }
  std::int64_t queries() const { return extent(queries_, 1); }
  /// Keys that query `s` of the slice sees, from one to behind another: causal, in a window, in a
  /// sample.
  std::int64_t first_seen(std::int64_t s) const {
    const std::int64_t position = queries_.box.begin[1] + s;
    if (!is_causal_) return 0;
    const std::int64_t sample = sample_ > 0 ? position / sample_ * sample_ : 0;
    if (window_ == 0) return sample;
    return is_chunked_ ? position / window_ * window_
                       : std::max<std::int64_t>(sample, position + 1 - window_);
  }
  std::int64_t end_seen(std::int64_t s) const {
    return is_causal_ ? queries_.box.begin[1] + s + 1 : keys_.whole[1];
  }

  // Places in the slices.
  std::int64_t query(std::int64_t b, std::int64_t s, std::int64_t h) const {
    return (b * queries() + s) * columns(queries_) + h * d_ + h / of_group_ * query_gap_;
  }
  std::int64_t key(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return (b * extent(keys_, 1) + t) * columns(keys_) + key_at_ + h / of_group_ * group_;
  }
  std::int64_t value(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return key(b, t, h) + d_;
  }

  double score(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t t) const {
    double product = 0;
    for (std::int64_t i = 0; i < d_; ++i)
      product += queries_.values[at(query(b, s, h) + i)] * keys_.values[at(key(b, t, h) + i)];
    return product * scale() + (table_ == nullptr ? 0 : table_->values[added(h, s, t)]);
  }
  /// From here on scores have what this table adds, a row for each range of distances.
  void set_table(const Operand* table) { table_ = table; }
  bool has_table() const { return table_ != nullptr; }
  /// Place in the table: how far the key is before the query, or behind it, where the second half
  /// of the rows is for keys behind. Every distance has a row, and those beyond the rows share the
  /// last (T5 has rows for ranges that widen with the distance).
  std::size_t added(std::int64_t h, std::int64_t s, std::int64_t t) const {
    const std::int64_t before = queries_.box.begin[1] + s - t;
    const std::int64_t half = table_->whole[0] / 2;
    const std::int64_t row =
        std::min(std::abs(before), half - 1) + (before < 0 ? half : std::int64_t{0});
    return at(row * extent(*table_, 1) + h);
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(d_)); }

  /// What the weight of key t for query s is multiplied by, as the dropout of unfused attention
  /// would.
  double dropped(const Invocation& kernel, std::int64_t b, std::int64_t h, std::int64_t s,
                 std::int64_t t) const {
    const double p = kernel.op.settings.number("rate");
    if (p == 0) return 1;
    const std::int64_t row = ((queries_.box.begin[0] + b) * all_ + first_ + h) * queries_.whole[1] +
                             queries_.box.begin[1] + s;
    const std::uint64_t key = key_of(kernel.context.key, kAttentionDropout);
    return uniform(key, row * keys_.whole[1] + t) < p ? 0.0 : 1 / (1 - p);
  }

 private:
  Heads(const Operand& queries, const Operand& keys, const Settings& settings, std::int64_t d)
      : queries_(queries),
        keys_(keys),
        d_(d),
        value_d_(d),
        window_(settings.integer("window")),
        is_chunked_(settings.flag("chunked")),
        is_causal_(settings.flag("causal")),
        sample_(settings.integer("sample")),
        all_(settings.integer("query_heads")),
        of_group_(all_ / settings.integer("kv_heads")) {}

  const Operand& queries_;
  const Operand& keys_;
  std::int64_t d_;
  std::int64_t value_d_;
  std::int64_t window_;
  bool is_chunked_;
  bool is_causal_;
  std::int64_t sample_;
  const Operand* table_ = nullptr;
  std::int64_t all_;
  std::int64_t of_group_;  // query heads
  std::int64_t count_ = 0;
  std::int64_t first_ = 0;
  std::int64_t query_gap_ = 0;  // between the query heads of a group and those of the next
  std::int64_t key_at_ = 0;
  std::int64_t group_ = 0;  // columns from one key head to the next
};

// The sinks, one of each head, which stand behind `others` inputs if there are any.
const Operand* sinks_of(const Invocation& kernel, std::size_t others) {
  if (kernel.in.size() == others) return nullptr;
  return &kernel.in[others];
}

// Outputs: the heads' results side by side, and per head the logarithm of the sum of exponentials
// (Dao et al., "FlashAttention", 2022).
void attend(const Invocation& kernel, const Heads& heads, const Operand* sinks) {
  Operand& out = kernel.out[0];
  Operand& statistics = kernel.out[1];
  const std::int64_t d = heads.value_d();
  FORESHARD_CHECK(columns(out) == heads.count() * d && columns(statistics) == heads.count());
  for (std::int64_t b = 0; b < extent(kernel.in[0], 0); ++b) {
    for (std::int64_t h = 0; h < heads.count(); ++h) {
      for (std::int64_t s = 0; s < heads.queries(); ++s) {
        double largest = -std::numeric_limits<double>::infinity();
        if (sinks != nullptr) largest = sinks->values[at(h)];
        for (std::int64_t t = heads.first_seen(s); t < heads.end_seen(s); ++t)
          largest = std::max(largest, heads.score(b, h, s, t));
        double total = sinks != nullptr ? std::exp(sinks->values[at(h)] - largest) : 0;
        std::vector<double> result(at(d), 0.0);
        for (std::int64_t t = heads.first_seen(s); t < heads.end_seen(s); ++t) {
          const double weight = std::exp(heads.score(b, h, s, t) - largest);
          total += weight;
          const double kept = weight * heads.dropped(kernel, b, h, s, t);
          for (std::int64_t i = 0; i < d; ++i)
            result[at(i)] += kept * keys_of(kernel).values[at(heads.value(b, t, h) + i)];
        }
        const std::int64_t row = b * heads.queries() + s;
        for (std::int64_t i = 0; i < d; ++i)
          out.values[at(row * columns(out) + h * d + i)] = result[at(i)] / total;
        statistics.values[at(row * heads.count() + h)] = largest + std::log(total);
      }
    }
  }
}

// `dqueries` and `dkeys` lie as queries and keys do.
void attend_back(const Invocation& kernel, const Heads& heads, std::size_t result_at,
                 std::vector<double>& dqueries, std::vector<double>& dkeys) {
  const Operand* sinks = heads.has_table() ? nullptr : sinks_of(kernel, result_at + 3);
  const Operand& result = kernel.in[result_at];
  const Operand& statistics = kernel.in[result_at + 1];
  const Operand& gradient = kernel.in[result_at + 2];
  const Operand& keys = keys_of(kernel);
  need_same_slice(result, gradient);
  const std::int64_t d = heads.value_d();
  FORESHARD_CHECK(columns(result) == heads.count() * d && columns(statistics) == heads.count());
  std::ranges::fill(dqueries, 0.0);
  std::ranges::fill(dkeys, 0.0);
  if (sinks != nullptr || heads.has_table()) std::ranges::fill(kernel.out.back().values, 0.0);
  for (std::int64_t b = 0; b < extent(kernel.in[0], 0); ++b) {
    for (std::int64_t h = 0; h < heads.count(); ++h) {
      for (std::int64_t s = 0; s < heads.queries(); ++s) {
        const std::int64_t token = b * heads.queries() + s;
        const std::int64_t query = heads.query(b, s, h);
        const double* o = &result.values[at((token * heads.count() + h) * d)];
        const double* g = &gradient.values[at((token * heads.count() + h) * d)];
        double along = 0;  // sum over keys of weight times its gradient
        for (std::int64_t i = 0; i < d; ++i) along += o[i] * g[i];
        const double logarithm = statistics.values[at(token * heads.count() + h)];
        if (sinks != nullptr)
          kernel.out.back().values[at(h)] -= std::exp(sinks->values[at(h)] - logarithm) * along;
        for (std::int64_t t = heads.first_seen(s); t < heads.end_seen(s); ++t) {
          const std::int64_t key = heads.key(b, t, h);
          const std::int64_t value = heads.value(b, t, h);
          const double weight = std::exp(heads.score(b, h, s, t) - logarithm);
          const double factor = heads.dropped(kernel, b, h, s, t);
          double slope = 0;
          for (std::int64_t i = 0; i < d; ++i) {
            slope += g[i] * keys.values[at(value + i)];
            dkeys[at(value + i)] += weight * factor * g[i];
          }
          const double added = weight * (slope * factor - along);
          if (heads.has_table()) kernel.out.back().values[heads.added(h, s, t)] += added;
          const double score = added * heads.scale();
          for (std::int64_t i = 0; i < heads.d(); ++i) {
            dqueries[at(query + i)] += score * keys.values[at(key + i)];
            dkeys[at(key + i)] += score * kernel.in[0].values[at(query + i)];
          }
        }
      }
    }
  }
}

}  // namespace

void packed_attention(const Invocation& kernel) {
  const Operand* beside = sinks_of(kernel, 1);
  Heads heads = Heads::packed(kernel.in[0], kernel.op.settings);
  const bool relative = kernel.op.settings.flag("relative");
  if (relative) heads.set_table(beside);
  attend(kernel, heads, relative ? nullptr : beside);
}

// Inputs: the packed projection, the result, its statistics, the result's gradient[, sinks].
void packed_attention_gradient(const Invocation& kernel) {
  Operand& out = kernel.out[0];
  need_same_slice(kernel.in[0], out);
  Heads heads = Heads::packed(kernel.in[0], kernel.op.settings);
  if (kernel.op.settings.flag("relative")) heads.set_table(sinks_of(kernel, 4));
  attend_back(kernel, heads, 1, out.values, out.values);
}

void context_attention(const Invocation& kernel) {
  attend(kernel, Heads::apart(kernel.in[0], kernel.in[1], kernel.op.settings), sinks_of(kernel, 2));
}

// Inputs: queries, keys with values, then as above.
void context_attention_gradient(const Invocation& kernel) {
  need_same_slice(kernel.in[0], kernel.out[0]);
  need_same_slice(kernel.in[1], kernel.out[1]);
  attend_back(kernel, Heads::apart(kernel.in[0], kernel.in[1], kernel.op.settings), 2,
              kernel.out[0].values, kernel.out[1].values);
}

namespace {

// Turns queries and keys by their position, times `sign`. Values stay.
void turn_heads(const Invocation& kernel, double sign) {
  const Operand& x = kernel.in[0];
  Operand& y = kernel.out[0];
  need_same_slice(x, y);
  const Packed packed(x, kernel.op.settings);
  y.values = x.values;
  for (std::int64_t r = 0; r < rows(x); ++r) {
    const std::int64_t position = x.box.begin[1] + r % extent(x, 1);
    const auto turn = [&](std::int64_t column) {
      rotate(&y.values[at(r * columns(x) + column)], packed.head_dim(), position, sign);
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

// Visits rows of the packed projection beside those of queries and of keys with values:
// `visit(packed offset, which part, offset in it)`, each of head_dim values.
template <class Parts, class Visit>
void each_of_parts(const Operand& qkv, const Settings& settings, const Parts& parts, Visit visit) {
  const Packed packed(qkv, settings);
  const std::int64_t d = packed.head_dim();
  const std::int64_t groups = packed.groups();
  const std::int64_t first = packed.first_query_head() / packed.queries_of_group();
  FORESHARD_CHECK(
      parts[0].box.begin[1] == qkv.box.begin[1] && parts[1].box.begin[1] == qkv.box.begin[1] &&
      rows(parts[0]) == rows(qkv) && rows(parts[1]) == rows(qkv) &&
      parts[0].box.begin[2] == packed.first_query_head() * d &&
      parts[1].box.begin[2] == first * 2 * d && columns(parts[0]) == packed.query_heads() * d &&
      columns(parts[1]) == groups * 2 * d);
  each_head(qkv, packed, [&](std::int64_t from, std::size_t part, std::int64_t to) {
    if (part == 0) return visit(from, std::size_t{0}, to);
    const std::int64_t head = to / d;  // of all rows
    visit(from, std::size_t{1},
          head / groups * columns(parts[1]) +
              (head % groups * 2 + static_cast<std::int64_t>(part) - 1) * d);
  });
}

}  // namespace

void split_queries(const Invocation& kernel) {
  const Operand& qkv = kernel.in[0];
  const std::int64_t d = Packed(qkv, kernel.op.settings).head_dim();
  each_of_parts(qkv, kernel.op.settings, kernel.out,
                [&](std::int64_t from, std::size_t part, std::int64_t to) {
                  for (std::int64_t i = 0; i < d; ++i)
                    kernel.out[part].values[at(to + i)] = qkv.values[at(from + i)];
                });
}

void join_queries(const Invocation& kernel) {
  Operand& qkv = kernel.out[0];
  const std::int64_t d = Packed(qkv, kernel.op.settings).head_dim();
  each_of_parts(qkv, kernel.op.settings, kernel.in,
                [&](std::int64_t to, std::size_t part, std::int64_t from) {
                  for (std::int64_t i = 0; i < d; ++i)
                    qkv.values[at(to + i)] = kernel.in[part].values[at(from + i)];
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
