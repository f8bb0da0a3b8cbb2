/// \file
/// Programs and clusters small enough to work out by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/simulate/simulate.h"

namespace foreshard::sim {

/// Devices on one switch: a message takes `latency` and then `bandwidth`. Kernels have no floor and
/// move 1 TB/s; memory is 1 GB.
ClusterView star(std::int32_t devices, Seconds latency = 1_us, BytesPerSecond bandwidth = 100_GB_s);

/// comm::ideal_parameters with rings only.
comm::Parameters rings();

/// Streams of the programs below.
inline constexpr program::StreamId kCompute{0}, kFirst{1}, kSecond{2}, kThird{3}, kFourth{4};

/// Writes `elements` fp32 numbers: 4 bytes each at 1 TB/s.
program::Task kernel(const std::string& name, std::int64_t elements,
                     std::vector<std::int32_t> after = {});
/// How long that is.
inline Seconds kernel_time(std::int64_t elements) {
  return 4_B * static_cast<double>(elements) / 1_TB_s;
}
program::Task send(std::int32_t to, Bytes bytes, program::StreamId stream,
                   std::vector<std::int32_t> after = {});
program::Task receive(std::int32_t from, Bytes bytes, program::StreamId stream,
                      std::vector<std::int32_t> after = {});
/// Over all ranks.
program::Task all_reduce(Bytes bytes, program::StreamId stream,
                         std::vector<std::int32_t> after = {});

/// Rank r runs the tasks of entry r once. One mesh axis "rank".
program::Program each_rank(const std::vector<std::vector<program::Task>>& tasks);
/// All ranks run the same tasks, as one role.
program::Program every_rank(std::int64_t ranks, const std::vector<program::Task>& tasks);

inline constexpr std::int64_t kMillion = 1'000'000;

/// Equal but for rounding.
void expect_time(Seconds actual, Seconds expected);

/// Verifies, simulates and expects both to succeed.
Prediction run(const ClusterView& cluster, const program::Program& program,
               const SimulateOptions& options = {}, const comm::Parameters& parameters = rings());

}  // namespace foreshard::sim
