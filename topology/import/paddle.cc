// Reads the cluster description of PaddlePaddle, JSON of machines and links, a row of import.cc.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/limits.h"
#include "base/yaml/table.h"
#include "base/yaml/words.h"

#include "topology/import/internal/host_tree.h"
#include "topology/import/internal/readers.h"
#include "topology/internal/words.h"

// Source: PaddlePaddle, python/paddle/distributed/auto_parallel/static/cluster.py: bandwidths in
// GB/s of payload, latencies in ms, memory in GB; links are directed and name devices by global_id.
namespace foreshard {
namespace paddle {

/// Numbers may be written with quotes or without.
struct Device {
  yaml::Words written_id{};
  std::int64_t global_id = 0;
  yaml::Words local_id{};
  std::string type{};
  std::string model{};
  yaml::Words memory{};
  yaml::Words dp_gflops{}, sp_gflops{}, hp_gflops{};
  yaml::Words arch{}, vendor{}, ip{}, width{}, bandwidth{};
};

struct Link {
  yaml::Words source{}, target{}, written_bandwidth{};
  std::int64_t source_global_id = 0;
  std::int64_t target_global_id = 0;
  std::string type{};
  double bandwidth = 0;
  yaml::Words latency{}, hop{};
};

struct Machine {
  yaml::Words id{}, hostname{}, addr{}, port{};
  yaml::Words latency{}, bandwidth{}, memory{}, sp_gflops{}, dp_gflops{};
  std::vector<Device> devices{};
  std::vector<Link> links{};
};

struct AlphaLatency {
  std::map<std::string, yaml::Words> inter{}, intra{}, base{};
  yaml::Words switch_latency{};
};

struct Cluster {
  std::vector<Machine> machines{};
  std::optional<AlphaLatency> alpha_latency{};
};

const yaml::Table<Device>& yaml_table(const Device*) {
  using D = Device;
  static const auto table =
      yaml::Table<D>("device", "A GPU, CPU or NIC.")
          .required("global_id", &D::written_id, "Number, unique in the cluster.")
          .optional("local_id", &D::local_id, "Not used.")
          .required("type", &D::type, "GPU, CPU, NIC.",
                    yaml::one_of({"GPU", "CPU", "NIC", "XPU", "DCU", "UNKNOWN"}))
          .optional("model", &D::model, "Name that the driver gives it.")
          .optional("memory", &D::memory, "Not used.")
          .optional("dp_gflops", &D::dp_gflops, "Not used.")
          .optional("sp_gflops", &D::sp_gflops, "Not used.")
          .optional("hp_gflops", &D::hp_gflops, "Not used.")
          .optional("arch", &D::arch, "Not used.")
          .optional("vendor", &D::vendor, "Not used.")
          .optional("ip", &D::ip, "Not used.")
          .optional("width", &D::width, "Not used.")
          .optional("bandwidth", &D::bandwidth, "Not used.");
  return table;
}

const yaml::Table<Link>& yaml_table(const Link*) {
  using L = Link;
  static const auto table =
      yaml::Table<L>("link", "A directed link.")
          .required("source_global_id", &L::source, "Device at which the link begins.")
          .required("target_global_id", &L::target, "Device at which the link ends.")
          .optional(
              "type", &L::type, "Kind of link.",
              yaml::one_of({"LOC", "SYS", "PHB", "PIX", "PIB", "NVL", "NVB", "NET", "UNKNOWN"}))
          .required("bandwidth", &L::written_bandwidth, "Payload rate in GB/s.")
          .optional("latency", &L::latency, "Not used.")
          .optional("hop", &L::hop, "Not used.");
  return table;
}

const yaml::Table<Machine>& yaml_table(const Machine*) {
  using M = Machine;
  static const auto table = yaml::Table<M>("machine", "A host.")
                                .optional("id", &M::id, "Not used.")
                                .optional("hostname", &M::hostname, "Name used in remarks.")
                                .optional("addr", &M::addr, "Not used.")
                                .optional("port", &M::port, "Not used.")
                                .optional("latency", &M::latency, "Not used.")
                                .optional("bandwidth", &M::bandwidth, "Not used.")
                                .optional("memory", &M::memory, "Not used.")
                                .optional("sp_gflops", &M::sp_gflops, "Not used.")
                                .optional("dp_gflops", &M::dp_gflops, "Not used.")
                                .required("devices", &M::devices, "Devices of the machine.")
                                .optional("links", &M::links, "Links that begin in it.");
  return table;
}

const yaml::Table<AlphaLatency>& yaml_table(const AlphaLatency*) {
  using A = AlphaLatency;
  static const auto table = yaml::Table<A>("alpha_latency", "Of Paddle's own cost model.")
                                .optional("inter", &A::inter, "Not used.")
                                .optional("intra", &A::intra, "Not used.")
                                .optional("base", &A::base, "Not used.")
                                .optional("switch", &A::switch_latency, "Not used.");
  return table;
}

const yaml::Table<Cluster>& yaml_table(const Cluster*) {
  static const auto table =
      yaml::Table<Cluster>("Paddle cluster", "Machines, devices, links.")
          .required("machines", &Cluster::machines, "The hosts.", yaml::non_empty())
          .optional("alpha_latency", &Cluster::alpha_latency, "Not used.");
  return table;
}

}  // namespace paddle

namespace internal {
namespace {

using Kind = HostTree::Kind;

constexpr std::size_t kMostFaultsShown = 5;
constexpr double kFastest = 1e6;  // GB/s

/// The one number of `words`; nothing for anything else.
std::optional<double> number_of(const yaml::Words& words) {
  if (words.list || words.words.size() != 1) return std::nullopt;
  const std::string& text = words.words[0];
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

/// Parses the numbers of all devices and links.
Status take_numbers(paddle::Cluster& cluster, const yaml::Loader& json) {
  std::string where;
  const auto fault = [&](const std::string& key, const std::string& why) {
    return json.error_at(where + "." + key, key + " must be " + why);
  };
  const auto id = [&](const yaml::Words& words, const char* key, std::int64_t& value) -> Status {
    const auto number = number_of(words);
    if (!number || *number < 0 || *number > 1e15 || *number != std::floor(*number))
      return fault(key, "a whole number from 0 on");
    value = static_cast<std::int64_t>(*number);
    return {};
  };
  for (std::size_t m = 0; m < cluster.machines.size(); ++m) {
    const std::string machine = "machines." + std::to_string(m);
    for (std::size_t d = 0; d < cluster.machines[m].devices.size(); ++d) {
      auto& device = cluster.machines[m].devices[d];
      where = machine + ".devices." + std::to_string(d);
      FORESHARD_TRY(id(device.written_id, "global_id", device.global_id));
    }
    for (std::size_t l = 0; l < cluster.machines[m].links.size(); ++l) {
      auto& link = cluster.machines[m].links[l];
      where = machine + ".links." + std::to_string(l);
      FORESHARD_TRY(id(link.source, "source_global_id", link.source_global_id));
      FORESHARD_TRY(id(link.target, "target_global_id", link.target_global_id));
      const auto rate = number_of(link.written_bandwidth);
      if (!rate || !(*rate > 0) || *rate > kFastest)
        return fault("bandwidth", "a positive number of GB/s");
      link.bandwidth = *rate;
    }
  }
  return {};
}

struct Place {
  std::size_t machine = 0;
  std::size_t device = 0;
};

class PaddleReader {
 public:
  PaddleReader(const ImportRequest& request, const paddle::Cluster& cluster,
               const yaml::Loader& json, const Hardware& hardware)
      : request_(request), cluster_(cluster), json_(json), hardware_(hardware) {}

  Status read();
  Result<ClusterConfig> config(yaml::Loader& loader);

  std::vector<std::string> remarks;

 private:
  const paddle::Device& device(const Place& place) const {
    return cluster_.machines[place.machine].devices[place.device];
  }
  /// The rate of the link `from` -> `to`, else of its reverse. 0 if there is neither.
  double rate(std::int64_t from, std::int64_t to) const {
    auto found = rates_.find({from, to});
    if (found == rates_.end()) found = rates_.find({to, from});
    return found == rates_.end() ? 0 : found->second->bandwidth;
  }
  bool nvlink(std::int64_t from, std::int64_t to) const {
    const auto is = [&](std::int64_t a, std::int64_t b) {
      const auto found = rates_.find({a, b});
      return found != rates_.end() &&
             (found->second->type == "NVL" || found->second->type == "NVB");
    };
    return is(from, to) || is(to, from);
  }
  std::vector<std::int64_t> ids(std::size_t machine, std::string_view type) const;
  Result<NodeConfig> node(std::size_t machine, yaml::Loader& loader);
  Result<std::string> device_of(std::size_t machine) const;
  Error at(std::size_t machine, const std::string& key, const std::string& why) const {
    return json_.error_at("machines." + std::to_string(machine) + (key.empty() ? "" : ".") + key,
                          why);
  }
  void add_nvlinks(HostTree& tree, const std::vector<std::int64_t>& gpus, std::size_t first,
                   const Defaults& defaults) const;
  double leaves_host(std::size_t machine, std::int64_t from) const;

  const ImportRequest& request_;
  const paddle::Cluster& cluster_;
  const yaml::Loader& json_;
  const Hardware& hardware_;
  std::map<std::int64_t, Place> places_;
  std::map<std::pair<std::int64_t, std::int64_t>, const paddle::Link*> rates_;
  std::map<std::string, Defaults> defaults_;
};

Status PaddleReader::read() {
  for (std::size_t m = 0; m < cluster_.machines.size(); ++m)
    for (std::size_t d = 0; d < cluster_.machines[m].devices.size(); ++d) {
      const auto id = cluster_.machines[m].devices[d].global_id;
      if (!places_.try_emplace(id, Place{m, d}).second)
        return at(m, "devices." + std::to_string(d) + ".global_id",
                  "global_id " + std::to_string(id) + " is there twice");
    }
  bool latencies = false;
  for (std::size_t m = 0; m < cluster_.machines.size(); ++m)
    for (std::size_t l = 0; l < cluster_.machines[m].links.size(); ++l) {
      const auto& link = cluster_.machines[m].links[l];
      const std::string key = "links." + std::to_string(l);
      for (const auto& [end, word] : {std::pair{link.source_global_id, "source_global_id"},
                                      {link.target_global_id, "target_global_id"}})
        if (!places_.contains(end))
          return at(m, key + "." + word, "there is no device " + std::to_string(end));
      if (link.source_global_id == link.target_global_id) {
        if (link.type == "LOC") continue;  // a device's own memory
        return at(m, key, "joins a device to itself");
      }
      if (!rates_.try_emplace({link.source_global_id, link.target_global_id}, &link).second)
        return at(m, key,
                  "links " + std::to_string(link.source_global_id) + " to " +
                      std::to_string(link.target_global_id) + " a second time");
      latencies = latencies || number_of(link.latency).value_or(0) > 0;
    }
  if (latencies)
    remarks.push_back("latencies are those of the catalogue: Paddle's are of whole operations");
  if (cluster_.alpha_latency)
    remarks.push_back("alpha_latency belongs to Paddle's own cost model and was left out");
  return {};
}

std::vector<std::int64_t> PaddleReader::ids(std::size_t machine, std::string_view type) const {
  std::vector<std::int64_t> found;
  for (const auto& device : cluster_.machines[machine].devices)
    if (device.type == type) found.push_back(device.global_id);
  std::ranges::sort(found);
  return found;
}

Result<std::string> PaddleReader::device_of(std::size_t machine) const {
  if (!request_.device.empty()) return request_.device;
  const HardwareDevice* found = nullptr;
  for (const auto id : ids(machine, "GPU")) {
    const auto& place = places_.at(id);
    const std::string key = "devices." + std::to_string(place.device) + ".model";
    const auto& model = device(place).model;
    const HardwareDevice* known = hardware_.device_of_name(model);
    if (known == nullptr)
      return at(machine, key,
                "'" + shown(model) + "' is not in configs/hardware/gpus.yaml: give --device");
    if (found != nullptr && found != known)
      return at(machine, key,
                "is a " + known->device + ", but an earlier one is a " + found->device +
                    ": a node has one kind of device");
    found = known;
  }
  return found->device;
}

/// The rate of a device's fastest link to another machine.
double PaddleReader::leaves_host(std::size_t machine, std::int64_t from) const {
  double fastest = 0;
  for (auto link = rates_.lower_bound({from, 0}); link != rates_.end() && link->first.first == from;
       ++link)
    if (places_.at(link->first.second).machine != machine)
      fastest = std::max(fastest, link->second->bandwidth);
  return fastest;
}

/// All GPUs share an NVSwitch if one's links to others add up to more than the device has.
void PaddleReader::add_nvlinks(HostTree& tree, const std::vector<std::int64_t>& gpus,
                               std::size_t first, const Defaults& defaults) const {
  std::vector<double> sums(gpus.size(), 0);
  std::vector<double> largest(gpus.size(), 0);
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = 0; j < gpus.size(); ++j)
      if (i != j && nvlink(gpus[i], gpus[j])) {
        sums[i] += rate(gpus[i], gpus[j]);
        largest[i] = std::max(largest[i], rate(gpus[i], gpus[j]));
      }
  const double most = defaults.hardware.nvlink_bandwidth() / 1_GB_s;
  const bool switched = std::ranges::any_of(sums, [&](double sum) { return sum > most; });
  if (!switched) {
    for (std::size_t i = 0; i < gpus.size(); ++i)
      for (std::size_t j = i + 1; j < gpus.size(); ++j)
        if (nvlink(gpus[i], gpus[j]))
          tree.links.push_back(
              {first + i, first + j, WiringLinkKind::kNvLink, rate(gpus[i], gpus[j]) * 1_GB_s});
    return;
  }
  const std::size_t hub = tree.add({.kind = Kind::kNvSwitch});
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (largest[i] > 0)
      tree.links.push_back({first + i, hub, WiringLinkKind::kNvLink, largest[i] * 1_GB_s});
}

Result<NodeConfig> PaddleReader::node(std::size_t machine, yaml::Loader& loader) {
  const auto gpus = ids(machine, "GPU");
  if (gpus.empty()) return at(machine, "devices", "has no device of type GPU");
  FORESHARD_ASSIGN(const auto name, device_of(machine));
  if (!defaults_.contains(name)) {
    FORESHARD_ASSIGN(Defaults own, defaults_of(name, hardware_, loader, remarks));
    // Paddle's cost model divides by its bandwidths: they are payload rates.
    const yaml::Sourced<double> payload{1, request_.name + ": rates of payload",
                                        yaml::Evidence::kTransferred};
    if (!own.machine.nvlink) own.machine.nvlink.emplace();
    if (!own.machine.nics) own.machine.nics.emplace();
    own.machine.nvlink->efficiency = payload;
    own.machine.pcie.efficiency = payload;
    own.machine.nics->efficiency = payload;
    defaults_.emplace(name, std::move(own));
  }
  const Defaults& defaults = defaults_.at(name);

  HostTree tree;
  auto cpus = ids(machine, "CPU");
  for (std::size_t i = 0; i < std::max<std::size_t>(cpus.size(), 1); ++i)
    tree.add({.kind = Kind::kSocket});
  for (std::size_t i = 0; i < cpus.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (const double own = rate(cpus[j], cpus[i]); own > 0) {
        tree.links.push_back({j, i, WiringLinkKind::kSocket, own * 1_GB_s});
      } else {
        tree.links.push_back(
            {j, i, WiringLinkKind::kSocket, *defaults.machine.pcie.socket_bandwidth});
        tree.bridges_from = defaults.usual();
      }
  const double usual = pcie_bandwidth(pcie_generation(defaults.machine)) / 1_GB_s;
  const auto hang = [&](std::int64_t id, HostTree::HostPart part) {
    double fastest = 0;
    part.parent = 0;
    for (std::size_t c = 0; c < cpus.size(); ++c)
      if (rate(id, cpus[c]) > fastest) {
        fastest = rate(id, cpus[c]);
        part.parent = c;
      }
    part.up = (fastest > 0 ? fastest : usual) * 1_GB_s;
    return tree.add(part);
  };
  const std::size_t first = tree.parts.size();
  for (std::size_t i = 0; i < gpus.size(); ++i)
    hang(gpus[i], {.kind = Kind::kGpu, .index = static_cast<std::int64_t>(i)});
  const auto nics = ids(machine, "NIC");
  double from_gpus = 0;
  for (const auto gpu : gpus) from_gpus = std::max(from_gpus, leaves_host(machine, gpu));
  const auto port_of = [&](double own) -> BytesPerSecond {
    if (own > 0) return own * 1_GB_s;
    if (from_gpus > 0) return from_gpus * 1_GB_s;
    tree.ports_from = request_.link_rate ? kLinkRate : defaults.usual();
    if (request_.link_rate) return *request_.link_rate;
    return *defaults.machine.nics->bandwidth;
  };
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const auto port = port_of(leaves_host(machine, nics[i]));
    if (!(port > BytesPerSecond()))
      return at(machine, "devices", "the rate of its NICs is missing: give --link-rate");
    hang(nics[i], {.kind = Kind::kNic, .index = static_cast<std::int64_t>(i), .port = port});
  }
  if (nics.empty() && cluster_.machines.size() > 1) {
    const auto port = port_of(0);
    if (!(port > BytesPerSecond()))
      return at(machine, "devices", "has no NIC, and no link leaves it: give --link-rate");
    tree.add({.kind = Kind::kNic, .parent = 0, .up = usual * 1_GB_s, .port = port});
  }
  add_nvlinks(tree, gpus, first, defaults);
  NodeConfig config = node_of(tree, defaults, request_.name + " (PaddlePaddle cluster)");
  config.summary = "Imported from " + request_.name + " (PaddlePaddle cluster).";
  return config;
}

Result<ClusterConfig> PaddleReader::config(yaml::Loader& loader) {
  ClusterConfig config;
  const auto stem = std::filesystem::path(request_.name).stem().string();
  config.name = stem.empty() ? "paddle" : stem;
  std::string last;
  for (std::size_t m = 0; m < cluster_.machines.size(); ++m) {
    FORESHARD_ASSIGN(auto built, node(m, loader));
    const std::string text = to_yaml({built, "", "", {}});
    if (m > 0 && text == last) {
      ++config.groups.back().nodes;
    } else {
      config.groups.push_back({1, {std::move(built), ""}});
    }
    last = text;
  }
  if (config.groups.size() == 1) {
    config.nodes = config.groups[0].nodes;
    config.node = std::move(config.groups[0].node);
    config.groups.clear();
  }
  if (cluster_.machines.size() > 1)
    remarks.push_back(
        "Paddle describes no switches: the machines are joined by one non-blocking switch");
  return config;
}

}  // namespace

bool looks_like_paddle(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.substr(0, std::size_t{1024} * 1024).find("\"machines\"") != std::string_view::npos;
}

Result<Imported> read_paddle(const ImportRequest& request, yaml::Loader& loader) {
  yaml::Loader json({.most_values = limits::kTopologyValues, .most_errors = kMostFaultsShown});
  FORESHARD_ASSIGN(paddle::Cluster cluster,
                   json.read_text<paddle::Cluster>(request.text, request.name));
  FORESHARD_TRY(take_numbers(cluster, json));
  FORESHARD_ASSIGN(const auto hardware, read_hardware(loader));
  PaddleReader reader(request, cluster, json, hardware);
  FORESHARD_TRY(reader.read());
  FORESHARD_ASSIGN(auto config, reader.config(loader));
  return Imported{std::move(config), "paddle", request.name, std::move(reader.remarks)};
}

}  // namespace internal
}  // namespace foreshard
