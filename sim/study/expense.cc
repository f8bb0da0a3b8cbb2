// Energy, CO2 and money of a prediction (expense.h), for run.cc and the simulations of searches.
// Base units are joules, kilograms and US dollars.
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

// A sum over devices; known only if each part is known.
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

std::optional<Joules> idle_energy(const DeviceType& type, Seconds step) {
  if (!type.power || !type.idle_power) return std::nullopt;
  return type.idle_power->value * step;
}

// Time at the power limit that takes the same energy above idle as everything that a device of the
// class does.
Seconds full_draw_of(const sim::DeviceClass& one, const DeviceDraw& draw) {
  const auto time_of = [&](ParameterGroup group) {
    return one.kernels[static_cast<std::size_t>(group)];
  };
  const Seconds products = time_of(ParameterGroup::kProducts);
  const Seconds attention = time_of(ParameterGroup::kAttention);
  const Seconds passes = time_of(ParameterGroup::kPasses);
  const Seconds kernels = products + attention + passes;
  const double mean =
      kernels > 0_s
          ? (*draw.products * products + *draw.attention * attention + *draw.passes * passes) /
                kernels
          : *draw.products;
  const sim::Breakdown& time = one.breakdown;
  const Seconds communication =
      time.tensor + time.context + time.expert + time.pipeline + time.data;
  return mean * time.compute + *draw.passes * time.optimizer + *draw.communication * communication +
         *draw.waiting * (time.host + time.bubble);
}

std::optional<Joules> energy_of(const sim::DeviceClass& one, const DeviceType& type, Seconds step) {
  const auto idle = idle_energy(type, step);
  if (!idle) return std::nullopt;
  return *idle + (type.power->value - type.idle_power->value) * full_draw_of(one, *type.draw);
}

// Energy that nodes draw in addition to their devices; adds nodes of unknown power to `missing`.
Joules energy_of_hosts(const ClusterConfig& config, Seconds step,
                       std::vector<std::string>& missing) {
  Joules energy;
  for (const NodeGroup& group : config.node_groups()) {
    const std::string& name = group.node->device->name;
    if (const auto& power = group.node->host_power)
      energy += power->value * step * static_cast<double>(group.nodes * group.node->gpus);
    else if (std::ranges::find(missing, name) == missing.end())
      missing.push_back(name);
  }
  return energy;
}

Joules energy_of_switches(const ClusterView& cluster, const ClusterConfig& config, Seconds step) {
  if (!config.switch_power) return {};
  const auto switches = std::ranges::count(cluster.vertices(), VertexKind::kSwitch, &Vertex::kind);
  return config.switch_power->value * step * static_cast<double>(switches);
}

}  // namespace

std::optional<DollarsPerSecond> price_of(const DeviceType& type, const ClusterConfig& config) {
  if (config.price) return config.price->value / config.lifetime->value;
  const auto& rent = config.rent ? config.rent : type.rent;
  return rent ? std::optional(rent->value) : std::nullopt;
}

sim::Expense expense_of(const sim::Prediction& prediction, const ClusterView& cluster,
                        const ClusterConfig& config) {
  sim::Expense expense;
  expense.owned = config.price.has_value();
  if (config.pue) expense.pue = config.pue->value;
  if (prediction.interruption) return expense;
  const Seconds step = prediction.step;
  std::vector<std::int64_t> unused(cluster.device_types().size(), 0);
  for (const Device& device : cluster.devices()) ++unused[device.type.index()];

  Sum<Joules> devices;
  for (const sim::DeviceClass& one : prediction.classes) {
    const DeviceTypeId id = cluster.devices()[one.device.index()].type;
    const DeviceType& type = cluster.device_types()[id.index()];
    unused[id.index()] -= one.count;
    devices.add(energy_of(one, type, step), static_cast<double>(one.count), type.name);
  }
  for (std::size_t t = 0; t < unused.size(); ++t) {
    expense.unused += unused[t];
    const DeviceType& type = cluster.device_types()[t];
    devices.add(idle_energy(type, step), static_cast<double>(unused[t]), type.name);
  }

  Sum<Dollars> rent;
  for (const Device& device : cluster.devices()) {
    const DeviceType& type = cluster.device_types()[device.type.index()];
    const auto price = price_of(type, config);
    rent.add(price ? std::optional(*price * step) : std::nullopt, 1, type.name);
  }
  expense.rent = rent.total();
  expense.without_rent = rent.missing();
  expense.without_power = devices.missing();
  if (const auto drawn = devices.total()) {
    sim::EnergyParts& parts = expense.parts;
    parts.devices = *drawn;
    parts.hosts = energy_of_hosts(config, step, expense.without_host_power);
    parts.network = energy_of_switches(cluster, config, step);
    if (config.other_power) parts.other = config.other_power->value * step;
    parts.cooling = (expense.pue - 1) * parts.total();
    expense.energy = parts.total();
    if (config.carbon) expense.carbon = *expense.energy * config.carbon->value;
  }
  if (config.electricity)
    expense.electricity =
        expense.energy ? std::optional(*expense.energy * config.electricity->value) : std::nullopt;
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
  constexpr double kMost = 1e18;  // all that was ever written has 1e15 tokens
  if (length.amount > kMost) return fault();
  skip_spaces(rest);
  const std::string_view unit = rest.substr(0, rest.find_last_not_of(' ') + 1);
  length.tokens = unit == "tokens";
  if (!length.tokens && unit != "samples" && unit != "sequences" && unit != "images")
    return fault();
  length.unit = unit;
  return length;
}

}  // namespace foreshard::study
