// The fabric "single-switch": one switch with a cable to every NIC. It fits any number of NICs.
#include "topology/fabrics/clos.h"

namespace foreshard {

std::optional<FabricFault> fault_in_single_switch(const FabricPlan&) {
  return std::nullopt;
}

void build_single_switch(ClusterView::Builder& builder, const FabricPlan& plan) {
  internal::build_switch(builder, plan.config, plan.ports, "switch");
}

}  // namespace foreshard
