// Rule 1 of match.h: products and collectives whose sizes were recorded are matched by size.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "validate/profile/internal/step_match.h"
#include "validate/profile/kineto.h"

namespace foreshard::profile::internal {
namespace {

const Gemm* product_in(const ProfiledTask& task) {
  const auto* kernel = std::get_if<Kernel>(&task.task->body);
  return kernel == nullptr ? nullptr : std::get_if<Gemm>(kernel);
}
const program::Communication* communication_in(const ProfiledTask& task) {
  return std::get_if<program::Communication>(&task.task->body);
}

bool agree(const MaybePhase& a, const MaybePhase& b) {
  return !a || !b || *a == *b;
}

// {batch, lesser of m and n, greater of m and n, k}. A library that computes the transpose of a
// result swaps m and n.
using ProductKey = std::array<std::int64_t, 4>;
ProductKey key_of(const ProductShape& shape) {
  return {shape.batch, std::min(shape.m, shape.n), std::max(shape.m, shape.n), shape.k};
}
ProductKey key_of(const Gemm& gemm) {
  return key_of(ProductShape{.batch = gemm.batch, .m = gemm.m, .n = gemm.n, .k = gemm.k});
}

struct Shaped {
  std::size_t kernel;
  ProductShape shape;
};

// The extent of a task that several kernels divide among them. part_of: how much of it the kernel
// has; nothing if its other extents differ from the task's.
enum class Extent : std::uint8_t { kM, kN, kK };
std::optional<std::int64_t> part_of(const ProductShape& kernel, const Gemm& task, Extent extent) {
  if (kernel.batch != task.batch) return std::nullopt;
  if (extent == Extent::kK) {
    const bool same = std::minmax(kernel.m, kernel.n) == std::minmax(task.m, task.n);
    return same ? std::optional(kernel.k) : std::nullopt;
  }
  const std::int64_t whole = extent == Extent::kM ? task.n : task.m;
  if (kernel.k != task.k) return std::nullopt;
  if (kernel.m == whole) return kernel.n;
  if (kernel.n == whole) return kernel.m;
  return std::nullopt;
}

std::int64_t extent_of(const Gemm& task, Extent extent) {
  return extent == Extent::kM ? task.m : extent == Extent::kN ? task.n : task.k;
}

class Products {
 public:
  explicit Products(StepMatch& step) : step_(step) {
    for (const std::size_t kernel : step.kernels) {
      const KernelName* line = step.match.line_of[kernel];
      if (line == nullptr || line->part ||
          std::ranges::find(line->kinds, "gemm") == line->kinds.end())
        continue;
      if (const auto shape = product_shape(step.trace, step.trace.kernels[kernel]))
        shaped_.push_back({kernel, *shape});
    }
  }

  // Takes the tasks in order. Each gets the kernel of its shape, or the kernels that add up to it,
  // whichever come first among the next kernels.
  void in_order() {
    std::size_t cursor = 0;
    for (const std::size_t task : step_.tasks) {
      const Gemm* gemm = product_in(step_.match.tasks[task]);
      if (gemm == nullptr) continue;
      while (cursor < shaped_.size() && !step_.free(shaped_[cursor].kernel)) ++cursor;
      std::size_t seen = 0;
      for (std::size_t i = cursor; i < shaped_.size() && seen < kAhead; ++i) {
        const std::size_t kernel = shaped_[i].kernel;
        if (!step_.free(kernel) || !agree(step_.phase_of[kernel], step_.phase_of_task[task]))
          continue;
        ++seen;
        if (!give(task, *gemm, i)) continue;
        cursor = std::max(cursor, i < kAhead ? 0 : i - kAhead);
        break;
      }
    }
  }

  // Gives each remaining task a kernel of the same shape, wherever that is in the step.
  void anywhere() {
    std::map<ProductKey, std::vector<std::size_t>> of_key;  // shape -> kernels
    for (const Shaped& one : shaped_) of_key[key_of(one.shape)].push_back(one.kernel);
    for (const std::size_t task : step_.tasks) {
      const Gemm* gemm = product_in(step_.match.tasks[task]);
      if (gemm == nullptr || !step_.bare(task)) continue;
      const auto found = of_key.find(key_of(*gemm));
      if (found == of_key.end()) continue;
      const auto kernel = std::ranges::find_if(found->second, [&](std::size_t one) {
        return step_.free(one) && agree(step_.phase_of[one], step_.phase_of_task[task]);
      });
      if (kernel != found->second.end()) step_.give(*kernel, task, MatchedBy::kShape);
    }
  }

 private:
  // Gives the task the kernel at `begin`, or that kernel and later ones. \return whether it did.
  bool give(std::size_t task, const Gemm& gemm, std::size_t begin) {
    if (key_of(shaped_[begin].shape) == key_of(gemm)) {
      step_.give(shaped_[begin].kernel, task, MatchedBy::kShape);
      return true;
    }
    for (const Extent extent : {Extent::kM, Extent::kN, Extent::kK}) {
      const auto pieces = pieces_of(gemm, extent, task, begin);
      for (const std::size_t i : pieces) step_.give(shaped_[i].kernel, task, MatchedBy::kShape);
      if (!pieces.empty()) return true;
    }
    return false;
  }

  std::vector<std::size_t> pieces_of(const Gemm& gemm, Extent extent, std::size_t task,
                                     std::size_t begin) const {
    const std::int64_t wanted = extent_of(gemm, extent);
    std::vector<std::size_t> pieces;
    std::int64_t sum = 0;
    for (std::size_t i = begin; i < std::min(shaped_.size(), begin + kAhead); ++i) {
      const std::size_t kernel = shaped_[i].kernel;
      const auto part = part_of(shaped_[i].shape, gemm, extent);
      const bool taken = part && step_.free(kernel) && *part < wanted &&
                         agree(step_.phase_of[kernel], step_.phase_of_task[task]);
      if (!taken && i == begin) return {};
      if (!taken) continue;  // a kernel of another branch of the graph
      pieces.push_back(i);
      sum += *part;
      if (sum == wanted) return pieces;
      if (sum > wanted) return {};
    }
    return {};
  }

  static constexpr std::size_t kAhead = 8;  // products looked at ahead
  StepMatch& step_;
  std::vector<Shaped> shaped_;  // ordered by start
};

// Whether the sizes agree, up to padding of the last part.
bool as_large(Bytes measured, Bytes task) {
  return std::abs(measured / task - 1) < 0.01;
}

void collectives(StepMatch& step) {
  for (const std::size_t kernel : step.kernels) {
    const auto& traced = step.trace.kernels[kernel].collective;
    if (!traced || !step.free(kernel)) continue;
    for (const auto kind : collective_kinds(*traced)) {
      const auto bytes = collective_bytes(*traced, kind);
      if (!bytes) continue;
      const auto task = std::ranges::find_if(step.tasks, [&](std::size_t t) {
        const auto* what = communication_in(step.match.tasks[t]);
        return what != nullptr && what->kind == kind && step.bare(t) &&
               agree(step.phase_of[kernel], step.phase_of_task[t]) &&
               step.ranks_of_task[t] == traced->ranks && as_large(*bytes, what->bytes);
      });
      if (task == step.tasks.end()) continue;
      step.give(kernel, *task, MatchedBy::kShape);
      break;
    }
  }
}

}  // namespace

void match_by_shape(StepMatch& step) {
  Products products(step);
  products.in_order();
  products.anywhere();
  collectives(step);
}

}  // namespace foreshard::profile::internal
