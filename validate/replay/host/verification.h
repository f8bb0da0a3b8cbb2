/// \file
/// Writes known numbers into a communication's buffers and checks the results (pattern.h).
#pragma once

#include <cstddef>
#include <span>

#include "validate/replay/executor.h"
#include "validate/replay/plan.h"

namespace foreshard::replay::host {

/// Most faults that a rank names.
inline constexpr std::size_t kMostFaults = 20;

/// Writes the numbers that this rank sends. Buffers are as in start_collective (collective.h).
void write_given(const RankPlan& plan, std::size_t instance, std::span<std::byte> send,
                 std::span<std::byte> receive);

/// Checks the received numbers and counts them in `verification`. Sums must be exact in fp32 and in
/// integers (modulo their width), and exact within one rounding per addition in other dtypes; fp8
/// sums are limited to 448.
void check_expected(const RankPlan& plan, std::size_t instance, std::span<const std::byte> receive,
                    Verification& verification);

}  // namespace foreshard::replay::host
