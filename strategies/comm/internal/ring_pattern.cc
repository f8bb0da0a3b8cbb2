#include "strategies/comm/internal/ring_pattern.h"

#include <algorithm>

#include "base/check.h"

#include "strategies/comm/internal/rings.h"
#include "strategies/comm/internal/traffic.h"

namespace foreshard::comm::internal {
namespace {

constexpr double kMostMessages = 64e6;

Path longest_path(const Traffic& traffic, const std::vector<std::int32_t>& ring, int rounds) {
  const std::size_t count = ring.size();
  const auto hop = [&](std::size_t i) {
    return traffic.hop(ring[i % count], ring[(i + 1) % count]);
  };
  Path total;
  for (std::size_t i = 0; i < count; ++i) total.add(hop(i), rounds);
  Path longest;
  for (std::size_t i = 0; i < count; ++i) {
    Path path = total;
    for (int skipped = 0; skipped < rounds; ++skipped)
      path.add(hop(i + static_cast<std::size_t>(skipped)), -1);
    if (i == 0 || longer(path, longest)) longest = path;
  }
  return longest;
}

}  // namespace

Result<Pattern> ring_pattern(const Participants& group, int rounds) {
  FORESHARD_ASSIGN(const auto all, rings(group));

  const auto members = static_cast<double>(group.devices.size());
  const double share = rounds * (members - 1) / members / static_cast<double>(all.size());
  Traffic traffic(group);
  for (const auto& ring : all)
    for (std::size_t i = 0; i < ring.size(); ++i)
      traffic.add(ring[i], ring[(i + 1) % ring.size()], share);
  FORESHARD_TRY(traffic.route());

  Pattern pattern;
  for (const auto& ring : all) {
    const Path path = longest_path(traffic, ring, rounds);
    if (&ring == &all.front() || longer(path, pattern.path)) pattern.path = path;
  }
  pattern.ways = static_cast<double>(all.size());
  pattern.message = 1 / members;
  pattern.sent_per_member = rounds * (members - 1) / members;
  pattern.loads = traffic.take_loads(pattern.detour);
  return pattern;
}

Result<StepwiseCollective> ring_steps(const Participants& group, int reduce_rounds,
                                      int gather_rounds) {
  FORESHARD_ASSIGN(const auto all, rings(group));
  const auto ways = static_cast<std::int32_t>(all.size());
  const auto count = static_cast<std::int32_t>(group.devices.size());
  const std::int32_t steps = (reduce_rounds + gather_rounds) * (count - 1);
  FORESHARD_TRY(too_many_messages("ring", static_cast<double>(steps) * count * ways));

  StepwiseCollective result{.algorithm = "ring", .chunks = count * ways, .messages = {}};
  result.messages.reserve(static_cast<std::size_t>(steps * count) * all.size());
  std::vector<Seconds> latency;
  for (const auto& ring : all) {
    for (std::int32_t i = 0; i < count; ++i) {
      FORESHARD_ASSIGN(const auto route,
                       route_between(group, ring[static_cast<std::size_t>(i)],
                                     ring[static_cast<std::size_t>((i + 1) % count)]));
      latency.push_back(route.latency);
    }
  }
  // Every member owns as many adjacent chunks as there are rings: reduce-scatter leaves them with
  // the member, all-gather starts from it, and ring w carries the w-th chunk of each member. In
  // step s of a round the member at place i passes on the chunk of the member s places before it
  // (gathering) or s + 1 places before it (reducing).
  for (std::int32_t step = 0; step < steps; ++step) {
    const bool reduces = step < reduce_rounds * (count - 1);
    const std::int32_t back = step % (count - 1) + (reduces ? 1 : 0);
    for (std::int32_t way = 0; way < ways; ++way) {
      const auto& ring = all[static_cast<std::size_t>(way)];
      const std::int32_t before = ((step - 1) * ways + way) * count;  // this ring's last step
      for (std::int32_t i = 0; i < count; ++i) {
        const std::int32_t owner = ring[static_cast<std::size_t>((i - back + 2 * count) % count)];
        Message message{.from = ring[static_cast<std::size_t>(i)],
                        .to = ring[static_cast<std::size_t>((i + 1) % count)],
                        .part = 1.0 / (count * ways),
                        .latency = latency[static_cast<std::size_t>(std::int64_t{way} * count + i)],
                        .after = {},
                        .first_chunk = owner * ways + way,
                        .chunk_count = 1,
                        .reduces = reduces};
        if (step > 0) {  // its own last send, and the message that it passes on
          message.after = {before + (i + count - 1) % count, before + i};
          std::ranges::sort(message.after);
        }
        result.messages.push_back(std::move(message));
      }
    }
  }
  return result;
}

Status too_many_messages(std::string_view algorithm, double messages) {
  if (messages <= kMostMessages) return {};
  return Error{Error::Code::kUnsupported,
               std::string(algorithm) + ": the stepwise form of this group has " +
                   std::to_string(messages) + " messages; at most " +
                   std::to_string(kMostMessages) + " are written out. Use the flat form."};
}

}  // namespace foreshard::comm::internal
