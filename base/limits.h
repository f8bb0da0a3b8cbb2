/// \file
/// Limits of what is read from outside: each once, with its reason. A reader of files, of
/// compressed bytes, of JSON, CSV, XML or YAML asks here how much it may take in, so that no file
/// of a few bytes costs gigabytes, and none of any size ends the program. docs/limits.md lists all.
/// What is no limit of readers stands elsewhere: ranges of single values in the tables of YAML,
/// what an index can count beside its type, and messages of other ranks in base/net/server.h.
///
/// The variable FORESHARD_LIMITS raises them: with FORESHARD_LIMITS=4, sizes, counts and ratios
/// are four times these. Depths stay: they guard the stack.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::limits {

// --- Sizes of files, unpacked ---
inline constexpr Bytes kConfig = 4_MiB;       ///< Written by people; the largest shipped has 47 kB.
inline constexpr Bytes kResult = 64_MiB;      ///< One search or prediction; 0.3 MB for 1,000 plans.
inline constexpr Bytes kLog = 64_MiB;         ///< A tool's print of a machine or cluster.
inline constexpr Bytes kSweep = 512_MiB;      ///< 5 kB for each of 100,000 points (kPoints).
inline constexpr Bytes kSweepValue = 64_MiB;  ///< A results file's; 100,000 axis values have 10.
inline constexpr Bytes kProgram = 256_MiB;    ///< Shipped studies have about 1 MB.
inline constexpr Bytes kMeasurement = 512_MiB;  ///< A time for each task of each rank and step.
inline constexpr Bytes kTable = 1_GiB;          ///< Rows of measurements; 4 million of 250 bytes.
inline constexpr Bytes kManifest = 256_MiB;     ///< A line for each shard of each tensor.
inline constexpr Bytes kSafetensorsHeader = 100_MB;  ///< The limit of its own library.
inline constexpr Bytes kOnnx = 2_GiB;     ///< Protobuf's limit; larger weights stand beside it.
inline constexpr Bytes kProfile = 4_GiB;  ///< A trace of some steps; events are read one by one.

// --- Ratios ---
/// Unpacked bytes for each packed one, and bytes of a file for each that its disk holds (a sparse
/// file). Deflate makes at most 1,032 of one (zlib, "Technical Details"); text stays far below.
inline constexpr double kRatio = 200;
inline constexpr Bytes kSmall = 16_MiB;  ///< Up to here no ratio is looked at.

// --- Depths: containers in containers ---
inline constexpr int kDepth = 64;  ///< Our own files have 12; recursion over 64 is harmless.

// --- Counts ---
/// Memory of the values of one JSON text, beside the text itself.
inline constexpr Bytes kJsonValues = 1_GiB;
inline constexpr std::size_t kYamlValues = 200'000;         ///< A file's, aliases expanded.
inline constexpr std::size_t kTopologyValues = 20'000'000;  ///< PaddlePaddle's JSON, read as YAML.
inline constexpr std::size_t kCsvFields = std::size_t{1} << 25;  ///< 1 GiB at 32 bytes each.
inline constexpr std::size_t kXmlElements = 100'000;             ///< 1,000 GPUs of 100 each.
inline constexpr std::size_t kXmlAttributes = 64;                ///< An element's; NCCL has 12.
inline constexpr std::size_t kColumns = 1024;       ///< `nvidia-smi topo -m` of 8 GPUs has 20.
inline constexpr std::size_t kHosts = 100'000;      ///< A cluster's, in lists such as node[1-64].
inline constexpr std::size_t kDevices = 300'000;    ///< 200,000 are announced.
inline constexpr std::size_t kSwitches = 100'000;   ///< SLURM's; a host each at the most.
inline constexpr std::int64_t kCables = 1'000'000;  ///< SLURM's; 10 for each host.
inline constexpr std::size_t kEnds = 1'000'000;    ///< Cables' ends in one list such as leaf[1-64].
inline constexpr std::size_t kExpanded = 1 << 16;  ///< Characters of a variable of a launch file.
inline constexpr std::int64_t kPoints = 100'000;   ///< A sweep's; a minute to some days.
inline constexpr std::int64_t kSlices = 1 << 25;   ///< Slices of a checkpoint's tensors.
inline constexpr std::size_t kListedRanks = 1 << 25;  ///< Ranks of a Program's groups, written out.
inline constexpr std::int64_t kLayoutRanks = 1 << 22;  ///< Ranks of one layout, written out.

/// What FORESHARD_LIMITS says, 1 without it.
double factor();
/// Why the variable is no factor, if it is none: factor() is 1 then.
Status fault_in_factor();

/// The limit times the factor.
inline Bytes raised(Bytes limit) {
  return limit * factor();
}
template <std::integral Count>
Count raised(Count limit) {
  return static_cast<Count>(std::floor(static_cast<double>(limit) * factor()));
}

/// What messages about a limit end with.
inline constexpr const char* kRemedy = "FORESHARD_LIMITS=2 doubles the limits";

}  // namespace foreshard::limits
