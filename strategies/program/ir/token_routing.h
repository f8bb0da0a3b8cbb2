/// \file
/// How tokens are routed to experts, as far as that decides what moves: to how many ranks or nodes
/// a token goes. Libraries that know the routing send one copy of a token to each place (rank or
/// node), however many of its experts are there.
#pragma once

#include <compare>
#include <cstdint>

namespace foreshard::program {

/// A token goes to `per_token` of `experts` experts. The experts form `groups` equal groups, and
/// all experts of a token lie in `groups_per_token` of these.
struct TokenRouting {
  std::int32_t experts = 1;
  std::int32_t per_token = 1;
  std::int32_t groups = 1;
  std::int32_t groups_per_token = 1;
  auto operator<=>(const TokenRouting&) const = default;
};

/// The probability that at least one of a token's experts lies in a place (a rank, a node) that
/// holds `share` of all experts, adjacent ones. All choices of groups, and of experts within the
/// groups, are equally likely. A place holds whole groups, or an equal part of one group; where it
/// holds neither, groups are ignored. Source: hypergeometric probabilities; a group is a node's
/// experts in DeepSeek-AI, "DeepSeek-V3 technical report" (arXiv 2412.19437), section 2.1.2
/// (node-limited routing). Not modelled: that a token chooses the groups in which its experts score
/// highest, so that each chosen group holds some of its experts a little more often.
/// \pre 0 < share <= 1; per_token <= experts of groups_per_token groups
double visit_probability(const TokenRouting& routing, double share);

/// The average number of places, out of `places` equal ones, that hold experts of a token.
inline double expected_places(const TokenRouting& routing, std::int64_t places) {
  const auto count = static_cast<double>(places);
  return count * visit_probability(routing, 1 / count);
}

}  // namespace foreshard::program
