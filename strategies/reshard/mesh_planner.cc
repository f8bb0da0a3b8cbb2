#include "strategies/reshard/mesh_planner.h"

#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "strategies/reshard/price.h"

namespace foreshard::reshard {
namespace {

class PlannerByTime {
 public:
  PlannerByTime(const CostModel& cost, Placement placement, std::vector<std::int32_t> ranks)
      : cost_(cost), placement_(std::move(placement)), ranks_(std::move(ranks)) {}

  const std::vector<MeshStep>& steps(const TensorSpec& tensor, const Attribute& from,
                                     const Attribute& to, const std::vector<MeshAxis>& mesh) {
    const auto [place, is_new] = known_.try_emplace({tensor.dtype, tensor.shape, from, to});
    if (is_new) {
      StepPricer price(tensor, cost_, placement_);
      place->second = fastest_within(tensor, from, to, {.axes = mesh, .ranks = ranks_},
                                     [&](const Step& step) { return price.on_links(step); });
    }
    return place->second;
  }

 private:
  const CostModel& cost_;
  Placement placement_;
  std::vector<std::int32_t> ranks_;
  std::map<std::tuple<DType, Shape, Attribute, Attribute>, std::vector<MeshStep>> known_;
};

}  // namespace

MeshPlanner planner_by_time(const CostModel& cost, Placement placement,
                            std::vector<std::int32_t> ranks) {
  const auto planner =
      std::make_shared<PlannerByTime>(cost, std::move(placement), std::move(ranks));
  return [planner](const TensorSpec& tensor, const Attribute& from, const Attribute& to,
                   const std::vector<MeshAxis>& mesh) {
    return planner->steps(tensor, from, to, mesh);
  };
}

}  // namespace foreshard::reshard
