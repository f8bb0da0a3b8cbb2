#include "strategies/graph/rule.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace foreshard {
namespace {

using DimensionFactors = std::vector<std::int32_t>;
using Shapes = std::vector<std::vector<std::int64_t>>;

Error bad(std::string_view text, const std::string& why) {
  return {Error::Code::kInvalidInput, fmt::format("rule '{}': {}", text, why)};
}

// Reads operands and factors from a rule's text; sizes follow later.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}

  Result<Rule> read() {
    rule_.operands.emplace_back();
    bool outputs = false;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
        if (!joined_) rule_.operands.back().emplace_back();
        rule_.operands.back().back().push_back(factor(c));
      } else if (c == '1' && !joined_) {
        rule_.operands.back().emplace_back();
      } else if (c == '(' && !joined_) {
        joined_ = true;
        rule_.operands.back().emplace_back();
      } else if (c == ')' && joined_) {
        joined_ = false;
      } else if (c == ',' && !joined_) {
        rule_.operands.emplace_back();
      } else if (c == '-' && !joined_ && !outputs && text_.substr(i, 2) == "->") {
        rule_.inputs = rule_.operands.size();
        rule_.operands.emplace_back();
        outputs = true;
        ++i;
      } else if (c != ' ') {
        return bad(text_, fmt::format("'{}' at {} is out of place", c, i + 1));
      }
    }
    if (!outputs || joined_) return bad(text_, "needs one '->' and closed parentheses");
    return std::move(rule_);
  }

 private:
  std::int32_t factor(char letter) {
    const auto known = std::ranges::find(rule_.factors, std::string(1, letter), &Factor::name);
    if (known != rule_.factors.end())
      return static_cast<std::int32_t>(known - rule_.factors.begin());
    rule_.factors.push_back({.name = std::string(1, letter), .size = 0});
    return static_cast<std::int32_t>(rule_.factors.size()) - 1;
  }

  std::string_view text_;
  Rule rule_;
  bool joined_ = false;
};

// Finds the sizes of factors that have a dimension of their own, then of factors in compound
// dimensions. 0: unknown.
void find_sizes(Rule& rule, const Shapes& shapes) {
  const auto factor = [&](std::int32_t f) -> Factor& {
    return rule.factors[static_cast<std::size_t>(f)];
  };
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    for (std::size_t d = 0; d < shapes[i].size(); ++d) {
      const DimensionFactors& dimension = rule.operands[i][d];
      if (dimension.size() == 1)
        factor(dimension[0]).size = std::gcd(factor(dimension[0]).size, shapes[i][d]);
    }
  }
  for (bool found = true; found;) {
    found = false;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      for (std::size_t d = 0; d < shapes[i].size(); ++d) {
        std::int64_t rest = shapes[i][d];
        Factor* unknown = nullptr;
        int open = 0;
        for (const std::int32_t f : rule.operands[i][d]) {
          if (factor(f).size == 0) {
            unknown = &factor(f);
            ++open;
          } else if (rest % factor(f).size == 0) {
            rest /= factor(f).size;
          }
        }
        if (open != 1) continue;
        unknown->size = rest;
        found = rest != 0;
      }
    }
  }
  // An empty tensor has factors of size 0: nothing to split.
  for (Factor& each : rule.factors)
    if (each.size == 0) each.whole = true;
}

bool has(const Rule& rule, std::size_t operand, std::size_t factor) {
  for (const DimensionFactors& dimension : rule.operands[operand])
    if (std::ranges::find(dimension, static_cast<std::int32_t>(factor)) != dimension.end())
      return true;
  return false;
}

}  // namespace

Result<Rule> rule_from(std::string_view text, const Shapes& shapes, const RuleOptions& options) {
  FORESHARD_ASSIGN(Rule rule, RuleReader(text).read());
  if (rule.operands.size() != shapes.size())
    return bad(text, fmt::format("has {} operands, not {}", rule.operands.size(), shapes.size()));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (rule.operands[i].size() != shapes[i].size())
      return bad(text, fmt::format("operand {} has {} dimensions, not {}", i,
                                   rule.operands[i].size(), shapes[i].size()));
  }
  find_sizes(rule, shapes);
  for (std::size_t f = 0; f < rule.factors.size(); ++f) {
    Factor& factor = rule.factors[f];
    const auto listed = [&](const std::string& letters) {
      return letters.find(factor.name) != std::string::npos;
    };
    bool input = false;
    for (std::size_t i = 0; i < rule.inputs; ++i) input = input || has(rule, i, f);
    factor.whole = factor.whole || listed(options.whole) || !input;
    if (listed(options.maximum)) factor.reduction = Reduction::kMax;
    if (listed(options.minimum)) factor.reduction = Reduction::kMin;
  }
  rule.linearity = options.linearity;
  rule.uneven = options.uneven;
  if (const std::string why = misfit(rule, shapes); !why.empty()) return bad(text, why);
  return rule;
}

std::string describe(const Rule& rule) {
  const auto name = [&](std::int32_t f) { return rule.factors[static_cast<std::size_t>(f)].name; };
  const bool letters =
      std::ranges::all_of(rule.factors, [](const Factor& each) { return each.name.size() == 1; });
  const std::string gap = letters ? "" : " ";
  std::string text;
  for (std::size_t i = 0; i < rule.operands.size(); ++i) {
    if (i > 0) text += i == rule.inputs ? "->" : ",";
    bool first = true;
    for (const DimensionFactors& dimension : rule.operands[i]) {
      if (!std::exchange(first, false)) text += gap;
      if (dimension.empty()) text += "1";
      if (dimension.size() > 1) text += "(";
      for (std::size_t f = 0; f < dimension.size(); ++f)
        text += (f == 0 ? "" : gap) + name(dimension[f]);
      if (dimension.size() > 1) text += ")";
    }
  }
  std::string whole;
  for (const Factor& factor : rule.factors) {
    if (factor.whole) whole += (whole.empty() ? ", whole: " : " ") + factor.name;
  }
  return text + whole;
}

std::string misfit(const Rule& rule, const Shapes& shapes) {
  if (rule.operands.size() != shapes.size() || rule.inputs > shapes.size())
    return fmt::format("the rule has {} operands, the operator {}", rule.operands.size(),
                       shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (rule.operands[i].size() != shapes[i].size())
      return fmt::format("operand {} has {} dimensions, the rule {}", i, shapes[i].size(),
                         rule.operands[i].size());
    std::vector<std::int32_t> seen;
    for (std::size_t d = 0; d < shapes[i].size(); ++d) {
      std::int64_t product = 1;
      for (const std::int32_t f : rule.operands[i][d]) {
        if (f < 0 || static_cast<std::size_t>(f) >= rule.factors.size())
          return fmt::format("operand {} has factor {}, of {}", i, f, rule.factors.size());
        if (std::ranges::find(seen, f) != seen.end())
          return fmt::format("operand {} has factor '{}' twice", i,
                             rule.factors[static_cast<std::size_t>(f)].name);
        seen.push_back(f);
        product *= rule.factors[static_cast<std::size_t>(f)].size;
      }
      if (product == 0 ? shapes[i][d] != 0 : shapes[i][d] % product != 0)
        return fmt::format(
            "operand {}: dimension {} of size {} is not a multiple of its factors' {}", i, d,
            shapes[i][d], product);
    }
  }
  return {};
}

}  // namespace foreshard
