#include <algorithm>

#include "strategies/graph/internal/propagation.h"

namespace foreshard::internal {

bool Assignment::give(std::int32_t factor, Axis axis) {
  const auto f = static_cast<std::size_t>(factor);
  std::int32_t& holder = holder_[static_cast<std::size_t>(axis)];
  if (fixed_[f] || rule_->factors[f].whole || holder >= 0 || !splits_[f].sizes.empty())
    return false;
  const std::int64_t parts = ways(splits_[f].axes) * (*mesh_)[static_cast<std::size_t>(axis)].size;
  if (rule_->factors[f].size % parts != 0) return false;
  splits_[f].axes.push_back(axis);
  holder = factor;
  return true;
}

// Whether the factor has this extent and is alone in every dimension that has it, as slices of
// unequal size require.
bool Assignment::sole(std::int32_t factor, std::int64_t extent) const {
  if (rule_->factors[static_cast<std::size_t>(factor)].size != extent) return false;
  for (const auto& operand : rule_->operands) {
    for (const auto& dimension : operand)
      if (dimension.size() > 1 && std::ranges::find(dimension, factor) != dimension.end())
        return false;
  }
  return true;
}

void Assignment::merge(std::size_t operand, const Attribute& attribute,
                       const std::vector<std::int64_t>& shape, std::vector<AxisConflict>* clashes) {
  const auto& dimensions = rule_->operands[operand];
  const auto clash = [&](std::int32_t factor, Axis axis, std::int32_t holder) {
    if (clashes != nullptr) clashes->push_back({operand, factor, axis, holder});
  };
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const auto& axes = attribute.dims[d];
    if (axes.empty()) continue;
    if (dimensions[d].empty()) {
      clash(-1, axes.front(), -1);
      continue;
    }
    if (d < attribute.sizes.size() && !attribute.sizes[d].empty()) {
      const std::int32_t factor = dimensions[d].front();
      Split& split = splits_[static_cast<std::size_t>(factor)];
      if (split == Split{axes, attribute.sizes[d]}) continue;
      const bool free = std::ranges::all_of(
          axes, [&](Axis axis) { return holder_[static_cast<std::size_t>(axis)] < 0; });
      if (rule_->uneven && split.axes.empty() && free && sole(factor, shape[d]) &&
          !fixed_[static_cast<std::size_t>(factor)] &&
          !rule_->factors[static_cast<std::size_t>(factor)].whole) {
        split = {axes, attribute.sizes[d]};
        for (const Axis axis : axes) holder_[static_cast<std::size_t>(axis)] = factor;
        continue;
      }
      // Else equal slices are tried.
    }
    std::size_t place = 0;     // index into the dimension's factors
    std::size_t position = 0;  // index into that factor's axes
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const Axis axis = axes[a];
      // After a factor that is split completely comes the next one.
      while (place + 1 < dimensions[d].size() && position == of(dimensions[d][place]).axes.size() &&
             ways(of(dimensions[d][place]).axes) ==
                 rule_->factors[static_cast<std::size_t>(dimensions[d][place])].size) {
        ++place;
        position = 0;
      }
      const std::int32_t factor = dimensions[d][place];
      const auto& held = of(factor).axes;
      if (position < held.size() ? held[position] == axis : give(factor, axis)) {
        ++position;
        continue;
      }
      const std::int32_t holder = holder_[static_cast<std::size_t>(axis)];
      if ((*mesh_)[static_cast<std::size_t>(axis)].size == 1) continue;  // splits nothing
      clash(factor, axis, holder == factor ? -1 : holder);
      break;
    }
  }
}

bool Assignment::take(const Splits& splits) {
  if (splits.size() != splits_.size()) return false;
  for (std::size_t f = 0; f < splits.size(); ++f)
    for (const Axis axis : splits[f])
      if (!give(static_cast<std::int32_t>(f), axis)) return false;
  const std::vector<Split> given = splits_;
  trim();
  return splits_ == given;
}

void Assignment::fix(std::size_t operand) {
  for (const auto& dimension : rule_->operands[operand])
    for (const std::int32_t factor : dimension) fixed_[static_cast<std::size_t>(factor)] = true;
}

void Assignment::trim() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& operand : rule_->operands) {
      for (const auto& dimension : operand) {
        if (dimension.size() < 2) continue;
        bool full = true;
        for (const std::int32_t factor : dimension) {
          Split& split = splits_[static_cast<std::size_t>(factor)];
          if (!full && !split.axes.empty()) {
            for (const Axis axis : split.axes) holder_[static_cast<std::size_t>(axis)] = -1;
            split = {};
            changed = true;
          }
          full = full && ways(split.axes) == rule_->factors[static_cast<std::size_t>(factor)].size;
        }
      }
    }
  }
}

Attribute Assignment::attribute(std::size_t operand) const {
  const auto& dimensions = rule_->operands[operand];
  Attribute attribute = replicated(dimensions.size());
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    for (const std::int32_t factor : dimensions[d]) {
      const Split& split = of(factor);
      attribute.dims[d].insert(attribute.dims[d].end(), split.axes.begin(), split.axes.end());
      if (split.sizes.empty()) continue;
      attribute.sizes.resize(dimensions.size());
      attribute.sizes[d] = split.sizes;
    }
  }
  return attribute;
}

std::vector<Partial> Assignment::partial(std::size_t operand) const {
  const auto& local = rule_->local_outputs;
  if (std::ranges::find(local, operand) != local.end()) return {};
  std::vector<bool> has(rule_->factors.size());
  for (const auto& dimension : rule_->operands[operand])
    for (const std::int32_t factor : dimension) has[static_cast<std::size_t>(factor)] = true;
  std::vector<Partial> partial;
  for (std::size_t f = 0; f < rule_->factors.size(); ++f) {
    if (has[f]) continue;
    for (const Axis axis : splits_[f].axes) partial.push_back({axis, rule_->factors[f].reduction});
  }
  std::ranges::sort(partial);
  return partial;
}

}  // namespace foreshard::internal
