#include "synthetic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include "base/check.h"

#include "sim/compute/operator_time.h"
#include "strategies/comm/collective.h"
#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/group.h"
#include "validate/measurement/measurement.h"

namespace foreshard::test {
namespace {

using program::CollectiveKind;

struct Rank {
  const program::Role* role = nullptr;
  program::Expansion expansion;
  std::size_t next = 0;
  Seconds now;
  std::map<std::string, std::int64_t> before;  // by tag
};

}  // namespace

measure::Measurement replayed(const program::Program& program, const ClusterView& cluster,
                              const comm::Parameters& communication, const Noise& noise) {
  std::mt19937_64 random(noise.seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto disturbed = [&](Seconds time) {
    const double factor = std::exp(noise.spread * normal(random));
    return (uniform(random) < noise.outliers ? 5.0 : 1.0) * factor * time;
  };

  measure::Measurement result;
  result.program = program.name;
  result.fingerprint = measure::fingerprint_of(program);
  result.backend = "host";
  const std::string own(measure::kOwnKernels);
  result.providers = {.gemm = "blas", .attention = own, .pass = own};
  result.date = "2026-01-02T03:04:05Z";
  result.repeats = 10;
  result.machines = {{.name = "bench", .facts = {{"processor", "test"}}}};

  const program::Expander expander(program);
  std::vector<Rank> ranks(static_cast<std::size_t>(program.ranks()));
  for (std::size_t r = 0; r < program.roles.size(); ++r)
    for (const std::int32_t rank : program.roles[r].ranks)
      ranks[static_cast<std::size_t>(rank)] = {.role = &program.roles[r],
                                               .expansion = expander.expand(r),
                                               .next = 0,
                                               .now = {},
                                               .before = {}};
  result.ranks.resize(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    result.ranks[r].rank = static_cast<std::int32_t>(r);
    result.ranks[r].tasks.resize(ranks[r].expansion.instances.size());
  }
  const auto finish = [&](std::size_t r, Seconds start, Seconds end) {
    auto& task = result.ranks[r].tasks[ranks[r].next++];
    task = {.start = start,
            .finish = end,
            .low = end - start,
            .median = end - start,
            .high = end - start};
    ranks[r].now = end;
  };

  // (members, tag, n-th) -> ranks that wait there.
  using Meeting = std::tuple<std::vector<std::int32_t>, std::string, std::int64_t>;
  std::map<Meeting, std::vector<std::size_t>> waiting;
  std::vector<bool> waits(ranks.size(), false);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      Rank& rank = ranks[r];
      if (waits[r] || rank.next == rank.expansion.instances.size()) continue;
      moved = true;
      const auto& task = program::task_of(program, *rank.role, rank.expansion.instances[rank.next]);
      if (const auto* kernel = std::get_if<Kernel>(&task.body)) {
        const DeviceType& type = cluster.type_of(DeviceId{static_cast<std::int32_t>(r)});
        finish(r, rank.now, rank.now + disturbed(model_time_of(*kernel, type).total()));
        continue;
      }
      const auto* what = std::get_if<program::Communication>(&task.body);
      if (what == nullptr) {
        finish(r, rank.now, rank.now);
        continue;
      }
      auto members = program::members_of(program, what->group, static_cast<std::int32_t>(r));
      const Meeting meeting{members, program::tag_of(task), rank.before[program::tag_of(task)]++};
      auto& there = waiting[meeting];
      there.push_back(r);
      waits[r] = true;
      if (there.size() < members.size()) continue;
      comm::Participants group{.cluster = &cluster, .devices = {}};
      for (const std::int32_t member : members) group.devices.emplace_back(member);
      const CollectiveKind kind =
          what->kind == CollectiveKind::kReceive ? CollectiveKind::kSend : what->kind;
      const auto forecast = comm::predict(kind, what->bytes, group, communication);
      FORESHARD_CHECK(forecast);
      Seconds begin;
      for (const std::size_t member : there) begin = std::max(begin, ranks[member].now);
      const Seconds end = begin + disturbed(forecast->time);
      for (const std::size_t member : there) {
        waits[member] = false;
        finish(member, ranks[member].now, end);
      }
    }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    FORESHARD_CHECK(ranks[r].next == ranks[r].expansion.instances.size());
    result.ranks[r].steps.assign(10, ranks[r].now);
  }
  return result;
}

}  // namespace foreshard::test
