// Embedding and cross-entropy, each on the part of the vocabulary that the rank holds.
#include <algorithm>
#include <cmath>

#include "tests/oracle/internal/kernels.h"

namespace foreshard::execute {
namespace {

// Row of the slice that entry `id` of the vocabulary is, or -1 if another rank has it.
std::int64_t local_entry(double id, const Operand& table, std::size_t dim) {
  const auto entry = static_cast<std::int64_t>(id);
  FORESHARD_CHECK(entry >= 0 && entry < table.whole[dim]);
  if (entry < table.box.begin[dim] || entry >= table.box.end[dim]) return -1;
  return entry - table.box.begin[dim];
}

}  // namespace

// Entries of other ranks are zeros: the sum over the ranks has each once.
void embedding(const Invocation& kernel) {
  const Operand& ids = kernel.in[0];
  const Operand& table = kernel.in[1];
  Operand& y = kernel.out[0];
  const std::int64_t width = columns(table);
  FORESHARD_CHECK(columns(y) == width && rows(y) == static_cast<std::int64_t>(ids.values.size()));
  std::ranges::fill(y.values, 0.0);
  for (std::size_t token = 0; token < ids.values.size(); ++token) {
    const std::int64_t entry = local_entry(ids.values[token], table, 0);
    if (entry < 0) continue;
    std::copy_n(&table.values[at(entry * width)], width, &y.values[token * at(width)]);
  }
}

void vocabulary_maximum(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  const std::int64_t width = columns(x);
  for (std::int64_t r = 0; r < rows(x); ++r)
    kernel.out[0].values[at(r)] =
        *std::max_element(&x.values[at(r * width)], &x.values[at(r * width)] + width);
}

// Inputs: logits, their maximum over the whole vocabulary, targets. Outputs: per token the sum of
// exp(logit - maximum) and the target's (logit - maximum), of the rank's part of the vocabulary;
// and the exponentials. The loss is log(sum) - target.
void vocabulary_cross_entropy(const Invocation& kernel) {
  const Operand& logits = kernel.in[0];
  const Operand& maximum = kernel.in[1];
  const Operand& targets = kernel.in[2];
  Operand& statistics = kernel.out[0];
  Operand& exponentials = kernel.out[1];
  need_same_slice(logits, exponentials);
  const std::int64_t width = columns(logits);
  FORESHARD_CHECK(static_cast<std::int64_t>(targets.values.size()) == rows(logits) &&
                  maximum.values.size() == targets.values.size() && columns(statistics) == 2);
  for (std::int64_t r = 0; r < rows(logits); ++r) {
    const std::int64_t target = local_entry(targets.values[at(r)], logits, logits.whole.size() - 1);
    double sum = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      const double shifted = logits.values[at(r * width + i)] - maximum.values[at(r)];
      exponentials.values[at(r * width + i)] = std::exp(shifted);
      sum += std::exp(shifted);
    }
    statistics.values[at(2 * r)] = sum;
    statistics.values[at(2 * r + 1)] =
        target < 0 ? 0.0 : logits.values[at(r * width + target)] - maximum.values[at(r)];
  }
}

// Inputs: the exponentials, the statistics of the whole vocabulary, targets.
void vocabulary_cross_entropy_gradient(const Invocation& kernel) {
  const Operand& exponentials = kernel.in[0];
  const Operand& statistics = kernel.in[1];
  const Operand& targets = kernel.in[2];
  Operand& gradient = kernel.out[0];
  need_same_slice(exponentials, gradient);
  const std::int64_t width = columns(gradient);
  FORESHARD_CHECK(static_cast<std::int64_t>(targets.values.size()) == rows(gradient) &&
                  statistics.values.size() == 2 * targets.values.size());
  for (std::int64_t r = 0; r < rows(gradient); ++r) {
    const std::int64_t target =
        local_entry(targets.values[at(r)], gradient, gradient.whole.size() - 1);
    for (std::int64_t i = 0; i < width; ++i) {
      const double softmax = exponentials.values[at(r * width + i)] / statistics.values[at(2 * r)];
      gradient.values[at(r * width + i)] =
          (softmax - (i == target ? 1.0 : 0.0)) * kernel.context.loss_scale;
    }
  }
}

}  // namespace foreshard::execute
