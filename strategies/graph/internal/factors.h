/// \file
/// Attributes of one operator's operands as splits of its factors, and back. What propagation,
/// resolution and the list of legal signatures share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strategies/graph/rule.h"
#include "strategies/graph/sharding.h"

namespace foreshard::internal {

/// How a factor is split.
struct Split {
  std::vector<Axis> axes{};           ///< Major to minor.
  std::vector<std::int64_t> sizes{};  ///< Of unequal slices; empty: equal.
  bool operator==(const Split&) const = default;
};

/// A mismatch between what one operand wants and what the operator does.
struct Clash {
  std::size_t operand = 0;
  std::int32_t factor = -1;  ///< -1: the dimension's axes do not line up with its factors.
  Axis axis = -1;
  /// Whose factor has the axis, where two factors want it; -1: the factor is whole, fixed, not
  /// divisible, or split differently.
  std::int32_t holder = -1;
};

/// Gives axes to factors, in the order in which operands are merged.
class Assignment {
 public:
  Assignment(const Rule& rule, const std::vector<MeshAxis>& mesh)
      : rule_(&rule),
        mesh_(&mesh),
        splits_(rule.factors.size()),
        fixed_(rule.factors.size()),
        holder_(mesh.size(), -1) {}

  /// Operand `operand` would like to lie as `attribute`. `shape` is its shape.
  /// \param clashes  filled with what it does not get, unless null.
  void merge(std::size_t operand, const Attribute& attribute,
             const std::vector<std::int64_t>& shape, std::vector<Clash>* clashes);
  /// Gives every factor its axes of `splits`.
  /// \return whether that is possible, and every operand can express it (`trim` takes nothing back).
  bool take(const Splits& splits);
  /// No more axes for the factors of `operand`.
  void fix(std::size_t operand);
  /// Takes back what some operand cannot express: a split of a minor factor where a major one is
  /// not split to the last.
  void trim();

  const Split& of(std::int32_t factor) const { return splits_[static_cast<std::size_t>(factor)]; }
  /// The attribute of `operand`, without summands.
  Attribute attribute(std::size_t operand) const;
  /// Summands of output `operand`: over the axes of factors that the inputs have and it has not.
  std::vector<Partial> partial(std::size_t operand) const;

  /// Splits `factor` further over `axis`.
  /// \return whether that is possible.
  bool give(std::int32_t factor, Axis axis);

 private:
  std::int64_t ways(const std::vector<Axis>& axes) const { return foreshard::ways(axes, *mesh_); }
  bool sole(std::int32_t factor, std::int64_t extent) const;

  const Rule* rule_;
  const std::vector<MeshAxis>* mesh_;
  std::vector<Split> splits_;
  std::vector<bool> fixed_;
  std::vector<std::int32_t> holder_;  // of each axis: its factor
};

}  // namespace foreshard::internal
