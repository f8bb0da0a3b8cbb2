#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/limits.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/declaration.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/topology_collectives.h"

#include "topology/cluster_config.h"
#include "topology/dot.h"
#include "topology/import/import.h"
#include "topology/plausibility.h"
#include "topology/simgrid_platform.h"
#include "topology/summary.h"

namespace foreshard::cli {
namespace {

// `foreshard topology import`: turns other tools' descriptions of machines into node and cluster
// files.

class TopologyImport {
 public:
  void declare(Declaration& topology);
  bool chosen() const { return chosen_; }
  Result<ExitCode> run(const Environment& environment) const;

 private:
  bool chosen_ = false;
  std::string file_;
  std::string format_;
  std::string device_;
  std::string node_;
  std::string link_rate_;
  std::string output_;
};

constexpr std::size_t kMostNotes = 12;

// Prints the first remarks. The output file has all of them at its top.
void note_first(const std::vector<std::string>& remarks) {
  const std::size_t shown = remarks.size() > kMostNotes ? kMostNotes - 1 : remarks.size();
  for (std::size_t i = 0; i < shown; ++i) note(remarks[i]);
  if (shown < remarks.size())
    note(std::to_string(remarks.size() - shown) +
         " more remarks stand at the top of what was written");
}

void TopologyImport::declare(Declaration& topology) {
  Declaration command = topology.subcommand(
      "import", chosen_,
      "Turn another tool's description of a machine into a node or cluster file.",
      "NCCL_TOPO_DUMP_FILE=topo.xml ./all_reduce_perf -g 8\n"
      "foreshard topology import topo.xml -o my-node.yaml\n"
      "nvidia-smi topo -m > topo.txt\n"
      "foreshard topology import topo.txt --device H100-SXM -o my-node.yaml");
  command.required_argument("FILE", file_, "The file that the other tool wrote.");
  std::vector<std::string> names;
  for (const auto& format : import_formats()) names.emplace_back(format.name);
  command.option(
      "--as", "FORMAT", format_,
      "Format of the file: " + quoted_choice(names) + ". Recognised from the text by default.");
  command.option(
      "--device", "NAME", device_,
      "The kind of device, where the file does not name it: a name in configs/devices/.");
  command.option("--node", "NAME", node_,
                 "The machine, where the file lists host names only: a name in configs/nodes/.");
  command.option(
      "--link-rate", "RATE", link_rate_,
      "Nominal rate of the network links for which the file gives none, such as 400Gbit/s.");
  add_output(command, output_);
}

Result<ExitCode> TopologyImport::run(const Environment& environment) const {
  FORESHARD_ASSIGN(const auto text, read_file(file_, limits::kLog));
  ImportRequest request{
      .text = text, .name = file_, .format = format_, .device = device_, .node = node_};
  if (!link_rate_.empty()) {
    const auto rate = parse<BytesPerSecond>(link_rate_);
    if (!rate) return fail("--link-rate: " + rate.error().message);
    if (!(*rate > BytesPerSecond())) return fail("--link-rate must be positive");
    request.link_rate = *rate;
  }
  yaml::Loader loader({.catalogue = environment.catalogue});
  FORESHARD_ASSIGN(const auto imported, import_topology(request, loader));
  FORESHARD_TRY(write_result(output_, to_yaml(imported)));
  note_first(imported.remarks);
  return kDone;
}

// `foreshard topology check`: finds what is implausible in a valid cluster.

class TopologyCheck {
 public:
  void declare(Declaration& topology);
  bool chosen() const { return chosen_; }
  Result<ExitCode> run(const Environment& environment) const;

 private:
  bool chosen_ = false;
  bool strict_ = false;
  std::string cluster_;
  std::string format_;
  std::vector<std::string> sets_;
  std::string output_;
};

void TopologyCheck::declare(Declaration& topology) {
  Declaration command = topology.subcommand(
      "check", chosen_, "Find what is implausible: unit slips, throttled NICs, isolated devices.",
      "foreshard topology check two-dgx-h100 --set node.nics.bandwidth=400GB/s");
  command.required_argument(
      "CLUSTER", cluster_, "A cluster: a file (a node's is a cluster of one) or a catalogue name.");
  command.flag("--strict", strict_, "Exit with code 4 if there is a warning.");
  add_format(command, format_, {"text", "json"});
  add_set(command, sets_);
  add_output(command, output_);
}

Result<ExitCode> TopologyCheck::run(const Environment& environment) const {
  FORESHARD_ASSIGN(auto overrides, overrides_of(sets_));
  yaml::Loader loader({.catalogue = environment.catalogue, .overrides = std::move(overrides)});
  FORESHARD_ASSIGN(const auto config, load_cluster(cluster_, loader, environment.catalogue));
  FORESHARD_ASSIGN(const auto cluster, build_cluster(config, loader));
  yaml::Loader catalogue({.catalogue = environment.catalogue});
  FORESHARD_ASSIGN(const auto hardware, read_hardware(catalogue));

  const auto findings = implausible(config, cluster, hardware);
  const std::string text =
      format_ == "json" ? to_json(findings) : to_text(findings, paper_for(output_));
  FORESHARD_TRY(write_result(output_, text));
  const bool warned = std::ranges::count(findings, Severity::kWarning, &Finding::severity) > 0;
  return strict_ && warned ? kGateFailed : kDone;
}

class Topology final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.require_subcommand();
    Declaration show = declaration.subcommand(
        "show", show_, "Print counts, links, bandwidths and sample routes.",
        "foreshard topology show two-dgx-a100 --format dot | dot -Tsvg > cluster.svg");
    show.required_argument("CLUSTER", cluster_,
                           "A cluster: a file (a node's is a cluster of one) or a catalogue name.");
    add_format(show, format_, {"text", "json", "dot", "simgrid"});
    add_set(show, sets_);
    add_output(show, output_);
    import_.declare(declaration);
    collectives_.declare(declaration);
    check_.declare(declaration);
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (import_.chosen()) return import_.run(environment);
    if (collectives_.chosen()) return collectives_.run(environment);
    if (check_.chosen()) return check_.run(environment);
    FORESHARD_ASSIGN(auto overrides, overrides_of(sets_));
    yaml::Loader loader({.catalogue = environment.catalogue, .overrides = std::move(overrides)});
    FORESHARD_ASSIGN(ClusterConfig chosen, load_cluster(cluster_, loader, environment.catalogue));
    if (format_ == "simgrid" && chosen.routing != Routing::kEcmpHash) {
      note("SimGrid's routes have one path each: paths are chosen as with routing: ecmp-hash");
      chosen.routing = Routing::kEcmpHash;
    }
    FORESHARD_ASSIGN(const auto cluster, build_cluster(chosen, loader));
    FORESHARD_ASSIGN(const auto text, written(cluster));
    FORESHARD_TRY(write_result(output_, text));
    return kDone;
  }

 private:
  Result<std::string> written(const ClusterView& cluster) const {
    if (format_ == "dot") return to_dot(cluster);
    if (format_ == "simgrid") return to_simgrid(cluster);
    const ClusterSummary summary = summarize(cluster);
    return format_ == "json" ? to_json(summary) : to_text(summary, paper_for(output_));
  }

  TopologyImport import_;
  TopologyCollectives collectives_;
  TopologyCheck check_;
  bool show_ = false;
  std::string cluster_;
  std::string format_;
  std::vector<std::string> sets_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Command> make_topology() {
  return std::make_unique<Topology>();
}

}  // namespace foreshard::cli
