#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/topology_collectives.h"
#include "cli/topology_import.h"

#include "topology/cluster_config.h"
#include "topology/dot.h"
#include "topology/summary.h"

namespace foreshard::cli {
namespace {

class Topology final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.require_subcommand();
    Declaration show = declaration.subcommand(
        "show", show_, "Counts, links, bandwidths and sample routes.",
        "foreshard topology show two-dgx-a100 --format dot | dot -Tsvg > cluster.svg");
    show.required_argument("CLUSTER", cluster_, "A cluster: a file or a catalogue name.");
    add_format(show, format_, {"text", "json", "dot"});
    add_set(show, sets_);
    add_output(show, output_);
    import_.declare(declaration);
    collectives_.declare(declaration);
  }

  ExitCode run(const Environment& environment) override {
    if (import_.chosen()) return import_.run(environment);
    if (collectives_.chosen()) return collectives_.run(environment);
    auto overrides = overrides_of(sets_);
    if (!overrides) return fail(overrides.error());
    yaml::Loader loader({.catalogue = environment.catalogue, .overrides = *std::move(overrides)});
    const auto config = cluster_.ends_with(".yaml") || cluster_.ends_with(".yml")
                            ? loader.read_file<ClusterConfig>(cluster_)
                            : loader.read_ref<ClusterConfig>(cluster_);
    if (!config) return fail(config.error());
    const auto cluster = build_cluster(*config, loader);
    if (!cluster) return fail(cluster.error());
    if (const auto error = write_result(output_, written(*cluster))) return fail(*error);
    return kDone;
  }

 private:
  std::string written(const ClusterView& cluster) const {
    if (format_ == "dot") return to_dot(cluster);
    const ClusterSummary summary = summarize(cluster);
    return format_ == "json" ? to_json(summary) : to_text(summary);
  }

  TopologyImport import_;
  TopologyCollectives collectives_;
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
