/// \file
/// Times of kernels and collectives that a user measured, as a table for `--measured`:
///
///     kernel,operation,bytes,ranks,nodes,time_us,low_us,high_us,source
///     gemm 4096x1536x7168 fp8 scaled blocks,,,,,84.0,81.5,86.2,my profile
///     ,all_reduce,64 MiB,8,1,412,,,my profile
///
/// A row names a kernel as reports do, or a collective by its operation, bytes and ranks (and
/// nodes, where they matter). Its time replaces the model's wherever the study runs exactly that
/// kernel, or that operation alone on such a group; when other work runs at the same time, it is
/// slowed down as the model's time would be. Columns may come in any order; all but `time_us` are
/// optional.
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
  std::optional<MeasuredKernel> kernel{};  ///< Exactly one of `kernel` and `collective`.
  std::optional<comm::MeasuredCollective> collective{};
};

struct MeasuredTimes {
  std::string file;
  std::vector<MeasuredRow> rows{};
};

/// \param name  the file's name, for messages.
/// \return kInvalidInput with "name:line:" for an unknown column, a row that names neither a kernel
///     nor a collective or both, an unknown kernel or operation, a value that is not a positive
///     number, or a key that appears twice.
Result<MeasuredTimes> read_measured_times(std::string_view text, std::string_view name);

/// The table in the form that read_measured_times reads.
std::string to_csv(const MeasuredTimes& times);

/// Gives the times to every device type of the cluster and to the communication library.
void apply(const MeasuredTimes& times, ClusterConfig& cluster, comm::Parameters& communication);

/// Descriptions of the rows that match no kernel and no collective of `program`.
std::vector<std::string> unused_in(const MeasuredTimes& times, const program::Program& program);

struct LoadedStudy;
/// Reads the file and applies it to the study.
/// \return kIo if the file cannot be read; otherwise the errors of read_measured_times.
Status add_measured(const std::string& file, LoadedStudy& study);

}  // namespace foreshard::study
