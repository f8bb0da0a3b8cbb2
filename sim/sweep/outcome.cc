// Outcomes of points as text (outcome.h), for results files and workers.
#include "sim/sweep/outcome.h"

#include "base/json.h"
#include "base/record/record.h"

#include "sim/study/records.h"

namespace foreshard::sweep {

using record::Record;

const yaml::Names<PointStatus>& yaml_names(const PointStatus*) {
  static const yaml::Names<PointStatus> names{
      {"ok", PointStatus::kOk, "it runs"},
      {"infeasible", PointStatus::kInfeasible, "it cannot run"},
      {"invalid", PointStatus::kInvalid, "its values make no study"},
  };
  return names;
}

const Record<Worth>& record_of(const Worth*) {
  static const auto record =
      Record<Worth>("worth", "What 10 % more of one speed, alone, does to the step.")
          .field("speed", &Worth::speed)
          .field("device", &Worth::device, "The device type, where the speed belongs to one.")
          .field("elasticity", &Worth::elasticity, "d ln(step) / d ln(speed).")
          .field("time_s_at_10_percent_more", &Worth::step);
  return record;
}

const Record<StepFigures>& record_of(const StepFigures*) {
  using Step = StepFigures;
  static const auto record =
      Record<Step>("step")
          .field("time_s", &Step::step)
          .field("low_s", &Step::low)
          .field("high_s", &Step::high)
          .field("evidence", &Step::unmeasured)
          .field("samples", &Step::samples)
          .field("tokens", &Step::tokens)
          .field("mfu", &Step::mfu)
          .field("model_tflops_per_gpu", &Step::tflops_per_device)
          .field("devices", &Step::devices)
          .field("idle_devices", &Step::idle)
          .field("peak_bytes", &Step::peak)
          .field("room_bytes", &Step::capacity, "Memory of the device for tensors.")
          .field("tight", &Step::tight, "Whether it leaves less than the study's memory margin.")
          .field("usd", &Step::usd, "Rent, or what is written off of a price, and electricity.")
          .field("joules", &Step::energy)
          .field("co2_kg", &Step::carbon)
          .field("hosts_without_power", &Step::without_host_power,
                 "Device types of nodes whose hosts are not counted in joules and kwh.")
          .field("without_price", &Step::without_price, "Device types without a price.")
          .field("without_power", &Step::without_power, "Device types without a power.")
          .field("training_steps", &Step::training_steps)
          .field("breakdown_s", &Step::terms, "Seconds of the device that finishes last.")
          .field("sensitivities", &Step::worth, "Largest effect first.");
  return record;
}

const Record<Outcome>& record_of(const Outcome*) {
  static const auto record =
      Record<Outcome>("outcome")
          .field("status", &Outcome::status)
          .field("why", &Outcome::why, "Why it is not ok.")
          .field("model", &Outcome::model)
          .field("cluster", &Outcome::cluster)
          .field("strategy", &Outcome::strategy)
          .field("settings", &Outcome::settings, "What the search set, as --set takes it.")
          .field("missing_bytes", &Outcome::missing, "Missing memory.")
          .field("refused_here", &Outcome::refused_here,
                 "Whether the machine that ran this had too little memory to simulate it.")
          .field("step", &Outcome::figures);
  return record;
}

std::string text_of(const Outcome& outcome) {
  return record::write(outcome).dump(-1, ' ', false, record::Json::error_handler_t::replace);
}

Result<Outcome> outcome_in(std::string_view text) {
  const Error fault{Error::Code::kInvalidInput, "this is no outcome of a point"};
  const auto json = parsed_json<record::Json>(text);
  if (!json) return fault;
  auto outcome = record::read<Outcome>(*json);
  if (!outcome || outcome->figures.has_value() != (outcome->status == PointStatus::kOk))
    return fault;
  return outcome;
}

}  // namespace foreshard::sweep
