/// \file
/// How tokens are routed to experts, as far as it decides what moves: to how many ranks or nodes a
/// token goes. Libraries that know the routing send one copy of a token to each place, however many
/// of its experts are there.
#pragma once

#include <compare>
#include <cstdint>

namespace foreshard::program {

/// Of `experts` experts, in equal groups, a token takes `per_token`, all of them in
/// `groups_per_token` of the groups.
struct TokenRouting {
  std::int32_t experts = 1;
  std::int32_t per_token = 1;
  std::int32_t groups = 1;
  std::int32_t groups_per_token = 1;
  auto operator<=>(const TokenRouting&) const = default;
};

/// How likely some of a token's experts lie in a place (a rank, a node) that holds `share` of all
/// experts, neighbours, where all choices of groups, and of experts within them, are equally
/// likely. A place holds whole groups, or an equal part of one; where neither is so, groups do not
/// count. Source: hypergeometric probabilities; a group is a node's experts in DeepSeek-AI,
/// "DeepSeek-V3 technical report" (arXiv 2412.19437), section 2.1.2 (node-limited routing). Not
/// modelled: that a token chooses the groups in which its experts score highest, so that each of
/// them holds some expert a little more often.
/// \pre 0 < share <= 1; per_token <= experts of groups_per_token groups
double visit_probability(const TokenRouting& routing, double share);

/// Among how many of `places` equal places a token's experts lie on average.
inline double expected_places(const TokenRouting& routing, std::int64_t places) {
  const auto count = static_cast<double>(places);
  return count * visit_probability(routing, 1 / count);
}

}  // namespace foreshard::program
