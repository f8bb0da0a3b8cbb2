/// \file
/// Known numbers into a communication's buffers, and a look at what came out (pattern.h).
#pragma once

#include <cstddef>
#include <span>

#include "validate/replay/executor.h"
#include "validate/replay/plan.h"

namespace foreshard::replay::host {

/// Faults that a rank names.
inline constexpr std::size_t kMostFaults = 20;

/// Writes what this rank gives. Buffers as start_collective takes them (collective.h).
void write_given(const RankPlan& plan, std::size_t instance, std::span<std::byte> send,
                 std::span<std::byte> receive);

/// Compares what was received and counts it. Sums must be exact in fp32 and integers (modulo their
/// width), and in the others within one rounding per addition; fp8 sums stop at 448.
void check_expected(const RankPlan& plan, std::size_t instance, std::span<const std::byte> receive,
                    Verification& verification);

}  // namespace foreshard::replay::host
