// FSDP's switch for offloading to the CPU, which moves optimizer and parameters together.
// accelerate.cc and torchtitan.cc call it.
#include "strategies/launch/internal/formats.h"

namespace foreshard::launch::internal {

Status finish_fsdp_offload(Draft& draft) {
  if (!draft.is("note.cpu_offload")) return {};
  if (draft.count("strategy.zero_stage", 0) != 3)
    return fault(draft.place("note.cpu_offload"), draft.from("note.cpu_offload"),
                 "offloading is modelled where parameters are given up after each pass (ZeRO 3) "
                 "alone",
                 "shard parameters fully, or leave it out");
  draft.set("strategy.offload_optimizer", "cpu", draft.from("note.cpu_offload"));
  draft.set("strategy.offload_parameters", "true", draft.from("note.cpu_offload"));
  return {};
}

void spread_fsdp_offload(Draft& draft, const Strategy& strategy) {
  const bool all = strategy.zero_stage == 3 && strategy.offload_parameters &&
                   strategy.offload_optimizer == OptimizerOffload::kCpu;
  if (!all) return;
  draft.set("note.cpu_offload", "true", "");
  draft.drop("strategy.offload_optimizer");
  draft.drop("strategy.offload_parameters");
}

}  // namespace foreshard::launch::internal
