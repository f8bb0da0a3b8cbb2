#include "strategies/plan/step_plan.h"

namespace foreshard::plan {

const Block& Parts::block_of(std::int32_t unit) const {
  return blocks[static_cast<std::size_t>(units[static_cast<std::size_t>(unit)].block)];
}

const Tie* Parts::tie_in_one_piece() const {
  return tie && pieces.size() == 1 ? &*tie : nullptr;
}

std::int64_t Parts::own_elements(std::int32_t unit) const {
  const Tie* shared = tie_in_one_piece();
  const bool is_copy = shared != nullptr && shared->last_unit == unit;
  return block_of(unit).elements() - (is_copy ? shared->elements : 0);
}

Lane lane_of(const Action& action) {
  const bool is_forward = action.direction == Direction::kForward;
  switch (action.kind) {
    case ActionKind::kPass:
    case ActionKind::kOptimizer:
      return Lane::kCompute;
    case ActionKind::kGather:
    case ActionKind::kReduce:
      return Lane::kData;
    case ActionKind::kReduceCopies:
      return Lane::kModel;
    case ActionKind::kSend:
      return is_forward ? Lane::kSendForward : Lane::kSendBackward;
    case ActionKind::kReceive:
      return is_forward ? Lane::kReceiveForward : Lane::kReceiveBackward;
    case ActionKind::kSync:
      break;
  }
  return Lane::kHost;
}

}  // namespace foreshard::plan
