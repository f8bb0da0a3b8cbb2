// One operation at many sizes, for `foreshard topology` (cli/topology_collectives.cc).
#include "strategies/comm/sweep.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

#include "strategies/comm/choose.h"

namespace foreshard::comm {
namespace {

SweepForm seen(const FlatCollective& form, Bytes bytes, const ClusterView& cluster) {
  return {.algorithm = form.algorithm,
          .protocol = form.protocol,
          .channels = form.channels,
          .time = form.idle_time(bytes, cluster),
          .bottleneck = form.bottleneck(cluster)};
}

bool same(const SweepForm& a, const SweepForm& b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol;
}

}  // namespace

double bus_factor(CollectiveKind kind, std::int64_t members) {
  const auto n = static_cast<double>(members);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kTokenExchange:
      return (n - 1) / n;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
    case CollectiveKind::kExchange:
    case CollectiveKind::kShift:
    case CollectiveKind::kToHost:
    case CollectiveKind::kFromHost:
    case CollectiveKind::kOnHost:
      return 1;
  }
  FORESHARD_CHECK(false && "every collective kind has a bus factor");
  return 1;
}

std::vector<Bytes> sizes_between(Bytes first, Bytes last, double step) {
  FORESHARD_CHECK(first > 0_B && first <= last && step > 1);
  constexpr double kTolerance = 1 + 1e-9;  // includes the last size where rounding misses it
  std::vector<Bytes> sizes;
  for (Bytes size = first; size <= last * kTolerance; size = size * step) sizes.push_back(size);
  return sizes;
}

Result<std::vector<SweepRow>> sweep(CollectiveKind kind, const Participants& group,
                                    const Parameters& parameters, const std::vector<Bytes>& sizes,
                                    bool also_on_request) {
  FORESHARD_ASSIGN(const auto selector, AlgorithmSelector::of(kind, group, parameters));
  const ClusterView& cluster = *group.cluster;
  auto listed = selector.forms();
  if (also_on_request) {
    Parameters every = parameters;
    for (FormParameters& each : every.forms) each.on_request = false;
    FORESHARD_ASSIGN(listed, flat_forms(kind, group, every));
  }
  const auto members = static_cast<std::int64_t>(group.devices.size());
  std::optional<nccl::Communicator> communicator;
  if (parameters.nccl && members > 1) {
    FORESHARD_ASSIGN(communicator, nccl::communicator_of(group, **parameters.nccl));
  }
  std::vector<SweepRow> rows;
  for (const Bytes bytes : sizes) {
    FORESHARD_ASSIGN(const auto form, selector.choose(bytes));
    SweepRow row;
    row.bytes = bytes;
    row.taken = seen(form, bytes, cluster);
    if (row.taken.time > 0_s) {
      row.algorithm_rate = bytes / row.taken.time;
      row.bus_rate = bus_factor(kind, members) * row.algorithm_rate;
    }
    for (const FlatCollective& other : listed) row.all.push_back(seen(other, bytes, cluster));
    for (const FlatCollective& other : selector.forms()) {
      const SweepForm candidate = seen(other, bytes, cluster);
      const bool may_be_taken = bytes <= other.start.most_bytes || bytes > form.start.most_bytes;
      if (same(candidate, row.taken) || !may_be_taken) continue;
      if (!row.runner_up || candidate.time < row.runner_up->time) row.runner_up = candidate;
    }
    if (communicator) {
      const auto estimates = nccl::estimates(kind, bytes, *communicator, **parameters.nccl);
      if (!estimates.empty()) row.nccl = estimates.front();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foreshard::comm
