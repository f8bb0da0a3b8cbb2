// Answers `foreshard reshard --tensor` (tensor_reshard.h), for the command line and the library.
#include "sim/study/tensor_reshard.h"

#include <fmt/format.h>
#include <utility>

#include "base/yaml/given.h"

#include "sim/simulate/cost.h"
#include "sim/study/study.h"
#include "strategies/graph/layout.h"
#include "strategies/reshard/plan.h"
#include "topology/cluster_config.h"

namespace foreshard::study {

Result<TensorReshard> load_reshard(const TensorReshardText& text, yaml::Options options,
                                   std::string_view mark) {
  yaml::Loader loader(std::move(options));
  FORESHARD_ASSIGN(const auto config,
                   yaml::read_given<ClusterConfig>(text.cluster, loader, "cluster"));
  FORESHARD_ASSIGN(auto cluster, build_cluster(config, loader));
  FORESHARD_ASSIGN(auto communication,
                   loader.read_ref<comm::Parameters>(kDefaultCommunication, "communication"));

  const auto of_argument = [&](std::string_view name, const Error& error) {
    return Error{error.code, fmt::format("{}{}: {}", mark, name, error.message)};
  };
  auto tensor = reshard::parse_tensor(text.tensor);
  if (!tensor) return of_argument("tensor", tensor.error());
  auto from = parse_layout(text.from, tensor->shape);
  if (!from) return of_argument("from", from.error());
  auto to = parse_layout(text.to, tensor->shape);
  if (!to) return of_argument("to", to.error());
  return TensorReshard{.cluster = std::move(cluster),
                       .communication = std::move(communication),
                       .tensor = *std::move(tensor),
                       .from = *std::move(from),
                       .to = *std::move(to)};
}

Result<reshard::Explanation> explain(const TensorReshard& move,
                                     const reshard::ChooseOptions& options) {
  const sim::SimulatedCost cost(move.cluster, move.communication);
  return reshard::explain(move.tensor, move.from, move.to, cost, {.cluster = &move.cluster},
                          options);
}

}  // namespace foreshard::study
