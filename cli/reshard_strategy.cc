#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/text.h"
#include "base/yaml/given.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/reshard.h"

#include "sim/elastic/move.h"
#include "sim/study/study.h"
#include "strategies/conversion/conversion.h"
#include "topology/cluster_config.h"

namespace foreshard::cli {
namespace {

using conversion::Explanation;

Error invalid(std::string message) {
  return {Error::Code::kInvalidInput, std::move(message)};
}

struct LoadedCluster {
  ClusterConfig config;
  ClusterView view;
};

Result<LoadedCluster> cluster_of_strategy(const std::string& name, yaml::Loader& loader,
                                          std::string_view at) {
  FORESHARD_ASSIGN(auto config, yaml::read_given<ClusterConfig>(name, loader, at));
  FORESHARD_ASSIGN(auto view, build_cluster(config, loader));
  return LoadedCluster{std::move(config), std::move(view)};
}

std::string text_of(const Strategy& strategy) {
  std::string text =
      fmt::format("tensor {} x pipeline {} x data {} on {} {}", strategy.tensor_parallel,
                  strategy.pipeline_parallel, strategy.data_parallel, strategy.devices(),
                  plural(strategy.devices(), "device"));
  if (strategy.zero_stage > 0) text += fmt::format(", ZeRO {}", strategy.zero_stage);
  if (strategy.mode == Mode::kForward) text += ", forward alone";
  return text;
}

// Mode that moves parameters and optimizer state from one strategy to another.
class ReshardStrategy final : public ReshardMode {
 public:
  void declare(Declaration& declaration) override {
    declaration.option(
        "--from-strategy", "FILE", from_,
        "Strategy before, whose parameters and optimizer state move: a file, a "
        "catalogue name, or YAML in braces. Needs --to-strategy, --model and --cluster.");
    declaration.option("--to-cluster", "FILE", to_cluster_,
                       "With --from-strategy: the cluster after the change (default: --cluster). "
                       "Devices with the same number are the same.");
  }

  bool asked() const override { return !from_.empty(); }

  std::vector<std::string> options() const override {
    return {"--from-strategy", "--to-strategy", "--model", "--cluster", "--to-cluster", "--down"};
  }

  std::vector<std::string> settable(const ReshardOptions& options) const override {
    std::vector<std::string> parts{"cluster", "communication"};
    if (!to_cluster_.empty()) parts.emplace_back("to_cluster");
    if (!study::is_hf_config(options.model)) parts.emplace_back("model");
    return parts;
  }

  Result<ExitCode> run(const ReshardOptions& options, const Environment& environment) override {
    for (const auto& [name, value] :
         {std::pair("--to-strategy", &options.to_strategy), std::pair("--model", &options.model),
          std::pair("--cluster", &options.cluster)})
      if (value->empty()) return fail(fmt::format("--from-strategy also needs {}", name));
    const auto explained = explained_conversion(options, environment);
    if (!explained) {
      const bool lost = explained.error().code == Error::Code::kInfeasible;
      fail(explained.error());
      return lost ? kInfeasible : kBadInput;
    }
    const std::string text = options.format == "json" ? to_json(*explained)
                             : options.format == "csv"
                                 ? to_csv(*explained)
                                 : to_text(*explained, paper_for(options.output));
    FORESHARD_TRY(write_result(options.output, text));
    return explained->peak_memory > explained->memory_capacity ? kInfeasible : kDone;
  }

 private:
  Result<Explanation> explained_conversion(const ReshardOptions& options,
                                           const Environment& environment) const {
    const Busy busy("converting");
    FORESHARD_ASSIGN(auto overrides, overrides_of(options.sets));
    yaml::Loader loader({.catalogue = environment.catalogue, .overrides = std::move(overrides)});
    FORESHARD_ASSIGN(const auto model, load_model(options.model, loader, "model"));
    FORESHARD_ASSIGN(const auto from, load_strategy(from_, model, environment));
    FORESHARD_ASSIGN(const auto to, load_strategy(options.to_strategy, model, environment));
    FORESHARD_ASSIGN(const auto before, cluster_of_strategy(options.cluster, loader, "cluster"));
    FORESHARD_ASSIGN(const auto changed,
                     to_cluster_.empty()
                         ? cluster_of_strategy(options.cluster, loader, "cluster")
                         : cluster_of_strategy(as_cluster(to_cluster_, environment.catalogue),
                                               loader, "to_cluster"));
    if (const Status same = elastic::same_devices(before.view, changed.view); !same.ok())
      return invalid("--to-cluster: " + same.error().message);
    // The exchange runs on the larger cluster, which contains both sets of devices.
    const bool grown = changed.view.devices().size() >= before.view.devices().size();
    const LoadedCluster& where = grown ? changed : before;

    const auto down = options.down;
    FORESHARD_ASSIGN(const auto source, placed(from, before, {}, "--from-strategy"));
    FORESHARD_ASSIGN(const auto target, placed(to, changed, down, "--to-strategy"));
    FORESHARD_ASSIGN(auto move, elastic::plan_move(model, source, target, down, where.view));
    const auto communication =
        loader.read_ref<comm::Parameters>(study::kDefaultCommunication, "communication");
    if (!communication) return communication.error();
    FORESHARD_ASSIGN(Explanation result,
                     elastic::explain_move(std::move(move.plan), where.view, *communication));
    result.model = model.name;
    result.from = text_of(from);
    result.to = text_of(to);
    result.down = down;
    return result;
  }

  // Places the ranks in order on the devices that are up.
  static Result<elastic::Side> placed(const Strategy& strategy, const LoadedCluster& cluster,
                                      const std::vector<std::int32_t>& down, const char* option) {
    const auto devices = static_cast<std::int32_t>(cluster.view.devices().size());
    for (const std::int32_t device : down)
      if (device >= devices)
        return invalid(fmt::format("--down {}: cluster {} has devices 0 to {}", device,
                                   cluster.view.name(), devices - 1));
    const std::set<std::int32_t> gone(down.begin(), down.end());
    elastic::Side side{.strategy = strategy, .devices = {}};
    for (std::int32_t device = 0; device < devices; ++device)
      if (!gone.contains(device)) side.devices.push_back(device);
    const auto up = static_cast<std::int64_t>(side.devices.size());
    if (strategy.devices() <= up) return side;
    return invalid(fmt::format(
        "{}: tensor_parallel {} x pipeline_parallel {} x data_parallel {} = {} ranks, but cluster "
        "{} has {} devices{}; use a smaller data_parallel",
        option, strategy.tensor_parallel, strategy.pipeline_parallel, strategy.data_parallel,
        strategy.devices(), cluster.view.name(), up, down.empty() ? "" : " that are up"));
  }

  std::string from_;
  std::string to_cluster_;
};

}  // namespace

std::unique_ptr<ReshardMode> make_reshard_strategy() {
  return std::make_unique<ReshardStrategy>();
}

}  // namespace foreshard::cli
