#include "cli/topology_check.h"

#include <algorithm>

#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"

#include "topology/cluster_config.h"
#include "topology/plausibility.h"

namespace foreshard::cli {

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
  const std::string text = format_ == "json" ? to_json(findings) : to_text(findings);
  FORESHARD_TRY(write_result(output_, text));
  const bool warned = std::ranges::count(findings, Severity::kWarning, &Finding::severity) > 0;
  return strict_ && warned ? kGateFailed : kDone;
}

}  // namespace foreshard::cli
