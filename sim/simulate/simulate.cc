// Runs a Program on a cluster (simulate.h). Studies reach it through sim/study/run.cc, searches
// through their simulations. A step that does not fit into memory is simulated all the same:
// Prediction::fits says so.
#include "sim/simulate/simulate.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/caller.h"
#include "base/check.h"
#include "base/index.h"

#include "sim/compute/measured.h"
#include "sim/simulate/analyse.h"
#include "sim/simulate/build.h"
#include "sim/simulate/communicators.h"
#include "sim/simulate/disturb.h"
#include "sim/simulate/fold.h"
#include "sim/simulate/forms.h"
#include "sim/simulate/internal/messages.h"
#include "sim/simulate/memory_limit.h"
#include "sim/simulate/prediction.h"
#include "strategies/program/ir/group.h"

namespace foreshard::sim {
namespace {

// The kind of activity that has a shape.
enum class ShapeUse : std::uint8_t { kNoCommunication, kCommunication, kMeeting };

std::vector<ShapeUse> use_of_shapes(const Folding& folding, const BuiltWorkload& built) {
  std::vector<ShapeUse> what(built.workload.shapes().size(), ShapeUse::kNoCommunication);
  for (const auto& [key, shape] : built.resources.communication_shape) {
    const auto communicator = static_cast<std::size_t>(
        folding.communicator_representative[static_cast<std::size_t>(key.first)]);
    what[shape.first.index()] =
        folding.meets_alone[communicator] ? ShapeUse::kMeeting : ShapeUse::kCommunication;
  }
  return what;
}

struct TimeSpan {
  Seconds start;
  Seconds finish;
};

// Meetings: communications of all ranks, for example for the norm of the gradients. Nearly always
// every rank waits for one before it continues, so a meeting has the network to itself. Its rate
// is then the rate on idle links, whichever links it uses, and folding (fold.h) can ignore
// meetings: a tree over all ranks loads each rank's links differently, and would separate ranks
// that do the same throughout the step.
//
// **Why it is exact.** Whether a meeting is alone is not known before the run, so it is assumed,
// and checked on the timeline. Suppose that it was alone whenever it ran. Then at each instant the
// rates were max-min rates with its links included: while it ran nobody else used these links, and
// at other times it did not use them. Max-min rates are unique, so this is also the timeline with
// its links.

// communicator -> whether it is a meeting: it has all ranks of the Program and is no communication
// with the host, which other ones run alongside.
std::vector<bool> meetings_of(const program::Program& program, const Communicators& communicators) {
  std::vector<bool> meeting;
  meeting.reserve(communicators.all.size());
  for (const Communicator& one : communicators.all)
    meeting.push_back(std::ssize(one.ranks) == program.ranks() && !program::is_with_host(one.kind));
  return meeting;
}

// Whether each operation of `folding.meets_alone` ran while no other communication ran.
// Cost: O(activities).
bool met_alone(const Folding& folding, const BuiltWorkload& built, const engine::Timeline& times) {
  if (folding.meets_alone.empty()) return true;
  const std::vector<ShapeUse> what = use_of_shapes(folding, built);
  const auto activities = built.workload.activities();
  const auto visit = [&](ShapeUse wanted, auto&& one) {
    for (std::size_t a = 0; a < activities.size(); ++a)
      if (what[activities[a].shape.index()] == wanted)
        one(TimeSpan{times.start[a], times.finish[a]});
  };
  std::vector<TimeSpan> meetings;
  visit(ShapeUse::kMeeting, [&](const TimeSpan& one) { meetings.push_back(one); });
  std::ranges::sort(meetings, {}, &TimeSpan::start);
  for (std::size_t i = 1; i < meetings.size(); ++i)
    if (meetings[i].start < meetings[i - 1].finish) return false;
  bool alone = true;
  visit(ShapeUse::kCommunication, [&](const TimeSpan& one) {
    const auto next = std::ranges::upper_bound(meetings, one.start, {}, &TimeSpan::finish);
    alone &= next == meetings.end() || next->start >= one.finish;
  });
  return alone;
}

// The time that the critical path of a step spent on each group of parameters, and the evidence of
// these parameters.

using yaml::Evidence;

using Key = std::tuple<ParameterGroup, std::string, Evidence, bool>;

// Evidence of the links that a communicator's messages cross, for devices with this name.
Evidence of_links(const std::map<std::string, LinkEvidence>& links, const std::string& device,
                  const Communicator& group, const program::Program& program,
                  const ClusterView& cluster) {
  const auto known = links.find(device);
  if (known == links.end()) return Evidence::kMeasured;
  const auto node_of = [&](std::int32_t rank) {
    return cluster.devices()[device_of(program, rank).index()].node;
  };
  const std::int32_t first = node_of(group.ranks.front());
  const bool inside =
      std::ranges::all_of(group.ranks, [&](std::int32_t rank) { return node_of(rank) == first; });
  return inside ? known->second.inside : std::max(known->second.inside, known->second.network);
}

// Evidence of the times of a form among devices of this type. Measured devices, by name, have the
// form's evidence; other devices of the same generation have kTransferred. An algorithm that the
// library's file does not list is kUser.
Evidence evidence_of(const comm::Parameters& communication, std::string_view algorithm,
                     std::string_view protocol, const DeviceType& device) {
  const std::string generation = generation_of(device);
  for (const comm::FormParameters& form : communication.forms) {
    if (form.algorithm != algorithm || comm::name_of(form.protocol) != protocol) continue;
    if (form.architectures.empty() ||
        std::ranges::find(form.architectures, generation) != form.architectures.end()) {
      FitRecord fit;
      fit.evidence = form.evidence;
      return foreshard::evidence_of(device, fit);
    }
  }
  return Evidence::kUser;
}

// By group, device type and evidence, longest first. The host's launches and waiting are left out:
// there are no separate measurements of their errors. The evidence of communication is the weaker
// of its algorithm's parameters and, by `links`, of the links that it crosses.
std::vector<CriticalUse> critical_uses(const program::Program& program, const ClusterView& cluster,
                                       const comm::Parameters& communication,
                                       const Communicators& communicators,
                                       const CommunicatorForms& forms, const Folding& folding,
                                       const std::vector<DeviceClass>& classes,
                                       const std::vector<CriticalTask>& path,
                                       const std::map<std::string, LinkEvidence>& links) {
  // The same task of a class recurs for each layer and micro-batch.
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Seconds> times;
  for (const CriticalTask& one : path)
    times[{one.device_class, one.block, one.task}] += one.finish - one.start;
  std::map<Key, Seconds> sums;
  std::map<std::string, MeasuredKernels> measured;  // by name of the device type
  for (const auto& [place, time] : times) {
    const auto c = static_cast<std::size_t>(std::get<0>(place));
    const auto b = static_cast<std::size_t>(std::get<1>(place));
    const auto t = static_cast<std::size_t>(std::get<2>(place));
    const DeviceType& type = cluster.type_of(classes[c].device);
    const auto& body = program.blocks[b].tasks[t].body;
    if (const auto* kernel = std::get_if<Kernel>(&body)) {
      const bool itself = lists_measured(type) &&
                          measured.try_emplace(type.name, type).first->second.holds(*kernel);
      const Evidence evidence =
          itself ? Evidence::kMeasured : foreshard::evidence_of(*kernel, type);
      sums[{group_of(*kernel), type.name, evidence, itself}] += time;
    } else if (const auto* what = std::get_if<program::Communication>(&body)) {
      const auto endpoint = static_cast<std::size_t>(communicators.endpoint_of_task[b][t]);
      const auto communicator = static_cast<std::size_t>(
          communicators
              .of_rank[endpoint][static_cast<std::size_t>(folding.rank_representative[c])]);
      const comm::FlatCollective& form = forms.at(communicator, what->bytes);
      if (form.measured) {
        sums[{ParameterGroup::kCommunication, type.name, Evidence::kMeasured, true}] += time;
        continue;
      }
      const Evidence of_form = evidence_of(communication, form.algorithm, form.protocol, type);
      const Evidence weakest = std::max(
          of_form, of_links(links, type.name, communicators.all[communicator], program, cluster));
      sums[{ParameterGroup::kCommunication, type.name, weakest, false}] += time;
    }
  }
  std::vector<CriticalUse> uses;
  uses.reserve(sums.size());
  for (const auto& [key, time] : sums)
    uses.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), time, std::get<3>(key)});
  std::ranges::stable_sort(uses, std::greater{}, &CriticalUse::time);
  return uses;
}

using program::Program;

std::string describe(const Program& program, const program::Communication& what,
                     std::size_t ranks) {
  if (what.kind == program::CollectiveKind::kSend ||
      what.kind == program::CollectiveKind::kReceive) {
    return fmt::format(
        "transfer between {} stages",
        program.mesh[static_cast<std::size_t>(std::get<program::AxisPeer>(what.group).axis)].name);
  }
  if (program::is_with_host(what.kind))
    return fmt::format("{}, each rank", comm::name_of(what.kind));
  std::string axes;
  if (const auto* group = std::get_if<program::AxisGroup>(&what.group)) {
    for (const std::int32_t axis : group->axes)
      axes += (axes.empty() ? "" : " x ") + program.mesh[static_cast<std::size_t>(axis)].name;
  } else {
    axes = "listed groups";
  }
  return fmt::format("{} over {}, {} ranks", comm::name_of(what.kind), axes, ranks);
}

std::vector<CollectiveUse> collectives_of(const Program& program,
                                          const Communicators& communicators,
                                          const CommunicatorForms& forms, const Folding& folding,
                                          const BuiltWorkload& built) {
  // (what, bytes) -> use. Operations are counted in the class with the most of them.
  std::map<std::pair<std::string, double>, CollectiveUse> uses;
  for (std::size_t c = 0; c < built.expansions.size(); ++c) {
    const program::Role& role = program.roles[static_cast<std::size_t>(built.role_of_class[c])];
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> count;  // (block, task)
    for (const program::Call& call : role.calls) {
      const auto& tasks = program.blocks[call.block.index()].tasks;
      for (std::size_t t = 0; t < tasks.size(); ++t) {
        if (std::holds_alternative<program::Communication>(tasks[t].body))
          count[{call.block.value(), static_cast<std::int32_t>(t)}] += call.repeat;
      }
    }
    std::map<std::pair<std::string, double>, std::int64_t> operations;
    for (const auto& [where, times] : count) {
      const auto b = static_cast<std::size_t>(where.first);
      const auto t = static_cast<std::size_t>(where.second);
      const auto& what = std::get<program::Communication>(program.blocks[b].tasks[t].body);
      if (what.kind == program::CollectiveKind::kReceive) continue;  // the send is counted
      const auto endpoint = static_cast<std::size_t>(communicators.endpoint_of_task[b][t]);
      const auto communicator = static_cast<std::size_t>(
          communicators
              .of_rank[endpoint][static_cast<std::size_t>(folding.rank_representative[c])]);
      const comm::FlatCollective& form = forms.at(communicator, what.bytes);
      const auto key =
          std::pair(describe(program, what, communicators.all[communicator].ranks.size()),
                    what.bytes.in_base());
      operations[key] += times;
      CollectiveUse& use = uses[key];
      const Seconds idle = forms.idle(communicator, what.bytes).time;
      if (use.what.empty() || idle > use.idle_time) {
        use = {.what = key.first,
               .algorithm = std::string(form.algorithm),
               .protocol = std::string(form.protocol),
               .bytes = what.bytes,
               .operations = use.operations,
               .idle_time = idle};
      }
    }
    for (const auto& [key, times] : operations)
      uses[key].operations = std::max(uses[key].operations, times);
  }
  std::vector<CollectiveUse> list;
  list.reserve(uses.size());
  for (auto& [key, use] : uses) list.push_back(std::move(use));
  std::ranges::stable_sort(list, std::greater{}, [](const CollectiveUse& use) {
    return use.idle_time * static_cast<double>(use.operations);
  });
  return list;
}

Status misfit(const ClusterView& cluster, const Program& program) {
  const auto devices = static_cast<std::int64_t>(cluster.devices().size());
  if (program.device_of_rank.empty() && program.ranks() > devices) {
    return Error{Error::Code::kInvalidInput,
                 fmt::format("the program has {} ranks, cluster '{}' only {} devices",
                             program.ranks(), cluster.name(), devices)};
  }
  for (const std::int32_t device : program.device_of_rank) {
    if (device >= devices) {
      return Error{Error::Code::kInvalidInput,
                   fmt::format("the program puts a rank on device {}, cluster '{}' has only {}",
                               device, cluster.name(), devices)};
    }
  }
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank) {
    const Device& device = cluster.devices()[device_of(program, rank).index()];
    if (device.up) continue;
    return Error{Error::Code::kInvalidInput,
                 fmt::format("rank {} runs on {}, which is down in cluster '{}' (name others in "
                             "its device_of_rank)",
                             rank, cluster.vertices()[device.vertex.index()].name, cluster.name())};
  }
  return {};
}

void add_throughput(const ClusterView& cluster, const Program& program, Prediction& prediction) {
  prediction.samples = program.totals.samples;
  prediction.tokens = program.totals.tokens;
  FlopsPerSecond peak;
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank) {
    const DeviceType& type = cluster.type_of(device_of(program, rank));
    peak += peak_of(type, program.totals.peak_dtype);
  }
  if (!(prediction.step > 0_s)) return;
  const FlopsPerSecond achieved = program.totals.model_flops / prediction.step;
  prediction.model_tflops_per_device = achieved / 1_TFLOP_s / static_cast<double>(program.ranks());
  if (peak > FlopsPerSecond{}) prediction.mfu = achieved / peak;
}

std::string name_of(FoldMethod method) {
  switch (method) {
    case FoldMethod::kNone:
      return "none";
    case FoldMethod::kStructural:
      return "structural";
    case FoldMethod::kRefined:
      return "refined";
  }
  FORESHARD_CHECK(false && "every method has a name");
  return {};
}

std::string reason_of(const Folding& folding, const SimulateOptions& options) {
  if (options.fold && options.granularity == Granularity::kStepwise)
    return "messages of stepwise collectives are simulated for every rank";
  return folding.reason;
}

// Assumes that meetings have the network to themselves (met_alone) if that leaves fewer classes.
// \pre The plan is about speeds of devices only.
Folding fold_meetings(const ClusterView& cluster, const Program& program,
                      const Communicators& communicators, const CommunicatorForms& forms,
                      const disturbance::Plan& plan) {
  const auto folded = [&](const FoldLimits& limits) {
    return fold_disturbed(cluster, program, communicators, forms, true, plan, {}, limits);
  };
  const std::vector<bool> meetings = meetings_of(program, communicators);
  if (std::ranges::find(meetings, true) == meetings.end()) return folded({});
  Folding all_links = folded({.meets_alone = {}, .most_classes = program.roles.size()});
  if (all_links.stable) return all_links;
  Folding fewer = folded({.meets_alone = meetings});
  all_links = folded({.meets_alone = {}, .most_classes = fewer.rank_representative.size()});
  return all_links.stable ? std::move(all_links) : std::move(fewer);
}

// A step that is ready to run.
struct Prepared {
  Communicators communicators;
  CommunicatorForms forms;
  Folding folding;
  BuiltWorkload built;
};

Result<Prepared> prepared(const ClusterView& cluster, const Program& program,
                          const comm::Parameters& communication, const SimulateOptions& options,
                          bool meetings_alone) {
  static const disturbance::Plan undisturbed{};
  const disturbance::Plan& plan =
      options.disturbances == nullptr ? undisturbed : *options.disturbances;
  FORESHARD_TRY(obstacle_to(plan, options));
  Communicators communicators = communicators_of(program);
  FORESHARD_ASSIGN(auto forms, choose_forms(cluster, program, communicators, communication));
  FORESHARD_ASSIGN(const auto routes,
                   routes_over_time(cluster, program, communicators, forms, communication, plan));
  // Messages of a stepwise collective have no classes of their own: every rank is simulated.
  const bool folds = options.fold && options.granularity == Granularity::kFlat;
  Folding folding =
      folds && meetings_alone && plan.only_slow()
          ? fold_meetings(cluster, program, communicators, forms, plan)
          : fold_disturbed(cluster, program, communicators, forms, folds, plan, routes);
  FORESHARD_TRY(check_memory(cluster, program, communicators, folding, options));
  FORESHARD_ASSIGN(auto built,
                   build_disturbed(cluster, program, communicators, forms, folding,
                                   options.granularity, options.coalesce, plan, routes));
  return Prepared{std::move(communicators), std::move(forms), std::move(folding), std::move(built)};
}

Result<engine::Timeline> run(const engine::Workload& workload, const SimulateOptions& options) {
  if (options.engine == EngineKind::kFluid) return engine::run_fluid(workload);
  FORESHARD_TRY(may_fork("the engine simgrid"));
  auto times = engine::run_simgrid(workload);
  if (times || times.error().code != Error::Code::kUnsupported || !workload.events().empty())
    return times;
  // Flat collectives have weights and hold SMs, and stepwise messages may use several paths at a
  // time: SimGrid supports neither.
  Error fault = times.error();
  fault.message = options.granularity == Granularity::kFlat
                      ? "SimGrid cannot simulate a collective as one activity (flat), which "
                        "takes links in unequal parts and processors beside them; messages "
                        "one by one it can: give --granularity stepwise, or leave out "
                        "--granularity"
                      : fault.message +
                            "; messages that take one path each it can: --set "
                            "cluster.routing=ecmp-hash";
  return fault;
}

// A step after its run.
struct FinishedStep {
  Prepared ready;
  engine::Timeline times;
};

Result<FinishedStep> done(const ClusterView& cluster, const Program& program,
                          const comm::Parameters& communication, const SimulateOptions& options,
                          bool meetings_alone = true) {
  FORESHARD_ASSIGN(Prepared ready,
                   prepared(cluster, program, communication, options, meetings_alone));
  FORESHARD_ASSIGN(auto times, run(ready.built.workload, options));
  if (!met_alone(ready.folding, ready.built, times))
    return done(cluster, program, communication, options, false);
  return FinishedStep{std::move(ready), std::move(times)};
}

// What was run: the program, the cluster, and the method.
Prediction described(const ClusterView& cluster, const Program& program, const Folding& folding,
                     const SimulateOptions& options) {
  Prediction prediction;
  prediction.program = program.name;
  prediction.cluster = cluster.name();
  prediction.devices = program.ranks();
  prediction.down = std::ranges::count(cluster.devices(), false, &Device::up);
  prediction.idle = std::ssize(cluster.devices()) - prediction.down - prediction.devices;
  prediction.engine = options.engine == EngineKind::kFluid ? "fluid" : "simgrid";
  prediction.granularity = options.granularity == Granularity::kFlat ? "flat" : "stepwise";
  prediction.folding = name_of(folding.method);
  prediction.folding_reason = reason_of(folding, options);
  prediction.memory_reserve = options.reserve;
  return prediction;
}

// Samples of a class's curve of memory, fewer where there are many classes.
std::size_t curve_samples(const SimulateOptions& options, std::size_t classes) {
  if (!options.timeline) return 0;
  constexpr std::size_t kMost = 512;  // about the columns of a chart
  constexpr std::size_t kFewest = 16;
  return std::clamp(64 * kMost / std::max<std::size_t>(classes, 1), kFewest, kMost);
}

// Adds the classes of devices. The breakdown is taken from the class that ends last, the memory
// from the class with the least room.
void add_classes(const ClusterView& cluster, const Program& program, const Prepared& ready,
                 const engine::Timeline& times, const engine::Timeline& shown,
                 const SimulateOptions& options, Prediction& prediction) {
  const program::Expander expander(program);
  const BuiltWorkload& built = ready.built;
  double least_room = std::numeric_limits<double>::infinity();
  std::vector<Seconds> finish(ready.folding.rank_representative.size());
  for (std::size_t c = 0; c < finish.size(); ++c) finish[c] = finish_of(built, shown, c);
  const auto last = static_cast<std::size_t>(std::ranges::max_element(finish) - finish.begin());
  std::optional<ClassTimes> cut;  // timeline cut off at the end, for a step that never ended
  for (std::size_t c = 0; c < finish.size(); ++c) {
    const std::int32_t rank = ready.folding.rank_representative[c];
    const auto& role = program.roles[at(built.role_of_class[c])];
    end_if_asked();
    const ClassTimes own(built, times, c);
    DeviceClass of{.role = role.name,
                   .representative = rank,
                   .count = ready.folding.rank_count[c],
                   .device = device_of(program, rank),
                   .finish = finish[c],
                   .breakdown = {},
                   .kernels = {},
                   .memory = memory_of(program, expander, built, own, c,
                                       curve_samples(options, finish.size()))};
    const ClassTimes& own_shown = &shown == &times ? own : cut.emplace(built, shown, c);
    if (options.every_class) of.kernels = kernel_times_of(program, built, own_shown, c);
    if (options.every_class || c == last)
      of.breakdown = breakdown_of(program, built, shown, own_shown, c, prediction.step);
    if (c == last) prediction.breakdown = of.breakdown;
    const std::int64_t instances = std::ssize(built.expansions[c]->instances);
    prediction.tasks += instances;
    prediction.total_tasks += instances * of.count;
    const Bytes capacity = cluster.type_of(of.device).memory.value;
    const double room = (capacity - prediction.memory_reserve - of.memory.peak).in_base();
    if (room < least_room) {
      least_room = room;
      prediction.worst_memory = static_cast<std::int32_t>(c);
      prediction.memory_capacity = capacity;
    }
    prediction.classes.push_back(std::move(of));
  }
  prediction.fits = least_room >= 0;
}

}  // namespace

Result<Prediction> simulate(const ClusterView& cluster, const Program& program,
                            const comm::Parameters& communication, const SimulateOptions& options) {
  FORESHARD_TRY(misfit(cluster, program));
  FORESHARD_ASSIGN(const FinishedStep step, done(cluster, program, communication, options));
  const auto& [ready, times] = step;
  const auto& [communicators, forms, folding, built] = ready;
  // A step that never ended is shown up to the instant after which nothing happened.
  const engine::Timeline until_then = times.complete ? engine::Timeline{} : cut_off(times);
  const engine::Timeline& shown = times.complete ? times : until_then;

  Prediction prediction = described(cluster, program, folding, options);
  prediction.step = prediction.low = prediction.high = times.makespan;
  prediction.events = times.events;
  add_classes(cluster, program, ready, times, shown, options, prediction);
  if (times.complete) {
    add_throughput(cluster, program, prediction);
    auto path = critical_path_of(program, built, times);
    prediction.critical_uses = critical_uses(program, cluster, communication, communicators, forms,
                                             folding, prediction.classes, path, options.links);
    if (options.critical_path) prediction.critical_path = std::move(path);
  } else {
    prediction.interruption = interruption_of(program, built, times);
  }
  prediction.collectives = collectives_of(program, communicators, forms, folding, built);
  if (options.timeline) {
    prediction.timeline = timeline_of(program, built, shown);
    prediction.class_of_rank = folding.class_of_rank;
    prediction.link_groups =
        link_groups_of(cluster, program, communicators, forms, folding, built, times);
    prediction.forms = forms_of(program, communicators, forms, folding, built);
    prediction.executed_flops = executed_flops(program, folding, built, times);
  }
  FORESHARD_ASSIGN(prediction.warnings,
                   internal::granularity_warnings(cluster, program, communicators, forms, options));
  return prediction;
}

}  // namespace foreshard::sim
