// Answers the questions of histories about a study's run on fewer or more nodes (study_plans.h),
// for run.cc. Each answer is a search or a planned move, made once and kept.
#include "sim/elastic/study_plans.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/text.h"

#include "sim/elastic/replan.h"
#include "strategies/parallelism/graphs.h"

namespace foreshard::elastic {
namespace {

// rank -> its replica
std::vector<std::int64_t> replica_of_ranks(const Strategy& strategy) {
  std::int64_t stride = 1;
  std::int64_t size = 1;
  for (const MeshAxis& axis : mesh_of(strategy)) {
    if (axis.name == "data") {
      size = axis.size;
      break;
    }
    stride *= axis.size;
  }
  std::vector<std::int64_t> replicas;
  for (std::int64_t rank = 0; rank < strategy.devices(); ++rank)
    replicas.push_back(rank / stride % size);
  return replicas;
}

bool tells_replicas(const Strategy& strategy) {
  return strategy.expert_parallel == 1 && strategy.shard_replicas == 1;
}

// Overrides for fewer replicas that share the batch: the last ones have less to do than the others.
std::vector<yaml::Override> with_replicas(const Strategy& strategy, std::int64_t replicas) {
  const std::int64_t round = replicas * strategy.micro_batch;
  const std::int64_t batch = (strategy.global_batch + round - 1) / round * round;
  return {{"strategy.data_parallel", std::to_string(replicas)},
          {"strategy.global_batch", std::to_string(batch)}};
}

// Whether the error only means that no strategy suits, which is an answer here.
bool is_answer(const Error& error) {
  return error.code == Error::Code::kInfeasible || error.code == Error::Code::kInvalidInput;
}

// The search's best. If the simulated candidates just miss fitting, more are simulated.
Result<std::optional<Running>> searched(const study::LoadedStudy& study,
                                        search::SearchOptions options) {
  constexpr std::int64_t kMostSimulated = 256;
  if (!options.space.offload) options.space.offload = false;  // moves to hosts are not modelled
  for (;; options.simulate *= 4) {
    const auto found = search::run_search(study, options);
    if (!found && !is_answer(found.error())) return found.error();
    if (!found || found->simulated.empty()) return std::optional<Running>();
    if (found->simulated.front().fits)
      return std::optional(internal::running_of(found->simulated.front()));
    if (found->slower == 0 || options.simulate > kMostSimulated) return std::optional<Running>();
  }
}

}  // namespace

StudyPlans::StudyPlans(StudyQuestion question, study::LoadedStudy study, study::StudyRun run)
    : question_(std::move(question)),
      study_(std::move(study)),
      run_(std::move(run)),
      checkpoint_(checkpoint_size(study_.model, study_.strategy)) {
  known_[{.nodes = nodes()}] = internal::running_of(study_, run_.prediction);
}

Result<std::unique_ptr<StudyPlans>> StudyPlans::make(StudyQuestion question) {
  FORESHARD_ASSIGN(auto study,
                   study::load_study(question.files, {.catalogue = question.catalogue,
                                                      .overrides = question.overrides}));
  if (study.graph)
    return Error{Error::Code::kUnsupported,
                 "elastic moves the parameters of transformers; give a study with a model, not a "
                 "graph"};
  if (study.strategy.mode == Mode::kForward)
    return Error{Error::Code::kUnsupported, "a step of mode: forward trains nothing"};
  if (!study.cluster.down.empty() || study.pool.named)
    return Error{Error::Code::kInvalidInput,
                 "elastic begins with a machine that works: leave out the cluster's `down` and the "
                 "study's `use`"};
  FORESHARD_ASSIGN(auto run, study::run_study(study, {.critical_path = false}));
  if (run.prediction.idle > 0)
    return Error{Error::Code::kInvalidInput,
                 fmt::format("{} devices of the study carry no rank: make its cluster smaller, and "
                             "give the nodes as `spares`",
                             run.prediction.idle)};
  if (!run.prediction.fits)
    return Error{Error::Code::kInfeasible,
                 fmt::format("{} does not fit {}: foreshard simulate tells what would",
                             describe(study.strategy), study.cluster.name)};
  auto plans = std::unique_ptr<StudyPlans>(
      new StudyPlans(std::move(question), std::move(study), std::move(run)));
  const Running& own = *plans->known_.begin()->second;
  const Side side{.strategy = own.strategy, .devices = own.devices};
  FORESHARD_ASSIGN(auto still, plan_move(plans->study_.model, side, side, {}, plans->run_.cluster));
  plans->held_ = std::move(still.plan.devices);
  return plans;
}

Result<Seconds> StudyPlans::copy_to_hosts() const {
  std::map<LinkId, Bytes> loads;
  Seconds longest;
  for (const conversion::DeviceTraffic& held : held_) {
    FORESHARD_ASSIGN(const Route route,
                     run_.cluster.host_route(DeviceId{held.device}, HostWay::kToHost));
    for (const RoutedLink& part : route.links) {
      Bytes& load = loads[part.link];
      load += static_cast<double>(held.after) * part.share * 1_B;
      longest = std::max(longest, load / run_.cluster.links()[part.link.index()].bandwidth);
    }
  }
  return longest;
}

Result<std::optional<Running>> StudyPlans::running_on(Arrangement arrangement) const {
  std::vector<yaml::Override> overrides = question_.overrides;
  study::StudyFiles files = question_.files;
  const bool same = arrangement.nodes == nodes();
  if (same) {
    const std::int64_t left = study_.strategy.data_parallel - arrangement.replicas_lost;
    if (left < 1) return std::optional<Running>();
    for (yaml::Override& each : with_replicas(study_.strategy, left))
      overrides.push_back(std::move(each));
  } else if (arrangement.nodes > nodes()) {
    if (!study_.cluster.groups.empty())
      return Error{Error::Code::kUnsupported,
                   "nodes that are added need a cluster of one kind of node (nodes, node)"};
    overrides.push_back({"cluster.nodes", std::to_string(arrangement.nodes)});
  } else {
    std::vector<std::string> down;
    for (std::int64_t node = arrangement.nodes; node < nodes(); ++node)
      down.push_back(fmt::format("node{}", node));
    overrides.push_back({"cluster.down", fmt::format("[{}]", join(down))});
  }
  files.sizes_matter = same;
  const auto study = study::load_study(
      files, {.catalogue = question_.catalogue, .overrides = std::move(overrides)});
  if (!study) {
    if (same && is_answer(study.error())) return std::optional<Running>();
    return study.error();
  }
  if (!same) {
    return searched(*study, question_.search);
  }
  const auto run = study::run_study(*study, {.critical_path = false});
  if (!run && !is_answer(run.error())) return run.error();
  if (!run || !run->prediction.fits) return std::optional<Running>();
  Running running = internal::running_of(*study, run->prediction);
  // The ranks of the remaining replicas stay where they are.
  const auto replicas = replica_of_ranks(study_.strategy);
  const auto& devices = known_.at({.nodes = nodes()})->devices;
  running.devices.clear();
  for (std::size_t rank = 0; rank < replicas.size(); ++rank)
    if (replicas[rank] < running.strategy.data_parallel) running.devices.push_back(devices[rank]);
  return std::optional(std::move(running));
}

// Node counts with few divisors may be slower than smaller ones.
Result<std::optional<Running>> StudyPlans::best_up_to(std::int64_t count) {
  constexpr std::int64_t kMostIdle = 2;
  std::optional<Running> best;
  for (std::int64_t used = count; used >= std::max<std::int64_t>(1, count - kMostIdle); --used) {
    auto known = searched_.find(used);
    if (known == searched_.end()) {
      std::optional<Running> found;
      if (used == nodes()) {
        found = known_.at({.nodes = used});
      } else {
        FORESHARD_ASSIGN(found, running_on({.nodes = used}));
      }
      known = searched_.emplace(used, std::move(found)).first;
    }
    const std::optional<Running>& running = known->second;
    if (!running || (best && running->step >= best->step)) continue;
    best = running;
    FORESHARD_ASSIGN(const ClusterView* where, view_of(count));
    best->idle += std::ranges::count_if(where->devices(), [&](const Device& device) {
      return device.node >= used && device.node < count;
    });
  }
  return best;
}

Result<std::optional<Seconds>> StudyPlans::step_of(Arrangement arrangement) {
  auto known = known_.find(arrangement);
  if (known == known_.end()) {
    std::optional<Running> running;
    if (arrangement.nodes == nodes()) {
      FORESHARD_ASSIGN(running, running_on(arrangement));
    } else {
      FORESHARD_ASSIGN(running, best_up_to(arrangement.nodes));
    }
    known = known_.emplace(arrangement, std::move(running)).first;
  }
  return known->second ? std::optional(known->second->step) : std::nullopt;
}

Result<const ClusterView*> StudyPlans::view_of(std::int64_t count) {
  if (count <= nodes()) return static_cast<const ClusterView*>(&run_.cluster);
  const auto known = views_.find(count);
  if (known != views_.end()) return static_cast<const ClusterView*>(&known->second);
  ClusterConfig config = study_.cluster;
  config.nodes = count;
  FORESHARD_ASSIGN(auto view, build_cluster(config, study_.loader, "cluster"));
  return static_cast<const ClusterView*>(&views_.emplace(count, std::move(view)).first->second);
}

std::vector<std::int32_t> StudyPlans::failed_devices(const Running& from, std::int64_t nodes,
                                                     const ClusterView& where) const {
  const auto node_of = [&](std::int32_t device) {
    return where.devices()[static_cast<std::size_t>(device)].node;
  };
  std::set<std::int32_t> used;
  for (const std::int32_t device : from.devices) used.insert(node_of(device));
  while (static_cast<std::int64_t>(used.size()) > nodes) used.erase(used.begin());
  std::vector<std::int32_t> failed;
  for (std::size_t device = 0; device < where.devices().size(); ++device)
    if (used.contains(where.devices()[device].node))
      failed.push_back(static_cast<std::int32_t>(device));
  return failed;
}

Result<StateTransfer> StudyPlans::reload(const Running& to, const ClusterView& where) const {
  const Side side{.strategy = to.strategy, .devices = to.devices};
  FORESHARD_ASSIGN(const auto move, plan_move(study_.model, side, side, {}, where));
  StateTransfer shift{.time = {}, .bytes = {}, .from_checkpoint = true};
  for (const auto& device : move.plan.devices)
    shift.bytes += static_cast<double>(device.after) * 1_B;
  shift.time = shift.bytes / question_.storage;
  return shift;
}

Result<StateTransfer> StudyPlans::find_shift(Arrangement from, Arrangement to, std::int64_t failed,
                                             Recovery recovery) {
  FORESHARD_TRY(step_of(from));
  FORESHARD_TRY(step_of(to));
  const Running& before = *known_.at(from);
  const Running& after = *known_.at(to);
  FORESHARD_ASSIGN(const ClusterView* where, view_of(std::max(from.nodes, to.nodes)));
  if (recovery == Recovery::kCheckpoint) return reload(after, *where);
  std::vector<std::int32_t> down;
  if (to.replicas_lost > from.replicas_lost) {
    const std::set<std::int32_t> left(after.devices.begin(), after.devices.end());
    for (const std::int32_t device : before.devices)
      if (!left.contains(device)) down.push_back(device);
  } else if (failed > 0) {
    down = failed_devices(before, failed, *where);
  }
  const Side source{.strategy = before.strategy, .devices = before.devices};
  const Side target{.strategy = after.strategy, .devices = after.devices};
  FORESHARD_ASSIGN(auto move, plan_move(study_.model, source, target, down, *where));
  if (!move.plan.lost.empty()) return reload(after, *where);
  FORESHARD_ASSIGN(const auto explained,
                   explain_move(std::move(move.plan), *where, study_.communication));
  return StateTransfer{.time = internal::time_of(explained),
                       .bytes = static_cast<double>(explained.conversion.bytes_moved) * 1_B,
                       .from_checkpoint = false};
}

Result<StateTransfer> StudyPlans::shift(Arrangement from, Arrangement to, std::int64_t failed,
                                        Recovery recovery) {
  const std::tuple key(from, to, failed, recovery);
  const auto known = shifts_.find(key);
  if (known != shifts_.end()) return known->second;
  FORESHARD_ASSIGN(const StateTransfer shift, find_shift(from, to, failed, recovery));
  return shifts_.emplace(key, shift).first->second;
}

Result<std::optional<std::int64_t>> StudyPlans::replicas_on(const std::vector<bool>& down) {
  if (!tells_replicas(study_.strategy)) return std::optional<std::int64_t>();
  const auto replicas = replica_of_ranks(study_.strategy);
  const auto& devices = known_.at({.nodes = nodes()})->devices;
  std::set<std::int64_t> lost;
  for (std::size_t rank = 0; rank < replicas.size(); ++rank) {
    const Device& device = run_.cluster.devices()[static_cast<std::size_t>(devices[rank])];
    if (down[static_cast<std::size_t>(device.node)]) lost.insert(replicas[rank]);
  }
  return std::optional(static_cast<std::int64_t>(lost.size()));
}

}  // namespace foreshard::elastic
