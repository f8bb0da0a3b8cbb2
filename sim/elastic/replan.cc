// Answers `foreshard replan` (replan.h): searches the new strategy, plans the move of slices, and
// adds up for how long the run stands still, in seconds.
#include "sim/elastic/replan.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/yaml/describe.h"

#include "sim/search/output.h"
#include "sim/study/run.h"

namespace foreshard::elastic {
namespace {

using internal::running_of;

// Records which devices differ between the clusters.
void add_devices(const ClusterView& before, const ClusterView& after, Replan& result) {
  const std::size_t both = std::min(before.devices().size(), after.devices().size());
  for (std::size_t device = 0; device < both; ++device) {
    const bool was = before.devices()[device].up;
    const bool is = after.devices()[device].up;
    if (was && !is) result.failed.push_back(static_cast<std::int32_t>(device));
    if (!was && is) ++result.added;
  }
  result.removed = static_cast<std::int64_t>(before.devices().size() - both);
  result.added += static_cast<std::int64_t>(after.devices().size() - both);
}

// The old strategy on the remaining devices; otherwise sets `why_not`.
Result<std::optional<Running>> kept_on(study::LoadedStudy& after, std::string& why_not) {
  const auto faults = faults_in(after.strategy, after.model, after.pool.size());
  if (!faults.empty()) {
    why_not = faults.front().message;
    if (!after.pool.shortage.empty()) why_not += fmt::format(" ({})", after.pool.shortage);
    return std::optional<Running>();
  }
  auto run = study::run_study(after, {.critical_path = false});
  if (!run && run.error().code != Error::Code::kInfeasible) return std::move(run).error();
  if (!run)
    why_not = run.error().message;
  else if (!run->prediction.fits)
    why_not = "it does not fit in memory";
  else
    return std::optional(running_of(after, run->prediction));
  return std::optional<Running>();
}

Result<Running> searched(const study::LoadedStudy& after, search::SearchOptions options,
                         Replan& result) {
  if (!options.space.offload) options.space.offload = false;  // moves to hosts are not modelled
  FORESHARD_ASSIGN(const auto found, search::run_search(after, options));
  result.partial = found.partial;
  if (found.simulated.empty() || !found.simulated.front().fits) {
    std::string why = found.nearest ? search::missing_text(*found.nearest) : found.no_route;
    if (why.empty()) why = search::nothing_suits(found);
    if (found.slower > 0)
      why += fmt::format("; {} more might: simulate more (--simulate, --certify)", found.slower);
    return Error{Error::Code::kInfeasible,
                 fmt::format("no strategy fits {} after the change: {}", after.cluster.name, why)};
  }
  result.certified = found.certified;
  return running_of(found.simulated.front());
}

Status add_move(const study::LoadedStudy& study, const ClusterView& before,
                const ClusterView& after, Replan& result) {
  const bool grown = after.devices().size() >= before.devices().size();
  const ClusterView& where = grown ? after : before;
  const Side from{.strategy = result.before.strategy, .devices = result.before.devices};
  const Side to{.strategy = result.after.strategy, .devices = result.after.devices};
  FORESHARD_ASSIGN(auto move, plan_move(study.model, from, to, result.failed, where));
  result.lost = move.lost;
  result.checkpoint = checkpoint_size(study.model, result.before.strategy);
  if (!move.plan.lost.empty()) {
    for (const auto& device : move.plan.devices)
      result.read += static_cast<double>(device.after) * 1_B;
    return {};
  }
  FORESHARD_ASSIGN(auto explained, explain_move(std::move(move.plan), where, study.communication));
  explained.model = study.model.name;
  explained.from = describe(result.before.strategy);
  explained.to = describe(result.after.strategy);
  explained.down = result.failed;
  result.move = std::move(explained);
  return {};
}

}  // namespace

namespace internal {

Running running_of(const study::LoadedStudy& study, const sim::Prediction& prediction) {
  const auto& ranks = study.pool.devices;
  return {.strategy = study.strategy,
          .use = {},
          .devices = {ranks.begin(), ranks.begin() + study.strategy.devices()},
          .idle = prediction.idle,
          .step = prediction.step,
          .low = prediction.low,
          .high = prediction.high,
          .unmeasured = study::unmeasured_in(prediction),
          .peak = prediction.classes[static_cast<std::size_t>(prediction.worst_memory)].memory.peak,
          .capacity = prediction.memory_capacity - prediction.memory_reserve,
          .tight = study::memory_margin_of(study).is_tight(prediction)};
}

Running running_of(const search::Simulated& found) {
  return {.strategy = found.strategy,
          .use = found.use,
          .devices = found.devices,
          .idle = found.idle,
          .step = found.step,
          .low = found.low,
          .high = found.high,
          .unmeasured = found.unmeasured,
          .peak = found.peak,
          .capacity = found.capacity,
          .tight = found.tight};
}

Seconds time_of(const conversion::Explanation& move) {
  if (move.conversion.transfers.empty()) return {};
  return move.simulated ? *move.simulated : *move.closed_form;
}

}  // namespace internal

Bytes Replan::bytes() const {
  return move ? static_cast<double>(move->conversion.bytes_moved) * 1_B : read;
}

std::optional<Seconds> Replan::slices() const {
  if (move) return internal::time_of(*move);
  return costs.storage ? std::optional(read / *costs.storage) : std::nullopt;
}

std::optional<Seconds> Replan::stall() const {
  const auto moved = slices();
  if (!moved || !costs.restart) return std::nullopt;
  if (failed.empty()) return *costs.restart + *moved;
  return costs.detection ? std::optional(*costs.detection + *costs.restart + *moved) : std::nullopt;
}

Result<Replan> replan(const study::LoadedStudy& before, study::LoadedStudy after,
                      const ReplanOptions& options) {
  if (before.graph || after.graph)
    return Error{Error::Code::kUnsupported,
                 "replan moves the parameters of transformers; give studies with a model, not a "
                 "graph"};
  if (yaml::echo(before.model) != yaml::echo(after.model))
    return Error{Error::Code::kInvalidInput,
                 fmt::format("the model changes, from {} to {}: only the strategy and the devices "
                             "may; give both studies the same model",
                             before.model.name, after.model.name)};
  FORESHARD_ASSIGN(const ClusterView old_view, study::cluster_of(before));
  FORESHARD_ASSIGN(const ClusterView new_view, study::cluster_of(after));
  FORESHARD_TRY(same_devices(old_view, new_view));
  Replan result;
  result.model = before.model.name;
  result.cluster_before = before.cluster.name;
  result.cluster_after = after.cluster.name;
  result.costs = options.costs;
  add_devices(old_view, new_view, result);
  FORESHARD_ASSIGN(const auto run, study::run_study(before, {.critical_path = false}));
  result.before = internal::running_of(before, run.prediction);
  std::optional<Running> next;
  if (options.keep) {
    Strategy asked = std::exchange(after.strategy, before.strategy);
    FORESHARD_ASSIGN(next, kept_on(after, result.not_kept));
    if (!next) after.strategy = std::move(asked);
  }
  result.kept = next.has_value();
  if (!next) {
    FORESHARD_ASSIGN(next, searched(after, options.search, result));
  }
  result.after = *std::move(next);
  FORESHARD_TRY(add_move(after, old_view, new_view, result));
  return result;
}

}  // namespace foreshard::elastic
