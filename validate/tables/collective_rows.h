/// \file
/// Tables of single operations, as nccl-tests measures them: their rows, and the group of devices
/// that each was measured on. Shared by scoring and by fitting.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/comm/collective.h"
#include "topology/cluster_config.h"
#include "topology/cluster_view.h"
#include "validate/tables/row_words.h"

namespace foreshard::accuracy {

struct CollectiveRow {
  std::string id{}, source{}, machine{}, gpu{}, intra_link{}, inter_net{}, op{}, dtype{}, hint{},
      notes{};
  std::int64_t gpus = 0, nodes = 0;
  std::optional<double> bytes{};  ///< The larger buffer of a rank. Empty where it is not said.
  double time_us = 0;
  std::string fault{};  ///< The first bad cell, with its line and column; else empty.

  /// Rows that are alike in it were measured on one group.
  using Setup = std::tuple<std::string, std::string, std::string, std::string, std::string,
                           std::int64_t, std::int64_t, std::string, bool, StatedForms>;
  Setup setup() const;
  /// NVLink switches do not add 8-bit integers.
  bool switch_adds() const { return dtype != "int8" && dtype != "uint8"; }
};

/// \return kInvalidInput with "file:1:" for a table that lacks a column.
Result<std::vector<CollectiveRow>> collective_rows(const CsvTable& table, const std::string& name);

/// The table in a file: CSV, or what nccl-tests printed (validate/calibrate/nccl_tests.h), whose
/// rows are of the machine called like the file. `operation` is for the latter.
Result<CsvTable> read_measured_table(const std::filesystem::path& path, Bytes largest,
                                     std::string_view operation = {});

/// Adapters of known machines (machines.csv).
struct KnownMachine {
  std::string name;
  BytesPerSecond per_gpu;
  std::string words{};  ///< What else is said of it.
};
/// Those of machines.csv beside a table; none if there is no such file.
Result<std::vector<KnownMachine>> machines_beside(const std::filesystem::path& table);

struct MeasuredGroup {
  comm::CollectiveKind kind = comm::CollectiveKind::kAllReduce;
  std::unique_ptr<ClusterView> cluster;
  comm::Participants group;
  std::vector<std::string> assumed;  ///< What the row does not state.
  bool switch_adds = true;
  StatedForms forms{};
  /// Neither the row's data type nor what it says of algorithms excludes it.
  bool allows(const comm::FormParameters& form) const;
  /// Those forms alone.
  comm::Parameters allowed(comm::Parameters parameters) const;
};
/// \param machine  what the row was measured on, if that is known: its first nodes, and of each the
///     first devices. Null: a usual machine of the row's devices.
/// \return kUnsupported for an operation or device that is not known, an odd shape, or a machine
///     that is smaller than the row's.
Result<MeasuredGroup> measured_group(const CollectiveRow& row,
                                     const std::vector<KnownMachine>& machines,
                                     yaml::Loader& loader, const ClusterConfig* machine = nullptr);

/// "< 64 KiB", "< 1 MiB", "<= 16 MiB", "> 16 MiB".
std::string_view size_class(double bytes);

}  // namespace foreshard::accuracy
