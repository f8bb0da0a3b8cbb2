// All legal ways to use an operator on inputs that lie as given (requirement R2.2, legal outputs).
#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"

#include "strategies/graph/distribute.h"
#include "strategies/graph/internal/propagation.h"

namespace foreshard {
namespace {

using internal::Assignment;
using internal::AxisConflict;

Error illegal(const std::string& why) {
  return {Error::Code::kInvalidInput, why};
}

// Summands that the outputs take over from the inputs; an error if the operator cannot take them.
Result<std::vector<Partial>> carried(const Rule& rule, const std::vector<Attribute>& inputs,
                                     const std::vector<MeshAxis>& mesh) {
  std::vector<Partial> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const Partial& partial : inputs[i].partial) {
      const std::string& axis = mesh[static_cast<std::size_t>(partial.axis)].name;
      if (rule.linearity == Linearity::kNone)
        return illegal(fmt::format(
            "input {} holds summands over axis '{}', but the operator needs values", i, axis));
      if (partial.reduction != Reduction::kSum)
        return illegal(
            fmt::format("input {} is reduced over axis '{}' by {}; only sums pass "
                        "through a linear operator",
                        i, axis, name_of(partial.reduction)));
      for (std::size_t j = 0; j < inputs.size(); ++j) {
        const auto state = state_of(inputs[j], partial.axis).kind;
        const bool well =
            i == j || (rule.linearity == Linearity::kJoint ? state == AxisState::Kind::kPartial
                                                           : state == AxisState::Kind::kReplicated);
        if (!well)
          return illegal(fmt::format(
              "input {} holds summands over axis '{}', and input {} {}", i, axis, j,
              rule.linearity == Linearity::kJoint ? "does not" : "is not whole over it"));
      }
      if (std::ranges::find(all, partial) == all.end()) all.push_back(partial);
    }
  }
  std::ranges::sort(all);
  return all;
}

std::string clash_text(const Rule& rule, const AxisConflict& clash,
                       const std::vector<MeshAxis>& mesh) {
  const auto name = [&](std::int32_t factor) {
    return rule.factors[static_cast<std::size_t>(factor)].name;
  };
  const std::string& axis = mesh[static_cast<std::size_t>(clash.axis)].name;
  if (clash.factor < 0)
    return fmt::format("input {} is split over axis '{}' along a dimension that must be whole",
                       clash.operand, axis);
  if (clash.holder >= 0)
    return fmt::format("axis '{}' splits factor '{}' already; input {} wants it for factor '{}'",
                       axis, name(clash.holder), clash.operand, name(clash.factor));
  if (rule.factors[static_cast<std::size_t>(clash.factor)].whole)
    return fmt::format("input {} splits factor '{}' over axis '{}', but it must stay whole",
                       clash.operand, name(clash.factor), axis);
  return fmt::format(
      "input {} splits factor '{}' over axis '{}', which others split otherwise or "
      "its size {} does not allow",
      clash.operand, name(clash.factor), axis,
      rule.factors[static_cast<std::size_t>(clash.factor)].size);
}

}  // namespace

Result<std::vector<Signature>> legal_signatures(
    const Rule& rule, const std::vector<std::vector<std::int64_t>>& shapes,
    const std::vector<Attribute>& inputs, const std::vector<MeshAxis>& mesh) {
  FORESHARD_CHECK(inputs.size() == rule.inputs && shapes.size() == rule.operands.size());
  FORESHARD_ASSIGN(const auto summands, carried(rule, inputs, mesh));

  Assignment given(rule, mesh);
  std::vector<AxisConflict> clashes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    given.merge(i, inputs[i], shapes[i], &clashes);
    if (!clashes.empty()) return illegal(clash_text(rule, clashes.front(), mesh));
  }

  // Axes that no input uses; each may split one of the factors or none.
  std::vector<Axis> free;
  for (std::size_t a = 0; a < mesh.size(); ++a) {
    const auto axis = static_cast<Axis>(a);
    if (mesh[a].size > 1 && std::ranges::all_of(inputs, [&](const Attribute& input) {
          return state_of(input, axis).kind == AxisState::Kind::kReplicated;
        }))
      free.push_back(axis);
  }
  std::vector<Signature> found;
  const auto visit = [&](const auto& self, const Assignment& assignment, std::size_t next) -> void {
    if (next == free.size()) {
      Assignment trimmed = assignment;
      trimmed.trim();
      Signature signature;
      for (std::size_t o = 0; o < rule.operands.size(); ++o) {
        Attribute attribute = trimmed.attribute(o);
        if (o < rule.inputs) {
          attribute.partial = inputs[o].partial;
          // Only whole dimensions are sliced; dimensions that are split already stay as they are.
          for (std::size_t d = 0; d < attribute.dims.size(); ++d) {
            const auto& before = inputs[o].dims[d];
            if (before.size() > attribute.dims[d].size() ||
                !std::equal(before.begin(), before.end(), attribute.dims[d].begin()))
              return;
          }
          signature.inputs.push_back(std::move(attribute));
        } else {
          attribute.partial = trimmed.partial(o);
          attribute.partial.insert(attribute.partial.end(), summands.begin(), summands.end());
          std::ranges::sort(attribute.partial);
          signature.outputs.push_back(std::move(attribute));
        }
      }
      const bool known = std::ranges::any_of(found, [&](const Signature& other) {
        return other.inputs == signature.inputs && other.outputs == signature.outputs;
      });
      if (!known) found.push_back(std::move(signature));
      return;
    }
    self(self, assignment, next + 1);
    for (std::size_t f = 0; f < rule.factors.size(); ++f) {
      Assignment more = assignment;
      if (more.give(static_cast<std::int32_t>(f), free[next])) self(self, more, next + 1);
    }
  };
  visit(visit, given, 0);
  return found;
}

using internal::Assignment;

bool is_legal(const Rule& rule, const Splits& splits, const std::vector<MeshAxis>& mesh) {
  return Assignment(rule, mesh).take(splits);
}

std::vector<Splits> legal_splits(const Rule& rule, const std::vector<MeshAxis>& mesh) {
  std::vector<Splits> ways{Splits(rule.factors.size())};
  for (std::size_t a = 0; a < mesh.size(); ++a) {
    if (mesh[a].size == 1) continue;
    const std::size_t before = ways.size();
    for (std::size_t w = 0; w < before; ++w) {
      for (std::size_t f = 0; f < rule.factors.size(); ++f) {
        Splits more = ways[w];
        more[f].push_back(static_cast<Axis>(a));
        ways.push_back(std::move(more));
      }
    }
  }
  // Only complete ways are checked: a split of a minor factor may become legal with a later axis of
  // its major factor.
  std::erase_if(ways, [&](const Splits& splits) { return !is_legal(rule, splits, mesh); });
  return ways;
}

Signature signature_of(const Rule& rule, const Splits& splits, const std::vector<MeshAxis>& mesh) {
  Assignment assignment(rule, mesh);
  FORESHARD_CHECK(assignment.take(splits));
  Signature signature;
  for (std::size_t o = 0; o < rule.operands.size(); ++o) {
    Attribute attribute = assignment.attribute(o);
    if (o < rule.inputs) {
      signature.inputs.push_back(std::move(attribute));
    } else {
      attribute.partial = assignment.partial(o);
      signature.outputs.push_back(std::move(attribute));
    }
  }
  return signature;
}

}  // namespace foreshard
