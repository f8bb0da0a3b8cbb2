/// \file
/// Times of kernels and collectives that a user measured himself, as a table, for `--measured`:
///
///     kernel,operation,bytes,ranks,nodes,time_us,low_us,high_us,source
///     gemm 4096x1536x7168 fp8 scaled blocks,,,,,84.0,81.5,86.2,my profile
///     ,all_reduce,64 MiB,8,1,412,,,my profile
///
/// A row names a kernel as reports do, or a collective by its operation, bytes and ranks (and
/// nodes, where those matter). Its time takes the place of the model's wherever the study runs that
/// very kernel, or that operation alone on such a group; beside others it is slowed down as the
/// model's would be. Columns may come in any order; all but `time_us` may be left out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/comm/parameters.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_config.h"

namespace foreshard::study {

struct MeasuredRow {
  std::size_t line = 0;
  std::optional<MeasuredKernel> kernel{};  ///< Exactly one of the two.
  std::optional<comm::MeasuredCollective> collective{};
};

struct MeasuredTimes {
  std::string file;
  std::vector<MeasuredRow> rows{};
};

/// \param name  of the file, for messages.
/// \return kInvalidInput with "name:line:" for an unknown column, a row that is neither or both, a
///     kernel or operation that there is not, a number that is none or not positive, a key that
///     comes twice.
Result<MeasuredTimes> read_measured_times(std::string_view text, std::string_view name);

/// The table as read_measured_times reads it.
std::string to_csv(const MeasuredTimes& times);

/// Gives the times to every device type of the cluster and to the communication library.
void apply(const MeasuredTimes& times, ClusterConfig& cluster, comm::Parameters& communication);

/// The rows that `program` has no kernel and no collective for, in words.
std::vector<std::string> unused_in(const MeasuredTimes& times, const program::Program& program);

struct LoadedStudy;
/// Reads the file and applies it to the study.
/// \return kIo if it cannot be read; else as read_measured_times.
Status add_measured(const std::string& file, LoadedStudy& study);

}  // namespace foreshard::study
