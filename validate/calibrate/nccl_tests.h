/// \file
/// Reads what nccl-tests prints: the text of all_reduce_perf and its siblings, and their JSON (-J).
///
///     # nThread 1 nGpus 1 minBytes 8 maxBytes 33554432 step: 2(factor) ...
///     #  Rank  0 Group  0 Pid   6899 on node-a device  0 [0000:04:00] NVIDIA H100 80GB HBM3
///     #                                       out-of-place                       in-place
///     #       size         count      type   redop    root     time   algbw   busbw #wrong ...
///     #        (B)    (elements)                               (us)  (GB/s)  (GB/s)        ...
///             1024           256     float     sum      -1    13.20    0.08    0.14      0 ...
///
/// The operation comes from the line "# Collective test starting: all_reduce_perf" (from 2.16 on)
/// or from a command line before the table, else from the caller, else from the file's name. Ranks,
/// hosts and devices come from the lines "# Rank". Columns are found by their names, so all
/// versions since 2.0 can be read. Before the table, the output of other programs (NCCL's log,
/// mpirun, the scheduler) is skipped. Inside the table, a line is a row, a comment, a line of
/// NCCL's log
/// ("host:pid:tid [0] NCCL INFO ...") or an error.
///
/// Source: NVIDIA/nccl-tests, src/common.cu and src/util.cu (writeDeviceReport,
/// writeBenchmarkLineBody, writeResultHeader; JSON version 1 and 2), doc/PERFORMANCE.md (what
/// `size` means for each operation).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "base/units.h"

namespace foreshard::calibrate {

struct NcclTestsRank {
  std::int64_t rank = 0;
  std::string host;
  std::string device;  ///< "NVIDIA H100 80GB HBM3".
};

/// Result for one size, either out of place (with a separate receive buffer) or in place.
struct NcclTestsTime {
  Seconds time;
  std::optional<std::int64_t> wrong;  ///< Wrong elements; nothing if the test did not check.
};
struct NcclTestsRow {
  std::size_t line = 0;  ///< Line of the text; in JSON the result's number, from 1.
  Bytes size;            ///< Size of the larger of a rank's two buffers.
  std::string dtype;     ///< "float", "half", "bfloat16" ...
  std::string reduction;
  std::optional<NcclTestsTime> out_of_place;
  std::optional<NcclTestsTime> in_place;
};
struct NcclTestsRun {
  /// Name as in tables of collectives: "all_reduce", "alltoall", "sendrecv" ...
  std::string operation;
  std::vector<NcclTestsRank> ranks;
  std::string nccl_version;  ///< "2.28.9"; empty if the output does not say.
  std::vector<NcclTestsRow> rows;

  std::int64_t nodes() const;  ///< Distinct hosts.
};

/// Whether `text` is nccl-tests output, by its first lines.
bool is_nccl_tests(std::string_view text);

/// \param name  the file's name: for messages, and for the operation if the text does not say it.
/// \param operation  the operation (as in `NcclTestsRun`) if the text does not say it; empty: the
///     name decides.
/// \return kInvalidInput with "name:line:column:" (JSON: "name: results[3].size:") if a row has too
///     few columns, a cell is not a number, a rank is not listed, or the operation is unknown;
///     kUnsupported if a run has wrong elements (its times do not count) or times of the CPU.
Result<NcclTestsRun> read_nccl_tests(std::string_view text, std::string_view name,
                                     std::string_view operation = {});

/// The operations that are read: "all_reduce", "all_gather" ...
std::vector<std::string> nccl_tests_operations();

/// The run as a table of collectives (`foreshard accuracy`), one row per size. The time is the
/// shorter of the out-of-place and in-place times, because the library's best is wanted.
/// \param machine  the machine's name in the table.
CsvTable table_of(const NcclTestsRun& run, std::string_view name, std::string_view machine);

}  // namespace foreshard::calibrate
