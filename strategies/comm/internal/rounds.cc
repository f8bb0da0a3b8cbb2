#include "strategies/comm/internal/rounds.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

#include "strategies/comm/internal/rings.h"

namespace foreshard::comm::internal {

Rounds reversed(Rounds rounds) {
  std::reverse(rounds.rounds.begin(), rounds.rounds.end());
  for (auto& round : rounds.rounds) {
    for (RoundMessage& message : round) {
      std::swap(message.from, message.to);
      message.reduces = true;
    }
  }
  return rounds;
}

Rounds joined(Rounds first, const Rounds& second) {
  FORESHARD_CHECK(first.chunks == second.chunks);
  first.rounds.insert(first.rounds.end(), second.rounds.begin(), second.rounds.end());
  return first;
}

Result<Pattern> pattern_of(const Participants& group, const Rounds& rounds) {
  Traffic traffic(group);
  const auto part_of = [&](const RoundMessage& message) {
    return static_cast<double>(message.chunk_count) / rounds.chunks;
  };
  Pattern pattern;
  pattern.overlaps_rounds = true;
  double sent = 0;
  double longest_rounds = 0;
  for (const auto& round : rounds.rounds) {
    double largest = 0;
    for (const RoundMessage& message : round) {
      traffic.add(message.from, message.to, part_of(message));
      sent += part_of(message);
      largest = std::max(largest, part_of(message));
    }
    longest_rounds += largest;
  }
  FORESHARD_TRY(traffic.route());
  for (const auto& round : rounds.rounds) {
    Path longest;
    for (const RoundMessage& message : round) {
      Path path;
      path.add(traffic.hop(message.from, message.to));
      if (longer(path, longest)) longest = path;
    }
    pattern.path.add(longest);
  }
  pattern.sent_per_member = sent / static_cast<double>(group.devices.size());
  pattern.message = longest_rounds / static_cast<double>(rounds.rounds.size());
  pattern.loads = traffic.take_loads(pattern.detour);
  return pattern;
}

Result<StepwiseCollective> steps_of(std::string_view algorithm, const Participants& group,
                                    const Rounds& rounds) {
  double count = 0;
  for (const auto& round : rounds.rounds) count += static_cast<double>(round.size());
  FORESHARD_TRY(too_many_messages(algorithm, count));
  StepwiseCollective result{.algorithm = algorithm, .chunks = rounds.chunks, .messages = {}};
  std::vector<std::vector<std::int32_t>> latest(group.devices.size());
  for (const auto& round : rounds.rounds) {
    std::vector<std::vector<std::int32_t>> now(group.devices.size());
    for (const RoundMessage& message : round) {
      FORESHARD_ASSIGN(const auto route, route_between(group, message.from, message.to));
      Message sent{.from = message.from,
                   .to = message.to,
                   .part = static_cast<double>(message.chunk_count) / rounds.chunks,
                   .latency = route.latency,
                   .after = {},
                   .first_chunk = message.first_chunk,
                   .chunk_count = message.chunk_count,
                   .chunk_step = message.chunk_step,
                   .reduces = message.reduces};
      for (const std::int32_t member : {message.from, message.to})
        for (const std::int32_t earlier : latest[static_cast<std::size_t>(member)])
          sent.after.push_back(earlier);
      std::sort(sent.after.begin(), sent.after.end());
      sent.after.erase(std::unique(sent.after.begin(), sent.after.end()), sent.after.end());
      for (const std::int32_t member : {message.from, message.to})
        now[static_cast<std::size_t>(member)].push_back(
            static_cast<std::int32_t>(result.messages.size()));
      result.messages.push_back(std::move(sent));
    }
    for (std::size_t member = 0; member < now.size(); ++member)
      if (!now[member].empty()) latest[member] = std::move(now[member]);
  }
  return result;
}

Rounds near_first_all_gather(std::int32_t members) {
  Rounds result{.chunks = members, .rounds = {}};
  const bool is_power = std::has_single_bit(static_cast<std::uint32_t>(members));
  for (std::int32_t distance = 1; distance < members; distance *= 2) {
    auto& round = result.rounds.emplace_back();
    for (std::int32_t i = 0; i < members; ++i) {
      if (is_power) {
        round.push_back({.from = i,
                         .to = i ^ distance,
                         .first_chunk = i / distance * distance,
                         .chunk_count = distance});
      } else {
        round.push_back({.from = i,
                         .to = (i + members - distance) % members,
                         .first_chunk = i,
                         .chunk_count = std::min(distance, members - distance)});
      }
    }
  }
  return result;
}

Rounds far_first_all_gather(std::int32_t members) {
  Rounds result{.chunks = members, .rounds = {}};
  const auto count = static_cast<std::uint32_t>(members);
  for (auto distance = static_cast<std::int32_t>(std::bit_ceil(count) / 2); distance >= 1;
       distance /= 2) {
    // A member v places after a chunk's owner has it if v is a multiple of 2 x distance; it passes
    // on the chunks whose next place is still inside the ring.
    const std::int32_t stride = 2 * distance;
    const std::int32_t chunks = (members - distance - 1) / stride + 1;
    auto& round = result.rounds.emplace_back();
    for (std::int32_t i = 0; i < members; ++i)
      round.push_back({.from = i,
                       .to = (i + distance) % members,
                       .first_chunk = i,
                       .chunk_count = chunks,
                       .chunk_step = members - stride % members});
  }
  return result;
}

}  // namespace foreshard::comm::internal
