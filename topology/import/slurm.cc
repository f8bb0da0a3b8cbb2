// Reads SLURM's topology.conf and topology.yaml, a row of import.cc. It has switches and names of
// nodes, but no rates: these come from the request's options and the nodes' own files.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/quantity.h"
#include "base/text.h"

#include "topology/import/internal/readers.h"
#include "topology/import/internal/slurm_lines.h"
#include "topology/internal/hostlist.h"
#include "topology/internal/words.h"

// Source: SLURM's topology.conf(5), plugins topology/tree and topology/block; what `scontrol show
// topology` prints: SchedMD/slurm, src/plugins/topology/{tree,block}, _print_topo_record.
namespace foreshard::internal {
namespace {

struct Switch {
  std::string name;
  std::int64_t line = 0;
  bool block = false;     ///< A block of topology/block.
  std::string host_text;  ///< Host list as written.
  std::vector<std::string> hosts;
  std::vector<std::string> children;
  std::optional<BytesPerSecond> rate;  ///< Rate of the links to what it lists.
  std::optional<std::size_t> parent;
  std::vector<std::size_t> below;  ///< Child switches, once all are known.
  std::int64_t first_node = 0;
  std::int64_t nodes = 0;  ///< Nodes that its hosts form: one each, or whole racks of trays.
};

/// Equal NICs of a node.
struct Ports {
  std::string names;  ///< Names within the node: "nic0", "nic[0-7]".
  std::int64_t count = 1;
  BytesPerSecond rate;  ///< Payload rate of one.
};

/// "word" and a number, or a range of numbers in brackets.
std::string numbered(const std::string& word, std::int64_t first, std::int64_t count) {
  if (count == 1) return word + std::to_string(first);
  return word + "[" + std::to_string(first) + "-" + std::to_string(first + count - 1) + "]";
}

std::vector<Ports> ports_of(const NodeConfig& node) {
  std::vector<Ports> ports;
  if (node.nics && node.nics->count > 0)
    ports.push_back({numbered("nic", 0, node.nics->count), node.nics->count,
                     *node.nics->bandwidth * *node.nics->efficiency});
  if (node.wiring)
    for (const auto& part : node.wiring->parts)
      if (part.kind == WiringPartKind::kNic)
        ports.push_back({part.name, 1, *part.bandwidth * *node.wiring->nic_efficiency});
  return ports;
}

class SlurmReader {
 public:
  explicit SlurmReader(const ImportRequest& request) : request_(request) {}

  Status read();
  Result<ClusterConfig> cluster(const NodeConfig& node, const std::string& name);

  std::vector<std::string> remarks;

 private:
  Error error(const Switch& at, const std::string& why) const {
    return import_error(request_, at.line,
                        (at.block ? "BlockName=" : "SwitchName=") + shown(at.name) + ": " + why);
  }
  Status read_switch(const SlurmLine& line);
  Status set(Switch& at, const std::string& key, std::string_view value);
  Status join_blocks();
  Status join();
  Status count_nodes(const NodeConfig& node, const std::string& name);

  const ImportRequest& request_;
  std::vector<Switch> switches_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<std::size_t> leaves_first_;  // children before parents
  std::size_t hosts_ = 0;                  // and switches, in all lists
  std::int64_t node_count_ = 0;
};

Status SlurmReader::read() {
  std::vector<SlurmLine> lines;
  if (is_slurm_yaml(request_.text)) {
    const auto topology = slurm_yaml(request_.text);
    if (const auto* fault = std::get_if<SlurmFault>(&topology))
      return import_error(request_, fault->line, fault->why);
    const auto& chosen = std::get<SlurmTopology>(topology);
    lines = chosen.lines;
    if (!chosen.others.empty())
      remarks.push_back("of " + std::to_string(chosen.others.size() + 1) + " topologies '" +
                        shown(chosen.name) +
                        "' is taken: the first that is marked cluster_default: true, else the "
                        "first");
  } else {
    lines = slurm_lines(request_.text);
  }
  for (const auto& line : lines) FORESHARD_TRY(read_switch(line));
  if (switches_.empty())
    return import_error(request_, 1, "no SwitchName= and no BlockName= in the file");
  FORESHARD_TRY(join_blocks());
  return join();
}

/// Turns the blocks into switches below a common one.
Status SlurmReader::join_blocks() {
  const auto blocks = std::ranges::count(switches_, true, &Switch::block);
  if (blocks == 0) return {};
  const auto tree = std::ranges::find(switches_, false, &Switch::block);
  if (tree != switches_.end())
    return error(*tree, "a file is for topology/tree (SwitchName) or topology/block (BlockName)");
  remarks.push_back(
      "topology/block names no switches: each block is one switch, and one above joins them; "
      "BlockSizes say how jobs are placed and were left out");
  if (blocks == 1) return {};
  Switch above;
  above.name = "blocks";
  while (by_name_.contains(above.name)) above.name += "-";
  above.line = switches_.front().line;
  for (const auto& block : switches_) above.children.push_back(block.name);
  switches_.push_back(std::move(above));
  return {};
}

/// Whether `scontrol show topology` wrote the line, not an administrator: each switch has its
/// level, a LinkSpeed of 1 where none was given, and all nodes below it; a block has its number.
bool is_shown(const SlurmLine& line) {
  const auto words = words_of(line.text);
  return std::ranges::any_of(words, [](std::string_view word) {
    const std::string key = lower_case(word.substr(0, word.find('=')));
    return key == "level" || key == "blockindex";
  });
}

Status SlurmReader::read_switch(const SlurmLine& line) {
  Switch at;
  at.line = line.number;
  const bool shown_one = is_shown(line);
  bool placing = false;  // says how jobs are placed, not what the switches are
  for (const auto word : words_of(line.text)) {
    const std::size_t equals = word.find('=');
    if (lower_case(word) == "include")
      return import_error(request_, line.number, "'include': give the file that it names");
    if (equals == std::string_view::npos)
      return import_error(request_, line.number, "'" + shown(word) + "' is not Key=Value");
    const std::string key = lower_case(word.substr(0, equals));
    const std::string_view value = word.substr(equals + 1);
    if (value.empty()) return import_error(request_, line.number, shown(word) + " has no value");
    if (shown_one && (key == "level" || key == "blockindex" || key == "blocksize" ||
                      (key == "linkspeed" && value == "1")))
      continue;
    if (key == "aggregatedblock") return {};  // a summary of several blocks
    if (key == "blocksizes" || key == "blocklevels" || key.starts_with("topology")) {
      placing = true;
    } else if (key == "switchname" || key == "blockname") {
      if (!at.name.empty())
        return import_error(request_, line.number,
                            "SwitchName= or BlockName= is there twice in one line");
      if (!is_host_name(value))
        return import_error(request_, line.number, shown(word) + " is not a single name");
      at.name = value;
      at.block = key == "blockname";
    } else if (const Status fault = set(at, key, value); !fault.ok()) {
      return fault;
    }
  }
  if (shown_one && !at.children.empty()) at.hosts.clear();  // its children list them
  if (at.name.empty() && placing) return {};
  if (at.name.empty())
    return import_error(request_, line.number, "a line without SwitchName= or BlockName=");
  if (at.hosts.empty() && at.children.empty()) return error(at, "has neither Nodes= nor Switches=");
  if (!by_name_.try_emplace(at.name, switches_.size()).second)
    return error(at, "is there twice, first in line " +
                         std::to_string(switches_[by_name_.at(at.name)].line));
  if (const std::size_t most = limits::raised(limits::kSwitches); switches_.size() >= most)
    return error(at, "more than " + std::to_string(most) + " switches; " + limits::kRemedy);
  hosts_ += at.hosts.size() + at.children.size();
  if (const std::size_t most = limits::raised(limits::kHosts); hosts_ > most)
    return error(at,
                 "more than " + std::to_string(most) + " hosts and switches; " + limits::kRemedy);
  switches_.push_back(std::move(at));
  return {};
}

Status SlurmReader::set(Switch& at, const std::string& key, std::string_view value) {
  if (key == "nodes" || key == "switches") {
    if (lower_case(value) == "all")
      return import_error(request_, at.line, shown(key) + "=ALL: write their names");
    auto names = expand_hostlist(value, limits::raised(limits::kHosts));
    if (const auto* why = std::get_if<std::string>(&names)) {
      const bool cut = value.rfind('[') != std::string_view::npos &&
                       value.find(']', value.rfind('[')) == std::string_view::npos;
      return import_error(
          request_, at.line,
          shown(key) + "=: " + *why +
              (cut ? "; where scontrol cut the line off, set SLURM_TOPO_LEN=1000000" : ""));
    }
    for (const auto& name : std::get<std::vector<std::string>>(names))
      if (!is_host_name(name))
        return import_error(
            request_, at.line,
            shown(key) + "=: '" + shown(name) + "' is not the name of a host or switch");
    auto& list = key == "nodes" ? at.hosts : at.children;
    if (!list.empty()) return import_error(request_, at.line, shown(key) + "= is there twice");
    list = std::move(std::get<std::vector<std::string>>(names));
    if (key == "nodes") at.host_text = shown(value);
    return {};
  }
  if (key == "linkspeed") {
    auto rate = parse<BytesPerSecond>(value);
    if (const auto bare = whole_number(value); !rate && bare && *bare > 0) {
      rate = static_cast<double>(*bare) * 1_Gbit_s;
      remarks.push_back("line " + std::to_string(at.line) + ": LinkSpeed=" + shown(value) +
                        " has no unit (SLURM gives it none): taken as Gbit/s");
    }
    if (!rate || !(*rate > BytesPerSecond()))
      return import_error(request_, at.line,
                          "LinkSpeed=" + shown(value) + " is not a rate such as 400Gbit/s");
    at.rate = *rate;
    return {};
  }
  return import_error(request_, at.line,
                      "'" + shown(key) +
                          "' is none of SwitchName, BlockName, Switches, Nodes, LinkSpeed, "
                          "BlockSizes");
}

Status SlurmReader::join() {
  std::map<std::string, std::size_t> leaf_of;
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    Switch& at = switches_[i];
    for (const auto& host : at.hosts)
      if (const auto [slot, added] = leaf_of.try_emplace(host, i); !added)
        return error(
            at, "node '" + shown(host) + "' is also under " + shown(switches_[slot->second].name));
    for (const auto& child : at.children) {
      const auto found = by_name_.find(child);
      if (found == by_name_.end()) return error(at, "there is no switch '" + shown(child) + "'");
      Switch& under = switches_[found->second];
      if (under.parent)
        return error(at, shown(child) + " is already under " +
                             shown(switches_[*under.parent].name) +
                             ": in a tree it has one parent");
      under.parent = i;
      at.below.push_back(found->second);
    }
  }
  // Walk from the roots down; what is not reached is part of a cycle.
  std::vector<std::size_t> order;
  std::string roots;
  std::size_t root_count = 0;
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    if (switches_[i].parent) continue;
    if (order.empty()) roots = shown(switches_[i].name);
    if (++root_count == 2) roots += ", " + shown(switches_[i].name);
    order.push_back(i);
    for (std::size_t at = order.size() - 1; at < order.size(); ++at)
      for (const auto child : switches_[order[at]].below) order.push_back(child);
  }
  std::vector<bool> reached(switches_.size(), false);
  for (const auto i : order) reached[i] = true;
  for (std::size_t i = 0; i < switches_.size(); ++i)
    if (!reached[i]) return error(switches_[i], "is, through others, under itself");
  if (root_count > 1)
    remarks.push_back("no switch joins the " + std::to_string(root_count) + " at the top (" +
                      roots + (root_count > 2 ? ", ..." : "") +
                      "): as in SLURM, nothing goes from hosts below one to hosts below another; "
                      "where something joins them, list it with Switches=");
  if (leaf_of.empty()) return error(switches_[order.front()], "no switch lists Nodes=");
  leaves_first_.assign(order.rbegin(), order.rend());
  return {};
}

/// Numbers the nodes in the order of the file. Where a node is a rack of trays, SLURM's hosts are
/// the trays, and the hosts of a block (or below one switch) form NVLink domains.
Status SlurmReader::count_nodes(const NodeConfig& node, const std::string& name) {
  const std::int64_t trays =
      node.gpus_per_tray ? std::max<std::int64_t>(1, node.gpus / *node.gpus_per_tray) : 1;
  for (auto& at : switches_) {
    const auto hosts = static_cast<std::int64_t>(at.hosts.size());
    if (hosts % trays != 0) {
      const std::string gpus = std::to_string(hosts * *node.gpus_per_tray);
      return error(
          at, fmt::format(
                  "{} hosts are not whole racks: a {} has {} trays (hosts) of {} GPUs. Where "
                  "the hosts are the trays of one smaller NVLink domain, give --node a file "
                  "with {{extends: {}, gpus: {}, nics: {{count: {}}}}}; where each host is a "
                  "machine of its own, one with gpus: {}",
                  hosts, name, trays, *node.gpus_per_tray, name, gpus, gpus, *node.gpus_per_tray));
    }
    at.first_node = node_count_;
    at.nodes = hosts / trays;
    node_count_ += at.nodes;
  }
  if (trays > 1)
    remarks.push_back("each host is taken as a tray of " + std::to_string(*node.gpus_per_tray) +
                      " GPUs, and " + std::to_string(trays) +
                      " hosts listed together as one NVLink domain, a " + name);
  else
    remarks.push_back("each host is taken as a " + name);
  return {};
}

Result<ClusterConfig> SlurmReader::cluster(const NodeConfig& node, const std::string& name) {
  ClusterConfig config;
  const auto stem = std::filesystem::path(request_.name).stem().string();
  config.name = stem.empty() ? "slurm" : stem;
  FORESHARD_TRY(count_nodes(node, name));
  config.nodes = node_count_;
  config.node = yaml::Ref<NodeConfig>{node, name};
  if (node_count_ == 1) return config;

  const auto ports = ports_of(node);
  if (ports.empty())
    return Error{Error::Code::kInvalidInput,
                 request_.name + ": node '" + name + "' has no NICs to join to switches"};
  std::int64_t per_node = 0;
  for (const auto& port : ports) per_node += port.count;
  if (const std::int64_t most = limits::raised(limits::kCables); node_count_ * per_node > most)
    return Error{Error::Code::kInvalidInput, request_.name + ": more than " + std::to_string(most) +
                                                 " cables; " + limits::kRemedy};

  config.fabric.kind = "custom";
  auto& custom = config.fabric.custom.emplace();
  std::vector<BytesPerSecond> enters(switches_.size());  // rate from below
  bool assumed = false;
  for (const auto i : leaves_first_) {
    const Switch& at = switches_[i];
    custom.switches.push_back(at.name);
    for (const auto& port : ports) {
      if (at.nodes == 0) break;
      CableConfig cable;
      cable.a = numbered("node", at.first_node, at.nodes) + "/" + port.names;
      cable.b = at.name;
      if (at.rate && *at.rate < port.rate) cable.bandwidth = *at.rate;
      enters[i] += static_cast<double>(at.nodes * port.count) * cable.bandwidth.value_or(port.rate);
      custom.cables.push_back(std::move(cable));
    }
    for (const auto child : at.below) {
      const auto rate = at.rate ? at.rate : request_.link_rate;
      assumed = assumed || !rate;
      CableConfig cable;
      cable.a = switches_[child].name;
      cable.b = at.name;
      cable.bandwidth = rate.value_or(enters[child]);
      enters[i] += *cable.bandwidth;
      custom.cables.push_back(std::move(cable));
    }
  }
  for (const auto& at : switches_)
    if (at.nodes > 0)
      remarks.push_back(numbered("node", at.first_node, at.nodes) +
                        (at.nodes == 1 ? " is " : " are ") + at.host_text + ", under " +
                        shown(at.name));
  if (assumed)
    remarks.push_back(
        "links between switches without a LinkSpeed carry all that is below them (--link-rate sets "
        "another rate)");
  return config;
}

}  // namespace

bool looks_like_slurm(std::string_view text) {
  for (const auto& line : slurm_lines(text.substr(0, std::size_t{64} * 1024))) {
    const auto words = words_of(line.text);
    if (words.empty()) continue;
    const std::string first = lower_case(words.front());
    if (first.starts_with("switchname=") || first.starts_with("blockname=") ||
        first.starts_with("blocksizes="))
      return true;
  }
  return is_slurm_yaml(text);
}

Result<Imported> read_slurm(const ImportRequest& request, yaml::Loader& loader) {
  SlurmReader reader(request);
  FORESHARD_TRY(reader.read());
  if (request.node.empty() && request.device.empty())
    return Error{Error::Code::kInvalidInput,
                 request.name +
                     ": the file names hosts only: name their machine, for example --node dgx-h100 "
                     "or --device H100-SXM"};
  const std::string entry = request.node.empty() ? "by-device/" + request.device : request.node;
  FORESHARD_ASSIGN(const auto node, loader.read_ref<NodeConfig>(entry, "node"));
  if (!request.device.empty() && node.device->name != request.device)
    return Error{Error::Code::kInvalidInput,
                 "node '" + entry + "' has " + node.device->name + ", not " + request.device};
  FORESHARD_ASSIGN(auto cluster, reader.cluster(node, entry));
  return Imported{std::move(cluster), "slurm", request.name, std::move(reader.remarks)};
}

}  // namespace foreshard::internal
