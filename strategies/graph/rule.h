/// \file
/// The sharding rule of an operator, as data. The operator's iteration space has *factors*; every
/// dimension of every operand consists of some of them, major to minor:
///
///     "mk,kn->mn"     matmul: k is only in the inputs, so splitting k leaves summands
///     "b(sh)->bsh"    reshape: the second dimension of the input is s times h
///     "b1,bs->bs"     broadcast: '1' is a dimension without a factor, never split
///
/// Splitting a factor over mesh axes splits every dimension that begins with it. One engine
/// (distribute.h) reads from the rules what is legal, what follows, and what conflicts.
///
/// Source of the idea: Shardy's `OpShardingRuleAttr` (openxla.org/shardy, "Propagation"); GSPMD,
/// Xu et al. 2021, section 3.5; the text form follows einops, Rogozhnikov, ICLR 2022.
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
  bool whole = false;  ///< No axis may split it (a softmax or a moving window along it).
  /// Combines partial results of an output without the factor.
  Reduction reduction = Reduction::kSum;
};

/// Factor of a rule -> axes that split it, major to minor.
using Splits = std::vector<std::vector<Axis>>;

/// What an operator does to summands (inputs that are partial by kSum).
enum class Linearity : std::uint8_t {
  kNone,      ///< Needs complete values, not summands.
  kJoint,     ///< f(x + x', y + y') = f(x, y) + f(x', y'): all inputs are partial, or none is.
  kSeparate,  ///< Linear in each input alone: one may be partial, the others not (a product).
};

struct Rule {
  std::vector<Factor> factors{};
  std::size_t inputs = 0;  ///< Number of inputs: the first `inputs` of `operands`; outputs follow.
  /// [operand][dimension] -> indices of the dimension's factors, major to minor.
  std::vector<std::vector<std::vector<std::int32_t>>> operands{};
  Linearity linearity = Linearity::kNone;
  /// The operator works element by element along its factors, so that it can also take slices of
  /// unequal size if they line up.
  bool uneven = false;
  /// Outputs (indices of `operands`) that a rank computes from its own part alone and takes for the
  /// whole: statistics per replica. No summands arise; the result differs from the serial graph's.
  std::vector<std::size_t> local_outputs{};

  bool empty() const { return operands.empty(); }
};

struct RuleOptions {
  std::string whole{};    ///< Factors that no axis may split.
  std::string maximum{};  ///< Factors whose parts are combined by kMax.
  std::string minimum{};  ///< Factors whose parts are combined by kMin.
  Linearity linearity = Linearity::kNone;
  bool uneven = false;
};

/// Makes a rule from its text: operands are separated by ',', inputs from outputs by "->"; a letter
/// is a factor, parentheses join the factors of one dimension, '1' is a dimension without a factor.
/// Sizes follow from `shapes` (inputs, then outputs): a letter that stands alone anywhere has the
/// extent of that dimension; one unknown letter in parentheses follows by division. If operands
/// disagree (a gate twice as wide, fewer key heads), the size is the greatest common divisor, which
/// a split must divide. A factor that only outputs have is whole.
/// \return kInvalidInput if the text does not have this form, does not fit the shapes, or leaves a
///     size open.
Result<Rule> rule_from(std::string_view text, const std::vector<std::vector<std::int64_t>>& shapes,
                       const RuleOptions& options = {});

/// "bs(hd)->bhsd, whole: d"; longer names with blanks between: "batch (group in)->batch in".
std::string describe(const Rule& rule);

/// The first of these conditions that `rule` breaks for operands of `shapes`; empty if none:
///  1. it has an entry for each operand and each of its dimensions;
///  2. factor indices exist, and no operand has one factor twice;
///  3. a dimension's extent is a multiple of the product of its factors' sizes.
std::string misfit(const Rule& rule, const std::vector<std::vector<std::int64_t>>& shapes);

}  // namespace foreshard
