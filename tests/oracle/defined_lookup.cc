// What picks elements by index: gather and scatter, cross-entropy, top-k, mixtures of experts.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tests/oracle/internal/defined.h"

namespace foreshard::execute::defined {
namespace {

// The index as a place in the slice of dimension `dim`, or -1 if another rank has it.
std::int64_t local_index(double value, const Operand& operand, std::size_t dim) {
  auto index = static_cast<std::int64_t>(value);
  if (index < 0) index += operand.whole[dim];
  FORESHARD_CHECK(index >= 0 && index < operand.whole[dim]);
  if (index < operand.box.begin[dim] || index >= operand.box.end[dim]) return -1;
  return index - operand.box.begin[dim];
}

}  // namespace

void gather(const Invocation& kernel) {
  const Operand& data = kernel.in[0];
  const Operand& indices = kernel.in[1];
  const std::size_t axis = axis_of_operand(kernel, data);
  FORESHARD_CHECK(extent(data, axis) == data.whole[axis]);
  const Around from = around(data, axis);
  const auto picked = static_cast<std::int64_t>(indices.values.size());
  for (std::int64_t b = 0; b < from.before; ++b)
    for (std::int64_t i = 0; i < picked; ++i)
      for (std::int64_t a = 0; a < from.after; ++a)
        kernel.out[0].values[at((b * picked + i) * from.after + a)] =
            data.values[from.at(b, local_index(indices.values[at(i)], data, axis), a)];
}

void scatter_add(const Invocation& kernel) {
  const Operand& updates = kernel.in[0];
  const Operand& indices = kernel.in[1];
  Operand& y = kernel.out[0];
  const auto axis = at(kernel.op.settings.integer("axis"));
  const Around to = around(y, axis);
  const auto picked = static_cast<std::int64_t>(indices.values.size());
  FORESHARD_CHECK(static_cast<std::int64_t>(updates.values.size()) ==
                  to.before * picked * to.after);
  std::ranges::fill(y.values, 0.0);
  for (std::int64_t b = 0; b < to.before; ++b) {
    for (std::int64_t i = 0; i < picked; ++i) {
      const std::int64_t row = local_index(indices.values[at(i)], y, axis);
      if (row < 0) continue;
      for (std::int64_t a = 0; a < to.after; ++a)
        y.values[to.at(b, row, a)] += updates.values[at((b * picked + i) * to.after + a)];
    }
  }
}

// Plain descent with a rate of 1.
void row_update(const Invocation& kernel) {
  const Operand& table = kernel.in[0];
  const Operand& indices = kernel.in[1];
  const Operand& gradients = kernel.in[2];
  Operand& updated = kernel.out[0];
  const std::int64_t width = columns(table);
  updated.values = table.values;
  for (std::size_t i = 0; i < indices.values.size(); ++i) {
    const std::int64_t row = local_index(indices.values[i], table, 0);
    if (row < 0) continue;
    for (std::int64_t c = 0; c < width; ++c)
      updated.values[at(row * width + c)] -=
          gradients.values[i * static_cast<std::size_t>(width) + at(c)];
  }
}

void cross_entropy(const Invocation& kernel) {
  const Operand& logits = kernel.in[0];
  const Operand& targets = kernel.in[1];
  need_whole_rows(logits);
  const std::int64_t width = columns(logits);
  for (std::int64_t r = 0; r < rows(logits); ++r) {
    const double* row = &logits.values[at(r * width)];
    const double largest = *std::max_element(row, row + width);
    double total = 0;
    for (std::int64_t i = 0; i < width; ++i) total += std::exp(row[i] - largest);
    for (std::int64_t i = 0; i < width; ++i)
      kernel.out[1].values[at(r * width + i)] = std::exp(row[i] - largest) / total;
    const std::int64_t target = local_index(targets.values[at(r)], logits, logits.whole.size() - 1);
    kernel.out[0].values[at(r)] = largest + std::log(total) - row[target];
  }
}

void cross_entropy_gradient(const Invocation& kernel) {
  const Operand& loss = kernel.in[0];
  const Operand& softmax = kernel.in[1];
  const Operand& targets = kernel.in[2];
  need_same_slice(softmax, kernel.out[0]);
  const std::int64_t width = columns(softmax);
  for (std::int64_t r = 0; r < rows(softmax); ++r) {
    const std::int64_t target =
        local_index(targets.values[at(r)], softmax, softmax.whole.size() - 1);
    for (std::int64_t i = 0; i < width; ++i)
      kernel.out[0].values[at(r * width + i)] =
          loss.values[at(r)] * (softmax.values[at(r * width + i)] - (i == target ? 1.0 : 0.0));
  }
}

// The elements of the groups whose two largest add up to most; of equal groups the first.
static std::vector<std::int64_t> in_best_groups(const double* row, std::int64_t width,
                                                std::int64_t groups, std::int64_t chosen) {
  const std::int64_t size = width / groups;
  std::vector<double> score(at(groups));
  for (std::int64_t g = 0; g < groups; ++g) {
    std::vector<double> group(row + g * size, row + (g + 1) * size);
    std::ranges::sort(group, std::greater{});
    score[at(g)] = group[0] + (size > 1 ? group[1] : 0);
  }
  std::vector<std::int64_t> best(at(groups));
  std::iota(best.begin(), best.end(), 0);
  std::ranges::stable_sort(
      best, [&](std::int64_t a, std::int64_t b) { return score[at(a)] > score[at(b)]; });
  best.resize(at(chosen));
  std::ranges::sort(best);
  std::vector<std::int64_t> elements;
  for (const std::int64_t g : best)
    for (std::int64_t i = 0; i < size; ++i) elements.push_back(g * size + i);
  return elements;
}

// Of equal elements the first comes first.
void top_k(const Invocation& kernel) {
  const Operand& x = kernel.in[0];
  need_whole_rows(x);
  const std::int64_t width = columns(x);
  const std::int64_t k = kernel.op.settings.integer("k");
  for (std::int64_t r = 0; r < rows(x); ++r) {
    const double* row = &x.values[at(r * width)];
    std::vector<std::int64_t> order =
        in_best_groups(row, width, kernel.op.settings.integer("groups"),
                       kernel.op.settings.integer("groups_of_k"));
    std::ranges::stable_sort(order,
                             [&](std::int64_t a, std::int64_t b) { return row[a] > row[b]; });
    for (std::int64_t i = 0; i < k; ++i) {
      kernel.out[0].values[at(r * k + i)] = row[order[at(i)]];
      kernel.out[1].values[at(r * k + i)] = static_cast<double>(order[at(i)]);
    }
  }
}

void top_k_gradient(const Invocation& kernel) {
  const Operand& values = kernel.in[0];
  const Operand& indices = kernel.in[1];
  Operand& x = kernel.out[0];
  need_same_slice(values, indices);
  const std::int64_t k = columns(values);
  std::ranges::fill(x.values, 0.0);
  for (std::int64_t r = 0; r < rows(values); ++r) {
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t place_of =
          local_index(indices.values[at(r * k + i)], x, x.whole.size() - 1);
      if (place_of >= 0) x.values[at(r * columns(x) + place_of)] += values.values[at(r * k + i)];
    }
  }
}

namespace {

// Slots are given in the order of tokens, of one token in the order of its choices; a choice for
// which an expert has no slot left is dropped (Lepikhin et al., "GShard", ICLR 2021, section 2.2).
// Visits every choice that has a slot with an expert of the rank:
// visit(place of the choice, place of the token, place of the slot), tokens and slots in rows.
template <class Visit>
void each_route(const Operand& indices, const Operand& slots, Visit visit) {
  const std::size_t dimensions = indices.whole.size();
  const auto is_whole = [](const Operand& operand, std::size_t d) {
    return extent(operand, d) == operand.whole[d];
  };
  FORESHARD_CHECK(is_whole(indices, dimensions - 2) && is_whole(indices, dimensions - 1) &&
                  is_whole(slots, dimensions - 1));
  std::int64_t groups = 1;
  for (std::size_t d = 0; d + 2 < dimensions; ++d) {
    FORESHARD_CHECK(indices.box.begin[d] == slots.box.begin[d + 1] &&
                    extent(indices, d) == extent(slots, d + 1));
    groups *= extent(indices, d);
  }
  const std::int64_t tokens = extent(indices, dimensions - 2);
  const std::int64_t choices = extent(indices, dimensions - 1);
  const std::int64_t capacity = extent(slots, dimensions - 1);
  for (std::int64_t g = 0; g < groups; ++g) {
    std::vector<std::int64_t> taken(at(slots.whole[0]), 0);
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t k = 0; k < choices; ++k) {
        const std::int64_t choice = (g * tokens + t) * choices + k;
        const auto expert = static_cast<std::int64_t>(indices.values[at(choice)]);
        FORESHARD_CHECK(expert >= 0 && expert < slots.whole[0]);
        const std::int64_t slot = taken[at(expert)]++;
        if (slot >= capacity) continue;
        const std::int64_t mine = local_index(indices.values[at(choice)], slots, 0);
        if (mine >= 0) visit(choice, g * tokens + t, (mine * groups + g) * capacity + slot);
      }
    }
  }
}

double weight_of(const Invocation& kernel, std::int64_t choice) {
  return kernel.in.size() > 2 ? kernel.in[2].values[at(choice)] : 1.0;
}

}  // namespace

void moe_dispatch(const Invocation& kernel) {
  const std::int64_t width = columns(kernel.in[0]);
  FORESHARD_CHECK(columns(kernel.out[0]) == width);
  std::ranges::fill(kernel.out[0].values, 0.0);
  each_route(kernel.in[1], kernel.out[0],
             [&](std::int64_t choice, std::int64_t token, std::int64_t slot) {
               for (std::int64_t i = 0; i < width; ++i)
                 kernel.out[0].values[at(slot * width + i)] =
                     weight_of(kernel, choice) * kernel.in[0].values[at(token * width + i)];
             });
}

void moe_combine(const Invocation& kernel) {
  const std::int64_t width = columns(kernel.in[0]);
  FORESHARD_CHECK(columns(kernel.out[0]) == width);
  std::ranges::fill(kernel.out[0].values, 0.0);
  each_route(kernel.in[1], kernel.in[0],
             [&](std::int64_t choice, std::int64_t token, std::int64_t slot) {
               for (std::int64_t i = 0; i < width; ++i)
                 kernel.out[0].values[at(token * width + i)] +=
                     weight_of(kernel, choice) * kernel.in[0].values[at(slot * width + i)];
             });
}

// Inputs: weights, indices.
void moe_slot_weights(const Invocation& kernel) {
  FORESHARD_CHECK(columns(kernel.out[0]) == 1);
  std::ranges::fill(kernel.out[0].values, 0.0);
  each_route(kernel.in[1], kernel.out[0],
             [&](std::int64_t choice, std::int64_t, std::int64_t slot) {
               kernel.out[0].values[at(slot)] = kernel.in[0].values[at(choice)];
             });
}

// Where element `i` of slots finds the bias of its expert, and the weight of its slot.
struct BiasAt {
  std::size_t bias;
  std::size_t weight;
};
BiasAt bias_at(const Operand& slots, const Operand& bias, std::size_t i) {
  const std::size_t width = at(columns(slots));
  const std::size_t of_expert = slots.values.size() / at(rows(bias));
  return {i / of_expert * width + i % width, i / width};
}

// Inputs: slots, bias, weights.
void expert_bias(const Invocation& kernel) {
  FORESHARD_CHECK(columns(kernel.in[0]) == columns(kernel.in[1]));
  for (std::size_t i = 0; i < kernel.in[0].values.size(); ++i) {
    const BiasAt of = bias_at(kernel.in[0], kernel.in[1], i);
    kernel.out[0].values[i] =
        kernel.in[0].values[i] + kernel.in[1].values[of.bias] * kernel.in[2].values[of.weight];
  }
}

// Inputs: dy, bias, weights.
void expert_bias_gradient(const Invocation& kernel) {
  FORESHARD_CHECK(columns(kernel.in[0]) == columns(kernel.in[1]));
  std::ranges::fill(kernel.out[1].values, 0.0);
  std::ranges::fill(kernel.out[2].values, 0.0);
  for (std::size_t i = 0; i < kernel.in[0].values.size(); ++i) {
    const BiasAt of = bias_at(kernel.in[0], kernel.in[1], i);
    const double flows = kernel.in[0].values[i];
    kernel.out[0].values[i] = flows;
    kernel.out[1].values[of.bias] += flows * kernel.in[2].values[of.weight];
    kernel.out[2].values[of.weight] += flows * kernel.in[1].values[of.bias];
  }
}

// Inputs: tokens, slots, indices; or slots of one column, indices.
void moe_weight_gradient(const Invocation& kernel) {
  if (kernel.in.size() == 2) {
    std::ranges::fill(kernel.out[0].values, 0.0);
    return each_route(kernel.in[1], kernel.in[0],
                      [&](std::int64_t choice, std::int64_t, std::int64_t slot) {
                        kernel.out[0].values[at(choice)] = kernel.in[0].values[at(slot)];
                      });
  }
  const std::int64_t width = columns(kernel.in[0]);
  FORESHARD_CHECK(columns(kernel.in[1]) == width);
  std::ranges::fill(kernel.out[0].values, 0.0);
  each_route(kernel.in[2], kernel.in[1],
             [&](std::int64_t choice, std::int64_t token, std::int64_t slot) {
               for (std::int64_t i = 0; i < width; ++i)
                 kernel.out[0].values[at(choice)] += kernel.in[0].values[at(token * width + i)] *
                                                     kernel.in[1].values[at(slot * width + i)];
             });
}

}  // namespace foreshard::execute::defined
