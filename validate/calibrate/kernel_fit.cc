#include "validate/calibrate/kernel_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/quantity.h"
#include "base/text.h"

#include "sim/compute/kernel_text.h"
#include "sim/compute/measured.h"
#include "sim/compute/operator_time.h"
#include "validate/calibrate/log_fit.h"

namespace foreshard::calibrate {
namespace {

constexpr std::array kReaches{0.5, 1.0, 2.0};
constexpr std::array kFamilies{KernelFamily::kGemm, KernelFamily::kAttention, KernelFamily::kPass};

double predicted(const Kernel& kernel, const DeviceType& device) {
  return model_time_of(kernel, device).total().in_base();
}

FitError error_of(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  std::vector<Seconds> sorted;  // errors as Seconds, the type that `quantile` takes
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

std::vector<Kernel> kernels_of(const std::vector<KernelSample>& samples, KernelFamily family) {
  std::vector<Kernel> kernels;
  for (const KernelSample& sample : samples)
    if (family_of(sample.kernel) == family && sample.time.median > 0_s)
      kernels.push_back(sample.kernel);
  return kernels;
}

// The device with numbers fitted to these kernels, without a list of measured kernels.
DeviceType fitted(const DeviceType& start, const std::vector<KernelSample>& samples,
                  std::vector<FittedValue>* values) {
  DeviceType device = start;
  device.efficiency.value.measured.clear();
  device.efficiency.value.reach = 0;
  for (const KernelFamily family : kFamilies) {
    const std::vector<Kernel> kernels = kernels_of(samples, family);
    if (kernels.empty()) continue;
    std::vector<double> measured;
    for (const KernelSample& sample : samples)
      if (family_of(sample.kernel) == family && sample.time.median > 0_s)
        measured.push_back(sample.time.median.in_base());
    auto found = fit_logarithms(
        numbers_of(device, family, kernels),
        [&](std::size_t i) { return predicted(kernels[i], device); }, measured);
    if (values != nullptr)
      values->insert(values->end(), std::make_move_iterator(found.begin()),
                     std::make_move_iterator(found.end()));
  }
  return device;
}

HeldOut held_out(const DeviceType& start, const std::vector<KernelSample>& kernels) {
  // Kernels are ordered by description and dealt out in turn, so each kind is in both halves.
  std::array<std::vector<KernelSample>, 2> halves;
  for (std::size_t i = 0; i < kernels.size(); ++i) halves[i % 2].push_back(kernels[i]);
  std::vector<double> plain;
  std::array<std::vector<double>, 3> of_family;
  std::array<std::vector<double>, kReaches.size()> near;
  for (const std::size_t half : {0U, 1U}) {
    if (halves[half].empty() || halves[1 - half].empty()) continue;
    DeviceType device = fitted(start, halves[half], nullptr);
    const auto& others = halves[1 - half];
    const std::vector<double> errors = errors_of(device, others);
    for (std::size_t i = 0; i < errors.size(); ++i) {
      plain.push_back(errors[i]);
      of_family[others[i].kernel.index()].push_back(errors[i]);
    }
    device.efficiency.value.measured_on = {device.name};
    for (const KernelSample& sample : halves[half])
      device.efficiency.value.measured.push_back(listed(sample, {}));
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

// Whether the sample is of foreshard's own kernels, which the fit leaves out.
bool is_foreign(const KernelSample& sample, const DeviceType& device,
                const KernelFitOptions& options) {
  return sample.provider == measure::kOwnKernels && !device.efficiency->own_kernels &&
         !options.own_kernels;
}

// Numbers that are not fitted keep the evidence that they have for this device, although the file
// as a whole will say that it was measured there.
void keep_evidence(const DeviceType& start, DeviceEfficiency& efficiency) {
  const auto keep = [&](auto& number) {
    FitRecord record;
    record.evidence = number.evidence;
    number.evidence = evidence_of(start, record);
  };
  keep(efficiency.gemm.fit);
  keep(efficiency.attention.fit);
  for (auto& [name, attention] : efficiency.attention_of) keep(attention.fit);
  keep(efficiency.passes.streaming);
  keep(efficiency.passes.floor);
  for (auto& [name, share] : efficiency.passes.of) keep(share);
}

// Fills the record of products or attention, if any number whose name begins with `prefix` was
// fitted.
void describe_fit(FitRecord& record, const std::vector<FittedValue>& values,
                  std::string_view prefix, std::int64_t rows, const FitError& held_out,
                  const std::string& source) {
  std::vector<std::string> kept;
  bool any = false;
  for (const FittedValue& value : values) {
    if (!value.name.starts_with(prefix)) continue;
    any = any || value.kept.empty();
    if (!value.kept.empty()) kept.push_back(value.name.substr(prefix.size()));
  }
  if (!any) return;
  record.source = kept.empty() ? source
                               : fmt::format("{}; as before, not told by it: {} ({})", source,
                                             join(kept), record.source);
  record.evidence = yaml::Evidence::kFitted;
  record.rows = rows;
  record.median_error = held_out.median;
  record.p90_error = held_out.p90;
}

void describe_passes(PassEfficiency& passes, const std::vector<FittedValue>& values,
                     const std::string& source) {
  constexpr std::string_view kOf = "passes.of.";
  for (const FittedValue& value : values) {
    if (!value.kept.empty()) continue;
    const auto describe = [&](auto& number) {
      number.source = source;
      number.evidence = yaml::Evidence::kFitted;
    };
    if (value.name == "passes.floor") describe(passes.floor);
    if (value.name.starts_with(kOf)) describe(passes.of.at(value.name.substr(kOf.size())));
  }
}

}  // namespace

Result<KernelFit> fit_kernels(const DeviceType& given, const std::vector<KernelSample>& kernels,
                              const KernelFitOptions& options) {
  if (kernels.empty())
    return Error{Error::Code::kInvalidInput,
                 "no kernel was measured: replay a Program that has some (calibrate --plan)"};
  DeviceType start = given;
  own_products(start);
  std::vector<KernelSample> used;
  std::vector<KernelSample> foreign;
  for (const KernelSample& sample : kernels)
    (is_foreign(sample, start, options) ? foreign : used).push_back(sample);

  KernelFit result;
  result.before = error_of(errors_of(start, used));
  result.held_out = held_out(start, used);
  result.device = fitted(start, used, &result.values);
  result.after = error_of(errors_of(result.device, used));
  for (const KernelSample& sample : used) {
    const double error = predicted(sample.kernel, result.device) / sample.time.median.in_base() - 1;
    if (std::abs(error) > kFarOff)
      result.outliers.push_back(fmt::format("{}: measured {}, the fitted model says {} ({:+.0f} %)",
                                            foreshard::describe(sample.kernel),
                                            format(sample.time.median),
                                            format((1 + error) * sample.time.median), 100 * error));
  }

  DeviceEfficiency& efficiency = result.device.efficiency.value;
  keep_evidence(start, efficiency);
  const auto describe = [&](FitRecord& record, const std::string& prefix, std::size_t family) {
    const auto rows = std::ranges::count_if(used, [&](const KernelSample& sample) {
      return prefix_of(sample.kernel, efficiency) == prefix;
    });
    describe_fit(record, result.values, prefix, rows, result.held_out.of_family[family],
                 options.source);
  };
  describe(efficiency.gemm.fit, "gemm.", 0);
  describe(efficiency.attention.fit, "attention.", 1);
  for (auto& [name, attention] : efficiency.attention_of)
    describe(attention.fit, "attention_of." + name + ".", 1);
  describe_passes(efficiency.passes, result.values, options.source);
  for (const KernelSample& sample : used) {
    efficiency.own_kernels = efficiency.own_kernels || sample.provider == measure::kOwnKernels;
    if (options.keep_measured)
      efficiency.measured.push_back(
          listed(sample, sample.provider + ", " + options.source_of_each));
  }
  // Families without a measured kernel keep the kernels that were listed for this device.
  const auto& before = *start.efficiency;
  if (std::ranges::find(before.measured_on, start.name) != before.measured_on.end())
    for (const MeasuredKernel& one : before.measured)
      if (const auto kernel = kernel_from(one.kernel);
          kernel && kernels_of(used, family_of(*kernel)).empty())
        efficiency.measured.push_back(one);
  const bool helps = result.held_out.with_neighbours.rows > 0 &&
                     result.held_out.with_neighbours.median < result.held_out.model.median;
  efficiency.reach = options.keep_measured && helps ? result.held_out.reach : 0;

  DeviceType scratch = start;
  for (const KernelFamily family : kFamilies)
    if (const auto left = kernels_of(foreign, family); !left.empty())
      for (const LogNumber& number : numbers_of(scratch, family, left))
        result.values.push_back({.name = number.name,
                                 .before = number.value,
                                 .value = number.value,
                                 .kept = "measured of foreshard's own kernels"});
  result.foreign = std::ssize(foreign);
  if (used.empty())
    result.device = given;
  else
    efficiency.measured_on = {start.name};
  return result;
}

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
