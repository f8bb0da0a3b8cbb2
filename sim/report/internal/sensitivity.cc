#include "sim/report/internal/sensitivity.h"

#include <fmt/format.h>
#include <string>

#include "base/quantity.h"

#include "sim/report/numbers.h"

namespace foreshard::report {
namespace {

std::string described(const sim::Speed& speed) {
  const std::string name(name_of(speed.kind));
  return speed.device.empty() ? name : fmt::format("{}, {}", name, speed.device);
}

}  // namespace

void write_sensitivities(Page& page, const sim::Sensitivities& sensitivities) {
  constexpr double kLeast = 5e-4;  // smallest elasticity, or saving by 10 % more, to show
  page.heading("What faster parts buy", "each alone, algorithms held");
  page.line(fmt::format("  {}{}{}{}", left("", 44), right("by 1 %", 10), right("by 10 %", 11),
                        right("then", 11)));
  for (const sim::Sensitivity& one : sensitivities.of) {
    const double saved = 1 - one.step_at_more / sensitivities.step;
    if (-one.elasticity < kLeast && saved < kLeast) continue;
    page.line(fmt::format("  {}{}{}{}", left(described(one.speed), 44),
                          right(fmt::format("{:.2f} %", -one.elasticity), 10),
                          right(fmt::format("{:.1f} %", 100 * saved), 11),
                          right(format(one.step_at_more), 11)));
  }
}

nlohmann::ordered_json sensitivities_json(const sim::Sensitivities& sensitivities) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const sim::Sensitivity& one : sensitivities.of)
    list.push_back({{"speed", std::string(key_of(one.speed.kind))},
                    {"device", one.speed.device.empty() ? nlohmann::ordered_json(nullptr)
                                                        : nlohmann::ordered_json(one.speed.device)},
                    {"elasticity", one.elasticity},
                    {"time_s_at_10_percent_more", one.step_at_more.in_base()}});
  return list;
}

}  // namespace foreshard::report
