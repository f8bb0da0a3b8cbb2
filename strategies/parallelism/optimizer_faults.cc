#include <fmt/format.h>

#include "strategies/parallelism/internal/faults.h"

namespace foreshard {

void optimizer_faults(const Strategy& strategy, std::vector<StrategyFault>& faults) {
  const Optimizer& of = strategy.optimizer;
  const auto fault = [&](std::string message, std::string help) {
    faults.push_back({"optimizer", std::move(message), std::move(help)});
  };
  if (of == Optimizer{}) return;
  if (strategy.mode == Mode::kForward)
    return fault("mode: forward updates no parameters", "leave optimizer out");
  if (of.master != DType::kFp32 && size_of(of.master) < size_of(strategy.precision))
    fault(fmt::format("a master copy in {} has fewer bits than parameters in {}",
                      name_of(of.master), name_of(strategy.precision)),
          "leave master out");
  if (of.remainders && strategy.precision != DType::kBf16)
    fault(fmt::format("parameters in {} are not the upper half of an fp32 master copy",
                      name_of(strategy.precision)),
          "leave remainders out, or set precision: bf16");
  if (of.remainders && strategy.framework->shards.fp32)
    fault("the framework's shards lie in fp32 and are the master copy, whole",
          "leave remainders out, or set framework.shards.fp32: false");
  if (of.master != DType::kFp32 && strategy.framework->shards.fp32)
    fault(fmt::format("the framework's shards lie in fp32 and are the master copy, not in {}",
                      name_of(of.master)),
          "leave master out, or set framework.shards.fp32: false");
  if (of.rule != "adam" && strategy.framework->optimizer == OptimizerKernels::kLoop)
    fault(fmt::format("the framework steps in a loop of Adam's operations (optimizer: loop), which "
                      "'{}' does not have",
                      of.rule),
          "set framework.optimizer: fused");
}

}  // namespace foreshard
