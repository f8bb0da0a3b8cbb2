// Writes a report as JSON (json.h), for `foreshard simulate`, `compare` and the library. Numbers
// are in base units, which the suffix of a key names (`_s`, `_bytes`).
#include "sim/report/json.h"

#include <cmath>
#include <optional>

#include "base/gzip/gzip.h"
#include "base/record/record.h"

#include "sim/report/internal/disturbed.h"
#include "sim/study/records.h"

// The result of `foreshard simulate`: foreshard.prediction/1. A further number is one line here.

namespace foreshard {
namespace {

// A time, unless it is infinite: never.
std::optional<Seconds> finite(Seconds time) {
  return std::isfinite(time.in_base()) ? std::optional(time) : std::nullopt;
}

}  // namespace
}  // namespace foreshard

namespace foreshard::disturbance {

const record::Record<Hit>& record_of(const Hit*) {
  static const auto record =
      record::Record<Hit>("disturbance")
          .field("kind", &Hit::kind)
          .field("effect", &Hit::effect)
          .field("at_s", [](const Hit& hit) { return finite(hit.at); })
          .field(
              "until_s", [](const Hit& hit) { return finite(hit.until); }, "Null for never.")
          .field("count", &Hit::count)
          .field("who", &Hit::who);
  return record;
}

}  // namespace foreshard::disturbance

namespace foreshard::sim {
namespace {

using record::Json;
using record::Record;

Json schema_of_speeds() {
  Json words = Json::array();
  for (std::size_t kind = 0; kind < kSpeedKinds; ++kind)
    words.push_back(std::string(key_of(static_cast<SpeedKind>(kind))));
  return {{"enum", std::move(words)}};
}

}  // namespace

const Record<EnergyParts>& record_of(const EnergyParts*) {
  static const auto record =
      Record<EnergyParts>("energy")
          .field("devices", &EnergyParts::devices)
          .field("hosts", &EnergyParts::hosts, "Nodes without their devices.")
          .field("network", &EnergyParts::network, "Switches of the fabric.")
          .field("other", &EnergyParts::other, "Storage, management.")
          .field("cooling", &EnergyParts::cooling, "What the site adds (pue).");
  return record;
}

const Record<ExpertLoadSpread>& record_of(const ExpertLoadSpread*) {
  static const auto record =
      Record<ExpertLoadSpread>("routing")
          .field("draws", &ExpertLoadSpread::draws, "Drawn steps (strategy.expert_load).")
          .field("mean_load", &ExpertLoadSpread::mean_load,
                 "Tokens of the busiest rank, as a multiple of its even share.")
          .field("high_load", &ExpertLoadSpread::high_load, "95th percentile of that load.")
          .field("low_s", &ExpertLoadSpread::low, "5th percentile of the step.")
          .field("median_s", &ExpertLoadSpread::median)
          .field("high_s", &ExpertLoadSpread::high, "95th percentile of the step.");
  return record;
}

const Record<CollectiveUse>& record_of(const CollectiveUse*) {
  static const auto record =
      Record<CollectiveUse>("collective")
          .field("what", &CollectiveUse::what)
          .field("algorithm", &CollectiveUse::algorithm)
          .field("protocol", &CollectiveUse::protocol)
          .field("bytes", &CollectiveUse::bytes, "Bytes of one operation.")
          .field("operations", &CollectiveUse::operations, "Number per device.")
          .field("idle_time_s", &CollectiveUse::idle_time, "Time of one operation on idle links.");
  return record;
}

const Record<Sensitivity>& record_of(const Sensitivity*) {
  static const auto record =
      Record<Sensitivity>("sensitivity")
          .field(
              "speed", [](const Sensitivity& one) { return key_of(one.speed.kind); },
              "What is faster (--sensitivity).", schema_of_speeds())
          .field(
              "device",
              [](const Sensitivity& one) {
                const std::string& device = one.speed.device;
                return device.empty() ? std::nullopt : std::optional(device);
              },
              "The device type, where the speed belongs to one.")
          .field("elasticity", &Sensitivity::elasticity,
                 "d ln(step) / d ln(speed), at most 0; -0.3 is 0.3 % less for 1 % more speed.")
          .field("time_s_at_10_percent_more", &Sensitivity::step_at_more,
                 "The step with this speed 1.1 times as high.");
  return record;
}

const Record<DisturbanceSummary>& record_of(const DisturbanceSummary*) {
  using report::StepStatistics;
  const auto statistic = [](Seconds StepStatistics::*member) {
    return [member](const DisturbanceSummary& of) -> std::optional<Seconds> {
      if (of.steps.empty()) return std::nullopt;
      return report::statistics_of(of.steps).*member;
    };
  };
  static const auto record =
      Record<DisturbanceSummary>("disturbances")
          .field("seed", &DisturbanceSummary::seed)
          .field("events", &DisturbanceSummary::hits)
          .group("runs",
                 Record<DisturbanceSummary>()
                     .field("ended", [](const DisturbanceSummary& of) { return of.steps.size(); })
                     .field("interrupted", &DisturbanceSummary::interrupted)
                     .sometimes("mean_s", statistic(&StepStatistics::mean))
                     .sometimes("min_s", statistic(&StepStatistics::lowest))
                     .sometimes("p50_s", statistic(&StepStatistics::median))
                     .sometimes("p95_s", statistic(&StepStatistics::p95))
                     .sometimes("max_s", statistic(&StepStatistics::highest)));
  return record;
}

}  // namespace foreshard::sim

namespace foreshard::report {
namespace {

using record::Record;

// The number per second of the step, unless there is none or the step never ends.
std::optional<double> rate(double number, const sim::Prediction& prediction) {
  const double step = prediction.step.in_base();
  return step > 0 && number > 0 && !prediction.interruption ? std::optional(number / step)
                                                            : std::nullopt;
}

// The amount times `steps` in `unit`.
template <class Q>
std::optional<double> in_units(const std::optional<Q>& amount, Q unit, double steps = 1) {
  return amount ? std::optional(*amount / unit * steps) : std::nullopt;
}

const sim::Prediction& prediction_of(const Report& report) {
  return report.prediction;
}

// A member of the prediction that a step which never ends does not have.
auto if_it_ends(Seconds sim::Prediction::*time) {
  return [time](const Report& report) {
    const sim::Prediction& prediction = report.prediction;
    return prediction.interruption ? std::nullopt : std::optional(prediction.*time);
  };
}

// A device class with the memory of its device.
struct ClassReport {
  const sim::DeviceClass& of;
  Bytes capacity;
};

std::vector<ClassReport> classes_of(const Report& report) {
  std::vector<ClassReport> classes;
  for (std::size_t i = 0; i < report.prediction.classes.size(); ++i)
    classes.push_back({report.prediction.classes[i], report.capacities[i]});
  return classes;
}

// The class with the least room; null before anything was simulated.
const sim::DeviceClass* worst_of(const sim::Prediction& prediction) {
  return prediction.classes.empty()
             ? nullptr
             : &prediction.classes[static_cast<std::size_t>(prediction.worst_memory)];
}

// The whole training.
struct TrainingReport {
  const sim::Training& training;
  const sim::Prediction& prediction;

  double days(Seconds step) const { return step / 24_h * training.steps; }
};

std::optional<TrainingReport> training_of(const sim::Prediction& prediction) {
  if (!prediction.training) return std::nullopt;
  return TrainingReport{*prediction.training, prediction};
}

// Part of the critical path that rests on a group of parameters.
struct UseReport {
  const sim::CriticalUse& of;
  double share;
};

std::vector<UseReport> uses_of(const sim::Prediction& prediction) {
  std::vector<UseReport> uses;
  for (const sim::CriticalUse& use : prediction.critical_uses)
    uses.push_back({use, prediction.step > 0_s ? use.time / prediction.step : 0});
  return uses;
}

Seconds busy_time(const Report& report) {
  Seconds time;
  for (const CriticalShare& share : report.critical) time += share.time;
  return time;
}

const Record<ClassReport>& record_of(const ClassReport*) {
  static const auto memory =
      Record<ClassReport>()
          .field("peak_bytes", [](const ClassReport& one) { return one.of.memory.peak; })
          .field("peak_time_s", [](const ClassReport& one) { return one.of.memory.peak_time; })
          .field("capacity_bytes", &ClassReport::capacity)
          .field("by_kind_bytes", [](const ClassReport& one) { return one.of.memory; });
  static const auto record =
      Record<ClassReport>("class", "Devices that do the same at the same times.")
          .field("role", [](const ClassReport& one) { return one.of.role; })
          .field(
              "representative", [](const ClassReport& one) { return one.of.representative; },
              "The rank that was simulated.")
          .field("count", [](const ClassReport& one) { return one.of.count; })
          .field("finish_s", [](const ClassReport& one) { return one.of.finish; })
          .field("breakdown_s", [](const ClassReport& one) { return one.of.breakdown; })
          .group("memory", memory);
  return record;
}

const Record<TrainingReport>& record_of(const TrainingReport*) {
  using Of = TrainingReport;
  static const auto record =
      Record<Of>("training", "The whole training, as long as the study says (train).")
          .field("length", [](const Of& of) { return of.training.length; })
          .field("steps", [](const Of& of) { return of.training.steps; })
          .field("days", [](const Of& of) { return of.days(of.prediction.step); })
          .field("low_days", [](const Of& of) { return of.days(of.prediction.low); })
          .field("high_days", [](const Of& of) { return of.days(of.prediction.high); })
          .field("usd",
                 [](const Of& of) {
                   return in_units(of.prediction.expense.usd(), 1_USD, of.training.steps);
                 })
          .field("kwh",
                 [](const Of& of) {
                   return in_units(of.prediction.expense.energy, 1_kWh, of.training.steps);
                 })
          .field("co2_kg", [](const Of& of) {
            return in_units(of.prediction.expense.carbon, 1_kg, of.training.steps);
          });
  return record;
}

const Record<UseReport>& record_of(const UseReport*) {
  static const auto record =
      Record<UseReport>("parameter_use")
          .field("parameters", [](const UseReport& use) { return name_of(use.of.group); })
          .field("device", [](const UseReport& use) { return use.of.device; })
          .field("evidence", [](const UseReport& use) { return use.of.evidence; })
          .field("share", &UseReport::share, "Of the critical path, 0 to 1.");
  return record;
}

}  // namespace

const Record<CriticalShare>& record_of(const CriticalShare*) {
  static const auto record = Record<CriticalShare>("critical_share")
                                 .field("what", &CriticalShare::what)
                                 .field("time_s", &CriticalShare::time)
                                 .field("tasks", &CriticalShare::tasks);
  return record;
}

const Record<InputDigest>& record_of(const InputDigest*) {
  static const auto record = Record<InputDigest>("input")
                                 .field("path", &InputDigest::path)
                                 .field("sha256", &InputDigest::sha256);
  return record;
}

const Record<NamedTask>& record_of(const NamedTask*) {
  static const auto record = Record<NamedTask>("task")
                                 .field("who", &NamedTask::who)
                                 .field("what", &NamedTask::what)
                                 .field("layer", &NamedTask::layer)
                                 .field("micro_batch", &NamedTask::micro_batch);
  return record;
}

const Record<InterruptedTask>& record_of(const InterruptedTask*) {
  static const auto record =
      Record<InterruptedTask>("failed_task")
          .field("task", &InterruptedTask::task)
          .field("start_s", [](const InterruptedTask& one) { return finite(one.start); })
          .field("at_s", [](const InterruptedTask& one) { return finite(one.at); })
          .field("on", &InterruptedTask::on, "The link or device that was dead for too long.");
  return record;
}

const Record<WaitingDevices>& record_of(const WaitingDevices*) {
  static const auto record =
      Record<WaitingDevices>("waiting_devices")
          .field("task", &WaitingDevices::task)
          .field("devices", &WaitingDevices::count)
          .field("since_s", &WaitingDevices::since)
          .field("waits_for", &WaitingDevices::waits_for)
          .field("failed", &WaitingDevices::failed, "Whether `waits_for` failed.");
  return record;
}

const Record<InterruptionReport>& record_of(const InterruptionReport*) {
  static const auto record =
      Record<InterruptionReport>("interruption", "Why the step never ends.")
          .field("at_s", [](const InterruptionReport& one) { return finite(one.at); })
          .field("failed", &InterruptionReport::failed)
          .field("waiting", &InterruptionReport::waiting)
          .field("unfinished_tasks", &InterruptionReport::unfinished);
  return record;
}

namespace {

Record<Report> study_group() {
  const auto devices = [](std::int64_t sim::Prediction::*count) {
    return [count](const Report& report) { return report.prediction.*count; };
  };
  const auto subject = [](std::string Subject::*text) {
    return [text](const Report& report) { return report.subject.*text; };
  };
  return Record<Report>()
      .field("name", subject(&Subject::name))
      .field("model", subject(&Subject::model))
      .field("cluster", subject(&Subject::cluster))
      .field("strategy", subject(&Subject::strategy))
      .field("devices", devices(&sim::Prediction::devices), "Devices of the strategy.")
      .field("idle_devices", devices(&sim::Prediction::idle),
             "Devices of the cluster that do nothing.")
      .field("down_devices", devices(&sim::Prediction::down),
             "Devices that a failure has taken away.");
}

Record<sim::Prediction> interval_group() {
  const auto from = [](auto member) {
    return
        [member](const sim::Prediction& prediction) { return prediction.interval_source.*member; };
  };
  using Source = sim::IntervalSource;
  return Record<sim::Prediction>()
      .field("text", from(&Source::text), "Where low and high come from, in words.")
      .field("framework", from(&Source::framework))
      .field("measurements", from(&Source::measurements), "Measured steps of this kind.")
      .field("unlike", from(&Source::unlike),
             "Properties whose value no measured step of its framework has.")
      .field("narrowed_by", from(&Source::narrowed_by), "What would narrow the interval most.")
      .field("low", from(&Source::low), "Lower end of measured over predicted steps.")
      .field("high", from(&Source::high))
      .field("widened_low", from(&Source::widened_low),
             "A further factor, for parameters that nobody measured here.")
      .field("widened_high", from(&Source::widened_high))
      .field("rests_on", uses_of);
}

Record<Report> step_group() {
  return Record<Report>()
      .field("time_s", if_it_ends(&sim::Prediction::step), "Null if a failure ends the step.")
      .field("low_s", if_it_ends(&sim::Prediction::low),
             "8 of 10 measurements are expected within.")
      .field("high_s", if_it_ends(&sim::Prediction::high))
      .group("interval_source", &Report::prediction, interval_group())
      .field("evidence",
             [](const Report& report) { return study::unmeasured_in(report.prediction); });
}

Record<Report> throughput_group() {
  const auto per_step = [](auto amount) {
    return [amount](const Report& report) { return rate(amount(report), report.prediction); };
  };
  return Record<Report>()
      .field("sample", record::at<&Report::subject, &Subject::sample>, "What a sample is.")
      .field("samples_per_s", per_step(record::at<&Report::prediction, &sim::Prediction::samples>))
      .field("tokens_per_s", per_step(record::at<&Report::prediction, &sim::Prediction::tokens>))
      .field("tokens_per_s_per_gpu", per_step([](const Report& r) {
               return r.prediction.tokens / static_cast<double>(r.prediction.devices);
             }))
      .field("computed_tokens_per_s", per_step([](const Report& r) {
               return r.prediction.tokens * r.subject.computed_per_token;
             }),
             "With the tokens that pad samples.")
      .field("model_tflops_per_gpu",
             record::at<&Report::prediction, &sim::Prediction::model_tflops_per_device>,
             "Without recomputation.")
      .field("mfu", record::at<&Report::prediction, &sim::Prediction::mfu>, "Of the peak, 0 to 1.");
}

Record<Report> memory_group() {
  using sim::Prediction;
  return Record<Report>("memory", "The device with the least room.")
      .field("peak_bytes",
             [](const Report& r) {
               const auto* worst = worst_of(r.prediction);
               return worst != nullptr ? worst->memory.peak : Bytes();
             })
      .field("capacity_bytes", record::at<&Report::prediction, &Prediction::memory_capacity>)
      .field("reserve_bytes", record::at<&Report::prediction, &Prediction::memory_reserve>,
             "What the framework and the driver keep, on every device.")
      .field("fits", record::at<&Report::prediction, &Prediction::fits>)
      .field("tight", is_tight, "Whether it fits, but leaves less than the margin.")
      .field("margin_share", record::at<&Report::margin, &study::MemoryMargin::part>,
             "The part of a device's memory that should stay free beside the reserve.")
      .field("margin_source", record::at<&Report::margin, &study::MemoryMargin::source>)
      .field("worst_device",
             [](const Report& r) {
               const auto* worst = worst_of(r.prediction);
               return worst != nullptr ? std::optional(worst->representative) : std::nullopt;
             })
      .field("by_kind_bytes", [](const Report& r) {
        const auto* worst = worst_of(r.prediction);
        return worst != nullptr ? worst->memory : sim::MemoryUse();
      });
}

std::optional<double> hourly_rent(const sim::Prediction& prediction) {
  const sim::Expense& expense = prediction.expense;
  const double hours = prediction.step / 1_h;
  const auto devices = static_cast<double>(prediction.devices + expense.unused);
  return expense.rent && hours > 0 ? std::optional(*expense.rent / 1_USD / hours / devices)
                                   : std::nullopt;
}

Record<sim::Prediction> cost_group() {
  using Prediction = sim::Prediction;
  const auto of = [](auto member) {
    return [member](const Prediction& p) { return std::invoke(member, p.expense); };
  };
  const auto amount = [](auto member, auto unit) {
    return [member, unit](const Prediction& p) {
      return in_units(std::invoke(member, p.expense), unit);
    };
  };
  using Expense = sim::Expense;
  return Record<Prediction>("cost", "One step, on all devices of the cluster.")
      .field("usd_per_step", amount(&Expense::usd, 1_USD), "Devices and electricity.")
      .field("rent_usd_per_step", amount(&Expense::rent, 1_USD),
             "Devices: their rent, or what is written off of their price.")
      .field("rent_usd_per_device_hour", hourly_rent, "Mean over all devices of the cluster.")
      .field("owned", of(&Expense::owned), "Whether the devices were bought.")
      .field("electricity_usd_per_step", amount(&Expense::electricity, 1_USD),
             "0 where it is not paid separately.")
      .field("joules_per_step", amount(&Expense::energy, 1_J))
      .field("joules_by_part",
             [](const Prediction& p) {
               return p.expense.energy ? std::optional(p.expense.parts) : std::nullopt;
             })
      .field("kwh_per_step", amount(&Expense::energy, 1_kWh))
      .field("co2_kg_per_step", amount(&Expense::carbon, 1_kg))
      .field("pue", of(&Expense::pue), "Energy of the site over that of its machines.")
      .field("idle_devices", of(&Expense::unused), "Devices that are paid for and do nothing.")
      .field("devices_without_price", of(&Expense::without_rent))
      .field("devices_without_power", of(&Expense::without_power))
      .field("hosts_without_power", of(&Expense::without_host_power),
             "Device types of nodes whose hosts are not counted.")
      .field("training", training_of);
}

Record<sim::Prediction> engine_group() {
  using Prediction = sim::Prediction;
  return Record<Prediction>()
      .field("name", &Prediction::engine, "", record::one_of({"fluid", "simgrid"}))
      .field("granularity", &Prediction::granularity, "", record::one_of({"flat", "stepwise"}))
      .field("folding", &Prediction::folding,
             "How the devices were chosen that one is simulated for.")
      .field("folding_reason", &Prediction::folding_reason)
      .field("classes", [](const Prediction& p) { return p.classes.size(); })
      .field("tasks", &Prediction::tasks, "Simulated tasks.")
      .field("total_tasks", &Prediction::total_tasks, "Tasks of all devices.")
      .field("events", &Prediction::events);
}

Record<Report> critical_path_group() {
  return Record<Report>()
      .field("tasks", [](const Report& report) { return report.prediction.critical_path.size(); })
      .field("time_s", busy_time)
      .field("by_task", &Report::critical);
}

// Part of a step that rests on times measured by the user.
struct MeasuredReport {
  std::int64_t rows;
  std::vector<std::string> unused;
  double share;
};

const Record<MeasuredReport>& record_of(const MeasuredReport*) {
  static const auto record =
      Record<MeasuredReport>("measured", "Times that were given with --measured.")
          .field("rows", &MeasuredReport::rows)
          .field("unused", &MeasuredReport::unused)
          .field("share", &MeasuredReport::share,
                 "Part of the step's critical path that rests on these times, 0 to 1.");
  return record;
}

std::optional<MeasuredReport> measured_of(const Report& report) {
  if (!report.measured) return std::nullopt;
  const MeasuredShare& measured = *report.measured;
  const Seconds step = report.prediction.step;
  return MeasuredReport{.rows = measured.rows,
                        .unused = measured.unused,
                        .share = step > 0_s ? measured.time / step : 0};
}

struct Timing {
  Seconds wall;
};

const Record<Timing>& record_of(const Timing*) {
  static const auto record =
      Record<Timing>("timing").field("wall_s", &Timing::wall, "The prediction itself (--timing).");
  return record;
}

std::optional<Timing> timing_of(const Report& report) {
  return report.wall ? std::optional(Timing{*report.wall}) : std::nullopt;
}

}  // namespace

const Record<Report>& record_of(const Report*) {
  using sim::Prediction;
  static const auto record =
      Record<Report>::result(std::string(kPredictionSchema),
                             "A training step (or a pass of evaluation) as `simulate` predicts it. "
                             "Times in seconds, sizes in bytes; what is not known is null.")
          .group("study", study_group())
          .field(
              "feasible",
              [](const Report& r) { return r.prediction.fits && !r.prediction.interruption; },
              "Whether it fits and no failure ends it.")
          .group("step", step_group())
          .group("throughput", throughput_group())
          .field("breakdown_s", record::at<&Report::prediction, &sim::Prediction::breakdown>,
                 "The device that finishes last; the sum is the step.")
          .group("memory", memory_group())
          .field("routing", record::at<&Report::prediction, &sim::Prediction::routing>)
          .group("cost", prediction_of, cost_group())
          .group("engine", prediction_of, engine_group())
          .field("classes", classes_of)
          .field("collectives", record::at<&Report::prediction, &sim::Prediction::collectives>)
          .group("critical_path", critical_path_group())
          .sometimes("disturbances",
                     record::at<&Report::prediction, &sim::Prediction::disturbances>)
          .sometimes("interruption", &Report::interruption)
          .sometimes("alternatives",
                     [](const Report& r) {
                       return r.prediction.fits ? std::nullopt : std::optional(r.alternatives);
                     })
          .sometimes("sensitivities",
                     [](const Report& r) {
                       return r.sensitivities ? std::optional(r.sensitivities->of) : std::nullopt;
                     })
          .sometimes("branches", &Report::drawn)
          .sometimes("measured", measured_of)
          .sometimes("bundle", &Report::bundle)
          .field("inputs", &Report::inputs)
          .field("warnings", record::at<&Report::prediction, &sim::Prediction::warnings>)
          .sometimes("timing", timing_of);
  return record;
}

std::string to_json(const Report& report) {
  return record::text_of(record::write(report), 2);
}

std::string to_bundle(const Report& report) {
  return gzip(record::write(report).dump() + "\n");
}

}  // namespace foreshard::report
