#include "topology/fabrics/clos.h"

namespace foreshard {

void build_rail_fat_tree(ClusterView::Builder& builder, const FabricPlan& plan) {
  internal::build_clos(builder, plan, internal::LeafPer::kRail);
}

}  // namespace foreshard
