#include "sim/sweep/outcome.h"

#include <cmath>

#include "sim/sweep/internal/json.h"

namespace foreshard::sweep {
namespace {

using internal::Json;
using internal::known;

// Sizes as whole bytes.
std::int64_t whole(Bytes bytes) {
  return std::llround(bytes.in_base());
}

template <class Q>
void read(const Json& json, Q& quantity) {
  quantity = Q::from_base(json.get<double>());
}
template <class Q>
void read(const Json& json, std::optional<Q>& quantity) {
  if (!json.is_null()) quantity = Q::from_base(json.get<double>());
}

Json json_of(const std::optional<std::vector<Worth>>& worth) {
  if (!worth) return nullptr;
  Json list = Json::array();
  for (const Worth& one : *worth)
    list.push_back({{"speed", one.speed},
                    {"device", one.device.empty() ? Json(nullptr) : Json(one.device)},
                    {"elasticity", one.elasticity},
                    {"time_s_at_10_percent_more", one.step.in_base()}});
  return list;
}

Json json_of(const std::vector<Term>& terms) {
  Json json = Json::object();
  for (const Term& term : terms) json[term.key] = term.time.in_base();
  return json;
}

Json json_of(const StepFigures& step) {
  return {{"time_s", step.step.in_base()},
          {"low_s", step.low.in_base()},
          {"high_s", step.high.in_base()},
          {"evidence", study::evidence_json(step.unmeasured)},
          {"samples", step.samples},
          {"tokens", step.tokens},
          {"mfu", step.mfu},
          {"model_tflops_per_gpu", step.tflops_per_device},
          {"devices", step.devices},
          {"idle_devices", step.idle},
          {"peak_bytes", whole(step.peak)},
          {"room_bytes", whole(step.capacity)},
          {"tight", step.tight},
          {"usd", known(step.usd)},
          {"joules", known(step.energy)},
          {"co2_kg", known(step.carbon)},
          {"hosts_without_power", step.without_host_power},
          {"without_price", step.without_price},
          {"without_power", step.without_power},
          {"training_steps", internal::or_null(step.training_steps)},
          {"breakdown_s", json_of(step.terms)},
          {"sensitivities", json_of(step.worth)}};
}

// Throws, as `at` does, if there is no whole number.
std::int64_t integer_in(const Json& json) {
  if (!json.is_number_integer()) throw Json::type_error::create(302, "no whole number", &json);
  return json.get<std::int64_t>();
}
Bytes bytes_in(const Json& json) {
  return static_cast<double>(integer_in(json)) * 1_B;
}

std::vector<Worth> worth_in(const Json& json) {
  std::vector<Worth> worth;
  for (const Json& one : json) {
    Worth& last = worth.emplace_back();
    last.speed = one.at("speed");
    if (const Json& device = one.at("device"); !device.is_null()) last.device = device;
    last.elasticity = one.at("elasticity");
    read(one.at("time_s_at_10_percent_more"), last.step);
  }
  return worth;
}

StepFigures figures_in(const Json& json) {
  StepFigures step;
  read(json.at("time_s"), step.step);
  read(json.at("low_s"), step.low);
  read(json.at("high_s"), step.high);
  step.unmeasured = study::unmeasured_in(json.at("evidence"));
  step.samples = json.at("samples");
  step.tokens = json.at("tokens");
  step.mfu = json.at("mfu");
  step.tflops_per_device = json.at("model_tflops_per_gpu");
  step.devices = integer_in(json.at("devices"));
  step.idle = integer_in(json.at("idle_devices"));
  step.peak = bytes_in(json.at("peak_bytes"));
  step.capacity = bytes_in(json.at("room_bytes"));
  step.tight = json.at("tight");
  read(json.at("usd"), step.usd);
  read(json.at("joules"), step.energy);
  read(json.at("co2_kg"), step.carbon);
  step.without_host_power = json.at("hosts_without_power").get<std::vector<std::string>>();
  step.without_price = json.at("without_price").get<std::vector<std::string>>();
  step.without_power = json.at("without_power").get<std::vector<std::string>>();
  if (const Json& steps = json.at("training_steps"); !steps.is_null())
    step.training_steps = steps.get<double>();
  for (const auto& [key, time] : json.at("breakdown_s").items())
    step.terms.push_back({key, Seconds::from_base(time.get<double>())});
  if (const Json& worth = json.at("sensitivities"); !worth.is_null()) step.worth = worth_in(worth);
  return step;
}

}  // namespace

const yaml::Names<PointStatus>& yaml_names(const PointStatus*) {
  static const yaml::Names<PointStatus> names{
      {"ok", PointStatus::kOk, "it runs"},
      {"infeasible", PointStatus::kInfeasible, "it cannot run"},
      {"invalid", PointStatus::kInvalid, "its values make no study"},
  };
  return names;
}

Json json_of(const Outcome& outcome) {
  Json settings = Json::object();
  for (const Setting& setting : outcome.settings) settings[setting.path] = setting.value;
  return {{"status", yaml::name_of(outcome.status)},
          {"why", outcome.why},
          {"model", outcome.model},
          {"cluster", outcome.cluster},
          {"strategy", outcome.strategy},
          {"settings", std::move(settings)},
          {"missing_bytes", outcome.missing ? Json(whole(*outcome.missing)) : Json(nullptr)},
          {"refused_here", outcome.refused_here},
          {"step", outcome.figures ? json_of(*outcome.figures) : Json(nullptr)}};
}

std::string text_of(const Outcome& outcome) {
  return json_of(outcome).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Outcome> outcome_in(std::string_view text) {
  const auto fault = [] {
    return Error{Error::Code::kInvalidInput, "this is no outcome of a point"};
  };
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fault();
  try {
    Outcome outcome;
    const auto status = yaml_names(static_cast<const PointStatus*>(nullptr))
                            .find(json.at("status").get<std::string>());
    if (!status) return fault();
    outcome.status = *status;
    outcome.why = json.at("why");
    outcome.model = json.at("model");
    outcome.cluster = json.at("cluster");
    outcome.strategy = json.at("strategy");
    for (const auto& [path, value] : json.at("settings").items())
      outcome.settings.push_back({path, value.get<std::string>()});
    if (const Json& missing = json.at("missing_bytes"); !missing.is_null())
      outcome.missing = bytes_in(missing);
    outcome.refused_here = json.at("refused_here");
    if (const Json& step = json.at("step"); !step.is_null()) outcome.figures = figures_in(step);
    if (outcome.figures.has_value() != (outcome.status == PointStatus::kOk)) return fault();
    return outcome;
  } catch (const Json::exception&) {
    return fault();
  }
}

}  // namespace foreshard::sweep
