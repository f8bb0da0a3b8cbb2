#include <algorithm>
#include <cblas.h>
#include <cmath>
#include <limits>

#include "validate/replay/host/kernels.h"
#include "validate/replay/pass/elementary.h"

namespace foreshard::replay::host {
namespace {

// Attention of one head, with the scratch for its tiles.
class Head {
 public:
  Head(const Attention& attention, std::span<std::byte> work)
      : a_(attention),
        scale_(1.0F / std::sqrt(static_cast<float>(attention.head_dim))),
        score_(reinterpret_cast<float*>(work.data())),
        gradient_(score_ + kQueryTile * kKeyTile),
        row_(gradient_ + kQueryTile * kKeyTile) {}

  void forward(const float* q, const float* k, const float* v, float* o, float* statistics) {
    const std::int64_t d = a_.head_dim;
    float* largest = row_;
    float* sum = row_ + kQueryTile;
    for (std::int64_t first = 0; first < a_.query_length; first += kQueryTile) {
      const std::int64_t rows = std::min(kQueryTile, a_.query_length - first);
      std::fill_n(largest, rows, std::numeric_limits<float>::lowest());
      std::fill_n(sum, rows, 0.0F);
      std::fill_n(o + first * d, rows * d, 0.0F);
      const std::int64_t end = keys_seen(first + rows - 1);
      for (std::int64_t key = 0; key < end; key += kKeyTile) {
        const std::int64_t columns = std::min(kKeyTile, end - key);
        scores(q + first * d, rows, k + key * d, columns, score_);
        for (std::int64_t r = 0; r < rows; ++r)
          soften(r, visible(first + r, key, columns), columns, largest, sum, o + (first + r) * d);
        product(CblasNoTrans, CblasNoTrans, rows, d, columns, 1.0F, score_, kKeyTile, v + key * d,
                d, 1.0F, o + first * d, d);
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        const float inverse = sum[r] > 0.0F ? 1.0F / sum[r] : 0.0F;
        for (std::int64_t c = 0; c < d; ++c) o[(first + r) * d + c] *= inverse;
        statistics[first + r] = sum[r] > 0.0F ? largest[r] + std::log(sum[r]) : 0.0F;
      }
    }
  }

  // Adds to dk and dv, which the heads of one group share.
  void backward(const float* q, const float* k, const float* v, const float* o,
                const float* statistics, const float* output_gradient, float* dq, float* dk,
                float* dv) {
    const std::int64_t d = a_.head_dim;
    std::fill_n(dq, a_.query_length * d, 0.0F);
    for (std::int64_t first = 0; first < a_.query_length; first += kQueryTile) {
      const std::int64_t rows = std::min(kQueryTile, a_.query_length - first);
      const float* go = output_gradient + first * d;
      for (std::int64_t r = 0; r < rows; ++r)
        row_[r] = cblas_sdot(static_cast<int>(d), go + r * d, 1, o + (first + r) * d, 1);
      const std::int64_t end = keys_seen(first + rows - 1);
      for (std::int64_t key = 0; key < end; key += kKeyTile) {
        const std::int64_t columns = std::min(kKeyTile, end - key);
        scores(q + first * d, rows, k + key * d, columns, score_);
        product(CblasNoTrans, CblasTrans, rows, columns, d, 1.0F, go, d, v + key * d, d, 0.0F,
                gradient_, kKeyTile);
        for (std::int64_t r = 0; r < rows; ++r) {
          float* p = score_ + r * kKeyTile;
          float* g = gradient_ + r * kKeyTile;
          const std::int64_t seen = visible(first + r, key, columns);
          const float norm = statistics[first + r];
          const float mean = row_[r];
          for (std::int64_t c = 0; c < seen; ++c) {
            p[c] = exponential(p[c] - norm);
            g[c] = p[c] * (g[c] - mean) * scale_;
          }
          std::fill(p + seen, p + columns, 0.0F);
          std::fill(g + seen, g + columns, 0.0F);
        }
        product(CblasTrans, CblasNoTrans, columns, d, rows, 1.0F, score_, kKeyTile, go, d, 1.0F,
                dv + key * d, d);
        product(CblasNoTrans, CblasNoTrans, rows, d, columns, 1.0F, gradient_, kKeyTile,
                k + key * d, d, 1.0F, dq + first * d, d);
        product(CblasTrans, CblasNoTrans, columns, d, rows, 1.0F, gradient_, kKeyTile,
                q + first * d, d, 1.0F, dk + key * d, d);
      }
    }
  }

 private:
  static void product(CBLAS_TRANSPOSE a_form, CBLAS_TRANSPOSE b_form, std::int64_t m,
                      std::int64_t n, std::int64_t k, float alpha, const float* a,
                      std::int64_t a_row, const float* b, std::int64_t b_row, float beta, float* c,
                      std::int64_t c_row) {
    cblas_sgemm(CblasRowMajor, a_form, b_form, static_cast<int>(m), static_cast<int>(n),
                static_cast<int>(k), alpha, a, static_cast<int>(a_row), b, static_cast<int>(b_row),
                beta, c, static_cast<int>(c_row));
  }
  void scores(const float* q, std::int64_t rows, const float* k, std::int64_t columns,
              float* out) const {
    product(CblasNoTrans, CblasTrans, rows, columns, a_.head_dim, scale_, q, a_.head_dim, k,
            a_.head_dim, 0.0F, out, kKeyTile);
  }

  // Number of keys that query `q` sees; they are the first ones.
  std::int64_t keys_seen(std::int64_t q) const {
    if (!a_.causal) return a_.key_length;
    return std::clamp<std::int64_t>(q + 1 + a_.key_length - a_.query_length, 0, a_.key_length);
  }
  // Number of the tile's keys that query `q` sees.
  std::int64_t visible(std::int64_t q, std::int64_t key, std::int64_t columns) const {
    return std::clamp<std::int64_t>(keys_seen(q) - key, 0, columns);
  }

  // Replaces row r of the tile's scores by exponentials, and rescales the sums so far to the new
  // largest score.
  void soften(std::int64_t r, std::int64_t seen, std::int64_t columns, float* largest, float* sum,
              float* o) {
    float* p = score_ + r * kKeyTile;
    std::fill(p + seen, p + columns, 0.0F);
    if (seen == 0) return;
    float most = largest[r];
    for (std::int64_t c = 0; c < seen; ++c) most = std::max(most, p[c]);
    float total = 0.0F;
    for (std::int64_t c = 0; c < seen; ++c) {
      p[c] = exponential(p[c] - most);
      total += p[c];
    }
    const float shrink = sum[r] > 0.0F ? exponential(largest[r] - most) : 0.0F;
    sum[r] = sum[r] * shrink + total;
    largest[r] = most;
    for (std::int64_t c = 0; c < a_.head_dim; ++c) o[c] *= shrink;
  }

  const Attention& a_;
  float scale_;
  float* score_;     // kQueryTile x kKeyTile
  float* gradient_;  // kQueryTile x kKeyTile
  float* row_;       // 2 x kQueryTile
};

}  // namespace

void attend(const Attention& a, const AttentionOperands& x, std::span<std::byte> work) {
  Head head(a, work);
  const std::int64_t query_size = a.query_length * a.head_dim;
  const std::int64_t key_size = a.key_length * a.head_dim;
  const bool forward = a.direction == Direction::kForward;
  if (!forward) {
    std::fill_n(x.key_gradient, a.batch * a.kv_heads * key_size, 0.0F);
    std::fill_n(x.value_gradient, a.batch * a.kv_heads * key_size, 0.0F);
  }
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t h = 0; h < a.query_heads; ++h) {
      // Grouped-query attention: neighbouring query heads share a key head.
      const std::int64_t shared = h * a.kv_heads / a.query_heads;
      const std::int64_t q = (b * a.query_heads + h) * query_size;
      const std::int64_t k = (b * a.kv_heads + shared) * key_size;
      const std::int64_t s = (b * a.query_heads + h) * a.query_length;
      if (forward)
        head.forward(x.query + q, x.key + k, x.value + k, x.output + q, x.statistics + s);
      else
        head.backward(x.query + q, x.key + k, x.value + k, x.forward_output + q,
                      x.forward_statistics + s, x.output_gradient + q, x.query_gradient + q,
                      x.key_gradient + k, x.value_gradient + k);
    }
}

}  // namespace foreshard::replay::host
