// Where passes wait for the exchange of tokens with experts; block.cc cuts them there.
#include "strategies/program/lower/exchanges.h"

#include <algorithm>
#include <fmt/format.h>
#include <variant>

#include "strategies/program/lower/block.h"

namespace foreshard::lower {
namespace {

using program::Communication;
using program::Task;

bool exchanges_tokens(const Task& task) {
  const auto* communication = std::get_if<Communication>(&task.body);
  return communication != nullptr && communication->purpose == program::Purpose::kExpert;
}

}  // namespace

void exchange_once_per_node(program::Block& block, const program::TokenRouting& routing,
                            const std::vector<MeshAxis>& mesh) {
  for (Task& task : block.tasks) {
    if (!exchanges_tokens(task)) continue;
    auto& exchange = std::get<Communication>(task.body);
    if (exchange.kind != program::CollectiveKind::kAllToAll) continue;
    const auto& axes = std::get<program::AxisGroup>(exchange.group).axes;
    const double copies = program::expected_places(routing, ways({axes.begin(), axes.end()}, mesh));
    exchange.kind = program::CollectiveKind::kTokenExchange;
    exchange.bytes = exchange.bytes * (copies / routing.per_token);
    exchange.routing = routing;
  }
}

std::vector<BlockPart> cut_at_exchanges(const program::Block& block) {
  std::vector<BlockPart> parts(1);
  std::vector<EarlierTask> place_of;  // task of the block -> its part and index
  std::vector<bool> brings_tokens;    // task -> an exchange, or communication behind one
  for (const Task& task : block.tasks) {
    const auto is_open = [&](std::int32_t index) {
      const auto i = static_cast<std::size_t>(index);
      return brings_tokens[i] && place_of[i].part + 1 == static_cast<std::int32_t>(parts.size());
    };
    const bool waits = std::ranges::any_of(task.after, is_open);
    if (std::holds_alternative<Kernel>(task.body) && waits) parts.emplace_back();
    brings_tokens.push_back(exchanges_tokens(task) ||
                            (std::holds_alternative<Communication>(task.body) && waits));
    BlockPart& part = parts.back();
    const auto index = static_cast<std::int32_t>(parts.size()) - 1;
    place_of.push_back({index, static_cast<std::int32_t>(part.block.tasks.size())});
    Task& own = part.block.tasks.emplace_back(task);
    own.after.clear();
    for (const std::int32_t earlier : task.after) {
      const EarlierTask& place = place_of[static_cast<std::size_t>(earlier)];
      if (place.part == index)
        own.after.push_back(place.task);
      else
        part.after.push_back(place);
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].block.name = parts.size() == 1 ? block.name : fmt::format("{}.{}", block.name, i);
    auto& after = parts[i].after;
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
  }
  return parts;
}

program::TokenRouting routing_of(const Model& model) {
  const auto count = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  return {.experts = count(model.experts),
          .per_token = count(model.experts_per_token),
          .groups = count(model.expert_groups),
          .groups_per_token = count(model.groups_per_token)};
}

}  // namespace foreshard::lower
