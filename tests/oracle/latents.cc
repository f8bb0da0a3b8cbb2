// Heads of queries, keys and values from latents (operators/latents.cc).
#include <algorithm>
#include <vector>

#include "tests/oracle/internal/kernels.h"
#include "tests/oracle/internal/packed.h"

namespace foreshard::execute {
namespace {

// Columns of one head in each of the tensors.
struct LatentWidths {
  explicit LatentWidths(const Settings& settings, std::int64_t query_columns)
      : rotary(settings.integer("rotary_dim")),
        value(settings.integer("value_dim")),
        own(query_columns / settings.integer("heads") - rotary) {}

  std::int64_t rotary;
  std::int64_t value;
  std::int64_t own;  // of queries and keys, those that do not rotate

  std::int64_t query() const { return own + rotary; }
  std::int64_t projected() const { return own + value; }
  std::int64_t put_together() const { return own + rotary + value; }
};

// visit(row, its position, head of the slice) for all heads that a slice of queries has.
template <class Visit>
void each_query_head(const Operand& queries, std::int64_t width, Visit visit) {
  FORESHARD_CHECK(columns(queries) % width == 0 && queries.box.begin[2] % width == 0);
  for (std::int64_t row = 0; row < rows(queries); ++row)
    for (std::int64_t head = 0; head < columns(queries) / width; ++head)
      visit(row, queries.box.begin[1] + row % extent(queries, 1), head);
}

}  // namespace

void latent_heads(const Invocation& kernel) {
  const LatentWidths w(kernel.op.settings, kernel.in[0].whole[2]);
  need_same_slice(kernel.in[0], kernel.out[0]);
  kernel.out[0].values = kernel.in[0].values;
  const std::int64_t heads = columns(kernel.in[0]) / w.query();
  FORESHARD_CHECK(columns(kernel.in[1]) == heads * w.projected() &&
                  columns(kernel.in[2]) == w.rotary);
  each_query_head(
      kernel.in[0], w.query(), [&](std::int64_t row, std::int64_t at_token, std::int64_t h) {
        rotate(&kernel.out[0].values[at((row * heads + h) * w.query() + w.own)], w.rotary, at_token,
               1);
        const double* projected = &kernel.in[1].values[at((row * heads + h) * w.projected())];
        const double* shared = &kernel.in[2].values[at(row * w.rotary)];
        double* to = &kernel.out[1].values[at((row * heads + h) * w.put_together())];
        std::copy_n(projected, w.own, to);
        std::copy_n(shared, w.rotary, to + w.own);
        rotate(to + w.own, w.rotary, at_token, 1);
        std::copy_n(projected + w.own, w.value, to + w.query());
      });
}

void latent_heads_gradient(const Invocation& kernel) {
  const LatentWidths w(kernel.op.settings, kernel.in[0].whole[2]);
  need_same_slice(kernel.in[0], kernel.out[0]);
  kernel.out[0].values = kernel.in[0].values;
  std::ranges::fill(kernel.out[2].values, 0.0);
  const std::int64_t heads = columns(kernel.in[0]) / w.query();
  std::vector<double> part(at(w.rotary));
  each_query_head(
      kernel.in[0], w.query(), [&](std::int64_t row, std::int64_t at_token, std::int64_t h) {
        rotate(&kernel.out[0].values[at((row * heads + h) * w.query() + w.own)], w.rotary, at_token,
               -1);
        const double* from = &kernel.in[1].values[at((row * heads + h) * w.put_together())];
        double* projected = &kernel.out[1].values[at((row * heads + h) * w.projected())];
        std::copy_n(from, w.own, projected);
        std::copy_n(from + w.query(), w.value, projected + w.own);
        std::copy_n(from + w.own, w.rotary, part.begin());
        rotate(part.data(), w.rotary, at_token, -1);
        for (std::int64_t i = 0; i < w.rotary; ++i)
          kernel.out[2].values[at(row * w.rotary + i)] += part[at(i)];
      });
}

}  // namespace foreshard::execute
