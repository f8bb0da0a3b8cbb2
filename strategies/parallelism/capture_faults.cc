#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "strategies/parallelism/internal/faults.h"

namespace foreshard {
void capture_faults(const Strategy& strategy, const Model& model,
                    std::vector<StrategyFault>& faults) {
  const auto fault = [&](std::string message, std::string help) {
    faults.push_back({"cuda_graphs", std::move(message), std::move(help)});
  };
  const std::set<Capture> named(strategy.cuda_graphs.begin(), strategy.cuda_graphs.end());
  if (named.size() < strategy.cuda_graphs.size()) fault("names a part twice", "name it once");
  if (named.size() > 1 && named.contains(Capture::kStep))
    fault("'step' has all the other parts", "leave them out");
  for (const Capture one : named)
    if (const std::string_view what = lacking(model, one); !what.empty())
      fault(fmt::format("model '{}' has no {} to capture", model.name, what),
            fmt::format("leave out '{}'", yaml::name_of(one)));
}

}  // namespace foreshard
