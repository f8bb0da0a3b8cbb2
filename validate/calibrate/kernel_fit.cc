#include "validate/calibrate/kernel_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <utility>

#include "base/quantity.h"

#include "sim/compute/measured.h"
#include "sim/compute/operator_time.h"
#include "validate/calibrate/log_fit.h"

namespace foreshard::calibrate {
namespace {

constexpr std::array kReaches{0.5, 1.0, 2.0};
// Of a number's logarithm, before any data: what a device may differ from its start.
constexpr double kKernelRateSpread = 1.5;
constexpr double kTimeSpread = 2.5;

enum class KernelFamily { kGemm, kAttention, kPass };
KernelFamily family_of(const Kernel& kernel) {
  return static_cast<KernelFamily>(kernel.index());
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

// The numbers of one family that its samples depend on. `device` must outlive what it returns.
std::vector<LogNumber> gemm_numbers(DeviceType& device, const std::vector<KernelSample>& kernels) {
  GemmEfficiency& e = device.efficiency.value.gemm;
  std::set<std::string> dtypes;
  for (const KernelSample& sample : kernels)
    dtypes.emplace(name_of(std::get<Gemm>(sample.kernel).dtype));
  std::vector<LogNumber> numbers;
  for (const std::string& dtype : dtypes) {
    double& rate = e.rate_of.try_emplace(dtype, e.rate).first->second;
    numbers.push_back(number("gemm.rate_of." + dtype, rate, 1e-4, 1, kKernelRateSpread));
  }
  numbers.push_back(number("gemm.streaming", e.streaming, 1e-4, 1, kKernelRateSpread));
  numbers.push_back(number("gemm.operand_rate", e.operand_rate, 1e6, 1e15, kTimeSpread));
  numbers.push_back(number("gemm.tile_overhead", e.tile_overhead, 1e-12, 1e-2, kTimeSpread));
  numbers.push_back(number("gemm.floor", e.floor, 1e-9, 1e-1, kTimeSpread));
  if (e.splits.size() > 1) {
    numbers.push_back(number("gemm.split_overhead", e.split_overhead, 1e-12, 1e-2, kTimeSpread));
    numbers.push_back(number("gemm.split_traffic", e.split_traffic, 1e-4, 10, kKernelRateSpread));
  }
  return numbers;
}

std::vector<LogNumber> attention_numbers(DeviceType& device,
                                         const std::vector<KernelSample>& kernels) {
  AttentionEfficiency& e = device.efficiency.value.attention;
  std::set<std::pair<std::int64_t, bool>> seen;
  for (const KernelSample& sample : kernels) {
    const auto& a = std::get<Attention>(sample.kernel);
    seen.insert({a.head_dim, a.direction == Direction::kForward});
  }
  // A head size that was measured gets a line of its own, from the nearest one that there is.
  for (const auto& [head_dim, forward] : seen) {
    const auto place = std::ranges::lower_bound(e.rates, head_dim, {}, &AttentionRate::head_dim);
    if (place != e.rates.end() && place->head_dim == head_dim) continue;
    AttentionRate line = place == e.rates.end() ? e.rates.back() : *place;
    line.head_dim = head_dim;
    e.rates.insert(place, line);
  }
  std::vector<LogNumber> numbers;
  for (AttentionRate& line : e.rates) {
    const auto name = [&](const char* way) {
      return fmt::format("attention.rates.{}.{}", line.head_dim, way);
    };
    if (seen.contains({line.head_dim, true}))
      numbers.push_back(number(name("forward"), line.forward, 1e-5, 1, kKernelRateSpread));
    if (seen.contains({line.head_dim, false}))
      numbers.push_back(number(name("backward"), line.backward, 1e-5, 1, kKernelRateSpread));
  }
  numbers.push_back(number("attention.unit_overhead", e.unit_overhead, 1e-12, 1e-1, kTimeSpread));
  numbers.push_back(number("attention.floor", e.floor, 1e-9, 1e-1, kTimeSpread));
  return numbers;
}

std::vector<LogNumber> pass_numbers(DeviceType& device, const std::vector<KernelSample>& kernels,
                                    const std::string& source) {
  PassEfficiency& e = device.efficiency.value.passes;
  std::set<std::string> kinds;
  for (const KernelSample& sample : kernels)
    kinds.emplace(traffic_of(std::get<Pass>(sample.kernel).kind).name);
  std::vector<LogNumber> numbers;
  for (const std::string& kind : kinds) {
    auto& share = e.of.try_emplace(kind, e.streaming).first->second;
    share.source = source;
    share.evidence = yaml::Evidence::kFitted;
    numbers.push_back(number("passes.of." + kind, share.value, 1e-6, 1, kKernelRateSpread));
  }
  e.floor.source = source;
  e.floor.evidence = yaml::Evidence::kFitted;
  numbers.push_back(number("passes.floor", e.floor.value, 1e-9, 1e-1, kTimeSpread));
  return numbers;
}

double predicted(const Kernel& kernel, const DeviceType& device) {
  return model_time_of(kernel, device).total().in_base();
}

FitError error_of(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  std::vector<Seconds> sorted;  // quantile's type
  sorted.reserve(errors.size());
  for (const double error : errors) sorted.push_back(std::abs(error) * 1_s);
  return {.rows = std::ssize(errors),
          .median = measure::quantile(sorted, 0.5) / 1_s,
          .p90 = measure::quantile(sorted, 0.9) / 1_s};
}

std::vector<double> errors_of(const DeviceType& device, const std::vector<KernelSample>& kernels) {
  std::vector<double> errors;
  errors.reserve(kernels.size());
  for (const KernelSample& sample : kernels)
    errors.push_back(time_of(sample.kernel, device).total() / sample.time.median - 1);
  return errors;
}

MeasuredKernel listed(const KernelSample& sample, const std::string& source) {
  return {.kernel = describe(sample.kernel),
          .time = sample.time.median,
          .low = sample.time.low,
          .high = sample.time.high,
          .burst = false,
          .source = source};
}

// The device with numbers fitted to these kernels, and none of them listed.
DeviceType fitted(const DeviceType& start, const std::vector<KernelSample>& kernels,
                  const std::string& source, std::vector<FittedValue>* values) {
  DeviceType device = start;
  device.efficiency.value.measured.clear();
  device.efficiency.value.reach = 0;
  for (const KernelFamily family :
       {KernelFamily::kGemm, KernelFamily::kAttention, KernelFamily::kPass}) {
    std::vector<KernelSample> members;
    for (const KernelSample& sample : kernels)
      if (family_of(sample.kernel) == family && sample.time.median > 0_s) members.push_back(sample);
    if (members.empty()) continue;
    std::vector<LogNumber> numbers = family == KernelFamily::kGemm ? gemm_numbers(device, members)
                                     : family == KernelFamily::kAttention
                                         ? attention_numbers(device, members)
                                         : pass_numbers(device, members, source);
    std::vector<double> measured;
    measured.reserve(members.size());
    for (const KernelSample& sample : members) measured.push_back(sample.time.median.in_base());
    auto found = fit_logarithms(
        numbers, [&](std::size_t i) { return predicted(members[i].kernel, device); }, measured);
    if (values != nullptr)
      values->insert(values->end(), std::make_move_iterator(found.begin()),
                     std::make_move_iterator(found.end()));
  }
  return device;
}

HeldOut held_out(const DeviceType& start, const std::vector<KernelSample>& kernels,
                 const std::string& source) {
  // By rule: kernels by description, every other one; so each kind is on both sides.
  std::array<std::vector<KernelSample>, 2> halves;
  for (std::size_t i = 0; i < kernels.size(); ++i) halves[i % 2].push_back(kernels[i]);
  std::vector<double> plain;
  std::array<std::vector<double>, 3> of_family;
  std::array<std::vector<double>, kReaches.size()> near;
  for (const std::size_t half : {0U, 1U}) {
    if (halves[half].empty() || halves[1 - half].empty()) continue;
    DeviceType device = fitted(start, halves[half], source, nullptr);
    const auto& others = halves[1 - half];
    const std::vector<double> errors = errors_of(device, others);
    for (std::size_t i = 0; i < errors.size(); ++i) {
      plain.push_back(errors[i]);
      of_family[others[i].kernel.index()].push_back(errors[i]);
    }
    device.efficiency.value.measured_on = {device.name};
    for (const KernelSample& sample : halves[half])
      device.efficiency.value.measured.push_back(listed(sample, source));
    for (std::size_t r = 0; r < kReaches.size(); ++r) {
      device.efficiency.value.reach = kReaches[r];
      for (const double error : errors_of(device, others)) near[r].push_back(error);
    }
  }
  HeldOut result{.model = error_of(plain), .of_family = {}, .with_neighbours = {}, .reach = 0};
  for (std::size_t f = 0; f < of_family.size(); ++f) result.of_family[f] = error_of(of_family[f]);
  for (std::size_t r = 0; r < kReaches.size(); ++r) {
    const FitError error = error_of(near[r]);
    if (r > 0 && error.median >= result.with_neighbours.median) continue;
    result.with_neighbours = error;
    result.reach = kReaches[r];
  }
  return result;
}

void describe_fit(FitRecord& record, const FitError& held_out, const std::string& source,
                  std::int64_t rows) {
  record.source = source;
  record.evidence = yaml::Evidence::kFitted;
  record.rows = rows;
  record.median_error = held_out.median;
  record.p90_error = held_out.p90;
}

}  // namespace

Result<KernelFit> fit_kernels(const DeviceType& start, const std::vector<KernelSample>& kernels,
                              const KernelFitOptions& options) {
  if (kernels.empty())
    return Error{Error::Code::kInvalidInput,
                 "no kernel was measured: replay a Program that has some (calibrate --plan)"};
  KernelFit result;
  result.before = error_of(errors_of(start, kernels));
  result.held_out = held_out(start, kernels, options.source);
  result.device = fitted(start, kernels, options.source, &result.values);
  result.after = error_of(errors_of(result.device, kernels));
  for (const KernelSample& sample : kernels) {
    const double error = predicted(sample.kernel, result.device) / sample.time.median.in_base() - 1;
    if (std::abs(error) > kFarOff)
      result.outliers.push_back(fmt::format("{}: measured {}, the fitted model says {} ({:+.0f} %)",
                                            describe(sample.kernel), format(sample.time.median),
                                            format((1 + error) * sample.time.median), 100 * error));
  }

  DeviceEfficiency& efficiency = result.device.efficiency.value;
  efficiency.measured_on = {result.device.name};
  std::array<std::int64_t, 3> rows{};
  for (const KernelSample& sample : kernels) ++rows[sample.kernel.index()];
  if (rows[0] > 0)
    describe_fit(efficiency.gemm.fit, result.held_out.of_family[0], options.source, rows[0]);
  if (rows[1] > 0)
    describe_fit(efficiency.attention.fit, result.held_out.of_family[1], options.source, rows[1]);
  if (options.keep_measured)
    for (const KernelSample& sample : kernels)
      efficiency.measured.push_back(listed(sample, options.source_of_each));
  const bool helps = result.held_out.with_neighbours.rows > 0 &&
                     result.held_out.with_neighbours.median < result.held_out.model.median;
  efficiency.reach = options.keep_measured && helps ? result.held_out.reach : 0;
  return result;
}

}  // namespace foreshard::calibrate
