/// \file
/// Reads the dumps of the NCCL Inspector (a profiler plug-in of NCCL): one JSON object for each
/// collective of a rank, on one line or on several.
///
///     {"header": {"id": "0x7f8c", "rank": 2, "n_ranks": 8, "nnodes": 1}, "metadata": {...},
///      "coll_perf": {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 1048576,
///                    "coll_exec_time_us": 61, ...}}
///
/// In later versions a communicator's header comes once, ahead of its records. Messages between two
/// ranks ("p2p_perf") are not read. In the dump, the size of an all-gather is one rank's input and
/// the size of a reduce-scatter one rank's output; here all sizes are counted as in Programs.
///
/// Source: NVIDIA/nccl, ext-profiler/inspector (README.md, inspector.cc: inspectorComputeCollBw).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/program/ir/program.h"

namespace foreshard::profile {

/// A collective of one communicator. Its time is the shortest of the ranks' records, because the
/// last rank to arrive waits for nobody.
struct InspectedCollective {
  program::CollectiveKind kind = program::CollectiveKind::kAllReduce;
  Bytes bytes;
  std::int64_t ranks = 0;
  std::int64_t nodes = 1;
  Seconds time;  ///< Invariant: > 0.
};

/// Whether `text` is such a dump, by the keys of its first record.
bool is_inspector(std::string_view text);

/// \param name  the file's name, for messages.
/// \return kInvalidInput with "name:line:" if the text is not JSON, if a record lacks a field or
///     has an invalid size or time, or if there is no collective.
Result<std::vector<InspectedCollective>> read_inspector(std::string_view text,
                                                        std::string_view name);

}  // namespace foreshard::profile
