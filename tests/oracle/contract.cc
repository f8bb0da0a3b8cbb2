#include <algorithm>
#include <array>

#include "tests/oracle/internal/kernels.h"

namespace foreshard::execute {
namespace {

constexpr std::size_t kMostOperands = 3;
using Offsets = std::array<std::size_t, kMostOperands>;

// The loop over one letter: how far entry i of it lies into each operand's values.
struct Loop {
  std::vector<Offsets> steps;
};

// Strides of a row-major slice.
std::vector<std::size_t> strides_of(const Operand& operand) {
  std::vector<std::size_t> strides(operand.whole.size(), 1);
  for (std::size_t d = strides.size(); d-- > 1;)
    strides[d - 1] = strides[d] * at(extent(operand, d));
  return strides;
}

class Contraction {
 public:
  Contraction(std::span<const std::string> letters, std::span<const Operand* const> inputs,
              Operand& output)
      : inputs_(inputs), output_(output) {
    FORESHARD_CHECK(letters.size() == inputs.size() + 1 && letters.size() <= kMostOperands);
    std::vector<const Operand*> operands(inputs.begin(), inputs.end());
    operands.push_back(&output);
    // Letters of the output first: the innermost loops then sum.
    std::string order = letters.back();
    for (const std::string& operand : letters) {
      for (const char letter : operand) {
        if (order.find(letter) == std::string::npos) order += letter;
      }
    }
    for (const char letter : order) loops_.push_back(loop(letter, letters, operands));
  }

  void run() { walk(0, {}); }

 private:
  static Loop loop(char letter, std::span<const std::string> letters,
                   const std::vector<const Operand*>& operands) {
    std::int64_t finest = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    for (std::size_t o = 0; o < operands.size(); ++o) {
      const auto d = letters[o].find(letter);
      if (d == std::string::npos || operands[o]->whole[d] <= finest) continue;
      finest = operands[o]->whole[d];
      begin = operands[o]->box.begin[d];
      end = operands[o]->box.end[d];
    }
    Loop loop{.steps = std::vector<Offsets>(at(end - begin), Offsets{})};
    for (std::size_t o = 0; o < operands.size(); ++o) {
      const auto d = letters[o].find(letter);
      if (d == std::string::npos) continue;
      const std::int64_t group = finest / operands[o]->whole[d];
      FORESHARD_CHECK(group * operands[o]->whole[d] == finest);
      const std::int64_t first = operands[o]->box.begin[d];
      // What this rank has of the letter is the same in every operand.
      FORESHARD_CHECK(first * group == begin && operands[o]->box.end[d] * group == end);
      const std::size_t stride = strides_of(*operands[o])[d];
      for (std::int64_t i = begin; i < end; ++i)
        loop.steps[at(i - begin)][o] = at(i / group - first) * stride;
    }
    return loop;
  }

  void add_product(const Offsets& offsets, const Offsets& step) {
    double product = 1;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      product *= inputs_[i]->values[offsets[i] + step[i]];
    output_.values[offsets[inputs_.size()] + step[inputs_.size()]] += product;
  }

  // Adds the products of two inputs, in their order, to one element of the output.
  void add_sum(const Offsets& offsets, const std::vector<Offsets>& steps) {
    const double* left = &inputs_[0]->values[offsets[0]];
    const double* right = &inputs_[1]->values[offsets[1]];
    double sum = output_.values[offsets[2]];
    for (const Offsets& step : steps) sum += left[step[0]] * right[step[1]];
    output_.values[offsets[2]] = sum;
  }

  void walk(std::size_t depth, const Offsets& offsets) {
    if (depth == loops_.size()) {
      add_product(offsets, {});
      return;
    }
    const std::vector<Offsets>& steps = loops_[depth].steps;
    if (depth + 1 == loops_.size()) {  // nearly all of the time
      if (inputs_.size() == 2 && !steps.empty() && steps.back()[2] == 0)
        return add_sum(offsets, steps);
      for (const Offsets& step : steps) add_product(offsets, step);
      return;
    }
    for (const Offsets& step : steps) {
      Offsets next = offsets;
      for (std::size_t o = 0; o < kMostOperands; ++o) next[o] += step[o];
      walk(depth + 1, next);
    }
  }

  std::span<const Operand* const> inputs_;
  Operand& output_;
  std::vector<Loop> loops_;
};

}  // namespace

void contract(std::span<const std::string> letters, std::span<const Operand* const> inputs,
              Operand& output) {
  Contraction(letters, inputs, output).run();
}

}  // namespace foreshard::execute
