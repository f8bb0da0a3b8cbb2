/// \file
/// The prediction of a training step: the result that reports, searches and comparisons read.
/// `sim/report` writes it as text and as JSON (schema foreshard.prediction/1).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

#include "sim/compute/evidence.h"
#include "sim/disturbance/hit.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard::sim {

/// Where the time of one device goes. Each instant of the step counts once, under the first that
/// applies: computation, optimizer, communication that nothing hides (by purpose), the host (with
/// offloading to it), and else waiting for other stages. The parts sum to the step time.
struct Breakdown {
  Seconds compute;
  Seconds optimizer;
  Seconds tensor;  ///< Exposed communication, by program::Purpose.
  Seconds context;
  Seconds expert;
  Seconds pipeline;
  Seconds data;
  Seconds host;
  Seconds bubble;

  Seconds total() const {
    return compute + optimizer + tensor + context + expert + pipeline + data + host + bubble;
  }
};

struct MemoryUse {
  Bytes peak;
  Seconds peak_time;
  std::array<Bytes, 5> by_kind{};  ///< At the peak, indexed by program::MemoryKind.
};

/// Devices that do exactly the same at the same times: one of them was simulated.
struct DeviceClass {
  std::string role;                 ///< Of the Program, for example "stage 3".
  std::int32_t representative = 0;  ///< Lowest rank.
  std::int64_t count = 0;
  DeviceId device;  ///< Of the representative.
  Seconds finish;
  Breakdown breakdown;
  /// What its kernels took, by ParameterGroup; the optimizer's and communication are left out.
  std::array<Seconds, kParameterGroups> kernels{};
  MemoryUse memory;
};

/// One task on one class's time line.
struct TimelineEntry {
  std::int32_t device_class = 0;
  std::int32_t stream = 0;  ///< Index into Program::streams; negative: the host.
  std::int32_t block = 0;
  std::int32_t task = 0;
  std::int32_t layer = 0;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  Seconds start;
  Seconds finish;
};

/// A link of the critical path: the chain of tasks, each of which waited for the one before, that
/// ends with the step.
struct CriticalTask {
  std::int32_t device_class = 0;
  std::int32_t block = 0;
  std::int32_t task = 0;
  std::int32_t layer = 0;
  std::int32_t micro_batch = 0;
  Seconds start;
  Seconds finish;
};

/// What the critical path spent on one group of parameters of one device type.
struct CriticalUse {
  ParameterGroup group = ParameterGroup::kProducts;
  std::string device;  ///< Name of the type.
  yaml::Evidence evidence = yaml::Evidence::kUser;
  Seconds time;
  bool itself = false;  ///< These very kernels or collectives were measured.
};

/// Where the interval of a step comes from (sim/study/interval.h). Factors on the step time.
struct IntervalSource {
  std::string text{};  ///< For people.
  std::string framework{};
  std::int64_t measurements = 0;  ///< Of steps with that framework; 0: there are none.
  double low = 1;                 ///< By these alone.
  double high = 1;
  double widened_low = 1;  ///< By parameters that are less sure than theirs, alone.
  double widened_high = 1;
};

/// How a communication pattern was carried out.
struct CollectiveUse {
  std::string what;  ///< For example "all_reduce over tensor, 8 ranks".
  std::string algorithm;
  std::string protocol;
  Bytes bytes;                  ///< Of one operation.
  std::int64_t operations = 0;  ///< Per device of the class that makes most of them.
  Seconds idle_time;            ///< Of one operation on idle links.
};

/// A task of a class's devices.
struct TaskPlace {
  std::int32_t device_class = 0;
  std::int32_t block = 0;
  std::int32_t task = 0;
  std::int32_t layer = 0;
  std::int32_t micro_batch = 0;
};
/// A task that failed, because something that it used was dead for too long.
struct FailedTask {
  TaskPlace task;
  Seconds start;
  Seconds at;      ///< When it failed.
  std::string on;  ///< The link or device: "node0/nic0 -> leaf1".
};
/// Where the devices of a class stopped for good.
struct WaitingClass {
  TaskPlace task;       ///< The first that they did not finish.
  Seconds since;        ///< When the last one before it was done.
  TaskPlace waits_for;  ///< Itself, or what it waits for, directly or through others.
  bool failed = false;  ///< That one failed; else it stands still for ever.
};
/// Why a step never ended.
struct Interruption {
  Seconds at;                         ///< When the first task failed, or stood still for good.
  std::vector<FailedTask> failed;     ///< By time.
  std::vector<WaitingClass> waiting;  ///< By class.
  std::int64_t unfinished = 0;        ///< Tasks of representatives that were never done.
};

/// What disturbed a step, and what many such steps take.
struct DisturbanceSummary {
  std::uint64_t seed = 0;
  std::vector<disturbance::Hit> hits;
  std::vector<Seconds> steps;    ///< Of all runs, in the order of their seeds; one if there is one.
  std::int64_t interrupted = 0;  ///< Runs that never ended; their times are not in `steps`.
};

/// Who drew how much energy.
struct EnergyParts {
  Joules devices;
  Joules hosts;  ///< What nodes draw beside their devices.
  Joules network;
  Joules other;    ///< Storage, management.
  Joules cooling;  ///< What the site adds, by its PUE.

  Joules total() const { return devices + hosts + network + other + cooling; }
};

/// What a step takes in energy and money: of every device of the cluster, also of those that it
/// does not use.
struct Expense {
  std::optional<Joules> energy;  ///< With `pue`. Empty where the power of a device is not known.
  EnergyParts parts;             ///< Of `energy`, where that is known.
  /// Rent of the devices, or what is written off of their price. Empty where a price is not known.
  std::optional<Dollars> rent;
  bool owned = false;  ///< `rent` is what is written off.
  /// The bill for `energy`. Zero where nobody pays it apart, empty where the energy is not known.
  std::optional<Dollars> electricity = Dollars{};
  std::optional<Kilograms> carbon;  ///< CO2. Empty where the energy or its carbon is not known.
  double pue = 1;
  std::int64_t unused = 0;                      ///< Devices that the step does not use.
  std::vector<std::string> without_power;       ///< Names of the device types.
  std::vector<std::string> without_rent;        ///< Likewise.
  std::vector<std::string> without_host_power;  ///< Device types whose nodes count without hosts.

  /// All that is paid. Empty where a part of it is not known.
  std::optional<Dollars> usd() const {
    return rent && electricity ? std::optional(*rent + *electricity) : std::nullopt;
  }
};

/// How steps differ with the experts that their tokens choose: of drawn steps, those that only so
/// many are below.
struct ExpertLoadSpread {
  std::int64_t draws = 0;
  double mean_load = 1;  ///< Of the busiest rank, as a multiple of its even share.
  double high_load = 1;  ///< 95 of 100 are below.
  Seconds low;           ///< 5 of 100 steps are below.
  Seconds median;
  Seconds high;  ///< 95 of 100 are below.
};

/// A whole training: as many such steps as its length takes.
struct Training {
  std::string length;  ///< As the study says it: "2T tokens".
  double steps = 0;    ///< Whole ones.
};

struct Warning {
  std::string code;  ///< Stable, for example "memory".
  std::string message;
};

struct Prediction {
  std::string program;
  std::string cluster;
  std::int64_t devices = 0;  ///< That ranks run on; what is told per device is per one of these.
  std::int64_t idle = 0;     ///< That work, but carry no rank.
  std::int64_t down = 0;     ///< That do not work.
  Seconds step;
  Seconds low;  ///< Interval: 8 of 10 measurements are expected within; see interval_source.
  Seconds high;
  IntervalSource interval_source;
  double samples = 0;
  double tokens = 0;
  double model_tflops_per_device = 0;
  double mfu = 0;                    ///< Model FLOP/s over the peak of the program's dtype.
  Breakdown breakdown;               ///< Of the device that finishes last (ties: the lowest rank).
  std::vector<DeviceClass> classes;  ///< By lowest rank.
  std::int32_t worst_memory = 0;     ///< Index of the class with the least room.
  Bytes memory_capacity;             ///< Of that class's device.
  Bytes memory_reserve;              ///< Of each device's, what is not for tensors.
  bool fits = true;                  ///< Every class fits its device, the reserve left out.
  std::vector<CriticalTask> critical_path;
  std::vector<CriticalUse> critical_uses;  ///< Of that path, also where the path is not asked for.
  std::vector<CollectiveUse> collectives;
  Expense expense;
  std::optional<Training> training;
  std::optional<ExpertLoadSpread>
      routing;  ///< Where the load of experts is drawn; `step` is of its mean.
  std::string engine = "fluid";
  std::string granularity = "flat";
  std::string folding = "none";  ///< "structural", "refined" (fold.h), or every rank for itself.
  std::string folding_reason;    ///< Why not structural.
  std::int64_t tasks = 0;        ///< Instances simulated (of representatives).
  std::int64_t total_tasks = 0;  ///< Instances of all devices.
  std::int64_t events = 0;
  std::optional<DisturbanceSummary> disturbances;
  std::optional<Interruption>
      interruption;  ///< The step never ended; `step` is when all stood still.
  std::vector<Warning> warnings;
  /// Empty unless asked for; class by class, each in the order of its expansion (expand.h).
  std::vector<TimelineEntry> timeline;
  std::vector<std::int32_t> class_of_rank;  ///< Index into `classes`; empty unless as above.
};

}  // namespace foreshard::sim
