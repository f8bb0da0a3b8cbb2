/// \file
/// What the NCCL Inspector (a profiler plug-in of NCCL) writes: a JSON object for each collective
/// of a rank, one a line or over several.
///
///     {"header": {"id": "0x7f8c", "rank": 2, "n_ranks": 8, "nnodes": 1}, "metadata": {...},
///      "coll_perf": {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 1048576,
///                    "coll_exec_time_us": 61, ...}}
///
/// In later versions a communicator's header comes once, ahead of its records. Messages between two
/// ranks ("p2p_perf") are not read. Sizes are what one rank gives of an all-gather and gets of a
/// reduce-scatter; here all sizes are as Programs count them.
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

/// A collective of one communicator, by whichever rank's record is shortest: the last to come waits
/// for nobody.
struct InspectedCollective {
  program::CollectiveKind kind = program::CollectiveKind::kAllReduce;
  Bytes bytes;
  std::int64_t ranks = 0;
  std::int64_t nodes = 1;
  Seconds time;  ///< Invariant: > 0.
};

/// Whether `text` is such a dump, by the keys of its first record.
bool is_inspector(std::string_view text);

/// \param name  of the file, for messages.
/// \return kInvalidInput with "name:line:" where the text is no JSON, or a record lacks what is
///     needed or has what is no size or time; also where it holds no collective.
Result<std::vector<InspectedCollective>> read_inspector(std::string_view text,
                                                        std::string_view name);

}  // namespace foreshard::profile
