// Attention computed by plain loops.
#include <cmath>

#include "validate/replay/gpu/checks.h"

namespace foreshard::replay::gpu {

void compute(const Attention& a, std::vector<std::vector<double>>& o) {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const std::size_t dim = size(a.head_dim);
  const double scale = 1.0 / std::sqrt(static_cast<double>(dim));
  const bool backward = a.direction == Direction::kBackward;
  std::vector<double>* logarithms = backward ? nullptr : &o[4];
  if (backward)
    for (const std::size_t i :
         {std::size_t{6}, std::size_t{7}, std::size_t{8}, std::size_t{9}, std::size_t{10}})
      o[i].assign(o[i].size(), 0.0);
  std::vector<double> p(size(a.key_length));
  for (std::size_t b = 0; b < size(a.batch); ++b)
    for (std::size_t h = 0; h < size(a.query_heads); ++h)
      for (std::size_t i = 0; i < size(a.query_length); ++i) {
        const std::size_t kv = h / size(a.query_heads / a.kv_heads);
        const std::size_t query = ((b * size(a.query_length) + i) * size(a.query_heads) + h) * dim;
        const std::size_t row = (b * size(a.query_heads) + h) * size(a.query_length) + i;
        const auto key = [&](std::size_t j) {
          return ((b * size(a.key_length) + j) * size(a.kv_heads) + kv) * dim;
        };
        const auto dot = [&](const std::vector<double>& x, std::size_t x0,
                             const std::vector<double>& y, std::size_t y0) {
          double sum = 0;
          for (std::size_t d = 0; d < dim; ++d) sum += x[x0 + d] * y[y0 + d];
          return sum;
        };
        double sum = 0;
        for (std::size_t j = 0; j < p.size(); ++j) {
          const bool seen =
              !a.causal || static_cast<std::int64_t>(j) <=
                               static_cast<std::int64_t>(i) + a.key_length - a.query_length;
          p[j] = seen ? std::exp(scale * dot(o[0], query, o[1], key(j))) : 0.0;
          sum += p[j];
        }
        for (double& each : p) each = sum > 0 ? each / sum : 0.0;
        if (!backward) {
          (*logarithms)[row] = sum > 0 ? std::log(sum) : INFINITY;
          for (std::size_t d = 0; d < dim; ++d) {
            double out = 0;
            for (std::size_t j = 0; j < p.size(); ++j) out += p[j] * o[2][key(j) + d];
            o[3][query + d] = out;
          }
          continue;
        }
        const double along = dot(o[3], query, o[4], query);
        o[6][row] = along;
        for (std::size_t j = 0; j < p.size(); ++j) {
          const double ds = p[j] * (dot(o[4], query, o[2], key(j)) - along) * scale;
          for (std::size_t d = 0; d < dim; ++d) {
            o[8][query + d] += ds * o[1][key(j) + d];
            o[9][key(j) + d] += ds * o[0][query + d];
            o[10][key(j) + d] += p[j] * o[4][query + d];
          }
        }
        for (std::size_t d = 0; d < dim; ++d) o[7][query + d] = o[8][query + d];
      }
}

}  // namespace foreshard::replay::gpu
