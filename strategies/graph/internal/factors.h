/// \file
/// Converts attributes of one operator's operands to splits of its factors, and back. Propagation,
/// resolution and the list of legal signatures share it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strategies/graph/rule.h"
#include "strategies/graph/sharding.h"

namespace foreshard::internal {

/// The split of a factor.
struct Split {
  std::vector<Axis> axes{};           ///< Major to minor.
  std::vector<std::int64_t> sizes{};  ///< Sizes of unequal slices; empty: equal slices.
  bool operator==(const Split&) const = default;
};

/// A mismatch between the attribute of one operand and the splits of the operator.
struct Clash {
  std::size_t operand = 0;
  std::int32_t factor = -1;  ///< -1: the dimension's axes do not line up with its factors.
  Axis axis = -1;
  /// Factor that holds the axis, if two factors compete for it; -1: the factor is whole, fixed, not
  /// divisible, or split differently.
  std::int32_t holder = -1;
};

/// Assigns axes to factors, in the order in which operands are merged.
class Assignment {
 public:
  Assignment(const Rule& rule, const std::vector<MeshAxis>& mesh)
      : rule_(&rule),
        mesh_(&mesh),
        splits_(rule.factors.size()),
        fixed_(rule.factors.size()),
        holder_(mesh.size(), -1) {}

  /// Assigns the axes of `attribute` to the factors of operand `operand` as far as possible.
  /// \param shape  shape of the operand.
  /// \param clashes  if not null, receives the axes that could not be assigned.
  void merge(std::size_t operand, const Attribute& attribute,
             const std::vector<std::int64_t>& shape, std::vector<Clash>* clashes);
  /// Assigns `splits` to the factors.
  /// \return whether this is possible, and every operand can express it (`trim` removes nothing).
  bool take(const Splits& splits);
  /// Fixes the factors of `operand`: they get no more axes.
  void fix(std::size_t operand);
  /// Removes splits that some operand cannot express: the minor factor of a dimension is split, but
  /// its major factor not completely.
  void trim();

  const Split& of(std::int32_t factor) const { return splits_[static_cast<std::size_t>(factor)]; }
  /// The attribute of `operand`, without summands.
  Attribute attribute(std::size_t operand) const;
  /// Summands of output `operand`: over the axes of factors that it lacks.
  std::vector<Partial> partial(std::size_t operand) const;

  /// Splits `factor` further over `axis`, if possible.
  /// \return whether it was possible.
  bool give(std::int32_t factor, Axis axis);

 private:
  std::int64_t ways(const std::vector<Axis>& axes) const { return foreshard::ways(axes, *mesh_); }
  bool sole(std::int32_t factor, std::int64_t extent) const;

  const Rule* rule_;
  const std::vector<MeshAxis>* mesh_;
  std::vector<Split> splits_;
  std::vector<bool> fixed_;
  std::vector<std::int32_t> holder_;  // axis -> factor that holds it, or -1
};

}  // namespace foreshard::internal
