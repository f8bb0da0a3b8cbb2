#include "validate/tables/collective_rows.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "base/file.h"
#include "base/limits.h"

#include "strategies/comm/nccl/search.h"
#include "topology/cluster_for.h"
#include "topology/hardware.h"
#include "validate/calibrate/nccl_tests.h"
#include "validate/tables/cells.h"
#include "validate/tables/device_names.h"

namespace foreshard::accuracy {
namespace {

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

// A node that differs from the usual node of its device.
struct Wiring {
  std::string_view device;
  std::string_view intra_link;  ///< Part of the column intra_link or inter_net.
  std::string_view node;        ///< Catalogue entry.
};
constexpr std::array kWirings{
    Wiring{"A100-SXM-80GB", "all-to-all", "a100-4gpu-nvlink-mesh"},
    Wiring{"A100-SXM-40GB", "all-to-all", "a100-4gpu-polaris"},
    Wiring{"A100-PCIe-80GB", "pairs", "a100-pcie-4gpu-bridged"},
    Wiring{"A100-SXM-80GB", "EFA", "hgx-a100-efa"},
};

// The device of a row, by the name that tables use for it, or else by the name that drivers use.
Result<NamedDevice> device_of(const CollectiveRow& row, yaml::Loader& loader) {
  if (const auto named = device_named(row.gpu, std::nullopt)) return *named;
  FORESHARD_ASSIGN(const auto hardware, read_hardware(loader));
  if (const HardwareDevice* known = hardware.device_of_name(row.gpu))
    return NamedDevice{known->device, false, false};
  return Error{Error::Code::kUnsupported,
               fmt::format("device '{}' is not in the catalogue", row.gpu)};
}

// Whether one of the names contains the other.
bool same_machine(std::string_view a, std::string_view b) {
  return a.find(b) != std::string_view::npos || b.find(a) != std::string_view::npos;
}

// Sets the rate and the transport of the row's adapters. The rate is the one in machines.csv, if it
// has the row's machine, else the one in the row; words of both may name the transport.
Status set_network(const CollectiveRow& row, const std::string& device,
                   const std::vector<KnownMachine>& machines, yaml::Loader& loader,
                   ClusterRequest* request) {
  std::string words = row.inter_net + ' ' + row.notes;
  for (const KnownMachine& known : machines) {
    if (!same_machine(row.machine, known.name)) continue;
    if (row.nodes > 1) request->internode_per_gpu = known.per_gpu;
    words += ' ' + known.name + ' ' + known.words;
  }
  const std::string entry = request->node.empty() ? "by-device/" + device : request->node;
  FORESHARD_ASSIGN(const auto node, loader.read_ref<NodeConfig>(entry, "node"));
  request->transport = stated_transport(words, generation_of(*node.device));
  const auto stated = stated_adapters(row.inter_net);
  if (row.nodes < 2 || request->internode_per_gpu || !stated) return {};
  // A rate per node is shared by all GPUs of the node, including GPUs that take no part.
  const std::int64_t gpus =
      std::max(request->gpus_per_node, node.gpus_per_tray.value_or(node.gpus));
  request->internode_per_gpu = static_cast<double>(stated->count) * stated->rate /
                               (stated->per_gpu ? 1.0 : static_cast<double>(gpus));
  return {};
}

// Turns a group of all GPUs into the transfer from its last GPU to its first. Between nodes, the
// transfer has the channels that a communicator of all GPUs uses per peer on another node.
Status make_transfer(std::int64_t nodes, yaml::Loader& loader, comm::Participants* group) {
  if (nodes > 1) {
    FORESHARD_ASSIGN(const auto tables, loader.read_ref<comm::nccl::Tables>("nccl-2.28", "nccl"));
    FORESHARD_ASSIGN(const auto communicator, comm::nccl::communicator_of(*group, tables));
    group->peer_channels = comm::nccl::peer_channels(communicator);
  }
  group->devices = {group->devices.back(), group->devices.front()};
  return {};
}

// The group of a row on a known machine: the first devices of its first nodes.
Result<MeasuredGroup> group_on(const CollectiveRow& row, comm::CollectiveKind kind,
                               const ClusterConfig& machine, yaml::Loader& loader) {
  FORESHARD_ASSIGN(auto cluster, build_cluster(machine));
  MeasuredGroup result;
  result.cluster = std::make_unique<ClusterView>(std::move(cluster));
  result.kind = kind;
  result.switch_adds = row.switch_adds();
  result.forms = stated_forms(row.hint, row.notes);
  result.group.cluster = result.cluster.get();
  std::vector<std::int64_t> taken(static_cast<std::size_t>(row.nodes), 0);
  for (std::int64_t d = 0; d < std::ssize(result.cluster->devices()); ++d) {
    const auto node = result.cluster->devices()[static_cast<std::size_t>(d)].node;
    if (node >= row.nodes || taken[static_cast<std::size_t>(node)]++ >= row.gpus / row.nodes)
      continue;
    result.group.devices.emplace_back(static_cast<std::int32_t>(d));
  }
  if (std::ssize(result.group.devices) != row.gpus)
    return Error{Error::Code::kUnsupported,
                 fmt::format("{} GPUs on {} nodes are more than machine '{}' has", row.gpus,
                             row.nodes, machine.name)};
  if (kind == comm::CollectiveKind::kSend) {
    FORESHARD_TRY(make_transfer(row.nodes, loader, &result.group));
  }
  return result;
}

}  // namespace

CollectiveRow::Setup CollectiveRow::setup() const {
  // Notes count only as far as they name a transport or switch off NVLS.
  return {machine, gpu,   intra_link, inter_net,     stated_transport(inter_net + ' ' + notes, {}),
          gpus,    nodes, op,         switch_adds(), stated_forms(hint, notes)};
}

Result<CsvTable> read_measured_table(const std::filesystem::path& path, Bytes largest,
                                     std::string_view operation) {
  FORESHARD_ASSIGN(const auto text, read_file(path, largest));
  if (!calibrate::is_nccl_tests(text)) return read_csv(text, path.string());
  FORESHARD_ASSIGN(const auto run, calibrate::read_nccl_tests(text, path.string(), operation));
  return calibrate::table_of(run, path.string(), path.stem().string());
}

Result<std::vector<KnownMachine>> machines_beside(const std::filesystem::path& table) {
  std::vector<KnownMachine> machines;
  const auto path = table.parent_path() / "machines.csv";
  if (!std::filesystem::exists(path)) return machines;
  FORESHARD_ASSIGN(const auto text, read_file(path, limits::kLog));
  FORESHARD_ASSIGN(const auto cells, read_csv(text, path.string()));
  FORESHARD_TRY(missing_columns(cells, path.string(),
                                {"machine", "gpus_per_node", "nics_per_node", "nic_gbps"}));
  for (const auto& line : cells.rows) {
    Cells row(cells, line, path.string());
    const std::string& count = row.text("nics_per_node");
    if (count.empty() || count == "0" || row.text("nic_gbps").empty()) continue;
    const double rate = row.required("nics_per_node") * row.required("nic_gbps") /
                        std::max(1.0, row.required("gpus_per_node"));
    FORESHARD_TRY(row.error());
    machines.push_back(
        {row.text("machine"), rate * 1_Gbit_s, row.text("source") + ' ' + row.text("comment")});
  }
  return machines;
}

Result<std::vector<CollectiveRow>> collective_rows(const CsvTable& table, const std::string& name) {
  FORESHARD_TRY(
      missing_columns(table, name, {"id", "source", "machine", "gpu", "num_gpus", "intra_link"}));
  std::vector<CollectiveRow> rows;
  for (const auto& line : table.rows) {
    Cells cells(table, line, name);
    rows.push_back({.id = cells.id(),
                    .source = cells.text("source"),
                    .machine = cells.text("machine"),
                    .gpu = cells.text("gpu"),
                    .intra_link = cells.text("intra_link"),
                    .inter_net = cells.text("inter_net"),
                    .op = cells.text("op"),
                    .dtype = cells.text("dtype"),
                    .hint = cells.text("algo_hint"),
                    .notes = cells.text("notes"),
                    .gpus = cells.required_integer("num_gpus"),
                    .nodes = cells.required_integer("nodes"),
                    .bytes = cells.text("bytes") == "0" ? 0.0 : cells.number("bytes"),
                    .time_us = cells.text("time_us") == "0" ? 0 : cells.required("time_us")});
    rows.back().fault = cells.fault_text();
  }
  return rows;
}

Result<MeasuredGroup> measured_group(const CollectiveRow& row,
                                     const std::vector<KnownMachine>& machines,
                                     yaml::Loader& loader, const ClusterConfig* machine) {
  MeasuredGroup result;
  const auto kind = kind_of(row.op);
  if (!kind)
    return Error{Error::Code::kUnsupported, fmt::format("operation '{}' is not known", row.op)};
  if (row.nodes < 1 || row.gpus < 1 || row.gpus % row.nodes != 0)
    return Error{Error::Code::kUnsupported,
                 fmt::format("{} GPUs do not fill {} nodes", row.gpus, row.nodes)};
  if (machine != nullptr) return group_on(row, *kind, *machine, loader);
  FORESHARD_ASSIGN(const auto device, device_of(row, loader));
  if (device.guessed_memory) result.assumed.emplace_back("gpu_memory");
  ClusterRequest request{
      .device = device.name, .gpus = row.gpus, .gpus_per_node = row.gpus / row.nodes};
  for (const Wiring& wiring : kWirings)
    if (device.name == wiring.device &&
        (row.intra_link.find(wiring.intra_link) != std::string::npos ||
         row.inter_net.find(wiring.intra_link) != std::string::npos))
      request.node = wiring.node;
  if (stated_no_nvlink(row.intra_link)) {
    if (device.name == "H100-NVL") request.node = "pcie-8gpu-h100-nvl";
    if (const auto peers = stated_peer_to_peer(row.intra_link))
      request.pcie_switches = *peers ? 1 : request.gpus_per_node;
  }
  FORESHARD_TRY(set_network(row, device.name, machines, loader, &request));
  if (row.nodes > 1 && !request.internode_per_gpu) result.assumed.emplace_back("network");
  FORESHARD_ASSIGN(const auto config, cluster_for(request, loader));
  FORESHARD_ASSIGN(auto cluster, build_cluster(config));
  result.cluster = std::make_unique<ClusterView>(std::move(cluster));
  result.kind = *kind;
  result.switch_adds = row.switch_adds();
  result.forms = stated_forms(row.hint, row.notes);
  auto& group = result.group;
  group.cluster = result.cluster.get();
  for (std::int32_t i = 0; i < row.gpus; ++i) group.devices.emplace_back(i);
  // In sendrecv every rank sends to the next one, so the last rank's transfer to the first crosses
  // nodes if any does.
  if (kind == comm::CollectiveKind::kSend) {
    FORESHARD_TRY(make_transfer(row.nodes, loader, &group));
  }
  return result;
}

bool MeasuredGroup::allows(const comm::FormParameters& form) const {
  using enum comm::CollectiveKind;
  if (kind != kAllReduce && kind != kAllGather && kind != kReduceScatter) return true;
  const bool may_use_nvls = forms.nvls && (switch_adds || kind == kAllGather);
  if (!may_use_nvls && form.algorithm.starts_with("nvls")) return false;
  const auto among = [](const std::vector<std::string>& names, std::string_view name) {
    return names.empty() || std::ranges::find(names, name) != names.end();
  };
  return among(forms.algorithms, form.algorithm) &&
         among(forms.protocols, comm::name_of(form.protocol));
}

comm::Parameters MeasuredGroup::allowed(comm::Parameters parameters) const {
  std::erase_if(parameters.forms, [&](const auto& form) { return !allows(form); });
  return parameters;
}

std::string_view size_class(double bytes) {
  if (bytes < 65536) return "< 64 KiB";
  if (bytes < 1048576) return "< 1 MiB";
  return bytes <= 16 * 1048576.0 ? "<= 16 MiB" : "> 16 MiB";
}

namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_letter_or_digit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    if (!is_letter_or_digit(text[begin])) continue;
    std::size_t end = begin;
    while (end < text.size() && (is_letter_or_digit(text[end]) || text[end] == '_')) ++end;
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// NCCL_ALGO's name -> ours. The protocols have the names of NCCL_PROTO.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kAlgorithms{
    {{"Ring", "ring"},
     {"Tree", "tree"},
     {"NVLS", "nvls"},
     {"NVLSTree", "nvls_tree"},
     {"NVLS_TREE", "nvls_tree"},
     {"CollNetChain", "collnet_chain"},
     {"CollNetDirect", "collnet_direct"},
     {"PAT", "pat"}}};
constexpr std::array<std::string_view, 3> kProtocols{"LL", "LL128", "Simple"};
constexpr std::array<std::string_view, 5> kNotForced{"default", "auto", "tuner", "picks", "off"};
constexpr std::array<std::string_view, 5> kNvlsOff{"NVLS off", "no NVLS", "NVLS disabled",
                                                   "without NVLS", "NCCL_NVLS_ENABLE=0"};

bool equal_but_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::optional<StatedAdapters> stated_adapters(std::string_view network) {
  for (std::size_t x = network.find('x'); x != std::string_view::npos;
       x = network.find('x', x + 1)) {
    std::size_t begin = x;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(network[begin - 1])) != 0) --begin;
    StatedAdapters stated;
    double gigabits = 0;
    const char* const end = network.data() + network.size();
    if (std::from_chars(network.data() + begin, network.data() + x, stated.count).ec != std::errc{})
      continue;
    const auto [after, fault] = std::from_chars(network.data() + x + 1, end, gigabits);
    if (fault != std::errc{} || after == end || *after != 'G' || stated.count < 1 ||
        !(gigabits > 0))
      continue;
    const std::string_view rest(after, static_cast<std::size_t>(end - after));
    stated.rate = gigabits * 1_Gbit_s;
    stated.per_gpu = has(rest.substr(0, rest.find_first_of(",;")), "per GPU");
    return stated;
  }
  return std::nullopt;
}

std::string stated_transport(std::string_view words, std::string_view generation) {
  if (has(words, "TCPXO") || has(words, "FasTrak")) return "gpudirect-tcpxo";
  if (has(words, "EFA"))
    return generation == "Ampere" || generation == "Volta" ? "efa" : "efa-rdma";
  if (has(words, "Slingshot"))
    return has(words, "software matching") ? "slingshot-software-matching" : "slingshot";
  if (has(words, "RoCE")) return "roce";
  if (has(words, "Omni-Path")) return "omnipath";
  if (has(words, "sockets")) return "ethernet-sockets";
  return {};
}

bool stated_no_nvlink(std::string_view intra_link) {
  return has(intra_link, "PCIe") && (!has(intra_link, "NVLink") || has(intra_link, "no NVLink"));
}

std::optional<bool> stated_peer_to_peer(std::string_view intra_link) {
  for (const std::string_view host : {"SHM", "shared memory", "P2P off", "P2P disabled", "no P2P"})
    if (has(intra_link, host)) return false;
  for (const std::string_view peer : {"P2P", "peer-to-peer"})
    if (has(intra_link, peer)) return true;
  return std::nullopt;
}

StatedForms stated_forms(std::string_view hint, std::string_view notes) {
  StatedForms forms;
  for (const std::string_view off : kNvlsOff)
    if (has(hint, off) || has(notes, off)) forms.nvls = false;
  const auto words = words_in(hint);
  for (const std::string_view word : words)
    for (const std::string_view none : kNotForced)
      if (equal_but_case(word, none)) return forms;
  for (const std::string_view word : words) {
    for (const auto& [name, algorithm] : kAlgorithms)
      if (equal_but_case(word, name)) forms.algorithms.emplace_back(algorithm);
    for (const std::string_view protocol : kProtocols)
      if (equal_but_case(word, protocol)) forms.protocols.emplace_back(protocol);
  }
  // On several nodes NCCL runs NVLS as NVLSTree, unless switches of the network do the additions.
  if (std::ranges::find(forms.algorithms, "nvls") != forms.algorithms.end())
    forms.algorithms.emplace_back("nvls_tree");
  return forms;
}

Seconds stated_overhead(std::string_view notes) {
  // An operation of 32 KiB on eight A100 takes 43.8 us in such a loop and 26 us in nccl-tests.
  // Source: stas00/ml-engineering, ai-dynamo/aiconfigurator.
  constexpr Seconds kOfCall = 20_us;
  const bool is_loop = has(notes, "all_reduce_bench") || has(notes, "torch.distributed");
  return is_loop && !has(notes, "kernel time") && !has(notes, "profiler") ? kOfCall : 0_s;
}

const Exclusion* Exclusions::reason_for(const CollectiveRow& row) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Exclusion& one) {
    return row.source.starts_with(one.source) &&
           (one.operation.empty() || one.operation == row.op) &&
           row.bytes.value_or(0) * 1_B < one.below;
  });
  return found == rows.end() ? nullptr : &*found;
}

const yaml::Table<Exclusion>& yaml_table(const Exclusion*) {
  using E = Exclusion;
  static const auto table =
      yaml::Table<E>("exclusion", "Rows that are not scored.")
          .required("source", &E::source, "Text with which the column `source` begins.")
          .optional("operation", &E::operation, "Value of the column `op`. Default: any.")
          .optional("below", &E::below, "Leave out only operations of fewer bytes. Default: all.",
                    yaml::positive())
          .required("reason", &E::reason, "Why these rows say nothing about the operation.");
  return table;
}

const yaml::Table<Exclusions>& yaml_table(const Exclusions*) {
  static const auto table =
      yaml::Table<Exclusions>("exclusions", "Rows of tables that are not scored.")
          .folder("accuracy")
          .required("rows", &Exclusions::rows, "The rows to leave out, each with its reason.");
  return table;
}

}  // namespace foreshard::accuracy
