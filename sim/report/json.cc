#include "sim/report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/report/internal/disturbed.h"
#include "sim/report/internal/sensitivity.h"
#include "sim/report/parts.h"
#include "sim/study/evidence.h"

namespace foreshard::report {
namespace {

using Json = nlohmann::ordered_json;

double seconds(Seconds time) {
  return time.in_base();
}

std::int64_t bytes(Bytes size) {
  return std::llround(size.in_base());
}

Json times_of(const sim::Breakdown& breakdown) {
  Json json = Json::object();
  for (const Part& part : kParts) json[std::string(part.key)] = seconds(breakdown.*part.time);
  return json;
}

Json sizes_of(const sim::MemoryUse& memory) {
  Json json = Json::object();
  for (std::size_t kind = 0; kind < kMemoryParts.size(); ++kind)
    json[std::string(kMemoryParts[kind])] = bytes(memory.by_kind[kind]);
  return json;
}

template <class Q>
Json in_units(const std::optional<Q>& amount, Q unit, double steps = 1) {
  return amount ? Json(*amount / unit * steps) : Json(nullptr);
}

Json joules_of(const sim::Expense& expense) {
  if (!expense.energy) return nullptr;
  const sim::EnergyParts& parts = expense.parts;
  return {{"devices", parts.devices / 1_J},
          {"hosts", parts.hosts / 1_J},
          {"network", parts.network / 1_J},
          {"other", parts.other / 1_J},
          {"cooling", parts.cooling / 1_J}};
}

Json cost_of(const sim::Prediction& prediction) {
  const sim::Expense& expense = prediction.expense;
  Json json = {{"usd_per_step", in_units(expense.usd(), 1_USD)},
               {"rent_usd_per_step", in_units(expense.rent, 1_USD)},
               {"owned", expense.owned},
               {"electricity_usd_per_step", in_units(expense.electricity, 1_USD)},
               {"joules_per_step", in_units(expense.energy, 1_J)},
               {"joules_by_part", joules_of(expense)},
               {"kwh_per_step", in_units(expense.energy, 1_kWh)},
               {"co2_kg_per_step", in_units(expense.carbon, 1_kg)},
               {"pue", expense.pue},
               {"idle_devices", expense.unused},
               {"devices_without_price", expense.without_rent},
               {"devices_without_power", expense.without_power},
               {"hosts_without_power", expense.without_host_power},
               {"training", nullptr}};
  if (!prediction.training) return json;
  const auto days = [&](Seconds step) {
    return seconds(step) / 86400 * prediction.training->steps;
  };
  const double steps = prediction.training->steps;
  json["training"] = {{"length", prediction.training->length},
                      {"steps", steps},
                      {"days", days(prediction.step)},
                      {"low_days", days(prediction.low)},
                      {"high_days", days(prediction.high)},
                      {"usd", in_units(expense.usd(), 1_USD, steps)},
                      {"kwh", in_units(expense.energy, 1_kWh, steps)},
                      {"co2_kg", in_units(expense.carbon, 1_kg, steps)}};
  return json;
}

Json throughput_of(const Report& report) {
  const sim::Prediction& prediction = report.prediction;
  const double step = seconds(prediction.step);
  const auto rate = [&](double amount) {
    return step > 0 && amount > 0 ? Json(amount / step) : Json(nullptr);
  };
  const auto devices = static_cast<double>(prediction.devices);
  return {{"sample", report.subject.sample},
          {"samples_per_s", rate(prediction.samples)},
          {"tokens_per_s", rate(prediction.tokens)},
          {"tokens_per_s_per_gpu", rate(prediction.tokens / devices)},
          {"computed_tokens_per_s", rate(prediction.tokens * report.subject.computed_per_token)},
          {"model_tflops_per_gpu", prediction.model_tflops_per_device},
          {"mfu", prediction.mfu}};
}

Json memory_of(const sim::Prediction& prediction) {
  Json json = {{"peak_bytes", 0},
               {"capacity_bytes", bytes(prediction.memory_capacity)},
               {"reserve_bytes", bytes(prediction.memory_reserve)},
               {"fits", prediction.fits},
               {"worst_device", nullptr},
               {"by_kind_bytes", Json::object()}};
  if (prediction.classes.empty()) return json;
  const auto& worst = prediction.classes[static_cast<std::size_t>(prediction.worst_memory)];
  json["peak_bytes"] = bytes(worst.memory.peak);
  json["worst_device"] = worst.representative;
  json["by_kind_bytes"] = sizes_of(worst.memory);
  return json;
}

Json classes_of(const Report& report) {
  Json list = Json::array();
  for (std::size_t i = 0; i < report.prediction.classes.size(); ++i) {
    const sim::DeviceClass& one = report.prediction.classes[i];
    list.push_back({{"role", one.role},
                    {"representative", one.representative},
                    {"count", one.count},
                    {"finish_s", seconds(one.finish)},
                    {"breakdown_s", times_of(one.breakdown)},
                    {"memory",
                     {{"peak_bytes", bytes(one.memory.peak)},
                      {"peak_time_s", seconds(one.memory.peak_time)},
                      {"capacity_bytes", bytes(report.capacities[i])},
                      {"by_kind_bytes", sizes_of(one.memory)}}}});
  }
  return list;
}

Json collectives_of(const sim::Prediction& prediction) {
  Json list = Json::array();
  for (const sim::CollectiveUse& use : prediction.collectives)
    list.push_back({{"what", use.what},
                    {"algorithm", use.algorithm},
                    {"protocol", use.protocol},
                    {"bytes", bytes(use.bytes)},
                    {"operations", use.operations},
                    {"idle_time_s", seconds(use.idle_time)}});
  return list;
}

Json critical_path_of(const Report& report) {
  Json shares = Json::array();
  Seconds busy;
  for (const CriticalShare& share : report.critical) {
    busy += share.time;
    shares.push_back(
        {{"what", share.what}, {"time_s", seconds(share.time)}, {"tasks", share.tasks}});
  }
  return {{"tasks", report.prediction.critical_path.size()},
          {"time_s", seconds(busy)},
          {"by_task", std::move(shares)}};
}

Json alternatives_of(const Report& report) {
  Json list = Json::array();
  for (const study::Alternative& one : report.alternatives)
    list.push_back({{"change", one.change},
                    {"fits", one.fits},
                    {"peak_bytes", bytes(one.peak)},
                    {"capacity_bytes", bytes(one.capacity)},
                    {"reserve_bytes", bytes(one.reserve)},
                    {"time_s", one.fits ? Json(seconds(one.step)) : Json(nullptr)}});
  return list;
}

Json inputs_of(const Report& report) {
  Json list = Json::array();
  for (const InputDigest& input : report.inputs)
    list.push_back({{"path", input.path}, {"sha256", input.sha256}});
  return list;
}

Json warnings_of(const sim::Prediction& prediction) {
  Json list = Json::array();
  for (const sim::Warning& warning : prediction.warnings)
    list.push_back({{"code", warning.code}, {"message", warning.message}});
  return list;
}

Json routing_of(const sim::Prediction& prediction) {
  if (!prediction.routing) return nullptr;
  const sim::ExpertLoadSpread& routing = *prediction.routing;
  return {{"draws", routing.draws},
          {"mean_load", routing.mean_load},
          {"high_load", routing.high_load},
          {"low_s", seconds(routing.low)},
          {"median_s", seconds(routing.median)},
          {"high_s", seconds(routing.high)}};
}

Json interval_json(const sim::Prediction& prediction) {
  const sim::IntervalSource& source = prediction.interval_source;
  Json uses = Json::array();
  for (const sim::CriticalUse& use : prediction.critical_uses)
    uses.push_back({{"parameters", std::string(name_of(use.group))},
                    {"device", use.device},
                    {"evidence", std::string(yaml::name_of(use.evidence))},
                    {"share", prediction.step > 0_s ? use.time / prediction.step : 0}});
  return {{"text", source.text},
          {"framework", source.framework},
          {"measurements", source.measurements},
          {"low", source.low},
          {"high", source.high},
          {"widened_low", source.widened_low},
          {"widened_high", source.widened_high},
          {"rests_on", std::move(uses)}};
}

}  // namespace

std::string to_json(const Report& report) {
  const sim::Prediction& prediction = report.prediction;
  const auto if_it_ends = [&](Seconds time) {
    return prediction.interruption ? Json(nullptr) : Json(seconds(time));
  };
  Json json = {{"schema", kPredictionSchema},
               {"study",
                {{"name", report.subject.name},
                 {"model", report.subject.model},
                 {"cluster", report.subject.cluster},
                 {"strategy", report.subject.strategy},
                 {"devices", prediction.devices},
                 {"idle_devices", prediction.idle},
                 {"down_devices", prediction.down}}},
               {"feasible", prediction.fits && !prediction.interruption},
               {"step",
                {{"time_s", if_it_ends(prediction.step)},
                 {"low_s", if_it_ends(prediction.low)},
                 {"high_s", if_it_ends(prediction.high)},
                 {"interval_source", interval_json(prediction)},
                 {"evidence", study::evidence_json(study::unmeasured_in(prediction))}}},
               {"throughput", throughput_of(report)},
               {"breakdown_s", times_of(prediction.breakdown)},
               {"memory", memory_of(prediction)},
               {"routing", routing_of(prediction)},
               {"cost", cost_of(prediction)},
               {"engine",
                {{"name", prediction.engine},
                 {"granularity", prediction.granularity},
                 {"folding", prediction.folding},
                 {"folding_reason", prediction.folding_reason},
                 {"classes", prediction.classes.size()},
                 {"tasks", prediction.tasks},
                 {"total_tasks", prediction.total_tasks},
                 {"events", prediction.events}}},
               {"classes", classes_of(report)},
               {"collectives", collectives_of(prediction)},
               {"critical_path", critical_path_of(report)}};
  if (prediction.disturbances) json["disturbances"] = disturbances_json(report);
  if (report.interruption) json["interruption"] = interruption_json(*report.interruption);
  if (!prediction.fits) json["alternatives"] = alternatives_of(report);
  if (report.sensitivities) json["sensitivities"] = sensitivities_json(*report.sensitivities);
  if (report.drawn)
    json["branches"] = {{"draws", report.drawn->draws},
                        {"mean_s", seconds(report.drawn->mean)},
                        {"p10_s", seconds(report.drawn->low)},
                        {"median_s", seconds(report.drawn->median)},
                        {"p90_s", seconds(report.drawn->high)}};
  if (report.measured)
    json["measured"] = {
        {"rows", report.measured->rows},
        {"unused", report.measured->unused},
        {"share", prediction.step > 0_s ? report.measured->time / prediction.step : 0}};
  json["inputs"] = inputs_of(report);
  json["warnings"] = warnings_of(prediction);
  if (report.wall) json["timing"] = {{"wall_s", seconds(*report.wall)}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foreshard::report
