/// \file
/// Tables of single collective operations, as nccl-tests measures them: reads their rows, and
/// builds the group of devices on which a row was measured. Used by collectives.cc, which scores
/// such tables, and by validate/calibrate/collective_fit.cc, which fits parameters to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "base/units.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"

#include "strategies/comm/collective.h"
#include "topology/cluster_config.h"
#include "topology/cluster_view.h"

namespace foreshard::accuracy {

// The words in a row: the network adapters and their transport, the algorithms that were forced or
// switched off, the time that the benchmark itself takes.
//
//     "EFA 32x100G per node"                 32 adapters of 100 Gbit/s per node
//     "RoCE 1x400G per GPU"                  one adapter per GPU; transport roce
//     "NVLS off", "Tree", "Ring/LL128"       (algo_hint) restricts algorithms and protocols, as
//                                            NCCL_ALGO and NCCL_PROTO do

/// Adapters in the form "NxRG" (N adapters of R Gbit/s), per node unless "per GPU" follows.
struct StatedAdapters {
  std::int64_t count = 1;
  BytesPerSecond rate;   ///< Rate of one adapter.
  bool per_gpu = false;  ///< Whether `count` is per GPU rather than per node.
};
/// The adapters in the column inter_net; nothing if the column states none in that form.
std::optional<StatedAdapters> stated_adapters(std::string_view network);

/// The transport (configs/transports/) that `words` name; empty if they name none. EFA is "efa"
/// (libfabric's SENDRECV) for devices of the generations Volta and Ampere, and "efa-rdma" for all
/// others (configs/transports/efa*.yaml).
std::string stated_transport(std::string_view words, std::string_view generation);

/// Whether the GPUs of a node communicate over PCIe alone, without NVLink.
bool stated_no_nvlink(std::string_view intra_link);
/// For GPUs without NVLink: whether they reach each other's memory (true), or all traffic goes
/// through host memory (false); empty if the row does not say.
std::optional<bool> stated_peer_to_peer(std::string_view intra_link);

/// The algorithms and protocols among which the library could choose in a row, by the names in
/// FormParameters.
struct StatedForms {
  std::vector<std::string> algorithms{};  ///< Empty: all.
  std::vector<std::string> protocols{};   ///< Empty: all.
  bool nvls = true;                       ///< False: neither nvls nor nvls_tree.
  auto operator<=>(const StatedForms&) const = default;
};
/// The forms that a row leaves to the library.
/// \param hint   the row's words about the algorithm. A default or a tuner's choice forces nothing.
/// \param notes  the row's notes, which only count if they say that NVLS was off.
StatedForms stated_forms(std::string_view hint, std::string_view notes);

/// The time that a benchmark measures besides the operation. Loops in PyTorch that time whole
/// calls, rather than kernels in a profile, include the overhead of a call; for all others it is 0.
Seconds stated_overhead(std::string_view notes);

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

/// Rows that are not scored. One list serves all tables
/// (configs/accuracy/excluded-collectives.yaml) and leaves out at most 5 % of the rows on which
/// foreshard is scored. A row is left out if it meets all the conditions given here.
struct Exclusion {
  std::string source{};     ///< Beginning of the column `source`.
  std::string operation{};  ///< Value of the column `op`; empty: any.
  /// Only rows of fewer bytes; default: any size.
  Bytes below = Bytes::from_base(std::numeric_limits<double>::infinity());
  std::string reason{};
};
const yaml::Table<Exclusion>& yaml_table(const Exclusion*);

struct Exclusions {
  std::vector<Exclusion> rows{};

  /// The first exclusion that applies to the row; null if none does.
  const Exclusion* reason_for(const CollectiveRow& row) const;
};
/// Catalogue folder: accuracy.
const yaml::Table<Exclusions>& yaml_table(const Exclusions*);

}  // namespace foreshard::accuracy
