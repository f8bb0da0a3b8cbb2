#include "strategies/comm/lanes.h"

#include <utility>

#include "strategies/comm/internal/rings.h"

namespace foreshard::comm {
namespace {

// Times round the ring, less one hop each; 0 if the operation is no ring collective.
std::int32_t rounds_of(CollectiveKind kind) {
  if (kind == CollectiveKind::kAllReduce) return 2;
  if (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter) return 1;
  return 0;
}

LaneForm ring_lanes(const Participants& group, std::int32_t rounds) {
  const auto ring = internal::first_ring(group);
  const auto count = static_cast<std::int32_t>(ring.size());
  LaneForm form{.algorithm = "ring", .steps = rounds * (count - 1), .lanes = {}};
  form.lanes.reserve(ring.size());
  for (std::int32_t i = 0; i < count; ++i) {
    // What it passes on, and its own last send.
    form.lanes.push_back({.from = ring[static_cast<std::size_t>(i)],
                          .to = ring[static_cast<std::size_t>((i + 1) % count)],
                          .part = 1.0 / count,
                          .after = {{(i + count - 1) % count, 1}, {i, 1}}});
  }
  return form;
}

}  // namespace

Result<LaneForm> lane_form(std::string_view algorithm, CollectiveKind kind,
                           const Participants& group) {
  const std::int32_t rounds = rounds_of(kind);
  if (algorithm == "ring" && rounds > 0 && group.devices.size() > 1)
    return ring_lanes(group, rounds);
  FORESHARD_ASSIGN(auto stepwise, stepwise_form(algorithm, kind, group));
  LaneForm form{.algorithm = stepwise.algorithm, .steps = 1, .lanes = {}};
  form.lanes.reserve(stepwise.messages.size());
  for (const Message& message : stepwise.messages) {
    Lane& lane = form.lanes.emplace_back();
    lane.from = message.from;
    lane.to = message.to;
    lane.part = message.part;
    for (const std::int32_t before : message.after) lane.after.push_back({before, 0});
  }
  return form;
}

}  // namespace foreshard::comm
