#include "strategies/program/ir/program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace foreshard::program {
namespace {

// Tables of names, indexed by enumerator; a further enumerator gets a row here.
constexpr std::array<std::string_view, 6> kPurposes{"tensor",   "context", "expert",
                                                    "pipeline", "data",    "offload"};
constexpr std::array<std::string_view, 13> kCollectives{
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send",   "receive",
    "exchange",   "shift",      "token_exchange", "to_host",   "from_host",  "on_host"};
constexpr std::array<std::string_view, 5> kMemoryKinds{"parameters", "gradients", "optimizer",
                                                       "activations", "buffers"};

template <class Enum, std::size_t n>
std::optional<Enum> find(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

// Probability that none of `draws` distinct elements of `all` is one of `special` elements.
double none_of(double special, double draws, double all) {
  double probability = 1;
  for (double i = 0; i < draws; ++i) probability *= std::max(all - special - i, 0.0) / (all - i);
  return probability;
}

// The logarithm of n!. (std::lgamma also sets a variable of the process, for which threads race.)
double log_factorial(double n) {
  int sign = 0;
  return ::lgamma_r(n + 1, &sign);
}

double binomial(double n, double k) {
  if (k < 0 || k > n) return 0;
  return std::exp(log_factorial(n) - log_factorial(k) - log_factorial(n - k));
}

}  // namespace

std::string_view name_of(Purpose purpose) {
  return kPurposes[static_cast<std::size_t>(purpose)];
}
std::string_view name_of(CollectiveKind kind) {
  return kCollectives[static_cast<std::size_t>(kind)];
}
std::string_view name_of(MemoryKind kind) {
  return kMemoryKinds[static_cast<std::size_t>(kind)];
}

std::string_view name_of_operation(CollectiveKind kind) {
  const bool is_transfer = kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
  return is_transfer ? "transfer" : name_of(kind);
}

std::optional<Purpose> find_purpose(std::string_view name) {
  return find<Purpose>(kPurposes, name);
}
std::optional<CollectiveKind> find_collective(std::string_view name) {
  return find<CollectiveKind>(kCollectives, name);
}
std::optional<MemoryKind> find_memory_kind(std::string_view name) {
  return find<MemoryKind>(kMemoryKinds, name);
}

double visit_probability(const TokenRouting& routing, double share) {
  constexpr double kRounding = 1e-9;
  const auto is_whole = [](double number) {
    return std::abs(number - std::round(number)) < kRounding * number;
  };
  const double draws = routing.per_token;
  const double own = routing.experts * share;
  const double here = routing.groups * share;  // groups of the place
  const bool holds_groups = is_whole(here);
  const bool counts = holds_groups || is_whole(1 / here);
  const double groups = counts ? routing.groups : 1;
  const double chosen = counts ? routing.groups_per_token : 1;
  const double size = routing.experts / groups;
  if (!holds_groups || groups == 1)  // a part of one group
    return chosen / groups * (1 - none_of(own, draws, chosen * size));
  const double held = std::round(here);
  double none = 0;
  for (double taken = 0; taken <= std::min(held, chosen); ++taken)
    none += binomial(held, taken) * binomial(groups - held, chosen - taken) /
            binomial(groups, chosen) * none_of(taken * size, draws, chosen * size);
  return 1 - none;
}

}  // namespace foreshard::program
