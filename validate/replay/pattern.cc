#include "validate/replay/pattern.h"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "base/check.h"

namespace foreshard::replay {
namespace {

using program::CollectiveKind;

const Communicator& communicator_of(const RankPlan& plan, std::size_t instance) {
  return plan.communicators[static_cast<std::size_t>(plan.operations[instance].communicator)];
}

// The numbers of an exchange's messages in one direction, one message after another.
void exchanged(const RankPlan& plan, std::size_t instance, bool outgoing, std::int64_t first,
               std::span<int> out) {
  const auto& members = communicator_of(plan, instance).members;
  const std::int64_t end = first + static_cast<std::int64_t>(out.size());
  std::map<std::int32_t, std::int64_t> so_far;  // peer -> elements of earlier messages
  for (const Message& message : messages_of(plan, instance)) {
    if (message.outgoing != outgoing) continue;
    const std::int32_t peer = members[static_cast<std::size_t>(message.peer)];
    const std::int32_t from = outgoing ? plan.rank : peer;
    const std::int32_t to = outgoing ? peer : plan.rank;
    const std::int64_t before = so_far[peer] - message.offset + (std::int64_t{to} << 40);
    for (std::int64_t e = std::max(first, message.offset);
         e < std::min(end, message.offset + message.elements); ++e)
      out[static_cast<std::size_t>(e - first)] =
          sent(from, plan.operations[instance].ordinal, before + e);
    so_far[peer] += message.elements;
  }
}

void fill(std::int64_t first, std::span<int> out, const std::function<int(std::int64_t)>& value) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = value(first + static_cast<std::int64_t>(i));
}

}  // namespace

void given(const RankPlan& plan, std::size_t instance, std::int64_t first, std::span<int> out) {
  const auto& communication = std::get<program::Communication>(plan.task(instance).body);
  if (is_group_call(communication.kind)) return exchanged(plan, instance, true, first, out);
  fill(first, out, [&](std::int64_t element) {
    return sent(plan.rank, plan.operations[instance].ordinal, element);
  });
}

void expected(const RankPlan& plan, std::size_t instance, std::int64_t first, std::span<int> out) {
  const auto& communication = std::get<program::Communication>(plan.task(instance).body);
  const Operation& operation = plan.operations[instance];
  const Communicator& communicator = communicator_of(plan, instance);
  const auto from = [&](std::int64_t place, std::int64_t element) {
    return sent(communicator.members[static_cast<std::size_t>(place)], operation.ordinal, element);
  };
  const auto sum_at = [&](std::int64_t element) {
    int sum = 0;
    for (const std::int32_t rank : communicator.members)
      sum += sent(rank, operation.ordinal, element);
    return sum;
  };
  const Elements elements = elements_of(plan, instance);
  switch (communication.kind) {
    case CollectiveKind::kAllReduce:
      return fill(first, out, sum_at);
    case CollectiveKind::kReduceScatter:
      return fill(first, out, [&](std::int64_t element) {
        return sum_at(communicator.me * elements.receive + element);
      });
    case CollectiveKind::kAllGather:
      return fill(first, out, [&](std::int64_t element) {
        return from(element / elements.send, element % elements.send);
      });
    case CollectiveKind::kTokenExchange:
    case CollectiveKind::kAllToAll: {
      const std::int64_t shard =
          elements.send / static_cast<std::int64_t>(communicator.members.size());
      return fill(first, out, [&](std::int64_t element) {
        return from(element / shard, communicator.me * shard + element % shard);
      });
    }
    case CollectiveKind::kBroadcast:
      return fill(first, out, [&](std::int64_t element) { return from(operation.root, element); });
    case CollectiveKind::kReceive:
      return fill(first, out, [&](std::int64_t element) { return from(operation.peer, element); });
    case CollectiveKind::kExchange:
    case CollectiveKind::kShift:
      return exchanged(plan, instance, false, first, out);
    case CollectiveKind::kSend:
    case CollectiveKind::kToHost:  // refused when the rank was planned
    case CollectiveKind::kFromHost:
    case CollectiveKind::kOnHost:
      FORESHARD_CHECK(out.empty());
  }
}

}  // namespace foreshard::replay
