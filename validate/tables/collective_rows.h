/// \file
/// Tables of single collective operations, as nccl-tests measures them: reads their rows, and
/// builds the group of devices on which a row was measured. Used by collectives.cc, which scores
/// such tables, and by validate/calibrate/collective_fit.cc, which fits parameters to them.
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
  std::optional<double> bytes{};  ///< Size of a rank's larger buffer; empty if it is not stated.
  double time_us = 0;
  std::string fault{};  ///< The first bad cell, with its line and column; else empty.

  /// Rows with equal setups were measured on the same group, in the same way.
  using Setup = std::tuple<std::string, std::string, std::string, std::string, std::string,
                           std::int64_t, std::int64_t, std::string, bool, StatedForms>;
  Setup setup() const;
  /// Whether NVLink switches can add the row's data type: they do not add 8-bit integers.
  bool switch_adds() const { return dtype != "int8" && dtype != "uint8"; }
};

/// The rows of a table, each with its first bad cell as its fault.
/// \return kInvalidInput with "file:1:" for a table that lacks a column.
Result<std::vector<CollectiveRow>> collective_rows(const CsvTable& table, const std::string& name);

/// The table in a file of CSV or of output of nccl-tests (validate/calibrate/nccl_tests.h). With
/// output of nccl-tests, the file's name without its extension becomes the name of the machine.
/// \param largest    the largest size of the file.
/// \param operation  the operation of nccl-tests, if its output does not say it.
Result<CsvTable> read_measured_table(const std::filesystem::path& path, Bytes largest,
                                     std::string_view operation = {});

/// The network adapters of a machine, from machines.csv.
struct KnownMachine {
  std::string name;
  BytesPerSecond per_gpu;  ///< Rate of the node's adapters, divided by its GPUs.
  std::string words{};     ///< Source and comment, which may name the transport.
};
/// The machines in machines.csv beside a table; empty if there is no such file. Machines without
/// adapters are left out.
Result<std::vector<KnownMachine>> machines_beside(const std::filesystem::path& table);

/// The group of devices on which a row was measured.
struct MeasuredGroup {
  comm::CollectiveKind kind = comm::CollectiveKind::kAllReduce;
  std::unique_ptr<ClusterView> cluster;
  comm::Participants group;
  std::vector<std::string> assumed;  ///< Names of settings that the row does not state.
  bool switch_adds = true;           ///< CollectiveRow::switch_adds.
  StatedForms forms{};               ///< Algorithms and protocols that the row leaves open.
  /// Whether the library could choose this form: neither the row's data type nor its words about
  /// algorithms exclude it. Always true except for all-reduce, all-gather and reduce-scatter.
  bool allows(const comm::FormParameters& form) const;
  /// `parameters` with the allowed forms alone.
  comm::Parameters allowed(comm::Parameters parameters) const;
};
/// The group of a row. A transfer (sendrecv) has two devices: the last and the first of all.
/// \param machine  the cluster on which the row was measured, if it is known: the row's devices are
///     the first devices of its first nodes. Null: the usual machine of the row's devices.
/// \return kUnsupported for an unknown operation or device, for GPUs that do not fill the nodes
///     evenly, and for a machine that has fewer nodes or GPUs than the row.
Result<MeasuredGroup> measured_group(const CollectiveRow& row,
                                     const std::vector<KnownMachine>& machines,
                                     yaml::Loader& loader, const ClusterConfig* machine = nullptr);

/// The class by which summaries group sizes: "< 64 KiB", "< 1 MiB", "<= 16 MiB", "> 16 MiB".
std::string_view size_class(double bytes);

}  // namespace foreshard::accuracy
