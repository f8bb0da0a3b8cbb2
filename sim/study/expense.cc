#include "sim/study/expense.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace foreshard::study {
namespace {

// Adds up over devices; known only if each part is.
template <class Q>
class Sum {
 public:
  void add(const std::optional<Q>& part, double count, const std::string& name) {
    if (count == 0) return;
    if (part)
      sum_ += *part * count;
    else if (std::ranges::find(missing_, name) == missing_.end())
      missing_.push_back(name);
  }
  std::optional<Q> total() const { return missing_.empty() ? std::optional(sum_) : std::nullopt; }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  Q sum_{};
  std::vector<std::string> missing_;
};

std::optional<Joules> energy_of(const DeviceType& type, Seconds step, Seconds busy) {
  if (!type.power || !type.idle_power) return std::nullopt;
  const Watts idle = type.idle_power->value;
  return idle * step + (type.power->value - idle) * busy;
}

}  // namespace

sim::Expense expense_of(const sim::Prediction& prediction, const ClusterView& cluster,
                        const ClusterConfig& config) {
  sim::Expense expense;
  if (config.pue) expense.pue = config.pue->value;
  if (prediction.interruption) return expense;
  std::vector<std::int64_t> unused(cluster.device_types().size(), 0);
  for (const Device& device : cluster.devices()) ++unused[device.type.index()];

  Sum<Joules> energy;
  for (const sim::DeviceClass& one : prediction.classes) {
    const DeviceTypeId type = cluster.devices()[one.device.index()].type;
    unused[type.index()] -= one.count;
    const Seconds waiting = one.breakdown.bubble + one.breakdown.host;
    energy.add(
        energy_of(cluster.device_types()[type.index()], prediction.step, prediction.step - waiting),
        static_cast<double>(one.count), cluster.device_types()[type.index()].name);
  }
  for (std::size_t t = 0; t < unused.size(); ++t) {
    expense.unused += unused[t];
    const DeviceType& type = cluster.device_types()[t];
    energy.add(energy_of(type, prediction.step, {}), static_cast<double>(unused[t]), type.name);
  }

  Sum<Dollars> rent;
  for (const Device& device : cluster.devices()) {
    const DeviceType& type = cluster.device_types()[device.type.index()];
    const auto& price = config.rent ? config.rent : type.rent;
    rent.add(price ? std::optional(price->value * prediction.step) : std::nullopt, 1, type.name);
  }
  expense.energy = energy.total();
  if (expense.energy) expense.energy = *expense.energy * expense.pue;
  expense.without_power = energy.missing();
  expense.rent = rent.total();
  expense.without_rent = rent.missing();
  return expense;
}

Result<TrainingLength> parse_training_length(std::string_view text) {
  constexpr std::array kScales = std::to_array<std::pair<char, double>>(
      {{'k', 1e3}, {'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'T', 1e12}});
  const auto fault = [&] {
    return Error{Error::Code::kInvalidInput,
                 fmt::format("'{}' is no length of a training; write a number and what it counts, "
                             "for example 2T tokens, 300B tokens or 1.2M samples",
                             text.substr(0, 40))};
  };
  const auto skip_spaces = [](std::string_view& rest) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  };
  std::string_view rest = text;
  skip_spaces(rest);
  TrainingLength length;
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), length.amount);
  if (status != std::errc() || !std::isfinite(length.amount) || length.amount <= 0) return fault();
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  skip_spaces(rest);
  for (const auto& [letter, scale] : kScales) {
    if (rest.empty() || rest.front() != letter) continue;
    length.amount *= scale;
    rest.remove_prefix(1);
    break;
  }
  skip_spaces(rest);
  const std::string_view unit = rest.substr(0, rest.find_last_not_of(' ') + 1);
  length.tokens = unit == "tokens";
  if (!length.tokens && unit != "samples" && unit != "sequences" && unit != "images")
    return fault();
  length.unit = unit;
  return length;
}

}  // namespace foreshard::study
