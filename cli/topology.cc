#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/topology_check.h"
#include "cli/topology_collectives.h"
#include "cli/topology_import.h"

#include "topology/cluster_config.h"
#include "topology/dot.h"
#include "topology/simgrid_platform.h"
#include "topology/summary.h"

namespace foreshard::cli {
namespace {

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
    return format_ == "json" ? to_json(summary) : to_text(summary);
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
