/// \file
/// The sharding rule of an operator, as data (R2.2, R3.5). The operator's iteration space has
/// *factors*; every dimension of every operand consists of some of them, major to minor:
///
///     "mk,kn->mn"     matmul: k is in the inputs alone, so splitting k leaves summands
///     "b(sh)->bsh"    reshape: the second dimension of the input is s times h
///     "b1,bs->bs"     broadcast: '1' is a dimension without a factor, never split
///
/// To split a factor over mesh axes splits every dimension that begins with it. One engine
/// (distribute.h) reads from the rules what is legal, what follows from what, and what conflicts.
///
/// Source of the idea: Shardy's `OpShardingRuleAttr` (openxla.org/shardy, "Propagation"); GSPMD,
/// Xu et al. 2021, section 3.5; the text form is that of einops, Rogozhnikov, ICLR 2022.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/graph/attribute.h"

namespace foreshard {

struct Factor {
  std::string name;
  std::int64_t size = 1;
  bool whole = false;  ///< No axis may split it: a softmax along it, a window that moves over it.
  Reduction reduction = Reduction::kSum;  ///< Of parts, for an output that lacks the factor.
};

/// Per factor of a rule: the axes that split it, major to minor.
using Splits = std::vector<std::vector<Axis>>;

/// What an operator does to summands (inputs that are partial by kSum).
enum class Linearity : std::uint8_t {
  kNone,      ///< Needs values.
  kJoint,     ///< f(x + x', y + y') = f(x, y) + f(x', y'): all inputs are partial alike, or none.
  kSeparate,  ///< Linear in each input while the others are values: one may be partial (a product).
};

struct Rule {
  std::vector<Factor> factors{};
  std::size_t inputs = 0;  ///< So many of `operands` are inputs, the others outputs.
  /// [operand][dimension]: indices of its factors, major to minor.
  std::vector<std::vector<std::vector<std::int32_t>>> operands{};
  Linearity linearity = Linearity::kNone;
  /// Works element by element along its factors, so that slices of unequal size do if they line up.
  bool uneven = false;
  /// Outputs (indices of `operands`) that a rank makes from its own part and takes for the whole:
  /// statistics per replica. No summands arise; the result is not that of the serial graph.
  std::vector<std::size_t> local_outputs{};

  bool empty() const { return operands.empty(); }
};

struct RuleOptions {
  std::string whole{};    ///< Factors that no axis may split.
  std::string maximum{};  ///< Factors whose parts combine by kMax.
  std::string minimum{};  ///< By kMin.
  Linearity linearity = Linearity::kNone;
  bool uneven = false;
};

/// Rule from its text: operands separated by ',', inputs and outputs by "->"; a letter is a
/// factor, parentheses join the factors of one dimension, '1' is a dimension without a factor.
/// Sizes follow from `shapes` (inputs, then outputs): a letter that stands alone anywhere is as
/// large as that dimension; one unknown letter in parentheses is found by division. Where operands
/// disagree (twice as wide a gate, fewer key heads) the size is the greatest common divisor: what a
/// split must divide. A factor of outputs alone is whole.
/// \return kInvalidInput if the text is not of that form, does not fit the shapes, or leaves a size
///     open.
Result<Rule> rule_from(std::string_view text, const std::vector<std::vector<std::int64_t>>& shapes,
                       const RuleOptions& options = {});

/// "bs(hd)->bhsd, whole: d"; longer names with blanks between: "batch (group in)->batch in".
std::string describe(const Rule& rule);

/// The first way in which `rule` does not fit operands of `shapes`; nothing if it does:
///  1. it has an entry for each operand and each of its dimensions;
///  2. factor indices exist, and no operand has one factor twice;
///  3. a dimension's extent is a multiple of the product of its factors' sizes.
std::string misfit(const Rule& rule, const std::vector<std::vector<std::int64_t>>& shapes);

}  // namespace foreshard
