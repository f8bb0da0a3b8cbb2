// Single operations, as nccl-tests measures them, beside their time on idle links.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <tuple>

#include "base/file.h"
#include "base/yaml/loader.h"

#include "strategies/comm/collective.h"
#include "topology/cluster_for.h"
#include "validate/accuracy/catalogue_names.h"
#include "validate/accuracy/cells.h"
#include "validate/accuracy/table.h"

namespace foreshard::accuracy {
namespace {

struct Row {
  std::string id, source, machine, gpu, intra_link, inter_net, op;
  std::int64_t gpus = 0, nodes = 0;
  std::optional<double> bytes;  ///< Empty for operations without any.
  double time_us = 0;
};

/// Rows that one set of flat forms answers.
using Setup =
    std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t, std::string>;
Setup setup_of(const Row& row) {
  return {row.machine, row.gpu, row.intra_link, row.gpus, row.nodes, row.op};
}

std::optional<comm::CollectiveKind> kind_of(std::string_view op) {
  using enum comm::CollectiveKind;
  constexpr std::array<std::pair<std::string_view, comm::CollectiveKind>, 6> kOperations{
      {{"all_reduce", kAllReduce},
       {"all_gather", kAllGather},
       {"reduce_scatter", kReduceScatter},
       {"alltoall", kAllToAll},
       {"broadcast", kBroadcast},
       {"sendrecv", kSend}}};
  for (const auto& [name, kind] : kOperations)
    if (op == name) return kind;
  return std::nullopt;
}

// A node that is wired otherwise than its device's usual one.
struct Wiring {
  std::string_view device;
  std::string_view intra_link;  ///< Part of the column intra_link or inter_net.
  std::string_view node;
};
constexpr std::array kWirings{
    Wiring{"A100-SXM-80GB", "all-to-all", "a100-4gpu-nvlink-mesh"},
    Wiring{"A100-SXM-40GB", "all-to-all", "a100-4gpu-polaris"},
    Wiring{"A100-PCIe-80GB", "pairs", "a100-pcie-4gpu-bridged"},
    Wiring{"A100-SXM-80GB", "EFA", "hgx-a100-efa"},
};

struct Machine {
  std::string name;
  BytesPerSecond per_gpu;
};
// machines.csv: adapters of known machines.
Result<std::vector<Machine>> machines_beside(const std::filesystem::path& table) {
  std::vector<Machine> machines;
  const auto path = table.parent_path() / "machines.csv";
  if (!std::filesystem::exists(path)) return machines;
  const auto text = read_file(path, 16_MiB);
  if (!text) return text.error();
  const auto cells = read_csv(*text, path.string());
  if (!cells) return cells.error();
  if (auto error = missing_columns(*cells, path.string(),
                                   {"machine", "gpus_per_node", "nics_per_node", "nic_gbps"}))
    return *std::move(error);
  for (const auto& line : cells->rows) {
    Cells row(*cells, line, path.string());
    const std::string& count = row.text("nics_per_node");
    if (count.empty() || count == "0" || row.text("nic_gbps").empty()) continue;
    const double rate = row.required("nics_per_node") * row.required("nic_gbps") /
                        std::max(1.0, row.required("gpus_per_node"));
    if (row.error()) return *row.error();
    machines.push_back({row.text("machine"), rate * 1_Gbit_s});
  }
  return machines;
}

bool same_machine(std::string_view a, std::string_view b) {
  return a.find(b) != std::string_view::npos || b.find(a) != std::string_view::npos;
}

class Group {
 public:
  Group(const Row& first, const Context& context, const std::vector<Machine>& machines)
      : context_(context) {
    if (auto error = prepare(first, machines)) error_ = std::move(error);
  }

  Outcome outcome(const Row& row) const {
    Outcome result;
    result.id = row.id;
    result.family = family_of(row.source);
    const auto fail = [&](const Error& error) {
      result.status =
          error.code == Error::Code::kInfeasible ? Status::kInfeasible : Status::kUnsupported;
      result.reason = error.message;
      return result;
    };
    if (row.time_us > 0) result.measured = (row.time_us * 1_us).in_base();
    if (error_) return fail(*error_);
    if (!row.bytes || !result.measured)
      return fail({Error::Code::kUnsupported, "an operation without bytes or time"});
    result.assumed = assumed_;
    const Bytes bytes = *row.bytes * 1_B;
    const auto& form = forms_[comm::best_form(forms_, bytes, *cluster_)];
    result.predicted = form.idle_time(bytes, *cluster_).in_base();
    return result;
  }

 private:
  std::optional<Error> prepare(const Row& row, const std::vector<Machine>& machines) {
    const auto kind = kind_of(row.op);
    if (!kind)
      return Error{Error::Code::kUnsupported, fmt::format("operation '{}' is not known", row.op)};
    const auto device = device_named(row.gpu, std::nullopt);
    if (!device)
      return Error{Error::Code::kUnsupported,
                   fmt::format("device '{}' is not in the catalogue", row.gpu)};
    if (device->guessed_memory) assumed_.emplace_back("gpu_memory");
    if (row.gpus % row.nodes != 0)
      return Error{Error::Code::kUnsupported,
                   fmt::format("{} GPUs do not fill {} nodes", row.gpus, row.nodes)};
    ClusterRequest request{
        .device = device->name, .gpus = row.gpus, .gpus_per_node = row.gpus / row.nodes};
    for (const Wiring& wiring : kWirings)
      if (device->name == wiring.device &&
          (row.intra_link.find(wiring.intra_link) != std::string::npos ||
           row.inter_net.find(wiring.intra_link) != std::string::npos))
        request.node = wiring.node;
    if (row.nodes > 1) {
      for (const Machine& machine : machines)
        if (same_machine(row.machine, machine.name)) request.internode_per_gpu = machine.per_gpu;
      if (!request.internode_per_gpu) assumed_.emplace_back("network");
    }
    yaml::Loader loader({.catalogue = context_.catalogue});
    const auto config = cluster_for(request, loader);
    if (!config) return config.error();
    auto cluster = build_cluster(*config);
    if (!cluster) return cluster.error();
    cluster_ = std::make_unique<ClusterView>(*std::move(cluster));
    comm::Participants group{.cluster = cluster_.get(), .devices = {}, .flow = 0};
    for (std::int32_t i = 0; i < row.gpus; ++i) group.devices.emplace_back(i);
    // Every rank sends to the next one; the transfer between nodes, if there is one, is last.
    if (kind == comm::CollectiveKind::kSend)
      group.devices = {DeviceId{static_cast<std::int32_t>(row.gpus) - 1}, DeviceId{0}};
    auto forms = comm::flat_forms(*kind, group, context_.communication);
    if (!forms) return forms.error();
    forms_ = *std::move(forms);
    return std::nullopt;
  }

  const Context& context_;
  std::unique_ptr<ClusterView> cluster_;
  std::vector<comm::FlatCollective> forms_;
  std::vector<std::string> assumed_;
  std::optional<Error> error_;
};

}  // namespace

bool is_collectives(const CsvTable& table) {
  return table.column("op") && table.column("bytes") && table.column("time_us") &&
         table.column("nodes");
}

Result<std::vector<Job>> collective_jobs(const Table& table, const Context& context) {
  const std::string name = table.path.string();
  if (auto error = missing_columns(table.cells, name,
                                   {"id", "source", "machine", "gpu", "num_gpus", "intra_link"}))
    return *std::move(error);
  auto machines = machines_beside(table.path);
  if (!machines) return machines.error();
  std::map<Setup, std::pair<std::vector<std::size_t>, std::vector<Row>>> setups;
  for (std::size_t i = 0; i < table.cells.rows.size(); ++i) {
    Cells cells(table.cells, table.cells.rows[i], name);
    const std::string& bytes = cells.text("bytes");
    Row row{.id = cells.text("id"),
            .source = cells.text("source"),
            .machine = cells.text("machine"),
            .gpu = cells.text("gpu"),
            .intra_link = cells.text("intra_link"),
            .inter_net = cells.text("inter_net"),
            .op = cells.text("op"),
            .gpus = cells.required_integer("num_gpus"),
            .nodes = cells.required_integer("nodes"),
            .bytes = bytes == "0" ? std::nullopt : cells.number("bytes"),
            .time_us = cells.text("time_us") == "0" ? 0 : cells.required("time_us")};
    if (cells.error()) return *cells.error();
    auto& [places, rows] = setups[setup_of(row)];
    places.push_back(i);
    rows.push_back(std::move(row));
  }
  std::vector<Job> jobs;
  for (auto& [setup, members] : setups) {
    jobs.push_back({std::move(members.first),
                    [rows = std::move(members.second), &context, machines = *machines] {
                      const Group group(rows.front(), context, machines);
                      std::vector<Outcome> outcomes;
                      for (const Row& row : rows) outcomes.push_back(group.outcome(row));
                      return outcomes;
                    }});
  }
  return jobs;
}

}  // namespace foreshard::accuracy
