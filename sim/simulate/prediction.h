/// \file
/// The prediction of a training step: the result that reports, searches and comparisons read.
/// `sim/report` writes it as text and as JSON (schema foreshard.prediction/1).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

#include "sim/compute/evidence.h"
#include "sim/disturbance/plan.h"
#include "sim/memory/timeline.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard::sim {

/// Where the time of one device goes. Each instant of the step counts once, under the first part
/// that applies: computation, optimizer, exposed communication (by purpose), the host (with
/// offloading to it), otherwise waiting for other stages. The parts sum to the step time.
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
  std::array<Bytes, 5> by_kind{};  ///< Bytes at the peak, indexed by program::MemoryKind.
  /// Live bytes over the step, with the peak; empty unless the timeline was requested.
  std::vector<memory::Sample> curve{};
};

/// A class of devices that do exactly the same at the same times; one of them was simulated.
struct DeviceClass {
  std::string role;                 ///< Role in the Program, for example "stage 3".
  std::int32_t representative = 0;  ///< Lowest rank.
  std::int64_t count = 0;
  DeviceId device;  ///< Device of the representative.
  Seconds finish;
  Breakdown breakdown;
  /// Time of its kernels, by ParameterGroup, without the optimizer's kernels and communication.
  std::array<Seconds, kParameterGroups> kernels{};
  MemoryUse memory;
};

/// One task on one class's timeline.
struct TimelineEntry {
  std::int32_t device_class = 0;
  std::int32_t stream = 0;  ///< Index into Program::streams; negative: the host.
  std::int32_t block = 0;
  std::int32_t task = 0;
  std::int32_t layer = 0;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  /// Number of the communication: the same for the tasks of all classes that take part. Empty: the
  /// task is none.
  std::optional<std::int32_t> operation{};
  Seconds start;
  Seconds finish;
};

/// One task of the critical path. The path is the chain of tasks, each of which waited for the
/// previous one, that ends with the step.
struct CriticalTask {
  std::int32_t device_class = 0;
  std::int32_t block = 0;
  std::int32_t task = 0;
  std::int32_t layer = 0;
  std::int32_t micro_batch = 0;
  Seconds start;
  Seconds finish;
};

/// Time that the critical path spent on one group of parameters of one device type.
struct CriticalUse {
  ParameterGroup group = ParameterGroup::kProducts;
  std::string device;  ///< Name of the device type.
  yaml::Evidence evidence = yaml::Evidence::kUser;
  Seconds time;
  bool itself = false;  ///< Whether exactly these kernels or collectives were measured.
};

/// The sources of a step's interval (sim/study/interval.h). Numbers are factors on the step time.
struct IntervalSource {
  std::string text{};  ///< Text for people.
  std::string framework{};
  std::int64_t measurements = 0;  ///< Number of measured steps of its kind; 0: none.
  double low = 1;                 ///< Interval from measured steps alone.
  double high = 1;
  /// Widening alone, by parameters that are less certain than those of the measured steps.
  double widened_low = 1;
  double widened_high = 1;
  /// Properties whose value no measured step of its framework has: "device", "model".
  std::vector<std::string> unlike{};
  std::string narrowed_by{};  ///< What would narrow it most, for people; empty: nothing much.
};

/// What crosses like links in a step: links of one bandwidth, in one direction, between vertices
/// whose names differ in numbers alone.
struct LinkGroupUse {
  std::string what;        ///< Name of one link with its numbers left out: "node*/nic* -> leaf*".
  std::int64_t links = 0;  ///< Links of the cluster, used or not.
  BytesPerSecond bandwidth;
  Bytes most{};  ///< Bytes over the busiest of them.
  Bytes mean{};  ///< Mean over all of them.
  /// Mean use of all of them in equal parts of the step, as a part of the bandwidth. An operation
  /// sends evenly while it lasts. Not modelled: changes of its rate; sums can thus exceed 1.
  std::vector<double> use_over_time{};
};

/// How a communication pattern was carried out.
struct CollectiveUse {
  std::string what;  ///< Description: "all_reduce over tensor, 8 ranks".
  std::string algorithm;
  std::string protocol;
  Bytes bytes;                  ///< Bytes of one operation.
  std::int64_t operations = 0;  ///< Number per device, in the class with the most of them.
  Seconds idle_time;            ///< Time of one operation on idle links.
};

/// How a class of devices carries out a communication of a block.
struct ChosenForm {
  std::string_view algorithm;  ///< As in CollectiveUse; static storage.
  std::string_view protocol;
};
/// The class, the block, and the task in it.
using CommunicationKey = std::array<std::int32_t, 3>;

/// A task of a class's devices.
struct TaskPlace {
  std::int32_t device_class = 0;
  std::int32_t block = 0;
  std::int32_t task = 0;
  std::int32_t layer = 0;
  std::int32_t micro_batch = 0;
};
/// A task that failed because something that it used was dead for too long.
struct FailedTask {
  TaskPlace task;
  Seconds start;
  Seconds at;      ///< Time of the failure.
  std::string on;  ///< The link or device: "node0/nic0 -> leaf1".
};
/// The place where the devices of a class stopped for good.
struct WaitingClass {
  TaskPlace task;       ///< The first task that they did not finish.
  Seconds since;        ///< Time at which the previous task was done.
  TaskPlace waits_for;  ///< The task that `task` waits for, directly or not, or `task` itself.
  bool failed = false;  ///< Whether `waits_for` failed; otherwise it stands still for ever.
};
/// Why a step never ended.
struct Interruption {
  Seconds at;  ///< Time at which the first task failed, or stood still for good.
  std::vector<FailedTask> failed;     ///< Sorted by time.
  std::vector<WaitingClass> waiting;  ///< Sorted by class.
  std::int64_t unfinished = 0;        ///< Number of tasks of representatives that were never done.
};

/// The disturbances of a step, and the times of several such steps.
struct DisturbanceSummary {
  std::uint64_t seed = 0;
  std::vector<disturbance::Hit> hits;
  std::vector<Seconds> steps;  ///< Steps of all runs that ended, in the order of their seeds.
  /// Number of runs that never ended; their times are not in `steps`.
  std::int64_t interrupted = 0;
};

/// Energy by consumer.
struct EnergyParts {
  Joules devices;
  Joules hosts;  ///< Energy of nodes outside their devices.
  Joules network;
  Joules other;    ///< Storage, management.
  Joules cooling;  ///< Overhead of the site, by its PUE.

  Joules total() const { return devices + hosts + network + other + cooling; }
};

/// Energy and money of one step, for all devices of the cluster, including those that the step does
/// not use.
struct Expense {
  std::optional<Joules> energy;  ///< Energy with `pue`; empty if the power of a device is unknown.
  EnergyParts parts;             ///< Parts of `energy`, if it is known.
  /// Rent of the devices, or depreciation of their price. Empty if a price is unknown.
  std::optional<Dollars> rent;
  bool owned = false;  ///< Whether `rent` is depreciation.
  /// The bill for `energy`. Zero if it is not paid separately, empty if the energy is unknown.
  std::optional<Dollars> electricity = Dollars{};
  std::optional<Kilograms> carbon;  ///< CO2; empty if the energy or its carbon is unknown.
  double pue = 1;
  std::int64_t unused = 0;                 ///< Number of devices that the step does not use.
  std::vector<std::string> without_power;  ///< Names of the device types.
  std::vector<std::string> without_rent;   ///< Names of the device types.
  /// Device types whose nodes count without their hosts.
  std::vector<std::string> without_host_power;

  /// Sum of all costs; empty if a part of it is unknown.
  std::optional<Dollars> usd() const {
    return rent && electricity ? std::optional(*rent + *electricity) : std::nullopt;
  }
};

/// How the step time varies with the experts that tokens choose, as percentiles over drawn loads.
struct ExpertLoadSpread {
  std::int64_t draws = 0;
  double mean_load = 1;  ///< Mean load of the busiest rank, as a multiple of its even share.
  double high_load = 1;  ///< 95th percentile of that load.
  Seconds low;           ///< 5th percentile.
  Seconds median;
  Seconds high;  ///< 95th percentile.
};

/// A whole training: the number of such steps for its length.
struct Training {
  std::string length;  ///< Text from the study: "2T tokens".
  double steps = 0;    ///< Whole number.
};

struct Warning {
  std::string code;  ///< Stable, for example "memory".
  std::string message;
};

struct Prediction {
  std::string program;
  std::string cluster;
  std::int64_t devices = 0;  ///< Devices with ranks; every figure per device counts these.
  std::int64_t idle = 0;     ///< Working devices without a rank.
  std::int64_t down = 0;     ///< Devices that are down.
  Seconds step;
  Seconds low;  ///< Interval in which 8 of 10 measurements are expected; see interval_source.
  Seconds high;
  IntervalSource interval_source;
  double samples = 0;
  double tokens = 0;
  double model_tflops_per_device = 0;
  double mfu = 0;       ///< Model FLOP/s over the peak of the program's dtype.
  Breakdown breakdown;  ///< Breakdown of the device that finishes last (ties: the lowest rank).
  std::vector<DeviceClass> classes;  ///< Sorted by lowest rank.
  std::int32_t worst_memory = 0;     ///< Index of the class with the least room.
  Bytes memory_capacity;             ///< Memory of that class's device.
  Bytes memory_reserve;              ///< Part of each device's memory that is not for tensors.
  bool fits = true;  ///< Whether every class fits in its device's memory minus the reserve.
  std::vector<CriticalTask> critical_path;
  /// Use by that path; present even if the path was not requested.
  std::vector<CriticalUse> critical_uses;
  std::vector<CollectiveUse> collectives;
  Expense expense;
  std::optional<Training> training;
  /// Present if the load of experts is drawn; `step` is the step at the mean load.
  std::optional<ExpertLoadSpread> routing;
  std::string engine = "fluid";
  std::string granularity = "flat";
  /// Method of folding: "structural", "refined" (fold.h), or "none": every rank is simulated.
  std::string folding = "none";
  std::string folding_reason;    ///< Reason why the folding is not structural.
  std::int64_t tasks = 0;        ///< Instances simulated (of representatives).
  std::int64_t total_tasks = 0;  ///< Instances of all devices.
  std::int64_t events = 0;
  std::optional<DisturbanceSummary> disturbances;
  /// Present if the step never ended; `step` is then the time after which nothing happened.
  std::optional<Interruption> interruption;
  std::vector<Warning> warnings;
  /// Empty unless requested; class by class, each in the order of its expansion (expand.h).
  std::vector<TimelineEntry> timeline;
  /// Index into `classes`; empty unless the timeline was requested.
  std::vector<std::int32_t> class_of_rank;
  /// Groups that something crosses, sorted by the use of the busiest link, most first; empty unless
  /// the timeline was requested.
  std::vector<LinkGroupUse> link_groups;
  /// How communications are carried out; empty unless the timeline was requested.
  std::map<CommunicationKey, ChosenForm> forms;
  /// FLOPs of all kernels that were done, on all devices; zero unless the timeline was requested.
  Flops executed_flops{};
};

}  // namespace foreshard::sim
