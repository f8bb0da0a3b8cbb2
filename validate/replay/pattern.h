/// \file
/// The numbers that `--verify` sends, and the numbers that must be received. They are small
/// integers, so that sums over up to 64 members are exact in every floating-point type down to bf16
/// (8 bits of significand); sums over more are exact within one rounding per addition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hash.h"

#include "validate/replay/plan.h"

namespace foreshard::replay {

/// The number, 0 to 4, that `rank` puts into element `element` of its send buffer for the
/// `ordinal`-th operation of a group. It is a hash, so that an element in the wrong place, from the
/// wrong rank or from an earlier operation is noticed.
constexpr int sent(std::int32_t rank, std::int64_t ordinal, std::int64_t element) {
  const std::uint64_t h = finalised(static_cast<std::uint64_t>(element) * 0x9e3779b97f4a7c15u +
                                    static_cast<std::uint64_t>(ordinal) * 0xd1342543de82ef95u +
                                    static_cast<std::uint64_t>(rank) * 0xaf251af3b0f025b5u);
  return static_cast<int>((h >> 33) % 5);
}

/// Writes the numbers that the rank puts into elements `first`, `first` + 1 ... of its send buffer:
/// `sent`. In an exchange, where both ends must agree, the p-th element that the rank sends to a
/// peer is sent(rank, ordinal, p + 2^40 peer).
/// \pre the instance is a communication; the elements exist (Elements::send).
void given(const RankPlan& plan, std::size_t instance, std::int64_t first, std::span<int> out);

/// Writes the numbers that elements `first`, `first` + 1 ... of the receive buffer must have once
/// the communication is done; reductions are sums.
/// \pre the instance is a communication; the elements exist (Elements::receive).
void expected(const RankPlan& plan, std::size_t instance, std::int64_t first, std::span<int> out);

}  // namespace foreshard::replay
