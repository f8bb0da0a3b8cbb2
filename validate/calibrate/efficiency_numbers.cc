#include "validate/calibrate/efficiency_numbers.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace foreshard::calibrate {
namespace {

struct Spreads {
  double share;
  double time;
};
Spreads spreads_of(const DeviceType& device, const FitRecord& fit) {
  switch (evidence_of(device, fit)) {
    case yaml::Evidence::kMeasured:
    case yaml::Evidence::kFitted:
      return {.share = 0.15, .time = 0.4};
    case yaml::Evidence::kTransferred:
      return {.share = 0.3, .time = 0.8};
    case yaml::Evidence::kDatasheet:
    case yaml::Evidence::kUser:
      break;
  }
  return {.share = 1.5, .time = 2.5};
}
template <class T>
FitRecord record_of(const yaml::Sourced<T>& number) {
  FitRecord record;
  record.evidence = number.evidence;
  return record;
}

template <class Q>
LogNumber number(const std::string& name, Q& member, double low, double high, double spread) {
  return {.name = name,
          .value = member.in_base(),
          .set = [&member](double value) { member = Q::from_base(value); },
          .low = low,
          .high = high,
          .spread = spread};
}
LogNumber number(const std::string& name, double& member, double low, double high, double spread) {
  return {.name = name,
          .value = member,
          .set = [&member](double value) { member = value; },
          .low = low,
          .high = high,
          .spread = spread};
}

std::vector<LogNumber> gemm_numbers(DeviceType& device, const std::vector<Kernel>& kernels) {
  GemmEfficiency& e = device.efficiency.value.gemm;
  const Spreads spread = spreads_of(device, e.fit);
  std::set<std::string> dtypes;
  for (const Kernel& kernel : kernels) dtypes.emplace(name_of(std::get<Gemm>(kernel).dtype));
  std::vector<LogNumber> numbers;
  for (const std::string& dtype : dtypes) {
    double& rate = e.rate_of.try_emplace(dtype, e.rate).first->second;
    numbers.push_back(number("gemm.rate_of." + dtype, rate, 1e-4, 1, spread.share));
  }
  numbers.push_back(number("gemm.streaming", e.streaming, 1e-4, 1, spread.share));
  numbers.push_back(number("gemm.operand_rate", e.operand_rate, 1e6, 1e15, spread.time));
  numbers.push_back(number("gemm.tile_overhead", e.tile_overhead, 1e-12, 1e-2, spread.time));
  numbers.push_back(number("gemm.floor", e.floor, 1e-9, 1e-1, spread.time));
  if (e.splits.size() > 1) {
    numbers.push_back(number("gemm.split_overhead", e.split_overhead, 1e-12, 1e-2, spread.time));
    numbers.push_back(number("gemm.split_traffic", e.split_traffic, 1e-4, 10, spread.share));
  }
  return numbers;
}

AttentionEfficiency& attention_of(DeviceEfficiency& efficiency, const Attention& attention) {
  const auto own = efficiency.attention_of.find(std::string(name_of(attention.implementation)));
  return own == efficiency.attention_of.end() ? efficiency.attention : own->second;
}

// The entry of a head size. A missing one is inserted: interpolated between its two neighbours, or
// a copy of the nearest entry beyond the ends.
AttentionRate& line_of(std::vector<AttentionRate>& rates, std::int64_t head_dim) {
  const auto place = std::ranges::lower_bound(rates, head_dim, {}, &AttentionRate::head_dim);
  if (place != rates.end() && place->head_dim == head_dim) return *place;
  AttentionRate line = place == rates.end() ? rates.back() : *place;
  if (place != rates.begin() && place != rates.end()) {
    const AttentionRate& below = *std::prev(place);
    const double way = static_cast<double>(head_dim - below.head_dim) /
                       static_cast<double>(place->head_dim - below.head_dim);
    line.forward = std::lerp(below.forward, place->forward, way);
    line.backward = std::lerp(below.backward, place->backward, way);
  }
  line.head_dim = head_dim;
  return *rates.insert(place, line);
}

std::vector<LogNumber> attention_numbers(DeviceType& device, const std::vector<Kernel>& kernels) {
  // Implementation's prefix -> pairs of head size and whether forward.
  std::map<std::string, std::set<std::pair<std::int64_t, bool>>> seen;
  std::map<std::string, AttentionEfficiency*> of;
  for (const Kernel& kernel : kernels) {
    const auto& a = std::get<Attention>(kernel);
    const std::string prefix = prefix_of(kernel, *device.efficiency);
    seen[prefix].insert({a.head_dim, a.direction == Direction::kForward});
    of[prefix] = &attention_of(device.efficiency.value, a);
  }
  std::vector<LogNumber> numbers;
  for (const auto& [prefix, sizes] : seen) {
    AttentionEfficiency& e = *of.at(prefix);
    const Spreads spread = spreads_of(device, e.fit);
    for (const auto& [head_dim, forward] : sizes) line_of(e.rates, head_dim);
    for (const auto& [head_dim, forward] : sizes) {
      AttentionRate& line = line_of(e.rates, head_dim);
      numbers.push_back(
          number(fmt::format("{}rates.{}.{}", prefix, head_dim, forward ? "forward" : "backward"),
                 forward ? line.forward : line.backward, 1e-5, 1, spread.share));
    }
    numbers.push_back(number(prefix + "unit_overhead", e.unit_overhead, 1e-12, 1e-1, spread.time));
    numbers.push_back(number(prefix + "floor", e.floor, 1e-9, 1e-1, spread.time));
  }
  return numbers;
}

std::vector<LogNumber> pass_numbers(DeviceType& device, const std::vector<Kernel>& kernels) {
  PassEfficiency& e = device.efficiency.value.passes;
  std::set<std::string> kinds;
  for (const Kernel& kernel : kernels) kinds.emplace(traffic_of(std::get<Pass>(kernel).kind).name);
  std::vector<LogNumber> numbers;
  for (const std::string& kind : kinds) {
    auto& share = e.of.try_emplace(kind, e.streaming).first->second;
    numbers.push_back(number("passes.of." + kind, share.value, 1e-6, 1,
                             spreads_of(device, record_of(share)).share));
  }
  numbers.push_back(number("passes.floor", e.floor.value, 1e-9, 1e-1,
                           spreads_of(device, record_of(e.floor)).time));
  return numbers;
}

}  // namespace

std::string prefix_of(const Kernel& kernel, const DeviceEfficiency& efficiency) {
  const auto* attention = std::get_if<Attention>(&kernel);
  if (attention == nullptr) return std::holds_alternative<Gemm>(kernel) ? "gemm." : "passes.";
  const std::string name(name_of(attention->implementation));
  return efficiency.attention_of.contains(name) ? "attention_of." + name + "." : "attention.";
}

KernelFamily family_of(const Kernel& kernel) {
  return static_cast<KernelFamily>(kernel.index());
}

std::vector<LogNumber> numbers_of(DeviceType& device, KernelFamily family,
                                  const std::vector<Kernel>& kernels) {
  switch (family) {
    case KernelFamily::kGemm:
      return gemm_numbers(device, kernels);
    case KernelFamily::kAttention:
      return attention_numbers(device, kernels);
    case KernelFamily::kPass:
      return pass_numbers(device, kernels);
  }
  return {};
}

}  // namespace foreshard::calibrate
