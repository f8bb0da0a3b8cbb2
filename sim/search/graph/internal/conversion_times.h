/// \file
/// Times of conversions of tensors within a mesh, in closed form (strategies/reshard/price.h): each
/// is the time of the fastest series of primitives that the reshard planner finds on the cluster,
/// on idle links.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/units.h"

#include "strategies/cost/cost_model.h"
#include "strategies/graph/layout.h"
#include "strategies/reshard/plan.h"
#include "strategies/reshard/price.h"

namespace foreshard::search::internal {

/// Caches its answers; use one object per thread.
class ConversionTimes {
 public:
  /// Position i of the mesh is rank i of `placement`. The cost model must outlive it.
  ConversionTimes(const CostModel& cost, reshard::Placement placement, std::vector<MeshAxis> mesh);

  /// Infinite where ranks have no route.
  Seconds operator()(const reshard::TensorSpec& tensor, const Attribute& from, const Attribute& to);

 private:
  using Key = std::tuple<DType, Shape, Attribute, Attribute>;
  struct Priced {
    Priced(reshard::TensorSpec spec, const CostModel& cost, const reshard::Placement& placement)
        : tensor(std::move(spec)), price(tensor, cost, placement) {}
    reshard::TensorSpec tensor;
    reshard::StepPricer price;
  };
  Seconds priced(const reshard::TensorSpec& tensor, const Attribute& from, const Attribute& to);

  const CostModel& cost_;
  reshard::Placement placement_;
  ProcessMesh mesh_;
  std::map<std::pair<DType, Shape>, std::unique_ptr<Priced>> tensors_;
  std::map<Key, Seconds> known_;
};

}  // namespace foreshard::search::internal
