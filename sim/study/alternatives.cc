// Tries the neighbours of a strategy that does not fit into memory (alternatives.h); predict.cc
// shows them in the report.
#include "sim/study/alternatives.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include "sim/simulate/communicators.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::study {
namespace {

struct Neighbour {
  std::string change;
  Strategy strategy;
};

// Adds neighbours that use devices on which no rank runs now.
void add_larger(const Strategy& now, std::int64_t devices, std::vector<Neighbour>& candidates) {
  for (std::int64_t times = 2; times * now.devices() <= devices; times *= 2) {
    Strategy tensor = now;
    tensor.tensor_parallel *= times;
    candidates.push_back(
        {fmt::format("tensor_parallel={}", tensor.tensor_parallel), std::move(tensor)});
    Strategy pipeline = now;
    pipeline.pipeline_parallel *= times;
    pipeline.layers_per_stage.clear();
    candidates.push_back(
        {fmt::format("pipeline_parallel={}", pipeline.pipeline_parallel), std::move(pipeline)});
  }
  std::int64_t data = devices / (now.tensor_parallel * now.pipeline_parallel);
  while (data > 0 && now.global_batch % (data * now.micro_batch) != 0) --data;
  if (data <= now.data_parallel) return;
  for (std::int64_t stage = std::max<std::int64_t>(now.zero_stage, 1); stage <= 3; ++stage) {
    Strategy sharded = now;
    sharded.data_parallel = data;
    sharded.zero_stage = stage;
    std::string change = fmt::format("data_parallel={}", data);
    if (stage != now.zero_stage) change += fmt::format(", zero_stage={}", stage);
    candidates.push_back({std::move(change), std::move(sharded)});
  }
}

// The neighbours of `now` on `devices` devices. Whether the model can be split that way is not
// checked here.
std::vector<Neighbour> neighbours(const Strategy& now, std::int64_t devices) {
  std::vector<Neighbour> candidates;
  const auto add = [&](std::string change, const auto& turn) {
    Strategy strategy = now;
    turn(strategy);
    candidates.push_back({std::move(change), std::move(strategy)});
  };
  if (!now.sequence_parallel && now.tensor_parallel > 1)
    add("sequence_parallel=true", [](Strategy& s) { s.sequence_parallel = true; });
  for (const Recompute more : {Recompute::kSelective, Recompute::kFull}) {
    if (more > now.recompute)
      add(fmt::format("recompute={}", yaml::name_of(more)), [&](Strategy& s) {
        s.recompute = more;
        s.recompute_parts = usual_recompute_parts();
      });
  }
  if (now.micro_batch % 2 == 0)
    add(fmt::format("micro_batch={}", now.micro_batch / 2),
        [](Strategy& s) { s.micro_batch /= 2; });
  if (now.data_parallel > 1) {
    for (std::int64_t stage = now.zero_stage + 1; stage <= 3; ++stage)
      add(fmt::format("zero_stage={}", stage), [&](Strategy& s) { s.zero_stage = stage; });
    if (now.zero_stage < 3 && now.recompute != Recompute::kFull)
      add("zero_stage=3, recompute=full", [](Strategy& s) {
        s.zero_stage = 3;
        s.recompute = Recompute::kFull;
        s.recompute_parts = usual_recompute_parts();
      });
  }
  if (now.data_parallel % 2 == 0) {
    const std::int64_t data = now.data_parallel / 2;
    add(fmt::format("tensor_parallel={}, data_parallel={}", 2 * now.tensor_parallel, data),
        [&](Strategy& s) {
          s.tensor_parallel *= 2;
          s.data_parallel = data;
        });
    add(fmt::format("pipeline_parallel={}, data_parallel={}", 2 * now.pipeline_parallel, data),
        [&](Strategy& s) {
          s.pipeline_parallel *= 2;
          s.data_parallel = data;
          s.layers_per_stage.clear();
        });
  }
  add_larger(now, devices, candidates);
  return candidates;
}

Alternative tried(const LoadedStudy& study, const ClusterView& cluster, Neighbour candidate,
                  const program::Program& program) {
  Alternative result;
  const Bytes reserve = reserve_of(candidate.strategy);
  result.reserve = reserve;
  result.change = std::move(candidate.change);
  result.fits = true;
  for (const program::Role& role : program.roles) {
    const Bytes peak = peak_in_issue_order(program, role);
    const Bytes capacity = capacity_of(program, role, cluster);
    result.fits = result.fits && peak <= capacity - reserve;
    if (result.capacity == 0_B || capacity - peak < result.capacity - result.peak) {
      result.peak = peak;
      result.capacity = capacity;
    }
  }
  if (!result.fits) return result;
  const std::span<const std::int32_t> used =
      std::span(study.pool.devices).first(static_cast<std::size_t>(program.ranks()));
  const auto prediction =
      simulated(study, candidate.strategy, used, cluster, program, {.critical_path = false});
  if (!prediction) {
    result.fits = false;
    return result;
  }
  const auto worst = static_cast<std::size_t>(prediction->worst_memory);
  result.peak = prediction->classes[worst].memory.peak;
  result.capacity = prediction->memory_capacity;
  result.fits = prediction->fits;
  result.step = prediction->step;
  return result;
}

}  // namespace

Bytes capacity_of(const program::Program& program, const program::Role& role,
                  const ClusterView& cluster) {
  Bytes least = cluster.type_of(sim::device_of(program, role.ranks.front())).memory.value;
  for (const std::int32_t rank : role.ranks)
    least = std::min(least, cluster.type_of(sim::device_of(program, rank)).memory.value);
  return least;
}

Bytes peak_in_issue_order(const program::Program& program, const program::Role& role) {
  Bytes live;
  for (const auto& part : role.memory) live += part.bytes;
  Bytes peak = live;
  std::map<std::tuple<std::string_view, std::int32_t, std::int32_t, std::int32_t>, Bytes> buffers;
  for (const program::Call& call : role.calls) {
    const program::Block& block = program.blocks[call.block.index()];
    for (std::int32_t i = 0; i < call.repeat; ++i) {
      for (const program::Task& task : block.tasks) {
        const auto key = [&](std::string_view buffer) {
          return std::tuple(buffer, call.chunk, call.micro_batch, call.layer(i));
        };
        if (const auto* allocate = std::get_if<program::Allocate>(&task.body)) {
          buffers[key(allocate->buffer)] = allocate->bytes;
          live += allocate->bytes;
          peak = std::max(peak, live);
        } else if (const auto* free = std::get_if<program::Free>(&task.body)) {
          const auto buffer = buffers.find(key(free->buffer));
          if (buffer == buffers.end()) continue;
          live -= buffer->second;
          buffers.erase(buffer);
        }
      }
    }
  }
  return peak;
}

std::vector<Alternative> alternatives_to(const LoadedStudy& study, const ClusterView& cluster) {
  std::vector<Alternative> alternatives;
  if (study.graph) return alternatives;  // a graph's batch belongs to this strategy
  for (Neighbour& candidate : neighbours(study.strategy, study.pool.size())) {
    if (!faults_in(candidate.strategy, study.model, study.pool.size()).empty()) continue;
    auto lowered = lower::lower(study.model, candidate.strategy, {});
    if (!lowered) continue;
    const auto program = with_launch_times(study.pool.placed(*std::move(lowered)), cluster);
    alternatives.push_back(tried(study, cluster, std::move(candidate), program));
  }
  std::ranges::stable_sort(alternatives, [](const Alternative& a, const Alternative& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? a.step < b.step : a.peak < b.peak;
  });
  return alternatives;
}

}  // namespace foreshard::study
